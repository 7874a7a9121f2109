package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/docs"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/matrix"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
)

type matrixFlags struct {
	subjectFlags
	run       []string
	skip      []string
	schedules int
	seed      uint64
	json      string
	md        string
}

func (p *program) matrixCommand() *cobra.Command {
	f := &matrixFlags{}
	cmd := &cobra.Command{
		Use:   "matrix SUBJECT...",
		Short: "several subjects side by side, rule by rule",
		Long: `Runs the suite on each subject, judges each by the newest edition that it claims, and writes one table of rules
and subjects, with every finding and what is known of it. Findings do not make it fail: it is a survey.`,
		Example: `  pi-conform matrix pi@0.84.3 pi@1.6.0
  pi-conform matrix reference oh-my-pi@18.2.3 --json matrix.json`,
		Args:              arguments(1, 100, false),
		ValidArgsFunction: completeSubjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.matrix(cmd.Context(), f, args)
		},
	}
	f.subjectFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.run, "run", nil, "run only the cases that match `PATTERN`")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave out the cases that match `PATTERN`")
	flags.IntVar(&f.schedules, "schedules", 10, "drawn schedules of each case, besides its own")
	flags.Uint64Var(&f.seed, "seed", 1, "seed from which schedules are drawn")
	flags.StringVar(&f.json, "json", "", "write it as JSON to `FILE` (- for standard output)")
	flags.StringVar(&f.md, "md", "", "write it as Markdown to `FILE` (default: to standard output)")
	return cmd
}

func (p *program) matrix(ctx context.Context, f *matrixFlags, names []string) error {
	if f.schedules < 0 {
		return exit.Usagef("--schedules cannot be negative")
	}
	if _, err := chosenCases(f.run, f.skip); err != nil { // before a process is started
		return err
	}
	var results []matrix.Result
	for _, name := range names {
		r, err := p.survey(ctx, f, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, *r)
	}
	return p.writeMatrix(f, matrix.New(results, f.schedules))
}

// survey runs the suite on one subject.
func (p *program) survey(ctx context.Context, f *matrixFlags, name string) (*matrix.Result, error) {
	s, err := p.open(ctx, &f.subjectFlags, []string{name}, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	cases, err := chosenCases(f.run, f.skip)
	if err != nil {
		return nil, err
	}
	cases, skipped, _ := fitting(cases, s)
	rep, err := suite.Run(ctx, s.Driver, cases, suite.Options{
		Tool: tool(), Edition: s.Edition, Schedules: f.schedules, Seed: f.seed, Skipped: skipped,
		Jobs: jobs(0, s), Oracle: s.Oracle, Reducer: s.Reducer, Replay: s.Replay,
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	p.note(fmt.Sprintf("%s: %s", s.Name, shortly(rep)))
	return &matrix.Result{Name: s.Name, Report: rep}, nil
}

func shortly(rep *report.Report) string {
	broken := map[string]bool{}
	for _, f := range rep.Broken("must") {
		broken[f.Rule] = true
	}
	return fmt.Sprintf("%d MUST rules broken, %d schedules, %d inconclusive", len(broken), rep.Schedules, len(rep.Unclear))
}

func (p *program) writeMatrix(f *matrixFlags, m *matrix.Matrix) error {
	if f.json != "" {
		if err := p.writeFile(f.json, func(w io.Writer) error { return matrix.Write(w, m) }); err != nil {
			return err
		}
	}
	file := f.md
	if file == "" && f.json != "" {
		return nil
	}
	if file == "" {
		file = "-"
	}
	return p.writeFile(file, func(w io.Writer) error {
		_, err := io.WriteString(w, docs.Matrix(m))
		return err
	})
}
