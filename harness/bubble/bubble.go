// Package bubble runs cases on any Go loop in process, with its own goroutines,
// channels, timers and contexts, inside a [testing/synctest] bubble: there the
// clock is virtual, and the driver can wait until every goroutine of the loop
// is blocked for good.
//
// What a bubble can't do: a goroutine that waits for a mutex, for the network
// or for a system call is not at rest, so nothing settles while it does; and a
// goroutine that panics ends the process.
package bubble

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Driver runs cases on a Go loop. It may be used by several goroutines.
type Driver struct {
	About harness.SubjectInfo
	// Join joins the loop to its surroundings. It is called inside the bubble.
	Join func(s *harness.Surroundings) (harness.Loop, error)
}

// Info says what the subject is.
func (d *Driver) Info() harness.SubjectInfo { return d.About }

// Close does nothing: the subject lives only as long as its cases.
func (d *Driver) Close() error { return nil }

// Inside runs body in a bubble. The error says that goroutines were left behind
// or that body panicked.
func (d *Driver) Inside(body func()) error {
	failed := make(chan any, 1)
	go func() {
		defer func() { failed <- recover() }()
		inBubble(body)
	}()
	if p := <-failed; p != nil {
		return &harness.SubjectError{Outcome: trace.OutcomeLeaked, Message: fmt.Sprint(p), Exit: -1}
	}
	return nil
}

// inBubble is the one place that relies on something undocumented: that
// synctest.Test works with a T that no test runner made, as long as its body
// calls no method of it. A test of this package holds it.
func inBubble(body func()) {
	synctest.Test(new(testing.T), func(*testing.T) { body() })
}

// Open begins a case. It has to be called inside the bubble.
func (d *Driver) Open(_ context.Context, sc *harness.Scenario) (harness.Session, error) {
	s := harness.NewSurroundings(sc, func() harness.Gate { return make(gate) })
	s.Racy = true
	loop, err := d.Join(s)
	if err != nil {
		return nil, err
	}
	s.Attach(loop)
	return &session{surroundings: s}, nil
}

// gate is a channel that is closed to open it.
type gate chan struct{}

func (g gate) Wait() { <-g }
func (g gate) Open() { close(g) }

type session struct{ surroundings *harness.Surroundings }

func (s *session) Do(a *harness.Action) error {
	if a.Kind == harness.ActionClock {
		time.Sleep(a.Advance)
		return nil
	}
	return s.surroundings.Do(a)
}

func (s *session) Settle(out func(trace.Entry)) error {
	synctest.Wait()
	for s.surroundings.NameArrivals() {
		synctest.Wait()
	}
	s.surroundings.Drain(out)
	return nil
}

// NextWake is the time until the first sleeper wakes that the loop has told of.
func (s *session) NextWake() (time.Duration, bool) {
	until, ok := s.surroundings.NextWake()
	return time.Until(until), ok
}

// Close answers what still waits until nothing does. Goroutines that go on all
// the same are found when the bubble ends.
func (s *session) Close() error {
	for s.surroundings.Release() {
		synctest.Wait()
	}
	return nil
}
