package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func (p *program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain RULE",
		Short: "a rule: what it says and why, a trace that keeps it and one that breaks it",
		Args:  arguments(1, 1, false),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ruleIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if rule, ok := progress.Lookup(args[0]); ok {
				return p.explainProgress(rule)
			}
			rule, err := conformance.Lookup(args[0])
			if err != nil {
				return exit.Usagef("%w; «pi-conform list rules» names the rules", err)
			}
			return p.explainRule(cmd.Context(), rule)
		},
	}
}

func (p *program) explainRule(ctx context.Context, r conformance.Rule) error {
	p.describeRule(&r)
	cases, err := suite.Cases()
	if err != nil {
		return err
	}
	p.out.Paragraph("cases", exercisedBy(ctx, r, cases))
	p.out.Printf("\n")
	keeping, breaking := examples(r.ID)
	if keeping != nil && breaking != nil {
		p.drawExample(r, "a trace that keeps it", keeping)
		p.drawExample(r, "a trace that breaks it", breaking)
		return nil
	}
	return p.drawMutant(ctx, r, cases)
}

func (p *program) describeRule(r *conformance.Rule) {
	p.out.Heading(r.ID)
	p.out.Paragraph("", r.Sentence)
	p.out.Printf("\n")
	p.out.Paragraph("why", r.Why)
	p.out.Paragraph("level", string(r.Level))
	p.out.Paragraph("editions", editionsOf(r))
	p.out.Paragraph("source", sourceText(r.Source))
	p.out.Paragraph("evidence", evidenceText(r))
	if len(r.Edges) > 0 {
		p.out.Paragraph("edges", edgesText(r.Edges))
	}
	p.out.Paragraph("mutants", mutantsText(r.ID))
}

// sources say what the letters in a rule's source stand for.
var sources = map[string]string{
	"K": "the walk through the agent kernel", "U": "the chapter on showing tool execution",
	"P": "the note on progress", "R": "what the releases do",
}

// sourceText is the source with what its letters stand for.
func sourceText(source string) string {
	var known []string
	for _, part := range strings.FieldsFunc(source, func(r rune) bool { return strings.ContainsRune(" ,;", r) }) {
		if about := sources[part[:1]]; about != "" && len(part) <= 3 {
			known = append(known, part[:1]+": "+about)
		}
	}
	if known == nil {
		return source
	}
	return source + " (" + strings.Join(unique(known), "; ") + ")"
}

func unique(texts []string) []string {
	var once []string
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			once = append(once, text)
		}
		seen[text] = true
	}
	return once
}

// evidenceWords say what each kind of evidence is.
var evidenceWords = map[trace.Evidence]string{
	trace.EvidenceEvents: "events", trace.EvidenceState: "the agent's state", trace.EvidenceListeners: "all listeners' calls",
	trace.EvidenceCallbacks: "callbacks and their answers", trace.EvidenceRequests: "model requests",
	trace.EvidenceActions: "actions from outside", trace.EvidenceKept: "kept references", trace.EvidenceViews: "views",
	trace.EvidenceTwin: "a twin run", trace.EvidencePolls: "polls of the queues", trace.EvidenceReads: "reads of the model stream",
}

func evidenceText(r *conformance.Rule) string {
	var words []string
	for _, need := range r.Needs {
		words = append(words, evidenceWords[need])
	}
	if r.NeedsTwin() {
		words = append(words, evidenceWords[trace.EvidenceTwin])
	}
	return strings.Join(unique(words), ", ")
}

func edgesText(edges []int) string {
	var numbers []string
	for _, e := range edges {
		numbers = append(numbers, fmt.Sprintf("e%d", e))
	}
	return strings.Join(numbers, ", ") + ": there it does not apply"
}

func mutantsText(rule string) string {
	var names []string
	for _, m := range subjects.MutantsOf(rule) {
		names = append(names, m.Name)
	}
	if names == nil {
		return "none names it"
	}
	return strings.Join(names, ", ")
}

// exercisedBy names the cases that exercise the rule on the reference.
func exercisedBy(ctx context.Context, r conformance.Rule, cases []*harness.CaseFile) string {
	var names []string
	for _, c := range cases {
		for _, e := range edition.Known() {
			if exercises(ctx, r, c, e) {
				names = append(names, c.Name)
				break
			}
		}
	}
	if names == nil {
		return "none exercises it"
	}
	return strings.Join(names, ", ")
}

func exercises(ctx context.Context, r conformance.Rule, c *harness.CaseFile, e edition.Edition) bool {
	if !runsIn(c, e) {
		return false
	}
	again := harness.Case{Scenario: scenarioIn(c, e), Schedule: c.Case.Schedule}
	rec, err := harness.RunCase(ctx, reference.New(), again, harness.Limits{})
	if err != nil {
		return false
	}
	verdict := conformance.Check(rec.Trace, []conformance.Rule{r}, conformance.InEdition(e))
	return verdict.Rules[0].Exercised > 0
}

// examples looks up the traces that are kept as examples of a rule; nil if
// there are none.
var examples = func(string) (keeping, breaking *trace.Trace) { return nil, nil }

// drawExample draws a kept trace with the entries that clash.
func (p *program) drawExample(r conformance.Rule, heading string, t *trace.Trace) {
	verdict := conformance.Check(t, []conformance.Rule{r})
	p.out.Heading(heading)
	if first := verdict.First(); first != nil {
		p.out.Printf("  %s\n", first.Message)
		p.out.Excerpt(t, first.Entries...)
	} else {
		p.out.Trace(t)
	}
	p.out.Printf("\n")
}

// drawMutant draws how a mutant breaks the rule, and what the reference does at
// the same place.
func (p *program) drawMutant(ctx context.Context, r conformance.Rule, cases []*harness.CaseFile) error {
	for _, m := range subjects.MutantsOf(r.ID) {
		f, err := firstFinding(ctx, r, m, cases)
		if err != nil {
			return err
		}
		if f != nil {
			p.out.Heading("how mutant:" + m.Name + " breaks it")
			p.out.Finding(f)
			return nil
		}
	}
	return nil
}

// firstFinding is the first case in which the mutant breaks the rule; nil if
// there is none.
func firstFinding(ctx context.Context, r conformance.Rule, m subjects.Mutant, cases []*harness.CaseFile) (*report.Finding, error) {
	subject := "mutant:" + m.Name
	for _, e := range edition.Known() {
		rep, err := suite.Run(ctx, m.Driver(), cases, suite.Options{
			Edition: e, Rules: []conformance.Rule{r}, Schedules: explainSchedules, Jobs: 1, MaxFail: 1,
			Reference: reference.New(), Reducer: m.Reducer,
			Replay: func(token string) string {
				return fmt.Sprintf("pi-conform replay %s %s --edition %s", token, subject, e)
			},
		})
		if err != nil {
			return nil, err
		}
		if len(rep.Findings) > 0 {
			return &rep.Findings[0], nil
		}
	}
	return nil, nil
}

const explainSchedules = 3
