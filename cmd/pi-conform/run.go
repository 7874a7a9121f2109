package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
)

type runFlags struct {
	subjectFlags
	level     string
	run       []string
	skip      []string
	rules     []string
	schedules int
	seed      uint64
	jobs      int
	repeat    int
	failFast  bool
	maxFail   int
	traceDir  string
	shard     string
	rerun     string
	baseline  string
	strict    bool
	events    string
	outputs   outputs

	part    report.Shard // what shard says
	quiet   bool
	verbose bool
}

func (p *program) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [SUBJECT] [flags] [-- CMD...]",
		Short: "run the suite against a subject and judge it",
		Long: `Runs every case of the suite against a subject, by the schedule of the case and by drawn ones,
and judges what was recorded. Only a broken MUST rule makes the subject fail. A channel of progress
that the subject declares is judged besides, as the case «progress».`,
		Example: `  pi-conform run                             the reference loop
  pi-conform run mutant:late-update-accepted a loop with a defect
  pi-conform run pi@0.84.3 --run 'par/*'     some cases, on the npm loop
  pi-conform run -- python3 adapter.py       a program that speaks the protocol`,
		Args:              arguments(0, 1, true),
		ValidArgsFunction: completeSubjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := splitArgs(cmd, args)
			return p.runSuite(cmd, f, names, command)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *runFlags) add(cmd *cobra.Command) {
	f.subjectFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.level, "level", "robust", "least level of the rules to judge by: must, should or robust")
	flags.StringArrayVar(&f.run, "run", nil, "run only the cases that match `PATTERN` (* within a part of the name, ** across parts)")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave out the cases that match `PATTERN`")
	flags.StringArrayVar(&f.rules, "rule", nil, "judge only by the rules that match `PATTERN`, such as UPD-2, UPD or 'UPD-*'")
	flags.IntVar(&f.schedules, "schedules", 10, "drawn schedules of each case, besides its own")
	flags.Uint64Var(&f.seed, "seed", 1, "seed from which schedules are drawn")
	flags.IntVar(&f.jobs, "jobs", 0, "cases run at a time (default: one per processor in process, 1 for a process)")
	flags.IntVar(&f.repeat, "repeat", 0, "record every schedule `N` times besides and compare: each time has to give the same")
	flags.BoolVar(&f.failFast, "fail-fast", false, "stop at the first case that breaks a MUST rule")
	flags.IntVar(&f.maxFail, "max-fail", 0, "stop after `N` findings of MUST rules (0: never)")
	flags.StringVar(&f.traceDir, "trace-dir", "", "write the traces of all findings, and the reference's, below `DIR`")
	flags.StringVar(&f.shard, "shard", "", "run only part `I/N` of everything, or «job»: the one that an indexed job of Kubernetes is given")
	flags.StringVar(&f.rerun, "rerun-failed", "", "run only the cases that failed in the report in `FILE` (JSON), by the same schedules")
	flags.StringVar(&f.baseline, "baseline", "", "expected failures are in `FILE`")
	flags.BoolVar(&f.strict, "strict", false, "with --baseline: an expected failure that does not happen counts as a broken rule")
	flags.StringVar(&f.events, "events", "", "write what happens to `FILE` while it happens, as JSON lines")
	f.outputs.add(cmd)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress, and of findings the summary alone")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "name every rule, and show findings of every level in full")
}

// check finds what is wrong with the flags by themselves.
func (f *runFlags) check() error {
	switch {
	case f.schedules < 0:
		return exit.Usagef("--schedules cannot be negative")
	case f.jobs < 0:
		return exit.Usagef("--jobs cannot be negative")
	case f.maxFail < 0:
		return exit.Usagef("--max-fail cannot be negative")
	case f.repeat < 0 || f.repeat == 1:
		return exit.Usagef("--repeat has to be at least 2: there is nothing to compare one recording with")
	case f.failFast && f.maxFail > 1:
		return exit.Usagef("--fail-fast is --max-fail 1, and --max-fail %d is given too", f.maxFail)
	case f.quiet && f.verbose:
		return exit.Usagef("--quiet and --verbose cannot be given together")
	}
	if f.failFast {
		f.maxFail = 1
	}
	if f.strict && f.baseline == "" {
		return exit.Usagef("--strict is about expected failures: it needs --baseline")
	}
	var err error
	if f.part, err = parseShard(f.shard); err != nil {
		return err
	}
	if f.part.Count > 0 && f.repeat > 0 {
		return exit.Usagef("--shard and --repeat cannot be given together")
	}
	if err := writable(f.events); err != nil {
		return exit.With(exit.Usage, fmt.Errorf("--events: %w", err))
	}
	if err := f.outputs.check(); err != nil {
		return err
	}
	return oneOf("level", f.level, "must", "should", "robust")
}

// runSuite is the command run.
func (p *program) runSuite(cmd *cobra.Command, f *runFlags, names, command []string) error {
	ctx := cmd.Context()
	if err := f.check(); err != nil {
		return err
	}
	expected, err := openBaseline(f.baseline)
	if err != nil {
		return err
	}
	what, err := f.choose() // before a process is started
	if err != nil {
		return err
	}
	if err := f.again(what, cmd.Flags()); err != nil {
		return err
	}
	subject, err := p.open(ctx, &f.subjectFlags, names, command)
	if err != nil {
		return err
	}
	defer subject.Close()
	if len(what.cases) == 0 && what.channel != nil && subject.Channel == nil {
		return exit.Usagef("the subject has declared no channel of progress, and nothing else is chosen")
	}
	began := time.Now()
	events, err := openEvents(f.events)
	if err != nil {
		return err
	}
	rep, err := p.judge(ctx, f, subject, what, events)
	if err != nil {
		return err
	}
	rep.Partial = rep.Partial || ctx.Err() != nil
	if err := expect(expected, rep); err != nil {
		return err
	}
	if !f.quiet {
		p.note("took " + time.Since(began).Round(10*time.Millisecond).String())
	}
	return p.deliver(ctx, f, rep, events)
}

// judge runs the cases.
func (p *program) judge(ctx context.Context, f *runFlags, s *subjects.Subject, what *chosen, events *eventLog) (*report.Report, error) {
	rules, err := chosenRules(what.rules, f.level, s.Edition)
	if err != nil {
		return nil, err
	}
	cases, skipped, notes := fitting(what.cases, s)
	if len(what.cases) == 0 || len(cases) == 0 && s.Channel != nil && s.Reducer == nil {
		rules = []conformance.Rule{} // only the channel is judged
	}
	events.start(len(cases))
	o := suite.Options{
		Tool: tool(), Edition: s.Edition, Rules: rules, Schedules: f.schedules, Seed: f.seed, Shard: f.part, Skipped: skipped,
		Jobs: jobs(f.jobs, s), MaxFail: f.maxFail, Oracle: s.Oracle, Reference: reference.New(), Reducer: s.Reducer, Replay: s.Replay,
	}
	progress := p.notes.NewProgress(caseNames(cases))
	if !f.quiet {
		defer progress.End()
	}
	o.Progress = func(done suite.Progress) {
		if !f.quiet {
			progress.Case(done.Case, done.Schedules, done.Failed, done.Unclear)
		}
		events.done(done.Done, done.Result, done.Findings)
	}
	rep, err := suite.Run(ctx, s.Driver, cases, o)
	if err != nil {
		return nil, err
	}
	rep.Notes = append(rep.Notes, slices.Concat(notes, olderThanEdition(s), equivalent(s))...)
	labelLeaks(ctx, s, cases, rules, rep)
	judgeChannel(ctx, f, what.channel, s, rep)
	if f.repeat == 0 || ctx.Err() != nil {
		return rep, nil
	}
	rep.Unclear = append(rep.Unclear, unsteady(ctx, s, cases, rules, f)...)
	return rep, nil
}

// equivalent says of a mutant with which no run breaks a rule why that is so.
func equivalent(s *subjects.Subject) []string {
	m, err := subjects.LookupMutant(s.Name)
	switch {
	case err != nil:
		return nil
	case m.Equivalent != "":
		return []string{"no rule can tell this mutant from the reference: " + m.Equivalent}
	case m.Racy:
		return []string{"only goroutines with the race detector show this mutant: go test -race ./adapters/reference"}
	}
	return nil
}

// olderThanEdition says that a release is judged by what came after it.
func olderThanEdition(s *subjects.Subject) []string {
	release := edition.Edition(s.Driver.Info().Version)
	if !strings.HasPrefix(s.Name, "pi@") || release == "" || release.AtLeast(s.Edition) {
		return nil
	}
	return []string{fmt.Sprintf("judged by a later contract: %s is the first edition. What changed since: pi-conform list editions %s..%s",
		s.Edition, release, s.Edition)}
}

func caseNames(cases []*harness.CaseFile) []string {
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.Name
	}
	return names
}

// jobs is how many cases are run at a time. Of a process one at a time is the
// default: if it dies, it takes all of them along.
func jobs(asked int, s *subjects.Subject) int {
	switch {
	case asked > 0:
		return asked
	case s.Oracle != nil:
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// deliver writes the report wherever it was asked for, and says how the program
// ends.
func (p *program) deliver(ctx context.Context, f *runFlags, rep *report.Report, events *eventLog) error {
	code := codeOf(rep)
	switch {
	case ctx.Err() != nil:
		code = exit.Interrupted
	case f.strict && code == exit.Stale:
		code = exit.Broken
	}
	if err := writeTraces(f.traceDir, rep); err != nil {
		return err
	}
	if err := events.end(rep, code); err != nil {
		return err
	}
	if err := p.write(&f.outputs, rep); err != nil {
		return err
	}
	out := p.out
	if f.outputs.onStream() {
		out = p.notes
	}
	p.print(out, f, rep)
	return exit.Silently(code)
}

func (p *program) print(out *console.Console, f *runFlags, rep *report.Report) {
	if !f.quiet {
		out.Findings(rep, f.verbose)
	}
	out.Summary(rep, f.verbose)
}

// codeOf says how a run that came to its end ends the program.
func codeOf(rep *report.Report) exit.Code {
	switch {
	case len(rep.Broken(conformance.Must)) > 0:
		return exit.Broken
	case len(rep.Unexpected()) > 0:
		return exit.Subject
	case !rep.Exercised():
		return exit.Nothing
	case len(rep.Stale) > 0:
		return exit.Stale
	}
	return exit.OK
}
