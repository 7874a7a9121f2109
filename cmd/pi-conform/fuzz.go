package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

type fuzzFlags struct {
	subjectFlags
	time         time.Duration
	runs         int
	policy       string
	exhaustive   bool
	differential bool
	scenario     string
	forms        []string
	save         string
	seed         uint64
	jobs         int
	repeat       int
	maxFail      int
	level        string
	quiet        bool
	asJSON       bool
}

func (p *program) fuzzCommand() *cobra.Command {
	f := &fuzzFlags{}
	cmd := &cobra.Command{
		Use:   "fuzz [SUBJECT] [flags] [-- CMD...]",
		Short: "explore orders that nobody wrote down; shrink and save what fails",
		Long: `Draws scenarios and orders, judges every one by the rules, and hands over the smallest case
for each kind of thing that is wrong. It ends by saying what has been established. With --scenario
one case is explored instead; with --differential the reference has to do the same.`,
		Example: `  pi-conform fuzz pi@0.75.5 --runs 2000 --save found
  pi-conform fuzz mutant:late-update-accepted --seed 7
  pi-conform fuzz --scenario par/three-reversed --exhaustive
  pi-conform fuzz pi@0.84.3 --differential --runs 2000`,
		Args:              arguments(0, 1, true),
		ValidArgsFunction: completeSubjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := splitArgs(cmd, args)
			return p.fuzz(cmd.Context(), f, names, command)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *fuzzFlags) add(cmd *cobra.Command) {
	f.subjectFlags.add(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.time, "time", 0, "explore for this long, such as 60s")
	flags.IntVar(&f.runs, "runs", 0, "explore so many schedules (default: 2000, if there is no --time)")
	flags.StringVar(&f.policy, "policy", "auto", "auto, random, uniform, pct:D, delay:D, exhaustive, first")
	flags.BoolVar(&f.exhaustive, "exhaustive", false, "the same as --policy exhaustive")
	flags.BoolVar(&f.differential, "differential", false, "the subject has to do what the reference does, even where no rule says so")
	flags.StringVar(&f.scenario, "scenario", "", "explore the orders of one case, by name or file")
	flags.StringSliceVar(&f.forms, "form", nil, "forms in which the loop is run, of agent, loop and stream (default: those that the subject has)")
	flags.StringVar(&f.save, "save", "", "save shrunk cases in `DIR`, and run those first that are there")
	flags.Uint64Var(&f.seed, "seed", 1, "seed from which everything is drawn")
	flags.IntVar(&f.jobs, "jobs", 0, "cases run at a time (default: one per processor in process, 1 for a process)")
	flags.IntVar(&f.repeat, "repeat", 0, "replay every schedule `N` times to see that the subject is deterministic")
	flags.IntVar(&f.maxFail, "max-fail", 0, "stop after `N` kinds of findings (0: never)")
	flags.StringVar(&f.level, "level", "should", "least level of the rules to judge by: must, should or robust")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	flags.BoolVar(&f.asJSON, "json", false, "write the result as JSON")
}

func (p *program) fuzz(ctx context.Context, f *fuzzFlags, names, command []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	subject, err := p.open(ctx, &f.subjectFlags, names, command)
	if err != nil {
		return err
	}
	defer subject.Close()
	if o.Rules, err = chosenRules(nil, f.level, subject.Edition); err != nil {
		return err
	}
	if o.Size, err = f.size(subject); err != nil {
		return err
	}
	o.Edition, o.Subject, o.Oracle, o.Jobs = subject.Edition, subject.Name, subject.Oracle, jobs(f.jobs, subject)
	if f.differential && o.Oracle == nil {
		o.Oracle = reference.New()
	}
	if o.Scenario != nil {
		scenario := *o.Scenario
		scenario.Edition = subject.Edition
		o.Scenario = &scenario
	}
	if !f.quiet {
		o.Progress = p.fuzzProgress()
	}
	result, err := fuzz.Explore(ctx, subject.Driver, o)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if result == nil {
		return errors.Join(err, ctx.Err())
	}
	result.Partial = result.Partial || ctx.Err() != nil
	return p.tellFuzz(ctx, f, subject, result)
}

// options are what the flags say by themselves.
func (f *fuzzFlags) options() (fuzz.Options, error) {
	o := fuzz.Options{
		Seed: f.seed, Runs: f.runs, Time: f.time, Differential: f.differential, Repeat: f.repeat, Stop: f.maxFail, SaveDir: f.save,
	}
	switch {
	case f.runs < 0 || f.time < 0 || f.jobs < 0 || f.repeat < 0 || f.maxFail < 0:
		return o, exit.Usagef("--runs, --time, --jobs, --repeat and --max-fail cannot be negative")
	case f.exhaustive && f.policy != "auto" && f.policy != "exhaustive":
		return o, exit.Usagef("--exhaustive is --policy exhaustive, and --policy %s is given too", f.policy)
	case f.exhaustive:
		f.policy = "exhaustive"
	}
	if err := oneOf("level", f.level, "must", "should", "robust"); err != nil {
		return o, err
	}
	var err error
	if o.Policy, err = harness.ParsePolicy(f.policy); err != nil {
		return o, exit.Usagef("--policy: %w", err)
	}
	if f.scenario == "" {
		return o, nil
	}
	t, err := parseToken(f.scenario)
	if err != nil {
		return o, err
	}
	o.Scenario = t.Case.Case.Scenario
	return o, nil
}

// size is everything that there is, in the forms that were asked for.
func (f *fuzzFlags) size(s *subjects.Subject) (fuzz.Size, error) {
	size := fuzz.Everything()
	if len(f.forms) == 0 {
		return size, nil
	}
	forms := map[string]*bool{"agent": &size.Agent, "loop": &size.Loop, "stream": &size.Stream}
	for _, form := range forms {
		*form = false
	}
	for _, name := range f.forms {
		if err := oneOf("form", name, "agent", "loop", "stream"); err != nil {
			return size, err
		}
		if lacks := s.Lacks(&harness.Scenario{Form: trace.Form(name)}); lacks != "" {
			return size, exit.Usagef("--form %s: the subject has not declared %s", name, lacks)
		}
		*forms[name] = true
	}
	return size, nil
}

// fuzzProgress writes a line now and then.
func (p *program) fuzzProgress() func(fuzz.Progress) {
	const every = 5 * time.Second
	var told time.Duration
	return func(now fuzz.Progress) {
		if now.Elapsed-told < every {
			return
		}
		told = now.Elapsed
		rate := float64(now.Runs) / now.Elapsed.Seconds()
		found := "nothing found"
		if len(now.Found) > 0 {
			found = "found " + strings.Join(now.Found, ", ")
		}
		p.note(fmt.Sprintf("%s: %d schedules, %.0f a second, %d kinds of traces, %s", now.Phase, now.Runs, rate, now.Shapes, found))
	}
}

// tellFuzz says what came of it and how the program ends.
func (p *program) tellFuzz(ctx context.Context, f *fuzzFlags, s *subjects.Subject, r *fuzz.Result) error {
	code := codeOfFuzz(ctx, r)
	if f.asJSON {
		if err := p.writeJSON(fuzzSummary(s, r)); err != nil {
			return err
		}
		return exit.Silently(code)
	}
	for _, found := range r.Findings {
		p.tellFound(ctx, s, found)
	}
	p.out.Printf("%s, edition %s: %d schedules of %d scenarios, %d kinds of traces\n", s.Name, s.Edition, r.Runs, r.Scenarios, r.Shapes)
	for _, line := range r.Established() {
		p.out.Printf("  %s\n", line)
	}
	if r.Unsupported > 0 {
		p.out.Printf("  %d cases were left out, because the subject lacks what they need\n", r.Unsupported)
	}
	if r.Partial {
		p.out.Printf("  %s\n", p.out.Warn("interrupted before the end: this is what was done so far"))
	}
	switch {
	case len(r.Findings) > 0:
		p.out.Printf("  %s\n", p.out.Warn("found: "+strings.Join(kinds(r), ", ")))
	case r.Runs > 0:
		p.out.Printf("  nothing was found\n")
	}
	return exit.Silently(code)
}

func kinds(r *fuzz.Result) []string {
	var names []string
	for _, found := range r.Findings {
		names = append(names, found.Kind)
	}
	return names
}

// tellFound shows one finding: what is wrong, where, and the case that was shrunk.
func (p *program) tellFound(ctx context.Context, s *subjects.Subject, found *fuzz.Finding) {
	file := found.CaseFile("", s.Name)
	replay := "save it with --save DIR to replay it"
	if found.File != "" {
		replay = s.Replay(found.File)
	}
	p.out.Heading(found.Kind)
	if rule, err := conformance.Lookup(found.Kind); err == nil {
		p.out.Paragraph("", rule.Sentence)
	}
	shown := report.Finding{
		Rule: found.Kind, Level: found.Level, Message: found.Message, Case: file.Name, Schedule: found.Case.Schedule,
		Entries: found.Entries, Count: found.Count, Replay: replay,
	}
	if found.Recording != nil {
		shown.Trace = found.Recording.Trace
		shown.Reference = shrunkReference(ctx, found)
	}
	p.out.Finding(&shown)
	if len(found.Also) > 0 {
		p.out.Printf("  also broken in this case: %s\n", strings.Join(found.Also, ", "))
	}
	p.out.Printf("  the case, shrunk:\n\n%s\n", indented(string(harness.FormatCase(file))))
}

// shrunkReference is what the reference does in the shrunk case; nil if it cannot
// be run.
func shrunkReference(ctx context.Context, found *fuzz.Finding) *trace.Trace {
	rec, err := harness.RunCase(ctx, reference.New(), found.Case, harness.Limits{})
	if err != nil {
		return nil
	}
	return rec.Trace
}

func codeOfFuzz(ctx context.Context, r *fuzz.Result) exit.Code {
	wrong := func(found *fuzz.Finding) bool {
		return found.Level == conformance.Must || found.Kind == fuzz.Differential
	}
	inconclusive := func(found *fuzz.Finding) bool { return found.Level == "" && found.Kind != fuzz.Differential }
	switch {
	case slices.ContainsFunc(r.Findings, wrong):
		return exit.Broken
	case ctx.Err() != nil:
		return exit.Interrupted
	case slices.ContainsFunc(r.Findings, inconclusive):
		return exit.Subject
	case r.Runs == 0:
		return exit.Nothing
	}
	return exit.OK
}

// summary is the result of an exploration as JSON.
type summary struct {
	Subject     string         `json:"subject"`
	Edition     string         `json:"edition"`
	Seed        uint64         `json:"seed"`
	Policy      string         `json:"policy"`
	Runs        int            `json:"runs"`
	Scenarios   int            `json:"scenarios"`
	Shapes      int            `json:"shapes"`
	Seconds     float64        `json:"seconds"`
	Established []string       `json:"established"`
	Findings    []foundSummary `json:"findings"`
	Partial     bool           `json:"partial,omitzero"`
}

type foundSummary struct {
	Kind     string   `json:"kind"`
	Also     []string `json:"also,omitempty"` // other rules that the case breaks
	Level    string   `json:"level,omitempty"`
	Message  string   `json:"message"`
	Count    int      `json:"count"`
	File     string   `json:"file,omitempty"`
	Case     string   `json:"case"` // in the form of a case file
	Schedule []string `json:"schedule"`
}

func fuzzSummary(s *subjects.Subject, r *fuzz.Result) summary {
	sum := summary{
		Subject: s.Name, Edition: string(s.Edition), Seed: r.Seed, Policy: r.Policy.String(), Runs: r.Runs, Scenarios: r.Scenarios,
		Shapes: r.Shapes, Seconds: r.Elapsed.Seconds(), Established: r.Established(), Findings: []foundSummary{}, Partial: r.Partial,
	}
	for _, found := range r.Findings {
		sum.Findings = append(sum.Findings, foundSummary{
			Kind: found.Kind, Also: found.Also, Level: string(found.Level), Message: found.Message, Count: found.Count, File: found.File,
			Case: string(harness.FormatCase(found.CaseFile("", s.Name))), Schedule: found.Case.Schedule,
		})
	}
	return sum
}
