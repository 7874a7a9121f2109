package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
)

// subjectFlags are the flags of every command that runs a subject.
type subjectFlags struct {
	edition      string
	timeoutScale float64
	talk         bool // show what the subject logs
}

func (f *subjectFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.edition, "edition", "", "edition of the contract to judge by (default: the subject's own)")
	flags.BoolVar(&f.talk, "subject-log", false, "show what a subject in a process logs")
	flags.Float64Var(&f.timeoutScale, "timeout-scale", 1, "multiplies all time limits of a subject in a process")
}

// open makes the subject ready that is named before or after --.
func (p *program) open(ctx context.Context, f *subjectFlags, names, command []string) (*subjects.Subject, error) {
	if f.timeoutScale <= 0 {
		return nil, exit.Usagef("--timeout-scale has to be greater than 0")
	}
	r := subjects.Request{
		Command: command, Project: true, Edition: f.edition, TimeoutScale: f.timeoutScale, Harness: tool(), Log: p.note,
	}
	if f.talk {
		r.Talk = p.note
	}
	if len(names) > 0 {
		r.Name = names[0]
	}
	return subjects.Open(ctx, r)
}

func completeSubjects(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return subjects.Names(), cobra.ShellCompDirectiveNoFileComp
}
