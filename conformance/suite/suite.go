// Package suite runs cases against a subject and judges what was recorded. It
// is where the recorder and the judge meet: neither knows the other.
package suite

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
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
	Jobs      int                // cases run at a time; at least 1
	MaxFail   int                // stop after so many MUST findings; 0 means never
	// Oracle predicts what the subject will wait for, so that a process can be
	// given a schedule at once. Nil means step by step.
	Oracle harness.Driver
	// Reference, if not nil, is run in the same case for every finding, so that
	// the report can show what is right.
	Reference harness.Driver
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
}

// Run runs the cases and judges them. Cases that are written for another
// edition are left out. If ctx ends early the report is partial, and the error
// is nil; an error means that the subject could not be run at all.
func Run(ctx context.Context, d harness.Driver, cases []*harness.CaseFile, o Options) (*report.Report, error) {
	r := newRun(d, o)
	cases = slices.DeleteFunc(slices.Clone(cases), func(c *harness.CaseFile) bool {
		return c.Pinned && c.Case.Scenario.Edition != o.Edition
	})
	r.total = len(cases)
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	group, work := errgroup.WithContext(ctx)
	group.SetLimit(max(1, o.Jobs))
	for _, c := range cases {
		group.Go(func() error {
			if work.Err() != nil {
				return nil
			}
			return r.runCase(work, c)
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
	total  int

	mu        sync.Mutex
	done      int
	schedules int
	rules     []report.Rule
	findings  []report.Finding
	unclear   []report.Unclear
	skipped   []report.Skipped
	failures  int
}

func newRun(d harness.Driver, o Options) *run {
	if o.Rules == nil {
		o.Rules = conformance.Catalogue()
	}
	if o.Replay == nil {
		o.Replay = func(token string) string { return "pi-conform replay " + token }
	}
	r := &run{driver: d, o: o, rules: make([]report.Rule, len(o.Rules))}
	for i, rule := range o.Rules {
		r.rules[i] = report.Rule{ID: rule.ID, Level: rule.LevelIn(o.Edition)}
	}
	return r
}

// runCase runs a case by its own schedule, and by as many drawn ones as asked.
func (r *run) runCase(ctx context.Context, c *harness.CaseFile) error {
	scenario := *c.Case.Scenario
	scenario.Name, scenario.Edition = c.Name, r.o.Edition
	result := caseResult{name: c.Name}
	for n := range 1 + r.o.Schedules {
		policy, seed := Schedule(c, r.o.Seed, n)
		rec, err := r.record(ctx, &scenario, policy)
		if ctx.Err() != nil {
			return nil
		}
		var lacking *harness.UnsupportedError
		if errors.As(err, &lacking) {
			result.skipped = lacking.Needs
			break
		}
		if err != nil {
			return fmt.Errorf("case %s: %w", c.Name, err)
		}
		r.judge(ctx, &result, &scenario, rec, seed)
	}
	r.finish(&result)
	return nil
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
	findings  []report.Finding
	unclear   []report.Unclear
}

func (r *run) judge(ctx context.Context, to *caseResult, sc *harness.Scenario, rec *harness.Recording, seed *uint64) {
	verdict := conformance.Check(rec.Trace, r.o.Rules, conformance.InEdition(r.o.Edition))
	to.schedules++
	to.rules = append(to.rules, verdict.Rules)
	end := rec.Trace.Entries[len(rec.Trace.Entries)-1]
	if end.Outcome != trace.OutcomeComplete && end.Outcome != trace.OutcomeDeadlock {
		to.unclear = append(to.unclear, report.Unclear{
			Case: to.name, Schedule: rec.Schedule, Outcome: end.Outcome, Message: end.Message,
		})
	}
	broken := map[string]bool{}
	for _, f := range verdict.Findings {
		if broken[f.Rule] {
			continue
		}
		broken[f.Rule] = true
		r.found(ctx, to, sc, rec, f, seed)
	}
}

func (r *run) found(ctx context.Context, to *caseResult, sc *harness.Scenario, rec *harness.Recording, f conformance.Finding, seed *uint64) {
	i := slices.IndexFunc(to.findings, func(have report.Finding) bool { return have.Rule == f.Rule })
	if i >= 0 {
		to.findings[i].Count++
		return
	}
	token := to.name
	if seed != nil {
		token = fmt.Sprintf("%s@%d", to.name, *seed)
	}
	to.findings = append(to.findings, report.Finding{
		Rule: f.Rule, Level: f.Level, Message: f.Message, Case: to.name, Schedule: rec.Schedule, Seed: seed,
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

// finish adds a case to the whole.
func (r *run) finish(c *caseResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.schedules += c.schedules
	if c.skipped != "" {
		r.skipped = append(r.skipped, report.Skipped{Case: c.name, Needs: c.skipped})
	}
	for _, results := range c.rules {
		for i := range results {
			add(&r.rules[i], &results[i])
		}
	}
	r.findings = append(r.findings, c.findings...)
	r.unclear = append(r.unclear, c.unclear...)
	p := Progress{Case: c.name, Schedules: c.schedules, Unclear: len(c.unclear) > 0, Skipped: c.skipped != "", Done: r.done, Cases: r.total}
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

// add adds what one trace says about a rule. A rule passes if some trace
// exercised it and none broke it; it is not applicable only if no trace could
// have exercised it.
func add(to *report.Rule, result *conformance.RuleResult) {
	to.Exercised += result.Exercised
	if result.Exercised > 0 {
		to.Schedules++
	}
	switch {
	case result.Status == conformance.StatusFail:
		to.Findings++
		to.Status, to.Reason = conformance.StatusFail, ""
	case to.Status == conformance.StatusFail:
	case result.Status == conformance.StatusPass || to.Status == conformance.StatusPass:
		to.Status, to.Reason = conformance.StatusPass, ""
	case result.Status == conformance.StatusNotExercised || to.Status == conformance.StatusNotExercised:
		to.Status, to.Reason = conformance.StatusNotExercised, ""
	default:
		to.Status, to.Reason = result.Status, result.Reason
	}
}

func (r *run) report() *report.Report {
	info := r.driver.Info()
	rep := &report.Report{
		Schema:    report.Schema,
		Tool:      r.o.Tool,
		Subject:   report.Subject{Name: info.Name, Version: info.Version, Language: info.Language, Barrier: info.Barrier},
		Edition:   string(r.o.Edition),
		Seed:      r.o.Seed,
		Cases:     r.done - len(r.skipped),
		Skipped:   r.skipped,
		Schedules: r.schedules,
		Rules:     r.rules,
		Findings:  r.findings,
		Unclear:   r.unclear,
		Partial:   r.done < r.total,
	}
	for i := range rep.Rules {
		if rep.Rules[i].Status == "" {
			rep.Rules[i].Status = conformance.StatusNotExercised
		}
	}
	// Cases end in any order when several run at a time.
	order := func(i string) int {
		return slices.IndexFunc(r.o.Rules, func(rule conformance.Rule) bool { return rule.ID == i })
	}
	slices.SortFunc(rep.Findings, func(a, b report.Finding) int {
		if a.Rule != b.Rule {
			return order(a.Rule) - order(b.Rule)
		}
		return strings.Compare(a.Case, b.Case)
	})
	slices.SortFunc(rep.Skipped, func(a, b report.Skipped) int { return strings.Compare(a.Case, b.Case) })
	slices.SortFunc(rep.Unclear, func(a, b report.Unclear) int { return strings.Compare(a.Case, b.Case) })
	return rep
}
