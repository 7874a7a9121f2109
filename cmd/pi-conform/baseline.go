package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/baseline"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness/edition"
)

func (p *program) baselineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "expected failures: write them down, and remove those that no longer happen",
		Long: `A baseline is a list of failures that are expected, each with its reason:

  - match: upd/**          # pattern of cases
    rule: UPD-2
    status: fail           # or flaky, crash, timeout
    message: an update     # prefix of the finding's message
    reason: fixed in 0.84
    issue: "#12"
    expires: 2027-01-31

It is checked both ways: «pi-conform run --baseline FILE» fails by what is not expected, and
ends with an exit code of its own if something is expected that does not happen.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		baselineVerb("update FILE REPORT", "add what fails in a report and is not expected yet, with the fewest patterns", p.updateBaseline),
		baselineVerb("prune FILE REPORT", "remove what is expected and did not happen in a report", p.pruneBaseline),
		baselineVerb("check FILE [REPORT]", "find mistakes, what has expired, and what did not happen in a report", p.checkBaseline),
	)
	return cmd
}

func baselineVerb(use, short string, run func(file string, rep *report.Report) error) *cobra.Command {
	least := 2
	if strings.Contains(use, "[") {
		least = 1
	}
	return &cobra.Command{
		Use: use, Short: short, Args: arguments(least, 2, false),
		RunE: func(_ *cobra.Command, args []string) error {
			var rep *report.Report
			if len(args) == 2 {
				var err error
				if rep, err = readReport(args[1]); err != nil {
					return err
				}
			}
			return run(args[0], rep)
		},
	}
}

// openBaseline reads a baseline that has to be there, and checks it.
func openBaseline(file string) (*baseline.File, error) {
	if file == "" {
		return nil, nil
	}
	f, err := baseline.Read(file)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	names, err := allCases("")
	if err != nil {
		return nil, err
	}
	return f, exit.With(exit.Usage, f.Check(append(names, channelCase), time.Now()))
}

// allCases are the names of the cases of the suite that can be run in the
// edition; of all, if that is empty.
func allCases(in edition.Edition) ([]string, error) {
	cases, err := suite.Cases()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range cases {
		if in == "" || runsIn(c, in) {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

// expect marks in the report what the baseline expects.
func expect(f *baseline.File, rep *report.Report) error {
	if f == nil {
		rep.Settle()
		return nil
	}
	names, err := allCases(edition.Edition(rep.Edition))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rep.Results, func(r report.Result) bool { return r.Case == channelCase }) {
		names = append(names, channelCase)
	}
	f.Apply(rep, names)
	return nil
}

func (p *program) updateBaseline(file string, rep *report.Report) error {
	f, err := baseline.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = &baseline.File{Path: file}, nil
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := expect(f, rep); err != nil {
		return err
	}
	text, added := f.Update(rep)
	if added > 0 {
		if err := p.writeText(file, text); err != nil {
			return err
		}
	}
	p.out.Printf("%s added to %s\n", entries(added), file)
	if rep.Partial || rep.Shard != nil {
		p.notes.Printf("%s the report is about a part of the suite: what was not run may fail too\n", p.notes.Warn("note:"))
	}
	return nil
}

func (p *program) pruneBaseline(file string, rep *report.Report) error {
	f, err := baseline.Read(file)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := expect(f, rep); err != nil {
		return err
	}
	if len(rep.Stale) > 0 {
		if err := p.writeText(file, f.Prune(rep.Stale)); err != nil {
			return err
		}
	}
	p.out.Printf("%s removed from %s\n", entries(len(rep.Stale)), file)
	return nil
}

func (p *program) checkBaseline(file string, rep *report.Report) error {
	f, err := openBaseline(file)
	if err != nil {
		return err
	}
	if rep == nil {
		p.out.Printf("%s: %s, no mistake\n", file, entries(len(f.Entries)))
		return nil
	}
	if err := expect(f, rep); err != nil {
		return err
	}
	p.out.Summary(rep, false)
	return exit.Silently(codeOf(rep))
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func (p *program) writeText(file, text string) error {
	return exit.With(exit.Usage, p.writeFile(file, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}))
}
