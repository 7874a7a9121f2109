package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness"
)

// Of drawn scenarios a round is exhausted at a time. The first round gives up on
// scenarios with more than firstLimit schedules, each later one on twice as many.
const (
	scenariosRound = 8
	firstLimit     = 24
	lastLimit      = 20_000
	// exhaustShare is the part of its budget that auto spends on it: one in so many.
	exhaustShare = 4
)

// small bounds scenarios so that all schedules can be run of many of them.
func small(s Size) Size {
	s.Turns, s.Calls, s.Updates, s.Prompts = min(s.Turns, 1), min(s.Calls, 2), min(s.Updates, 1), 1
	return s
}

// exhaustGiven goes through the scenario that was given.
func (x *explorer) exhaustGiven(ctx context.Context) error {
	sc := clone(x.o.Scenario)
	sc.Edition = x.o.Edition
	sc.Complete()
	limit := exhaustLimit
	if x.o.Policy.Kind == harness.PolicyExhaustive {
		limit = math.MaxInt
	}
	tallies := x.exhaust(ctx, sc, limit, x.o.Jobs)
	return x.merge(tallies, 0, "the scenario that was given, policy exhaustive")
}

// exhaustDrawn goes through drawn scenarios until a share of the budget is used.
func (x *explorer) exhaustDrawn(ctx context.Context, share int) error {
	if x.o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.o.Time/time.Duration(share))
		defer cancel()
	}
	budget := x.remaining() / share
	limit := firstLimit
	for i := 0; budget > 0 && !x.over(ctx); limit = min(2*limit, lastLimit) {
		n := max(1, min(scenariosRound, budget/(2*limit)))
		tallies := make([][]*tally, n)
		err := x.each(n, func(k int) error {
			sc := x.scenario(NewSeeded(x.seedOf(streamSmall, i+k)), small(x.o.Size))
			tallies[k] = x.exhaust(ctx, sc, min(limit, budget), 1)
			return nil
		})
		for k := range tallies {
			origin := fmt.Sprintf("small scenario %d of seed %d, policy exhaustive", i+k, x.o.Seed)
			err = errors.Join(err, x.merge(tallies[k], i+k, origin))
			for _, t := range tallies[k] {
				budget -= t.Schedules
			}
		}
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// remaining is the number of schedules that may still be run.
func (x *explorer) remaining() int {
	if x.o.Runs == 0 {
		return math.MaxInt
	}
	return max(0, x.o.Runs-int(x.runs.Load()))
}

// over reports whether the exploration is.
func (x *explorer) over(ctx context.Context) bool {
	return ctx.Err() != nil || x.stopped.Load() || x.remaining() == 0
}

// tally is what came of going through the schedules of one scenario.
type tally struct {
	Exhausted
	scenario *harness.Scenario
	limit    int

	mu     sync.Mutex
	shapes map[uint64]struct{}
	// first are the outcomes by kind, each of the schedule that comes first.
	first []firstOutcome
	// over says that there were more schedules than the limit, or that the
	// exploration ended.
	over bool
	err  error
}

type firstOutcome struct {
	outcome
	choices []int
}

// mostDepartures bounds the departures that are tried where there are too many
// schedules.
const mostDepartures = 5

// exhaust goes through all schedules of a scenario; if they are more than the
// limit, through those in which updates of different calls keep their order; then
// through those with a rising number of departures from the default order. It
// gives what came of each attempt.
func (x *explorer) exhaust(ctx context.Context, sc *harness.Scenario, limit, jobs int) []*tally {
	attempts := []Exhausted{{Departures: -1}, {Departures: -1, Commuting: true}}
	for bound := range mostDepartures {
		attempts = append(attempts, Exhausted{Departures: bound + 1})
	}
	if len(sc.Calls) < 2 || limit < exhaustLimit {
		attempts = slices.Delete(attempts, 1, 2)
	}
	var tallies []*tally
	for _, e := range attempts {
		t := &tally{Exhausted: e, scenario: sc, limit: min(limit, x.remaining()), shapes: map[uint64]struct{}{}}
		t.Scenarios = 1
		x.goThrough(ctx, t, jobs)
		tallies = append(tallies, t)
		if t.err != nil || x.over(ctx) || t.over == (e.Departures > 0) {
			break // all were run, or there were too many even with this bound
		}
	}
	return tallies
}

// merge takes in what came of a scenario.
func (x *explorer) merge(tallies []*tally, order int, origin string) error {
	var whole *tally
	x.result.Scenarios++
	for _, t := range tallies {
		if t.err != nil {
			return t.err
		}
		for shape := range t.shapes {
			x.seen.add(look{shape: shape})
		}
		for i := range t.first {
			out := &t.first[i].outcome
			x.note(t.scenario, out, order-exhaustedFirst, func() string { return origin })
		}
		if !t.over {
			whole = t
		}
	}
	if whole != nil {
		x.result.exhausted(whole.Exhausted)
	}
	x.tell("exhaust")
	return nil
}

// goThrough shares the schedules among workers: one that has nothing to do gets a
// part of what another has left.
func (x *explorer) goThrough(ctx context.Context, t *tally, jobs int) {
	first := harness.NewExhaustive().Within(t.Departures)
	if t.Commuting {
		first.Commuting()
	}
	p := &pool{parts: []*harness.Exhaustive{first}, workers: jobs}
	p.changed.L = &p.Mutex
	var workers sync.WaitGroup
	for range jobs {
		mine := clone(t.scenario)
		workers.Go(func() {
			for part := p.take(); part != nil; part = p.take() {
				x.part(ctx, mine, part, p, t)
			}
		})
	}
	workers.Wait()
}

// part goes through one part of the schedules.
func (x *explorer) part(ctx context.Context, sc *harness.Scenario, part *harness.Exhaustive, p *pool, t *tally) {
	under := x.window(x.court.ahead())
	for under.failed == nil && part.Next() {
		if !t.begin() || ctx.Err() != nil {
			under.failed = errOver
			break
		}
		x.runs.Add(1)
		finish := x.begin(ctx, sc, part)
		choices, strayed := part.Choices(), part.Strayed()
		under.add(func() error {
			out, err := finish()
			if err == nil && !out.ran {
				err = errOver
			}
			if err == nil {
				t.note(&out, choices, strayed)
			}
			return err
		})
		if p.hungry() {
			p.give(part.Split())
		}
	}
	if err := under.close(); err != nil {
		t.stop(err)
		p.stop()
	}
}

// errOver says that no further schedule is to be run.
var errOver = errors.New("the exploration is over")

// begin counts a schedule; false if it is one too many.
func (t *tally) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Schedules >= t.limit {
		return false
	}
	t.Schedules++
	return true
}

func (t *tally) stop(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.err == nil && err != errOver {
		t.err = err
	}
}

// note takes in a run; of each kind of outcome the schedule that comes first
// stays.
func (t *tally) note(out *outcome, choices []int, strayed bool) {
	if strayed {
		out.wrong = &wrong{kind: NotDeterministic, message: "after the same actions the subject waited for other callbacks than before"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.shapes) < exhaustLimit {
		t.shapes[out.look.shape] = struct{}{}
	}
	if out.wrong != nil {
		t.Failed++
	}
	kind := kindOf(out)
	i := slices.IndexFunc(t.first, func(f firstOutcome) bool { return kindOf(&f.outcome) == kind })
	if i < 0 {
		t.first = append(t.first, firstOutcome{*out, choices})
		return
	}
	t.first[i].count++
	if kind != "" && slices.Compare(choices, t.first[i].choices) < 0 {
		out.count = t.first[i].count
		t.first[i] = firstOutcome{*out, choices}
	}
}

func kindOf(out *outcome) string {
	if out.wrong == nil {
		return ""
	}
	return out.wrong.kind
}

// pool are parts of schedules that wait for a worker.
type pool struct {
	sync.Mutex
	changed sync.Cond
	parts   []*harness.Exhaustive
	workers int
	waiting int
	stopped bool
}

// take waits for a part; nil if there will be none.
func (p *pool) take() *harness.Exhaustive {
	p.Lock()
	defer p.Unlock()
	p.waiting++
	for len(p.parts) == 0 && p.waiting < p.workers && !p.stopped {
		p.changed.Wait()
	}
	if len(p.parts) == 0 || p.stopped {
		p.changed.Broadcast()
		return nil
	}
	p.waiting--
	part := p.parts[len(p.parts)-1]
	p.parts = p.parts[:len(p.parts)-1]
	return part
}

// hungry reports whether a worker has nothing to do.
func (p *pool) hungry() bool {
	if p.workers == 1 {
		return false
	}
	p.Lock()
	defer p.Unlock()
	return p.waiting > len(p.parts)
}

func (p *pool) give(part *harness.Exhaustive) {
	if part == nil {
		return
	}
	p.Lock()
	defer p.Unlock()
	p.parts = append(p.parts, part)
	p.changed.Signal()
}

func (p *pool) stop() {
	p.Lock()
	defer p.Unlock()
	p.stopped = true
	p.changed.Broadcast()
}
