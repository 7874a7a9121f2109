package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
)

type replayFlags struct {
	subjectFlags
	rules []string
	step  bool
	trace string
}

func (p *program) replayCommand() *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:   "replay FILE|TOKEN [SUBJECT] [flags] [-- CMD...]",
		Short: "run one case again and show what is wrong with it",
		Long: `Runs one case by one schedule. A token is the name of a case (its own schedule) or
CASE@SEED (a drawn one), as every finding of «pi-conform run» gives it; a file is a case in
the form of the fixtures. progress@SEED is a run of the subject's channel of progress.`,
		Example: `  pi-conform replay par/three-reversed --step
  pi-conform replay par/three-reversed@2781 mutant:results-in-completion-order
  pi-conform replay ./my-case.txtar pi@0.84.3`,
		Args: arguments(1, 2, true),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return completeCases(), cobra.ShellCompDirectiveDefault
			}
			return subjects.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := splitArgs(cmd, args)
			return p.replay(cmd.Context(), f, names[0], names[1:], command)
		},
	}
	f.subjectFlags.add(cmd)
	cmd.Flags().StringArrayVar(&f.rules, "rule", nil, "judge only by the rules that match `PATTERN`")
	cmd.Flags().BoolVar(&f.step, "step", false, "show every step")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write the trace to `FILE`, as JSON lines")
	return cmd
}

func (p *program) replay(ctx context.Context, f *replayFlags, text string, names, command []string) error {
	if seed, ok, err := channelSeed(text); ok || err != nil {
		if err != nil {
			return err
		}
		return p.replayChannel(ctx, f, seed, names, command)
	}
	t, err := parseToken(text)
	if err != nil {
		return err
	}
	rules, err := conformance.Select(f.rules...)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if f.edition == "" {
		f.edition = pinnedTo(t.Case)
	}
	subject, err := p.open(ctx, &f.subjectFlags, names, command)
	if err != nil {
		return err
	}
	defer subject.Close()
	if !runsIn(t.Case, subject.Edition) {
		return exit.Usagef("case %s is written for edition %s, not for %s", t.Case.Name, pinnedTo(t.Case), subject.Edition)
	}
	rep, rec, err := suite.One(ctx, subject.Driver, t.Case, t.seed(), suite.Options{
		Tool: tool(), Edition: subject.Edition, Rules: rules, Oracle: subject.Oracle, Reference: reference.New(), Reducer: subject.Reducer, Replay: subject.Replay,
	})
	if err != nil {
		return err
	}
	if rec == nil {
		return exit.Usagef("case %s needs what the subject does not have: %s", t.Case.Name, rep.Skipped[0].Needs)
	}
	if err := writeTrace(f.trace, rec.Trace); f.trace != "" && err != nil {
		return err
	}
	return p.showReplay(f, &t, rec, rep)
}

// showReplay shows a recording and what is wrong with it.
func (p *program) showReplay(f *replayFlags, t *token, rec *harness.Recording, rep *report.Report) error {
	if t.Case.Story != "" {
		p.out.Printf("%s\n\n", t.Case.Story)
	}
	for _, label := range rec.Skipped {
		p.out.Printf("%s %s was not possible when its turn came\n", p.out.Warn("skipped"), label)
	}
	if f.step {
		p.out.Trace(rec.Trace, marked(rep)...)
		p.out.Printf("\n")
	}
	p.out.Findings(rep, true)
	p.out.Summary(rep, false)
	return exit.Silently(codeOf(rep))
}

// marked are the entries of the findings that make the subject fail.
func marked(rep *report.Report) []int {
	var marked []int
	for _, f := range rep.Broken(conformance.Must) {
		marked = append(marked, f.Entries...)
	}
	return marked
}

// seed draws the schedule; nil means the case's own.
func (t *token) seed() *uint64 {
	if !t.Seeded {
		return nil
	}
	return &t.Seed
}
