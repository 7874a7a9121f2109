package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Step is an event of a script, and when it is emitted: so long after Start, on
// the engine's own clock. An event at zero is emitted inside Start. If the event
// says no run, it is of the run that was started.
type Step struct {
	At    time.Duration
	Event Event
}

// Script is what a scripted engine does when it is started.
type Script struct {
	Steps []Step
	Fails string // Start emits what is due at zero and then fails with this text
	Text  string // of the result
	Error string // of the result
}

// Scripted is an engine that plays scripts, by name, on a clock of its own which
// only [Scripted.Advance] moves.
type Scripted struct {
	scripts map[string]Script
	// await waits until done is closed or ctx is done.
	await func(ctx context.Context, done <-chan struct{}) error

	mu        sync.Mutex
	now       time.Duration
	count     int
	listeners []*listener
	runs      map[string]*run
}

type listener struct{ listen func(*Event) }

type run struct {
	script Script
	id     string
	begun  time.Duration
	next   int // step
	done   chan struct{}
	over   bool
	played bool // somebody is emitting its events
}

// NewScripted makes an engine. Await waits until done is closed or ctx is done,
// and gives ctx's error in that case; nil means [WaitFor].
func NewScripted(scripts map[string]Script, await func(ctx context.Context, done <-chan struct{}) error) *Scripted {
	if await == nil {
		await = WaitFor
	}
	return &Scripted{scripts: scripts, await: await, runs: map[string]*run{}}
}

// NewImmediate makes an engine that emits everything inside Start.
func NewImmediate(events []Event, result Result) *Scripted {
	var steps []Step
	for _, ev := range events {
		steps = append(steps, Step{Event: ev})
	}
	return NewScripted(map[string]Script{"": {Steps: steps, Text: result.Text, Error: result.Error}}, nil)
}

// WaitFor waits until done is closed, or ctx is done and gives its error.
func WaitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Listen registers a listener.
func (e *Scripted) Listen(l func(*Event)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	item := &listener{l}
	e.listeners = append(slices.Clip(e.listeners), item)
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.listeners = slices.DeleteFunc(slices.Clone(e.listeners), func(l *listener) bool { return l == item })
	}
}

// Listeners is how many listeners there are.
func (e *Scripted) Listeners() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.listeners)
}

var (
	errScript = errors.New("there is no such script")
	errRun    = errors.New("there is no such run")
)

// Start plays what is due at once.
func (e *Scripted) Start(_ context.Context, job Job) (string, error) {
	script, ok := e.scripts[job.Script]
	if !ok {
		return "", errScript
	}
	e.mu.Lock()
	e.count++
	r := &run{script: script, id: fmt.Sprintf("run-%d", e.count), begun: e.now, done: make(chan struct{}), played: true}
	e.runs[r.id] = r
	e.mu.Unlock()
	e.play(r)
	if script.Fails != "" {
		e.forget(r)
		return "", errors.New(script.Fails)
	}
	return r.id, nil
}

// play emits what is due of a run that was marked as played. A run has one player
// at a time, so that its events come in their order: what falls due meanwhile, the
// same player emits.
func (e *Scripted) play(r *run) {
	for {
		ev, listeners := e.due(r)
		if ev == nil {
			return
		}
		for _, l := range listeners {
			l.listen(ev)
		}
	}
}

// due is the next event, or nil: then the run is played no longer.
func (e *Scripted) due(r *run) (*Event, []*listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !r.over && r.next == len(r.script.Steps) && r.script.Fails == "" {
		r.over = true
		close(r.done)
	}
	if r.over || r.next == len(r.script.Steps) || r.begun+r.script.Steps[r.next].At > e.now {
		r.played = false
		return nil, nil
	}
	step := r.script.Steps[r.next]
	r.next++
	ev := step.Event
	if ev.Run == "" {
		ev.Run = r.id
	}
	return &ev, e.listeners
}

// forget ends a run, whether or not it has played all of its script.
func (e *Scripted) forget(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runs, r.id)
	if !r.over {
		r.over = true
		close(r.done)
	}
}

// Advance moves the clock and emits what is due by then, run by run in the order
// of their names. What is due of a run whose events are being emitted by somebody
// else follows there.
func (e *Scripted) Advance(d time.Duration) {
	e.mu.Lock()
	e.now += d
	var runs []*run
	for _, r := range e.runs {
		if !r.over && !r.played {
			r.played = true
			runs = append(runs, r)
		}
	}
	e.mu.Unlock()
	slices.SortFunc(runs, func(a, b *run) int { return strings.Compare(a.id, b.id) })
	for _, r := range runs {
		e.play(r)
	}
}

// Wait waits for the end of a run, or cancels it.
func (e *Scripted) Wait(ctx context.Context, id string) (Result, error) {
	e.mu.Lock()
	r := e.runs[id]
	e.mu.Unlock()
	if r == nil {
		return Result{}, errRun
	}
	err := e.await(ctx, r.done)
	e.forget(r)
	if err != nil {
		return Result{}, err
	}
	return Result{Text: r.script.Text, Error: r.script.Error}, nil
}
