// Package bubble runs cases on any Go loop in process, with its own goroutines,
// channels, timers and contexts, inside a [testing/synctest] bubble: there the
// clock is virtual, and the driver can wait until every goroutine of the loop
// is blocked for good.
//
// What a bubble can't do: a goroutine that waits for a mutex, for the network
// or for a system call is not at rest, so nothing settles while it does. The
// driver gives such a loop up after a while of real time. And a goroutine that
// panics ends the process: run loops that may do so in a process of their own.
package bubble

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Driver runs cases on a Go loop, each in a bubble of its own. It may be used by
// several goroutines, none of which may be in a bubble itself.
type Driver struct {
	About harness.SubjectInfo
	// Join joins the loop to its surroundings. It is called inside the bubble. A
	// loop with a method Close is closed there at the end of the case.
	Join func(s *harness.Surroundings) (harness.Loop, error)
	// Patience is for how long, in real time, the loop may take to come to rest
	// after an action; 0 means 10 seconds.
	Patience time.Duration
}

const usualPatience = 10 * time.Second

// Info says what the subject is.
func (d *Driver) Info() harness.SubjectInfo { return d.About }

// Close does nothing: the subject lives only as long as its cases.
func (d *Driver) Close() error { return nil }

// Open begins a case.
func (d *Driver) Open(_ context.Context, sc *harness.Scenario) (harness.Session, error) {
	s := &session{
		patience: d.Patience, work: make(chan []*harness.Action), rest: make(chan rest, 1), over: make(chan struct{}),
		surroundings: harness.NewSurroundings(sc, func() harness.Gate { return make(gate) }),
	}
	s.surroundings.Racy = true
	if s.patience == 0 {
		s.patience = usualPatience
	}
	go s.live(d.Join)
	if err := s.awaitRest("being made"); err != nil {
		close(s.work)
		return nil, err
	}
	return s, nil
}

// gate is a channel that is closed to open it.
type gate chan struct{}

func (g gate) Wait() { <-g }
func (g gate) Open() { close(g) }

// session is one case. Its methods are called outside of the bubble, so that they
// have real time and outlive whatever becomes of the loop. Inside is one goroutine
// that does what it is told. The channels between them are made outside, so that to
// wait for them is not to be at rest: the bubble's clock stands still meanwhile.
type session struct {
	surroundings *harness.Surroundings
	patience     time.Duration

	work chan []*harness.Action // closed when the case is over
	rest chan rest
	over chan struct{} // closed when the bubble has ended

	todo  []*harness.Action // handed over, and not yet begun
	wake  rest              // of the last action
	given bool              // up: the loop does not come to rest

	name atomic.Pointer[string] // of the bubble in stack dumps
	end  error                  // what was wrong with the bubble as a whole, once over is closed
}

// rest is what there is to say of a loop that has come to rest.
type rest struct {
	wake   time.Duration // until a sleeper wakes
	sleeps bool
	err    error
}

// live runs the bubble to its end.
func (s *session) live(join func(*harness.Surroundings) (harness.Loop, error)) {
	defer close(s.over)
	var crash error
	stuck := Run(func() { crash = s.inside(join) })
	switch {
	case crash != nil:
		s.end = crash
	case stuck != nil:
		s.end = s.leftover(stuck)
	}
}

// Run runs body in a bubble of its own. The error says that goroutines of the
// bubble wait for something that cannot come. It must be called on a goroutine that
// is in no bubble, and body must not panic.
//
// This is the one place that relies on something undocumented: that synctest.Test
// works with a T that no test runner made, as long as its body calls no method of
// it. A test of this package holds it.
func Run(body func()) (stuck error) {
	defer func() {
		if p := recover(); p != nil {
			stuck = fmt.Errorf("%v", p)
		}
	}()
	synctest.Test(new(testing.T), func(*testing.T) { body() })
	return nil
}

// inside is what happens in the bubble. The error is a panic of the loop in what
// it does at once for its user; one in a goroutine of its own nobody can catch.
func (s *session) inside(join func(*harness.Surroundings) (harness.Loop, error)) (crash error) {
	defer func() {
		if p := recover(); p != nil {
			crash = crashed(p)
		}
	}()
	s.name.Store(bubbleName())
	loop, err := join(s.surroundings)
	s.surroundings.Attach(loop)
	s.rest <- rest{err: err}
	for actions := range s.work {
		err := s.do(actions)
		synctest.Wait()
		for s.surroundings.LetOneOn() {
			synctest.Wait()
		}
		s.surroundings.LookAtSignals()
		until, sleeps := s.surroundings.NextWake()
		s.rest <- rest{wake: time.Until(until), sleeps: sleeps, err: err}
	}
	return s.finish(loop)
}

// lastHour is for how long, on the bubble's clock, goroutines of the loop may go on
// when everything was answered.
const lastHour = time.Hour

// finish lets the loop come to its end.
func (s *session) finish(loop harness.Loop) error {
	for waited := true; waited; {
		waited = s.surroundings.Release()
		synctest.Wait()
	}
	if closer, ok := loop.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			return err
		}
	}
	time.Sleep(lastHour)
	return nil
}

func (s *session) do(actions []*harness.Action) error {
	for _, a := range actions {
		if a.Kind == harness.ActionClock {
			time.Sleep(a.Advance)
			continue
		}
		if err := s.surroundings.Do(a); err != nil {
			return err
		}
	}
	return nil
}

// Do hands over an action. It is done when the session settles.
func (s *session) Do(a *harness.Action) error {
	own := *a // it is done later
	s.todo = append(s.todo, &own)
	return nil
}

// Settle does what was handed over and lets the loop run until every goroutine of
// it waits.
func (s *session) Settle(out func(*trace.Entry)) error {
	if s.given {
		return nil
	}
	err := s.settle()
	s.surroundings.Noted(out)
	return err
}

func (s *session) settle() error {
	what := "being asked to settle"
	if n := len(s.todo); n > 0 {
		what = s.todo[n-1].Label
	}
	select {
	case s.work <- s.todo:
		s.todo = nil
		return s.awaitRest(what)
	case <-s.over:
		s.given = true
		return s.end
	}
}

// awaitRest waits until the loop has come to rest after something.
func (s *session) awaitRest(after string) error {
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case s.wake = <-s.rest:
		return s.wake.err
	case <-s.over:
		s.given = true
		return s.end
	case <-timer.C:
		s.given = true
		return s.hung(after)
	}
}

// NextWake is the time until the first sleeper wakes that the loop has told of.
func (s *session) NextWake() (time.Duration, bool) { return s.wake.wake, s.wake.sleeps }

// Close answers what still waits until nothing does, and waits until every
// goroutine of the loop has ended. An error says which have not.
func (s *session) Close() error {
	close(s.work)
	if s.given {
		return nil
	}
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case <-s.over:
		return s.end
	case <-timer.C:
		return s.runsOn()
	}
}
