package fuzz

import (
	"context"
	"errors"
	"slices"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Kinds of what is found besides the ids of rules: these, and the outcomes of
// recordings that did not come to their end, such as crashed and hung.
const (
	// Differential: the subject does something other than the oracle, and breaks
	// no rule by it.
	Differential = "differential"
	// NotDeterministic: one case gave two normal forms.
	NotDeterministic = "not deterministic"
)

// wrong is what is wrong with a recording.
type wrong struct {
	kind    string
	level   conformance.Level // of a rule
	message string
	entries []int
	also    []string // ids of other rules that are broken
}

// court says on what subject cases are run, and how they are judged.
type court struct {
	driver       harness.Driver
	oracle       harness.Driver
	differential bool
	rules        []conformance.Rule
	limits       harness.Limits
}

// seat is where one goroutine runs cases and judges them, in memory of its own:
// what it records holds until its next run, or for good once it was told to keep it.
type seat struct {
	*court
	runner runner
	check  *conformance.Judge
}

// runner is a [harness.PredictedRunner], or a [harness.Runner].
type runner interface {
	Run(ctx context.Context, sc *harness.Scenario, p harness.Policy) (*harness.Recording, error)
	Begin(ctx context.Context, sc *harness.Scenario, p harness.Policy)
	Finish() (*harness.Recording, error)
	Keep()
	Close() error
}

// open gives a seat.
func (c *court) open() *seat {
	s := &seat{court: c, check: conformance.NewJudge(c.rules)}
	if c.oracle == nil {
		s.runner = &atOnce{Runner: harness.NewRunner(c.driver, c.limits)}
	} else {
		s.runner = harness.NewPredictedRunner(c.driver, c.oracle, c.limits)
	}
	return s
}

// atOnce is a runner that has finished what it has begun.
type atOnce struct {
	*harness.Runner
	rec *harness.Recording
	err error
}

// Begin runs a case.
func (r *atOnce) Begin(ctx context.Context, sc *harness.Scenario, p harness.Policy) {
	r.rec, r.err = r.Run(ctx, sc, p)
}

// Finish gives what came of it.
func (r *atOnce) Finish() (*harness.Recording, error) { return r.rec, r.err }

// mostAhead is the number of cases that are begun before the first is read, where
// that makes a difference: neither side then waits for the other after each case.
const mostAhead = 16

// ahead is how many cases one goroutine should have under way.
func (c *court) ahead() int {
	if _, ok := c.driver.(harness.Pipeliner); ok && c.oracle != nil {
		return mostAhead
	}
	return 1
}

// judge says what is wrong with a recording; nil if nothing is. A broken MUST rule
// comes first, then how the recording ended, then what the oracle says, and last a
// broken rule of a lower level.
func (c *seat) judge(ctx context.Context, sc *harness.Scenario, rec *harness.Recording) (*wrong, error) {
	v := c.check.Check(rec.Trace, conformance.InEdition(sc.Edition))
	first := v.First()
	if first != nil && first.Level == conformance.Must {
		return ruleBroken(v, first), nil
	}
	last := len(rec.Trace.Entries) - 1
	end := &rec.Trace.Entries[last]
	if end.Outcome != trace.OutcomeComplete && end.Outcome != trace.OutcomeDeadlock {
		return &wrong{kind: string(end.Outcome), message: end.Message, entries: []int{last}}, nil
	}
	if w, err := c.compare(ctx, sc, rec); w != nil || err != nil {
		return w, err
	}
	if first != nil {
		return ruleBroken(v, first), nil
	}
	return nil, nil
}

func ruleBroken(v *conformance.Verdict, f *conformance.Finding) *wrong {
	w := &wrong{kind: f.Rule, level: f.Level, message: f.Message, entries: f.Entries}
	for i := range v.Findings {
		if rule := v.Findings[i].Rule; rule != f.Rule && !slices.Contains(w.also, rule) {
			w.also = append(w.also, rule)
		}
	}
	return w
}

// compare says where the subject parts from the oracle, if that matters.
func (c *court) compare(ctx context.Context, sc *harness.Scenario, rec *harness.Recording) (*wrong, error) {
	if !c.differential {
		return nil, nil
	}
	want, err := harness.RunCase(ctx, c.oracle, harness.Case{Scenario: sc, Schedule: rec.Schedule}, c.limits)
	if err != nil {
		return nil, err
	}
	common := shared(want.Trace.Header.Evidence, rec.Trace.Header.Evidence)
	i, difference := trace.FirstDiff(trace.Project(want.Trace, common...), trace.Project(rec.Trace, common...))
	if i < 0 {
		return nil, nil
	}
	return &wrong{kind: Differential, message: "the oracle (a) and the subject (b) part: " + difference}, nil
}

func shared(a, b []trace.Evidence) []trace.Evidence {
	var both []trace.Evidence
	for _, e := range a {
		for _, other := range b {
			if e == other {
				both = append(both, e)
			}
		}
	}
	return both
}

// unsupported reports whether the subject lacks what a case needs.
func unsupported(err error) bool {
	var u *harness.UnsupportedError
	return errors.As(err, &u)
}

// Nondeterminism says that one case gave two normal forms.
type Nondeterminism struct {
	Replay     int    // number of the replay that differed, from 1
	Entry      int    // of the normal form
	Difference string // both sides
}

// Repeat replays a case n times and compares the normal forms with that of the
// recording. It is nil if all are the same.
func Repeat(ctx context.Context, d harness.Driver, sc *harness.Scenario, rec *harness.Recording, n int, lim harness.Limits) (*Nondeterminism, error) {
	hash := trace.Hash(rec.Trace)
	for i := range n {
		again, err := harness.RunCase(ctx, d, harness.Case{Scenario: sc, Schedule: rec.Schedule}, lim)
		if err != nil {
			return nil, err
		}
		if trace.Hash(again.Trace) == hash {
			continue
		}
		entry, difference := trace.FirstDiff(rec.Trace, again.Trace)
		return &Nondeterminism{Replay: i + 1, Entry: entry, Difference: difference}, nil
	}
	return nil, nil
}
