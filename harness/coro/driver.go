package coro

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Join joins a loop that runs on the scheduler to its surroundings.
type Join func(s *harness.Surroundings, sched *Scheduler) (harness.Loop, error)

// Driver runs cases on a loop that is written against coroutines. It may be
// used by several goroutines; each case has a scheduler of its own.
type Driver struct {
	About harness.SubjectInfo
	Join  Join

	mu    sync.Mutex
	free  []*session // between two cases: their coroutines and lists are used again
	given []*Driver  // by Recycled
	from  *Driver    // who gave this one, or nil
}

// Recycled gives the driver to one goroutine.
func (d *Driver) Recycled() harness.Recycled {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := &Driver{About: d.About, Join: d.Join, from: d}
	d.given = append(d.given, own)
	return own
}

// Keep lets what was recorded last hold for good.
func (d *Driver) Keep() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.free {
		s.surroundings.Keep()
	}
}

// Info says what the subject is.
func (d *Driver) Info() harness.SubjectInfo { return d.About }

// Close ends the coroutines that are kept from one case to the next.
func (d *Driver) Close() error {
	if d.from != nil {
		d.from.forget(d)
	}
	for _, own := range d.end() {
		own.end()
	}
	return nil
}

// end gives up the sessions, and gives the drivers that it was given as.
func (d *Driver) end() (given []*Driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.free {
		s.sched.Close()
	}
	given, d.free, d.given = d.given, nil, nil
	return given
}

func (d *Driver) forget(own *Driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given = slices.DeleteFunc(d.given, func(other *Driver) bool { return other == own })
}

// session gives one that was used before, or a new one.
func (d *Driver) session(sc *harness.Scenario) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.free)
	if n == 0 {
		sched := New(epoch)
		gate := func() harness.Gate { return sched.NewGate() }
		s := &session{driver: d, sched: sched, surroundings: harness.NewSurroundings(sc, gate)}
		s.surroundings.Alone()
		if d.from != nil {
			s.surroundings.Recycle()
		}
		return s
	}
	s := d.free[n-1]
	d.free = d.free[:n-1]
	s.sched.Reset(epoch)
	s.surroundings.Reuse(sc)
	return s
}

func (d *Driver) giveBack(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, s)
}

// epoch is when every case begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Open begins a case.
func (d *Driver) Open(_ context.Context, sc *harness.Scenario) (harness.Session, error) {
	s := d.session(sc)
	loop, err := d.Join(s.surroundings, s.sched)
	if err != nil {
		return nil, err
	}
	s.surroundings.Attach(loop)
	return s, nil
}

type session struct {
	driver       *Driver
	sched        *Scheduler
	surroundings *harness.Surroundings
}

func (s *session) Do(a *harness.Action) error {
	if a.Kind == harness.ActionClock {
		s.sched.Advance(a.Advance)
		return nil
	}
	return s.surroundings.Do(a)
}

func (s *session) Settle(out func(*trace.Entry)) error {
	s.settle()
	s.surroundings.Drain(out)
	return nil
}

// RecordInto lets everything be noted in a recording at once.
func (s *session) RecordInto(entries *[]trace.Entry) { s.surroundings.RecordInto(entries) }

// NextWake is the time until the first sleeper wakes.
func (s *session) NextWake() (time.Duration, bool) { return s.sched.NextWake() }

// settle runs tasks until all wait. A sleeper whose context was cancelled has
// to be woken, as nothing else tells it.
func (s *session) settle() {
	for {
		s.sched.Run()
		s.sched.Wake()
		if len(s.sched.ready) == 0 {
			return
		}
	}
}

// closingRounds bounds how often a loop may come back with new callbacks after
// everything was answered with an error.
const closingRounds = 1000

// Close answers what still waits until every task has ended.
func (s *session) Close() error {
	s.surroundings.RecordInto(nil) // what follows is no part of the case
	for range closingRounds {
		if s.sched.Live() == 0 {
			s.driver.giveBack(s)
			return nil
		}
		waited := s.surroundings.Release()
		s.sched.Advance(24 * time.Hour)
		s.settle()
		if !waited && s.sched.Live() > 0 {
			break
		}
	}
	s.sched.Close()
	return &harness.SubjectError{
		Outcome: trace.OutcomeLeaked,
		Message: "tasks of the loop go on although every callback was answered",
		Exit:    -1,
	}
}
