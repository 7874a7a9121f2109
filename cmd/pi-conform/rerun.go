package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness"
)

// readReport reads the report in a file.
func readReport(file string) (*report.Report, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	defer in.Close()
	rep, err := report.Read(in)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s: %w", file, err))
	}
	return rep, nil
}

// again keeps of the cases those that failed in an earlier run, and runs them by
// the same schedules unless others are asked for.
func (f *runFlags) again(cases []*harness.CaseFile, flags *pflag.FlagSet) ([]*harness.CaseFile, error) {
	if f.rerun == "" {
		return cases, nil
	}
	rep, err := readReport(f.rerun)
	if err != nil {
		return nil, err
	}
	cases = slices.DeleteFunc(cases, func(c *harness.CaseFile) bool {
		return !slices.ContainsFunc(rep.Results, func(r report.Result) bool { return r.Case == c.Name && r.Status.Bad() })
	})
	if len(cases) == 0 {
		return nil, exit.With(exit.Nothing, fmt.Errorf("%s: no case of this suite failed there: nothing is left to run", f.rerun))
	}
	if !flags.Changed("schedules") {
		f.schedules = rep.Plan.Schedules
	}
	if !flags.Changed("seed") {
		f.seed = rep.Seed
	}
	if !flags.Changed("edition") {
		f.edition = rep.Edition
	}
	return cases, nil
}
