package suite

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/bubble"
)

// How says how the tasks of a run take turns.
type How uint8

// The ways.
const (
	// Coroutines run one at a time, without goroutines, so a seed is one run. Between
	// any two steps of a report another task may run. Only a subject that says so can
	// be run like this.
	Coroutines How = iota
	// InTurn is a bubble of goroutines, of which one is woken at a time: a seed is one
	// run, unless the subject's own goroutines make it another.
	InTurn
	// AtOnce is a bubble of goroutines of which several are woken at once, so that
	// they race. A seed is not one run.
	AtOnce
)

// String is the way in a word.
func (h How) String() string { return [...]string{"coroutines", "in turn", "at once"}[h] }

// ErrHung says that a run does not come to its end.
var ErrHung = errors.New("it hangs: a goroutine runs on, or waits for a mutex or for something outside of the bubble")

// Patience is for how long, in real time, one run in a bubble may take.
const Patience = 20 * time.Second

// on plays something on a schedule of that kind.
func (h How) on(seed uint64, f func(schedule) error) error {
	switch h {
	case InTurn:
		return inBubble(func() error { return f(newGoroutines(seed, inTurn)) })
	case AtOnce:
		return inBubble(func() error { return f(newGoroutines(seed, atOnce)) })
	case Coroutines:
	}
	return f(newCoroutines(seed))
}

// inBubble runs f in a bubble, and does not wait for it for ever.
func inBubble(f func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error
		if stuck := bubble.Run(func() { err = f() }); stuck != nil && err == nil {
			err = stuck
		}
		done <- err
	}()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		stacks := make([]byte, 1<<16)
		return fmt.Errorf("%w\n%s", ErrHung, stacks[:runtime.Stack(stacks, true)])
	}
}

// Calls is what the subject's registry, and its bridge if it has one, do under a
// seed.
func (s Subject) Calls(seed uint64, h How) (*rules.Record, error) {
	return recordCalls(s.plan(seed), h != AtOnce, func(p plan) (entries []rules.Entry, err error) {
		err = h.on(p.seed, func(sc schedule) (err error) {
			entries, err = play(s, p, sc)
			return err
		})
		return entries, err
	})
}

// recordCalls plays a plan and its twins. The one with other names is worth nothing
// if a seed is not one run.
func recordCalls(p plan, steady bool, play func(plan) ([]rules.Entry, error)) (*rules.Record, error) {
	r := &rules.Record{Every: p.every}
	quiet, renamed := p, p
	quiet.quiet, renamed.tool = true, "another"
	var err error
	if r.Entries, err = play(p); err == nil {
		r.Quiet, err = play(quiet)
	}
	if err == nil && steady {
		r.Renamed, err = play(renamed)
	}
	if err != nil {
		err = fmt.Errorf("seed %d: %w", p.seed, err)
	}
	return r, err
}

// plan is what is going to happen, so far as the subject can do it.
func (s Subject) plan(seed uint64) plan {
	return drawPlan(seed).able(s.Throttled != nil)
}

// Flow is what the subject's producer does under a seed.
func (s Subject) Flow(seed uint64, h How) (*rules.Record, error) {
	p := drawFlow(seed)
	r := &rules.Record{}
	err := h.on(seed, func(sc schedule) (err error) {
		r.Entries, err = playFlow(s, p, sc)
		return err
	})
	if err == nil {
		r.Bare, err = playBare(p)
	}
	if err != nil {
		err = fmt.Errorf("seed %d, workflow: %w", seed, err)
	}
	return r, err
}
