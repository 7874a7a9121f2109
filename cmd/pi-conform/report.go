package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance/report"
)

func (p *program) reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "work with the JSON reports of runs: merge, compare, show and check them",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.mergeReports(), p.renderReport(), p.diffReports(), p.badgeOfReport(), p.validateReports())
	return cmd
}

// reportFlags are where a report goes and how it is shown.
type reportFlags struct {
	outputs  outputs
	baseline string
	verbose  bool
}

func (f *reportFlags) add(cmd *cobra.Command) {
	f.outputs.add(cmd)
	cmd.Flags().StringVar(&f.baseline, "baseline", "", "expected failures are in `FILE`")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "name every rule, and show findings of every level in full")
}

func (p *program) mergeReports() *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "merge FILE...",
		Short: "make one report of those of the shards of a run; the exit code is that of the run in one piece",
		Args:  arguments(1, 10_000, false),
		RunE: func(_ *cobra.Command, files []string) error {
			if err := f.outputs.check(); err != nil {
				return err
			}
			var shards []*report.Report
			for _, file := range files {
				rep, err := readReport(file)
				if err != nil {
					return err
				}
				shards = append(shards, rep)
			}
			whole, err := report.Merge(shards)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			return p.showReport(f, whole)
		},
	}
	f.add(cmd)
	return cmd
}

func (p *program) renderReport() *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "render FILE",
		Short: "show a report again, on the console or in another form; the exit code is that of its run",
		Args:  arguments(1, 1, false),
		RunE: func(_ *cobra.Command, files []string) error {
			if err := f.outputs.check(); err != nil {
				return err
			}
			rep, err := readReport(files[0])
			if err != nil {
				return err
			}
			return p.showReport(f, rep)
		},
	}
	f.add(cmd)
	return cmd
}

// showReport does with a report what run does with its own.
func (p *program) showReport(f *reportFlags, rep *report.Report) error {
	expected, err := openBaseline(f.baseline)
	if err != nil {
		return err
	}
	if expected != nil {
		if err := expect(expected, rep); err != nil {
			return err
		}
	}
	if err := p.write(&f.outputs, rep); err != nil {
		return err
	}
	out := p.out
	if f.outputs.onStream() {
		out = p.notes
	}
	out.Findings(rep, f.verbose)
	out.Summary(rep, f.verbose)
	return exit.Silently(codeOf(rep))
}

func (p *program) diffReports() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "what fails newly, what passes newly; exit code 1 if a MUST rule is newly broken",
		Args:  arguments(2, 2, false),
		RunE: func(_ *cobra.Command, files []string) error {
			before, err := readReport(files[0])
			if err != nil {
				return err
			}
			after, err := readReport(files[1])
			if err != nil {
				return err
			}
			d := report.Compare(before, after)
			if asJSON {
				err = p.writeJSON(d)
			} else {
				p.out.Diff(d)
			}
			if err == nil && d.Worse() {
				return exit.Silently(exit.Broken)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func (p *program) badgeOfReport() *cobra.Command {
	return &cobra.Command{
		Use:   "badge FILE",
		Short: "a badge as JSON, as badge services read it; grey if the run was partial",
		Args:  arguments(1, 1, false),
		RunE: func(_ *cobra.Command, files []string) error {
			rep, err := readReport(files[0])
			if err != nil {
				return err
			}
			return report.WriteBadge(p.raw, rep)
		},
	}
}

func (p *program) validateReports() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "check reports by their JSON Schema",
		Args:  arguments(1, 10_000, false),
		RunE: func(_ *cobra.Command, files []string) error {
			for _, file := range files {
				if err := validateReport(file); err != nil {
					return err
				}
				p.out.Printf("%s: valid\n", file)
			}
			return nil
		},
	}
}

func validateReport(file string) error {
	if _, err := readReport(file); err != nil { // says more than the schema about what is no report at all
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("%s: %w", file, err))
	}
	schema, err := compiledSchema(report.JSONSchema)
	if err != nil {
		return err
	}
	return exit.With(exit.Usage, prefixed(file, schema.Validate(value)))
}

func prefixed(file string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", file, err)
}

func compiledSchema(text []byte) (*jsonschema.Schema, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", value); err != nil {
		return nil, err
	}
	return compiler.Compile("schema.json")
}
