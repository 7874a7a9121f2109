package suite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness/coro"
)

// schedule lets tasks take turns.
type schedule interface {
	// spawn makes f a task. It begins when its turn comes.
	spawn(f func())
	// yield lets other tasks run.
	yield()
	// wait lets other tasks run until ready holds.
	wait(ready func() bool)
	// await waits until done is closed.
	await(done <-chan struct{})
	// run gives turns until all tasks have ended.
	run() error
}

// ErrStuck says that a report, or the end of an execution, does not come back.
var ErrStuck = errors.New("a report or an end does not come back: tasks wait for each other")

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// coroutines is a schedule under the coroutine driver: one task runs at a time,
// and the seed decides whose turn it is.
type coroutines struct {
	rng     *rand.Rand
	driver  *coro.Scheduler
	waiting []turn
}

type turn struct {
	gate  *coro.Gate
	ready func() bool // nil: always
}

func newCoroutines(seed uint64) *coroutines {
	return &coroutines{rng: rand.New(rand.NewPCG(seed, 1)), driver: coro.New(time.Time{})}
}

func (s *coroutines) spawn(f func()) {
	s.driver.Go(func() {
		s.yield()
		f()
	})
}

func (s *coroutines) yield() { s.wait(nil) }

func (s *coroutines) wait(ready func() bool) {
	t := turn{s.driver.NewGate(), ready}
	s.waiting = append(s.waiting, t)
	t.gate.Wait()
}

func (s *coroutines) await(done <-chan struct{}) { s.wait(func() bool { return isClosed(done) }) }

func (s *coroutines) run() error {
	defer s.driver.Close()
	for len(s.waiting) > 0 {
		var ready []int
		for i, t := range s.waiting {
			if t.ready == nil || t.ready() {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return ErrStuck
		}
		i := ready[s.rng.IntN(len(ready))]
		gate := s.waiting[i].gate
		s.waiting = slices.Delete(s.waiting, i, i+1)
		gate.Open()
		s.driver.Run()
	}
	return nil
}

// goroutines is a schedule of real goroutines, for a bubble of synctest: a task
// yields by sleeping on the bubble's clock.
type goroutines struct {
	grain time.Duration // tasks that wake within one run at once
	tasks sync.WaitGroup

	mu  sync.Mutex
	rng *rand.Rand
	err error // the first
}

// How tasks wake: alone, so that a seed is one run, or several at once, so that
// they race.
const (
	inTurn = time.Nanosecond
	atOnce = time.Millisecond

	longest  = 4 * time.Millisecond // that a task sleeps
	mostWait = 100_000              // looks at whether a task is ready
)

func newGoroutines(seed uint64, grain time.Duration) *goroutines {
	return &goroutines{rng: rand.New(rand.NewPCG(seed, 1)), grain: grain}
}

// spawn draws when the task begins before there is a goroutine that could come
// earlier or later.
func (s *goroutines) spawn(f func()) {
	d := s.draw()
	s.tasks.Go(func() {
		defer s.caught()
		time.Sleep(d)
		f()
	})
}

// caught keeps a panic of the subject from ending the process.
func (s *goroutines) caught() {
	if p := recover(); p != nil {
		s.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

func (s *goroutines) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *goroutines) draw() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rng.Int64N(int64(longest/s.grain))) * s.grain
}

func (s *goroutines) yield() { time.Sleep(s.draw()) }

// wait looks again and again: what it waits for may come from any goroutine.
func (s *goroutines) wait(ready func() bool) {
	for range mostWait {
		if ready() {
			return
		}
		s.yield()
		time.Sleep(s.grain)
	}
	s.fail(ErrStuck)
	runtime.Goexit()
}

func (s *goroutines) await(done <-chan struct{}) { <-done }

func (s *goroutines) run() error {
	s.tasks.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
