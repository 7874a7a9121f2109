package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/doctor"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
)

type doctorFlags struct {
	timeoutScale float64
	json         bool
}

func (p *program) doctorCommand() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor [SUBJECT] [flags] [-- CMD...]",
		Short: "what is wrong with an adapter, step by step",
		Long: `Starts the process and talks to it in small steps. The first step that fails is named by a code, with what was
seen, the likely cause and the cure. It examines the adapter, not the loop; «pi-conform run» judges that.`,
		Example: `  pi-conform doctor -- python3 adapter.py
  pi-conform doctor pi@0.84.3`,
		Args:              arguments(0, 1, true),
		ValidArgsFunction: completeSubjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := splitArgs(cmd, args)
			return p.doctor(cmd.Context(), f, names, command)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.timeoutScale, "timeout-scale", 1, "multiplies the patience for each answer")
	flags.BoolVar(&f.json, "json", false, "the stages as JSON")
	return cmd
}

func (p *program) doctor(ctx context.Context, f *doctorFlags, names, argv []string) error {
	if f.timeoutScale <= 0 {
		return exit.Usagef("--timeout-scale has to be greater than 0")
	}
	r := subjects.Request{Command: argv, TimeoutScale: f.timeoutScale, Harness: tool(), Log: p.note}
	if len(names) > 0 {
		r.Name = names[0]
	}
	if r.Name == "" && len(argv) == 0 {
		r.Name = "reference"
	}
	command, err := subjects.Command(ctx, r)
	if err != nil {
		return err
	}
	o := doctor.Options{Command: command, TimeoutScale: f.timeoutScale}
	if !f.json {
		o.Stage = p.printStage
	}
	stages := doctor.Examine(ctx, o)
	if f.json {
		if err := p.writeJSON(stages); err != nil {
			return err
		}
	}
	return p.diagnosis(ctx, stages, f.json)
}

func (p *program) printStage(s doctor.Stage) {
	p.out.Printf("%s  %s\n", p.resultMark(s.Result), s.Name)
	if s.Result != doctor.Failed {
		return
	}
	p.out.Printf("\n")
	p.out.Paragraph("code", string(s.Code))
	p.out.Paragraph("sign", s.Sign)
	p.out.Paragraph("seen", s.Detail)
	p.out.Paragraph("cause", s.Cause)
	p.out.Paragraph("cure", s.Cure)
	for _, line := range s.Stderr {
		p.out.Printf("%s\n", p.out.Faint("stderr    "+line))
	}
	p.out.Printf("\n")
}

func (p *program) resultMark(r doctor.Result) string {
	mark := map[doctor.Result]string{doctor.OK: "ok  ", doctor.Failed: "FAIL", doctor.Skipped: "–   ", doctor.NotTried: "…   "}[r]
	switch r {
	case doctor.OK:
		return p.out.Good(mark)
	case doctor.Failed:
		return p.out.Bad(mark)
	case doctor.Skipped, doctor.NotTried:
	}
	return p.out.Faint(mark)
}

func (p *program) diagnosis(ctx context.Context, stages []doctor.Stage, quiet bool) error {
	if ctx.Err() != nil {
		return exit.Silently(exit.Interrupted)
	}
	var failed []string
	for _, s := range stages {
		if s.Result == doctor.Failed {
			failed = append(failed, string(s.Code))
		}
	}
	switch {
	case len(failed) > 0 && !quiet:
		p.out.Printf("%s: %v\n", p.out.Bad("the adapter is not ready"), fmt.Sprint(failed))
	case !quiet:
		p.out.Printf("%s\n", p.out.Good("the adapter is ready to be judged"))
	}
	if len(failed) > 0 {
		return exit.Silently(exit.Subject)
	}
	return nil
}
