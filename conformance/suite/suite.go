// Package suite runs cases against a subject and judges what was recorded. It
// is where the recorder and the judge meet: neither knows the other.
package suite

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Options say how a suite is run.
type Options struct {
	Tool      string // name and version of the program, for the report
	Edition   edition.Edition
	Rules     []conformance.Rule // nil means all
	Schedules int                // drawn schedules of each case, besides its own
	Seed      uint64             // from which they are drawn
	Shard     report.Shard       // the part to run; the zero value means all
	Skipped   []report.Skipped   // cases that were left out, for the report
	Jobs      int                // cases run at a time; at least 1
	MaxFail   int                // stop after so many MUST findings; 0 means never
	// Oracle predicts what the subject will wait for, so that a process can be
	// given a schedule at once. Nil means step by step.
	Oracle harness.Driver
	// Reference, if not nil, is run in the same case for every finding, so that
	// the report can show what is right.
	Reference harness.Driver
	// Reducer, if not nil, is a user interface's reducer, which is judged by what it
	// makes of the events of each case's own schedule.
	Reducer harness.Reducer
	// Replay gives the command that shows a case again.
	Replay func(token string) string
	// Progress, if not nil, is told of every case that is done. It is called by
	// one goroutine at a time.
	Progress func(Progress)
	Limits   harness.Limits
}

// Progress says how far a run has come.
type Progress struct {
	Case      string
	Schedules int      // of this case
	Failed    []string // ids of the rules that the case broke
	Unclear   bool
	Skipped   bool // the subject lacks what the case needs
	Done      int  // cases done so far
	Cases     int  // cases in all
	Result    report.Result
	Findings  []report.Finding
}

// Run runs the cases and judges them. Cases that are written for another
// edition are left out. If ctx ends early the report is partial, and the error
// is nil; an error means that the subject could not be run at all.
func Run(ctx context.Context, d harness.Driver, cases []*harness.CaseFile, o Options) (*report.Report, error) {
	r := newRun(d, o)
	cases = slices.DeleteFunc(slices.Clone(cases), func(c *harness.CaseFile) bool {
		return c.Pinned && c.Case.Scenario.Edition != o.Edition
	})
	mine := r.plan(cases)
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	group, work := errgroup.WithContext(ctx)
	group.SetLimit(max(1, o.Jobs))
	for _, part := range mine {
		group.Go(func() error {
			if work.Err() != nil {
				return nil
			}
			return r.runCase(work, part)
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return r.report(), nil
}

// run collects what comes of the cases.
type run struct {
	driver harness.Driver
	o      Options
	stop   context.CancelFunc
	shared report.Report // what is known before anything is run

	mu        sync.Mutex
	done      int
	schedules int
	rules     []report.Rule
	findings  []report.Finding
	unclear   []report.Unclear
	skipped   []report.Skipped
	results   map[string]report.Result
	failures  int
}

func newRun(d harness.Driver, o Options) *run {
	if o.Rules == nil {
		o.Rules = conformance.Catalogue()
	}
	if o.Replay == nil {
		o.Replay = func(token string) string { return "pi-conform replay " + token }
	}
	r := &run{driver: d, o: o, rules: make([]report.Rule, len(o.Rules)), results: map[string]report.Result{}}
	for i, rule := range o.Rules {
		r.rules[i] = report.Rule{ID: rule.ID, Level: rule.LevelIn(o.Edition)}
	}
	return r
}

// runCase runs a case by those of its schedules that are to be run.
func (r *run) runCase(ctx context.Context, p part) error {
	result := caseResult{name: p.file.Name}
	for _, n := range p.schedules {
		policy, seed := Schedule(p.file, r.o.Seed, n)
		if _, err := r.runSchedule(ctx, &result, p.file, policy, drawn{n, seed}); err != nil {
			return err
		}
		if ctx.Err() != nil {
			r.interrupted(&result)
			return nil
		}
		if result.skipped != "" {
			break
		}
	}
	r.finish(&result)
	return nil
}

// interrupted keeps what was found in a case that did not come to its end.
func (r *run) interrupted(c *caseResult) {
	if c.schedules == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(c)
}

// runSchedule runs a case by one schedule and judges it. What no order can matter
// to, and what costs time, is judged by the case's own schedule alone: what the
// subject has kept, and its twins. There is no recording if the subject lacks what
// the case needs, or ctx has ended.
func (r *run) runSchedule(ctx context.Context, to *caseResult, c *harness.CaseFile, policy harness.Policy, by drawn) (*harness.Recording, error) {
	scenario := *c.Case.Scenario
	scenario.Name, scenario.Edition, scenario.Keep = c.Name, r.o.Edition, by.seed == nil
	rec, err := r.record(ctx, &scenario, policy)
	if ctx.Err() != nil {
		return nil, nil
	}
	var lacking *harness.UnsupportedError
	if errors.As(err, &lacking) {
		to.skipped = lacking.Needs
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	if by.seed != nil {
		r.judge(ctx, to, &scenario, rec, by)
		return rec, nil
	}
	if rec.Trace, err = r.withViews(rec.Trace); err != nil {
		return nil, fmt.Errorf("case %s: the reducer failed: %w", c.Name, err)
	}
	r.judge(ctx, to, &scenario, rec, by)
	r.judgeTwins(ctx, to, &scenario, rec)
	return rec, nil
}

// withViews is the trace with what the reducer makes of its events, if there is
// one.
func (r *run) withViews(t *trace.Trace) (*trace.Trace, error) {
	if r.o.Reducer == nil {
		return t, nil
	}
	return harness.RecordViews(t, r.o.Reducer)
}

// One runs a case by one schedule, its own or that which is drawn by the seed,
// and judges it as [Run] does. There is no recording if the subject lacks what
// the case needs.
func One(ctx context.Context, d harness.Driver, c *harness.CaseFile, seed *uint64, o Options) (*report.Report, *harness.Recording, error) {
	r := newRun(d, o)
	r.stop = func() {}
	r.describe([]*harness.CaseFile{c}, []part{{file: c}})
	result := caseResult{name: c.Name}
	replay := harness.NewReplay(c.Case.Schedule)
	policy, by := harness.Policy(replay), drawn{}
	if seed != nil {
		policy, by = harness.NewRandom(*seed), drawn{1, seed}
	}
	rec, err := r.runSchedule(ctx, &result, c, policy, by)
	if err != nil || ctx.Err() != nil {
		return nil, nil, errors.Join(err, ctx.Err())
	}
	if rec != nil && seed == nil {
		rec.Skipped = replay.Skipped()
	}
	r.finish(&result)
	return r.report(), rec, nil
}

// Schedule gives the policy of schedule number n of a case: its own for 0, else
// one drawn by the seed that comes with it.
func Schedule(c *harness.CaseFile, seed uint64, n int) (harness.Policy, *uint64) {
	if n == 0 {
		return harness.NewReplay(c.Case.Schedule), nil
	}
	drawn := seedOf(c.Name, seed, n)
	return harness.NewRandom(drawn), &drawn
}

// seedOf does not depend on which other cases are run. It is short, because
// people copy it.
func seedOf(name string, seed uint64, n int) uint64 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d/%d", name, seed, n)
	return uint64(h.Sum32())
}

func (r *run) record(ctx context.Context, sc *harness.Scenario, p harness.Policy) (*harness.Recording, error) {
	if r.o.Oracle == nil {
		return harness.Run(ctx, r.driver, sc, p, r.o.Limits)
	}
	return harness.RunPredicted(ctx, r.driver, r.o.Oracle, sc, p, r.o.Limits)
}

// caseResult is what came of one case.
type caseResult struct {
	name      string
	skipped   string // what the subject lacks, if the case says nothing about it
	schedules int
	rules     [][]conformance.RuleResult
	compared  []comparison
	findings  []report.Finding
	unclear   []report.Unclear
}

// drawn says which schedule of a case it is, and the seed of one that was drawn.
type drawn struct {
	number int
	seed   *uint64
}

func (r *run) judge(ctx context.Context, to *caseResult, sc *harness.Scenario, rec *harness.Recording, by drawn) {
	verdict := conformance.Check(rec.Trace, r.o.Rules, conformance.InEdition(r.o.Edition))
	to.schedules++
	to.rules = append(to.rules, verdict.Rules)
	end := rec.Trace.Entries[len(rec.Trace.Entries)-1]
	if end.Outcome != trace.OutcomeComplete && end.Outcome != trace.OutcomeDeadlock {
		to.unclear = append(to.unclear, report.Unclear{
			Case: to.name, Number: by.number, Schedule: rec.Schedule, Outcome: end.Outcome, Message: end.Message,
		})
	}
	broken := map[string]bool{}
	for _, f := range verdict.Findings {
		if broken[f.Rule] {
			continue
		}
		broken[f.Rule] = true
		r.found(ctx, to, sc, rec, f, by)
	}
}

func (r *run) found(ctx context.Context, to *caseResult, sc *harness.Scenario, rec *harness.Recording, f conformance.Finding, by drawn) {
	i := slices.IndexFunc(to.findings, func(have report.Finding) bool { return have.Rule == f.Rule })
	if i >= 0 {
		to.findings[i].Count++
		return
	}
	token := to.name
	if by.seed != nil {
		token = fmt.Sprintf("%s@%d", to.name, *by.seed)
	}
	to.findings = append(to.findings, report.Finding{
		Rule: f.Rule, Level: f.Level, Message: f.Message, Case: to.name,
		Number: by.number, Schedule: rec.Schedule, Seed: by.seed,
		Entries: f.Entries, Count: 1, Replay: r.o.Replay(token),
		Trace: rec.Trace, Reference: r.reference(ctx, sc, rec),
	})
}

// reference is what the reference does in the same case.
func (r *run) reference(ctx context.Context, sc *harness.Scenario, rec *harness.Recording) *trace.Trace {
	if r.o.Reference == nil {
		return nil
	}
	good, err := harness.RunCase(ctx, r.o.Reference, harness.Case{Scenario: sc, Schedule: rec.Schedule}, r.o.Limits)
	if err != nil {
		return nil
	}
	return good.Trace
}

// add adds what came of the schedules of a case. It is called with the lock held.
func (r *run) add(c *caseResult) {
	r.schedules += c.schedules
	for _, results := range c.rules {
		for i := range results {
			r.rules[i].Add(ruleOf(&results[i]))
		}
	}
	for i := range c.compared {
		r.rules[c.compared[i].rule].Add(ruleOf(&c.compared[i].result))
	}
	r.findings = append(r.findings, c.findings...)
	r.unclear = append(r.unclear, c.unclear...)
}

// finish adds a case to the whole.
func (r *run) finish(c *caseResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.add(c)
	if c.skipped != "" {
		r.skipped = append(r.skipped, report.Skipped{Case: c.name, Needs: c.skipped})
	}
	r.results[c.name] = c.result()
	p := Progress{
		Case: c.name, Schedules: c.schedules, Unclear: len(c.unclear) > 0, Skipped: c.skipped != "",
		Done: r.done, Cases: len(r.shared.Results), Result: r.results[c.name], Findings: c.findings,
	}
	for _, f := range c.findings {
		if f.Level == conformance.Must {
			p.Failed = append(p.Failed, f.Rule)
			r.failures++
		}
	}
	if r.o.Progress != nil {
		r.o.Progress(p)
	}
	if r.o.MaxFail > 0 && r.failures >= r.o.MaxFail {
		r.stop()
	}
}

// result is what came of the case by itself.
func (c *caseResult) result() report.Result {
	alone := report.Report{Results: []report.Result{{Case: c.name, Schedules: c.schedules}}, Findings: c.findings, Unclear: c.unclear}
	if c.skipped != "" {
		alone.Results[0].Status, alone.Results[0].Message = report.StatusNotApplicable, lacks(c.skipped)
	}
	alone.Settle()
	return alone.Results[0]
}

func lacks(capability string) string { return "the subject does not declare " + capability }

// ruleOf is what one trace says about a rule.
func ruleOf(result *conformance.RuleResult) report.Rule {
	r := report.Rule{Status: result.Status, Reason: result.Reason, Exercised: result.Exercised}
	if result.Exercised > 0 {
		r.Schedules = 1
	}
	if result.Status == conformance.StatusFail {
		r.Findings = 1
	}
	return r
}

func (r *run) report() *report.Report {
	rep := r.shared
	rep.Cases = r.done - len(r.skipped)
	rep.Schedules = r.schedules
	rep.Rules = r.rules
	rep.Findings = r.findings
	rep.Unclear = r.unclear
	rep.Skipped = slices.Concat(r.o.Skipped, r.skipped)
	rep.Partial = r.done < len(rep.Results)
	for i := range rep.Rules {
		if rep.Rules[i].Status == "" {
			rep.Rules[i].Status = conformance.StatusNotExercised
		}
	}
	for i := range rep.Results {
		if result, done := r.results[rep.Results[i].Case]; done {
			rep.Results[i] = result
		}
	}
	for _, s := range r.o.Skipped {
		rep.Results = append(rep.Results, report.Result{Case: s.Case, Status: report.StatusNotApplicable, Message: lacks(s.Needs)})
	}
	rep.Settle()
	return &rep
}
