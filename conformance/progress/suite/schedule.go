package suite

import (
	"errors"
	"math/rand/v2"
	"slices"
)

// schedule lets tasks take turns. Each is a goroutine, of which one runs at a
// time, until it yields, waits or ends.
type schedule struct {
	rng     *rand.Rand
	tasks   []*task
	current *task
	back    chan struct{} // the current task gives its turn back
}

type task struct {
	turn    chan struct{}
	ready   func() bool // nil: always
	over    bool
	reports []int // numbers of the reports under way, innermost last
}

func newSchedule(seed uint64) *schedule {
	return &schedule{rng: rand.New(rand.NewPCG(seed, 1)), back: make(chan struct{})}
}

// spawn makes f a task.
func (s *schedule) spawn(f func()) *task {
	t := &task{turn: make(chan struct{})}
	s.tasks = append(s.tasks, t)
	go func() {
		<-t.turn
		f()
		t.over = true
		s.back <- struct{}{}
	}()
	return t
}

// yield lets other tasks run.
func (s *schedule) yield() { s.wait(nil) }

// wait lets other tasks run until ready holds.
func (s *schedule) wait(ready func() bool) {
	t := s.current
	t.ready = ready
	s.back <- struct{}{}
	<-t.turn
}

// await waits until done is closed.
func (s *schedule) await(done <-chan struct{}) {
	s.wait(func() bool { return isClosed(done) })
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

var errDeadlock = errors.New("tasks wait for each other")

// run gives turns until all tasks have ended.
func (s *schedule) run() error {
	for {
		s.tasks = slices.DeleteFunc(s.tasks, func(t *task) bool { return t.over })
		var ready []*task
		for _, t := range s.tasks {
			if t.ready == nil || t.ready() {
				ready = append(ready, t)
			}
		}
		if len(ready) == 0 {
			if len(s.tasks) == 0 {
				return nil
			}
			return errDeadlock
		}
		s.current = ready[s.rng.IntN(len(ready))]
		s.current.turn <- struct{}{}
		<-s.back
	}
}
