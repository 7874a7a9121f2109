package fuzz

import (
	"context"
	"slices"

	"github.com/pi-conform/pi-conform/harness"
)

// Cost says how hard a case is to understand. Less comes first by size, then by
// departures, then by the rest.
type Cost struct {
	Size       int // of the scenario
	Departures int // from the default order, in the run
	Labels     int // of the schedule
	Length     int // actions of the run
}

func (c Cost) less(o Cost) bool {
	return slices.Compare(
		[]int{c.Size, c.Departures, c.Labels, c.Length},
		[]int{o.Size, o.Departures, o.Labels, o.Length}) < 0
}

// Shrunk is a case that is as small as the minimiser could make it.
type Shrunk struct {
	// Case names in its schedule only what departs from the default order, in
	// the sense of [harness.Replay].
	Case      harness.Case
	Recording *harness.Recording
	Cost      Cost
	Runs      int // how many it took

	wrong *wrong
}

// minimiser makes a case smaller for as long as the same thing is wrong with it.
type minimiser struct {
	seat   *seat
	kind   string
	budget int
	best   Shrunk
	// spent says that the budget is, or that the subject could not be run.
	spent bool
}

// minimise gives the smallest case that it finds, within that many runs, in which
// the same kind of thing is wrong. Nil means that the case itself did not show it
// again.
func (s *seat) minimise(ctx context.Context, first harness.Case, kind string, budget int) *Shrunk {
	m := &minimiser{seat: s, kind: kind, budget: budget}
	start := harness.Case{Scenario: clone(first.Scenario), Schedule: first.Schedule}
	tidy(start.Scenario)
	again := m.try(ctx, start)
	if again == nil {
		return nil
	}
	m.best = *again
	for improved := true; improved && !m.spent; {
		improved = m.schedule(ctx)
		improved = m.structure(ctx) || improved
		improved = m.fewerDepartures(ctx) || improved
	}
	if named, ok := renamed(m.best.Case); ok {
		if s := m.try(ctx, named); s != nil && !m.best.Cost.less(s.Cost) {
			m.best = *s
		}
	}
	m.best.Runs = budget - m.budget
	return &m.best
}

// try runs a case; nil if the thing is not wrong with it. Labels that were skipped
// are left out if it stays wrong without them: while they waited they held back the
// others that are named.
func (m *minimiser) try(ctx context.Context, c harness.Case) *Shrunk {
	replay := harness.NewReplay(c.Schedule)
	s := m.run(ctx, c.Scenario, replay)
	if s == nil {
		return nil
	}
	if skipped := replay.Skipped(); len(skipped) > 0 {
		c.Schedule = less(c.Schedule, skipped)
		if fewer := m.try(ctx, c); fewer != nil {
			return fewer
		}
		return s // with the whole schedule, in which nothing is skipped
	}
	s.Case.Schedule = c.Schedule
	s.Cost.Labels = len(c.Schedule)
	return s
}

// less are the labels without those that were skipped.
func less(labels, skipped []string) []string {
	left := slices.Clone(skipped)
	return slices.DeleteFunc(slices.Clone(labels), func(label string) bool {
		i := slices.Index(left, label)
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
		return i >= 0
	})
}

func (m *minimiser) run(ctx context.Context, sc *harness.Scenario, p harness.Policy) *Shrunk {
	if m.budget <= 0 || ctx.Err() != nil {
		m.spent = true
		return nil
	}
	m.budget--
	counting := &departures{policy: p}
	rec, err := m.seat.runner.Run(ctx, sc, counting)
	if err != nil {
		m.spent = !unsupported(err)
		return nil
	}
	w, err := m.seat.judge(ctx, sc, rec)
	if err != nil || w == nil || w.kind != m.kind {
		return nil
	}
	m.seat.runner.Keep()
	return &Shrunk{
		Case: harness.Case{Scenario: sc, Schedule: rec.Schedule}, Recording: rec, wrong: w,
		Cost: Cost{Size: sizeOf(sc), Departures: counting.n, Labels: len(rec.Schedule), Length: len(rec.Schedule)},
	}
}

// departures counts choices other than the default. Where the loop waits for
// nothing but the user, what the user does first counts as none: the default is
// no more than the order of the labels there.
type departures struct {
	policy harness.Policy
	n      int
}

func (d *departures) Choose(enabled []harness.Action) int {
	i := d.policy.Choose(enabled)
	if i > 0 && enabled[0].Kind != harness.ActionUser {
		d.n++
	}
	return i
}

// accept takes over what costs less.
func (m *minimiser) accept(s *Shrunk) bool {
	if s == nil || !s.Cost.less(m.best.Cost) {
		return false
	}
	m.best = *s
	return true
}

// schedule drops labels: all, then the tail and other parts, ever smaller.
func (m *minimiser) schedule(ctx context.Context) bool {
	if len(m.best.Case.Schedule) == 0 {
		return false
	}
	improved := m.accept(m.try(ctx, m.withSchedule(nil)))
	for size := (len(m.best.Case.Schedule) + 1) / 2; size > 0 && !m.spent; size /= 2 {
		for end := len(m.best.Case.Schedule); end > 0 && !m.spent; end -= size {
			labels := m.best.Case.Schedule
			end = min(end, len(labels))
			fewer := slices.Concat(labels[:max(0, end-size)], labels[end:])
			improved = m.accept(m.try(ctx, m.withSchedule(fewer))) || improved
		}
	}
	return improved
}

func (m *minimiser) withSchedule(labels []string) harness.Case {
	return harness.Case{Scenario: m.best.Case.Scenario, Schedule: labels}
}

// structure cuts the scenario, by the schedule as it is and by the default order.
func (m *minimiser) structure(ctx context.Context) bool {
	improved := false
	for i := 0; !m.spent; {
		all := cuts(m.best.Case.Scenario)
		if i >= len(all) {
			return improved
		}
		smaller := clone(m.best.Case.Scenario)
		all[i](smaller)
		tidy(smaller)
		if m.smaller(ctx, smaller) {
			improved = true // what comes next has moved to this place
			continue
		}
		i++
	}
	return improved
}

func (m *minimiser) smaller(ctx context.Context, sc *harness.Scenario) bool {
	if sizeOf(sc) >= m.best.Cost.Size {
		return false
	}
	labels := m.best.Case.Schedule
	if m.accept(m.try(ctx, harness.Case{Scenario: sc, Schedule: labels})) {
		return true
	}
	if closed := compact(labels); !slices.Equal(closed, labels) && m.accept(m.try(ctx, harness.Case{Scenario: sc, Schedule: closed})) {
		return true
	}
	if len(labels) > 0 && m.accept(m.try(ctx, harness.Case{Scenario: sc})) {
		return true
	}
	return len(sc.User) < len(m.best.Case.Scenario.User) && m.withoutAction(ctx, sc)
}

// withoutAction tries a scenario that has lost a user action with each of the
// schedules that have lost one.
func (m *minimiser) withoutAction(ctx context.Context, sc *harness.Scenario) bool {
	labels := m.best.Case.Schedule
	for i, label := range labels {
		kind, _, _, ok := numbered(label)
		if !ok || !isUser(kind) {
			continue
		}
		fewer := compact(slices.Concat(labels[:i], labels[i+1:]))
		if m.accept(m.try(ctx, harness.Case{Scenario: sc, Schedule: fewer})) {
			return true
		}
	}
	return false
}

// searchRuns bounds the search for a schedule with fewer departures.
const searchRuns = 200

// fewerDepartures looks for a schedule that is nearer to the default order.
func (m *minimiser) fewerDepartures(ctx context.Context) bool {
	left := searchRuns
	for bound := 1; bound < m.best.Cost.Departures; bound++ {
		for x := harness.NewExhaustive().Within(bound); left > 0 && !m.spent && x.Next(); left-- {
			if m.accept(m.run(ctx, m.best.Case.Scenario, x)) {
				return true
			}
		}
	}
	return false
}
