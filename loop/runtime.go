package loop

import (
	"context"
	"sync"
	"time"
)

// Runtime is the seam between the loop and whatever runs it. Loop code runs as
// tasks; at any time at most one of them runs, the others wait.
//
// A runtime that runs everything on one goroutine, from which alone the agent is
// used, may have a method Alone that says so. Then nothing is locked.
type Runtime interface {
	// Go, called from loop code, starts f at once: f runs to where it first leaves
	// loop code, then the caller goes on.
	Go(f func()) Task
	// Post, called from outside loop code, makes f a task that runs as soon as
	// its turn comes, in the order of the calls of Post, and does not wait for it.
	Post(f func()) Task
	// Leave, called from loop code, ends that until Enter: other tasks may run.
	Leave()
	// Enter goes on with loop code. Even if it comes right after Leave, the tasks
	// that are ready by then get their turn first.
	Enter()
	// Now is the time on the runtime's clock.
	Now() time.Time
	// Sleep blocks for d, or until ctx is done, and returns ctx.Err.
	// Loop code sleeps inside Await.
	Sleep(ctx context.Context, d time.Duration) error
}

// Task is what runs a function. Join blocks until the function has returned; loop
// code joins by [Await]. It is an alias, so that a runtime need not know this
// package.
type Task = interface{ Join() }

// Await, called from loop code, runs f, during which other tasks may run.
func Await(rt Runtime, f func()) {
	rt.Leave()
	defer rt.Enter() // also if f panics: whoever recovers that is loop code
	f()
}

// yield lets the tasks that are ready have their turn.
func yield(rt Runtime) {
	rt.Leave()
	rt.Enter()
}

// Goroutines is the runtime for real use. Each task is a goroutine, and a baton
// is handed from one to the next, strictly first come first served.
func Goroutines() Runtime { return &goroutines{} }

// goroutines is a baton and the queue of those who want it. The lock is only
// ever held for a few instructions; all waiting is on channels.
type goroutines struct {
	mu    sync.Mutex
	taken bool
	queue []chan struct{} // one ticket each; closed when its turn has come
}

func (g *goroutines) Now() time.Time { return time.Now() }

func (g *goroutines) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (g *goroutines) Leave() { g.release() }

func (g *goroutines) Enter() {
	if ticket := g.ticket(); ticket != nil {
		<-ticket
	}
}

// Go hands the baton to the new task and puts the caller first in the queue, so
// that it goes on when the task waits for the first time, before anybody else.
func (g *goroutines) Go(f func()) Task {
	caller := make(chan struct{})
	g.mu.Lock()
	g.queue = append(g.queue, nil)
	copy(g.queue[1:], g.queue)
	g.queue[0] = caller
	g.mu.Unlock()
	task := g.start(nil, f)
	<-caller
	return task
}

func (g *goroutines) Post(f func()) Task { return g.start(g.ticket(), f) }

// start runs f on a goroutine of its own once the ticket's turn has come.
func (g *goroutines) start(ticket chan struct{}, f func()) Task {
	ended := make(goroutine)
	go func() {
		if ticket != nil {
			<-ticket
		}
		defer close(ended)
		defer g.release()
		f()
	}()
	return ended
}

// goroutine is closed when it has ended.
type goroutine chan struct{}

func (g goroutine) Join() { <-g }

// ticket takes a place in the queue. It is nil if the baton was free and is now
// the caller's.
func (g *goroutines) ticket() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.taken {
		g.taken = true
		return nil
	}
	ticket := make(chan struct{})
	g.queue = append(g.queue, ticket)
	return ticket
}

// release hands the baton to the first in the queue.
func (g *goroutines) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.taken = false
		return
	}
	close(g.queue[0])
	n := copy(g.queue, g.queue[1:])
	g.queue[n] = nil
	g.queue = g.queue[:n]
}
