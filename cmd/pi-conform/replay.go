package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
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
the form of the fixtures.`,
		Example: `  pi-conform replay par/reverse-order --step
  pi-conform replay par/reverse-order@2781 mutant:results-in-completion-order
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
	rec, err := subject.Record(ctx, scenarioIn(t.Case, subject.Edition), t.policy())
	if err != nil {
		return err
	}
	if err := writeTrace(f.trace, rec.Trace); f.trace != "" && err != nil {
		return err
	}
	return p.showReplay(ctx, f, subject, &t, rec, rules)
}

// showReplay judges a recording and shows it.
func (p *program) showReplay(ctx context.Context, f *replayFlags, s *subjects.Subject, t *token, rec *harness.Recording, rules []conformance.Rule) error {
	verdict := conformance.Check(rec.Trace, rules, conformance.InEdition(s.Edition))
	if t.Case.Story != "" {
		p.out.Printf("%s\n\n", t.Case.Story)
	}
	for _, label := range rec.Skipped {
		p.out.Printf("%s %s was not possible when its turn came\n", p.out.Warn("skipped"), label)
	}
	if f.step {
		p.out.Trace(rec.Trace, marks(&verdict)...)
		p.out.Printf("\n")
	}
	rep := reportOf(ctx, s, t, rec, &verdict)
	p.out.Findings(rep, true)
	p.out.Summary(rep, false)
	return exit.Silently(codeOf(rep))
}

// marks are the entries of the findings that make the subject fail.
func marks(v *conformance.Verdict) []int {
	var marked []int
	for _, f := range v.Findings {
		if f.Level == conformance.Must {
			marked = append(marked, f.Entries...)
		}
	}
	return marked
}

// reportOf is the report of a single schedule.
func reportOf(ctx context.Context, s *subjects.Subject, t *token, rec *harness.Recording, v *conformance.Verdict) *report.Report {
	info := s.Driver.Info()
	rep := &report.Report{
		Schema: report.Schema, Tool: tool(), Edition: string(s.Edition), Cases: 1, Schedules: 1,
		Subject: report.Subject{Name: info.Name, Version: info.Version, Language: info.Language, Barrier: info.Barrier},
	}
	for _, r := range v.Rules {
		rep.Rules = append(rep.Rules, report.Rule{
			ID: r.Rule, Level: r.Level, Status: r.Status, Exercised: r.Exercised, Reason: r.Reason,
		})
	}
	var good *trace.Trace
	if len(v.Findings) > 0 {
		good = referenceTrace(ctx, t.Case, rec.Schedule, s)
	}
	told := map[string]bool{}
	for _, f := range v.Findings {
		if !told[f.Rule] { // where a rule is broken once, it is often broken again
			rep.Findings = append(rep.Findings, finding(s, t, rec, f, good))
		}
		told[f.Rule] = true
	}
	end := rec.Trace.Entries[len(rec.Trace.Entries)-1]
	if end.Outcome != trace.OutcomeComplete && end.Outcome != trace.OutcomeDeadlock {
		rep.Unclear = append(rep.Unclear, report.Unclear{
			Case: t.Case.Name, Schedule: rec.Schedule, Outcome: end.Outcome, Message: end.Message,
		})
	}
	return rep
}

func finding(s *subjects.Subject, t *token, rec *harness.Recording, f conformance.Finding, good *trace.Trace) report.Finding {
	found := report.Finding{
		Rule: f.Rule, Level: f.Level, Message: f.Message, Case: t.Case.Name, Schedule: rec.Schedule,
		Entries: f.Entries, Count: 1, Replay: s.Replay(t.String()), Trace: rec.Trace, Reference: good,
	}
	if t.Seeded {
		found.Seed = &t.Seed
	}
	return found
}

// referenceTrace is what the reference does by the same schedule; nil if it
// cannot.
func referenceTrace(ctx context.Context, c *harness.CaseFile, schedule []string, s *subjects.Subject) *trace.Trace {
	again := harness.Case{Scenario: scenarioIn(c, s.Edition), Schedule: schedule}
	rec, err := harness.RunCase(ctx, reference.New(), again, harness.Limits{})
	if err != nil {
		return nil
	}
	return rec.Trace
}
