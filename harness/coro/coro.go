// Package coro runs the tasks of a loop as coroutines on one goroutine, so that
// a whole run with all its concurrency is one deterministic sequence of
// function calls.
//
// A [Scheduler] is what JavaScript calls an event loop. It satisfies the
// runtime seam of package loop by its method set alone. A task that waits gives
// control back to whoever resumed it; nothing runs by itself. The harness opens
// a gate and calls [Scheduler.Run], which returns when every task waits.
//
// Nothing in here may block for real: a task that waits on a channel, a mutex
// or a context's Done would stop everything.
package coro

import (
	"context"
	"iter"
	"time"

	"github.com/pi-conform/pi-conform/harness/lean"
)

// Scheduler owns the tasks of one case. It is not safe for use by several
// goroutines at once.
type Scheduler struct {
	ready   []*coroutine // tasks that can go on, first come first served
	head    int          // index of the first of them
	current *coroutine
	depth   int          // how many tasks are nested in each other's starts
	live    int          // tasks begun and not ended
	idle    []*coroutine // coroutines whose task has ended, for the next one
	now     time.Time
	sleeps  []*sleep
	tasks   lean.Slab[task]
	gates   lean.Slab[Gate]
}

// New gives a scheduler whose clock stands at start.
func New(start time.Time) *Scheduler { return &Scheduler{now: start} }

// coroutine runs one task after the other.
type coroutine struct {
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	stop   func()
	work   func()
	task   *task // under way
}

// Task is what runs a function. Join waits until the function has returned.
type Task = interface{ Join() }

// task is a function that was started.
type task struct {
	s       *Scheduler
	ended   bool
	waiters []*coroutine
}

// Join waits until the function has returned.
func (t *task) Join() {
	for !t.ended {
		t.waiters = append(t.waiters, t.s.current)
		t.s.suspend()
	}
}

// Go starts f at once. It runs to its first wait; then the caller goes on.
func (s *Scheduler) Go(f func()) Task {
	c, t := s.coroutine(), s.tasks.Of(task{s: s})
	c.work, c.task = f, t
	s.live++
	s.step(c)
	return t
}

// Post is Go: with coroutines there is no outside.
func (s *Scheduler) Post(f func()) Task { return s.Go(f) }

// Leave says that the current task may wait now. With coroutines there is nothing
// to do: no other goes on before this one does wait.
func (s *Scheduler) Leave() {}

// Enter lets every task go first that is ready by now, and the one that started
// this one.
func (s *Scheduler) Enter() {
	if s.head < len(s.ready) || s.depth > 1 {
		s.ready = append(s.ready, s.current)
		s.suspend()
	}
}

// Run resumes tasks until none is ready.
func (s *Scheduler) Run() {
	for s.head < len(s.ready) {
		c := s.ready[s.head]
		s.ready[s.head] = nil
		s.head++
		if s.head == len(s.ready) {
			s.ready, s.head = s.ready[:0], 0
		}
		s.step(c)
	}
}

// Alone says that one goroutine runs everything.
func (s *Scheduler) Alone() bool { return true }

// Live is the number of tasks that have begun and not ended.
func (s *Scheduler) Live() int { return s.live }

// Reset makes the scheduler as new, but keeps its coroutines for reuse. No task
// may be live.
func (s *Scheduler) Reset(start time.Time) {
	s.ready, s.head, s.sleeps, s.now = s.ready[:0], 0, s.sleeps[:0], start
	s.tasks.Recycle()
	s.gates.Recycle()
}

// Close ends the coroutines that are kept for reuse. Tasks that still wait are
// left alone: answer their gates first.
func (s *Scheduler) Close() {
	for _, c := range s.idle {
		c.stop()
	}
	s.idle = nil
}

// Now is the virtual time.
func (s *Scheduler) Now() time.Time { return s.now }

// coroutine gives an idle coroutine, or a new one.
func (s *Scheduler) coroutine() *coroutine {
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c
	}
	c := &coroutine{}
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for {
			c.work()
			c.work = nil
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// step resumes c until it waits or its task ends.
func (s *Scheduler) step(c *coroutine) {
	outer := s.current
	s.current = c
	s.depth++
	c.resume()
	s.depth--
	s.current = outer
	if c.work == nil {
		s.retire(c)
	}
}

func (s *Scheduler) retire(c *coroutine) {
	t := c.task
	t.ended, c.task = true, nil
	s.live--
	s.ready = append(s.ready, t.waiters...)
	t.waiters = nil
	s.idle = append(s.idle, c)
}

// suspend gives control back to whoever resumed the current task.
func (s *Scheduler) suspend() {
	if s.current == nil {
		panic("coro: waiting outside a task")
	}
	s.current.yield(struct{}{})
}

// Gate is a place where one task waits until somebody opens it.
type Gate struct {
	s      *Scheduler
	open   bool
	waiter *coroutine
}

// NewGate gives a closed gate.
func (s *Scheduler) NewGate() *Gate { return s.gates.Of(Gate{s: s}) }

// Wait suspends the current task until the gate is open.
func (g *Gate) Wait() {
	for !g.open {
		g.waiter = g.s.current
		g.s.suspend()
	}
}

// Open lets the task that waits go on, the next time that the scheduler runs.
func (g *Gate) Open() {
	if g.open {
		return
	}
	g.open = true
	if g.waiter != nil {
		g.s.ready = append(g.s.ready, g.waiter)
		g.waiter = nil
	}
}

type sleep struct {
	until time.Time
	ctx   context.Context
	gate  *Gate
}

// Sleep waits until the virtual clock has been moved on by d, or ctx is done.
// Which of the two it was is seen by ctx.Err.
func (s *Scheduler) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	w := &sleep{until: s.now.Add(d), ctx: ctx, gate: s.NewGate()}
	s.sleeps = append(s.sleeps, w)
	w.gate.Wait()
	return ctx.Err()
}

// Advance moves the clock and wakes the sleepers whose time has come, earliest
// first. It does not run them.
func (s *Scheduler) Advance(d time.Duration) {
	s.now = s.now.Add(d)
	s.Wake()
}

// Wake wakes the sleepers whose time has come or whose context is done.
func (s *Scheduler) Wake() {
	for {
		first := -1
		for i, w := range s.sleeps {
			if w.until.After(s.now) && w.ctx.Err() == nil {
				continue
			}
			if first < 0 || w.until.Before(s.sleeps[first].until) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		s.sleeps[first].gate.Open()
		s.sleeps = append(s.sleeps[:first], s.sleeps[first+1:]...)
	}
}

// NextWake is the time until the first sleeper wakes; ok is false if none
// sleeps.
func (s *Scheduler) NextWake() (d time.Duration, ok bool) {
	for _, w := range s.sleeps {
		if left := w.until.Sub(s.now); !ok || left < d {
			d, ok = left, true
		}
	}
	return d, ok
}
