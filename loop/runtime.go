package loop

import (
	"context"
	"sync"
	"time"
)

// Runtime is the seam between the loop and whatever runs it. Loop code runs as
// tasks; at any time at most one of them runs, the others wait.
type Runtime interface {
	// Go, called from loop code, starts f at once: f runs to its first Await,
	// then the caller goes on. The join that it returns blocks until f has
	// ended; loop code joins by Await(join).
	Go(f func()) (join func())
	// Post, called from outside loop code, makes f a task that runs as soon as
	// its turn comes, in the order of the calls of Post, and does not wait for it.
	Post(f func()) (join func())
	// Await, called from loop code, runs f, during which other tasks may run.
	// Even if f returns at once, the tasks that are ready by then get their turn.
	Await(f func())
	// Now is the time on the runtime's clock.
	Now() time.Time
	// Sleep blocks for d, or until ctx is done, and returns ctx.Err.
	// Loop code sleeps inside Await.
	Sleep(ctx context.Context, d time.Duration) error
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

func (g *goroutines) Await(f func()) {
	g.release()
	defer g.acquire() // also if f panics: whoever recovers that is loop code
	f()
}

// Go hands the baton to the new task and puts the caller first in the queue, so
// that it goes on when the task waits for the first time, before anybody else.
func (g *goroutines) Go(f func()) (join func()) {
	caller := make(chan struct{})
	g.mu.Lock()
	g.queue = append(g.queue, nil)
	copy(g.queue[1:], g.queue)
	g.queue[0] = caller
	g.mu.Unlock()
	join = g.start(nil, f)
	<-caller
	return join
}

func (g *goroutines) Post(f func()) (join func()) { return g.start(g.ticket(), f) }

// start runs f on a goroutine of its own once the ticket's turn has come.
func (g *goroutines) start(ticket chan struct{}, f func()) (join func()) {
	ended := make(chan struct{})
	go func() {
		if ticket != nil {
			<-ticket
		}
		defer close(ended)
		defer g.release()
		f()
	}()
	return func() { <-ended }
}

func (g *goroutines) acquire() {
	if ticket := g.ticket(); ticket != nil {
		<-ticket
	}
}

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
