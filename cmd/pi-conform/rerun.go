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

// again keeps of what was chosen the cases that failed in an earlier run, and runs
// them by the same schedules unless others are asked for.
func (f *runFlags) again(c *chosen, flags *pflag.FlagSet) error {
	if f.rerun == "" {
		return nil
	}
	rep, err := readReport(f.rerun)
	if err != nil {
		return err
	}
	failed := func(name string) bool {
		return slices.ContainsFunc(rep.Results, func(r report.Result) bool { return r.Case == name && r.Status.Bad() })
	}
	c.cases = slices.DeleteFunc(c.cases, func(c *harness.CaseFile) bool { return !failed(c.Name) })
	if !failed(channelCase) {
		c.channel = nil
	}
	if len(c.cases) == 0 && c.channel == nil {
		return exit.With(exit.Nothing, fmt.Errorf("%s: no case of this suite failed there: nothing is left to run", f.rerun))
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
	return nil
}
