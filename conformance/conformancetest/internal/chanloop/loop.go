// Package chanloop is an agent loop as one might write it in Go without having
// seen any other: a goroutine for each run and one for each tool call, which speak
// over unbuffered channels, contexts for aborts, timers for tools that take too long.
// It is the example of a loop that is tested with package conformancetest.
//
// It has no types of its own for messages and events, and takes those of
// pi-conform.
package chanloop

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Options are what a loop calls out to, and how it works. Hooks may be nil.
type Options struct {
	Model           string
	Tools           []Tool
	History         []*trace.Message // to begin with
	Sequential      bool             // one tool call at a time
	AllSteering     bool             // take all queued messages at a time, not one
	AllFollowUps    bool
	ToolTimeout     time.Duration // 0 means ten minutes
	Stream          func(ctx context.Context, messages []*trace.Message) (Stream, error)
	BeforeToolCall  func(ctx context.Context, c Call) (*trace.HookAnswer, error)
	AfterToolCall   func(ctx context.Context, c Call, r *trace.Result, isError bool) (*trace.HookAnswer, error)
	TransformPrompt func(ctx context.Context, messages []*trace.Message) ([]*trace.Message, error)
	Polled          func(queue string, taken []*trace.Message)
	Plant           Plant
}

// Plant switches on a fault.
type Plant string

// The faults.
const (
	SelectRace Plant = "select race" // an update of a tool that has returned goes through if select so chooses
	DataRace   Plant = "data race"   // goroutines of tool calls write to one variable
	Panic      Plant = "panic"       // a goroutine panics if a tool call fails
	Deadlock   Plant = "deadlock"    // an aborted run waits for a tool call twice
	Leak       Plant = "leak"        // each tool call leaves a goroutine behind
	Mutex      Plant = "mutex"       // listeners are told of turn_end with the lock held
)

// Tool is what the model may call.
type Tool struct {
	Name       string
	Parameters trace.Value // JSON Schema
	Sequential bool        // no other call may run meanwhile
	Execute    func(ctx context.Context, c Call, onUpdate func(*trace.Result)) (*trace.Result, error)
}

// Call is a tool call as tools and hooks see it.
type Call struct {
	Assistant *trace.Message
	Block     *trace.Block
	History   []*trace.Message
}

// Stream is one answer of the model as it comes.
type Stream interface {
	Next() (ev *trace.StreamEvent, ok bool, err error)
	Result() (*trace.Message, error)
}

// Listener is told of every event, one after the other, with the run's context.
type Listener = func(ctx context.Context, ev *trace.Event) error

// Errors of those who want a run.
var (
	ErrBusy    = errors.New("a run is active")
	ErrNothing = errors.New("there is nothing to go on from")
)

// Loop has a history and at most one run at a time.
type Loop struct {
	o Options

	mu        sync.Mutex // held for a moment at a time, unless that is planted otherwise
	history   []*trace.Message
	state     trace.State
	steering  []*trace.Message
	followUps []*trace.Message
	listeners []*subscription
	active    *run
	begun     int // tool calls; used with DataRace alone
}

type subscription struct {
	number int
	hear   Listener
}

// New makes a loop.
func New(o Options) *Loop {
	if o.ToolTimeout == 0 {
		o.ToolTimeout = 10 * time.Minute
	}
	return &Loop{o: o, history: slices.Clone(o.History)}
}

// Prompt runs the loop on messages until it has nothing left to do.
func (l *Loop) Prompt(messages []*trace.Message) error {
	return l.run(func() ([]*trace.Message, bool, error) { return messages, false, nil })
}

// Continue goes on from the history as it is, or from what is queued.
func (l *Loop) Continue() error {
	return l.run(func() (prompts []*trace.Message, steered bool, err error) {
		n := len(l.history)
		if n > 0 && l.history[n-1].Role != trace.RoleAssistant {
			return nil, false, nil
		}
		if n > 0 {
			if prompts = take(&l.steering, l.o.AllSteering); prompts != nil {
				return prompts, true, nil
			}
			if prompts = take(&l.followUps, l.o.AllFollowUps); prompts != nil {
				return prompts, false, nil
			}
		}
		return nil, false, ErrNothing
	})
}

func (l *Loop) run(begin func() ([]*trace.Message, bool, error)) error {
	l.mu.Lock()
	if l.active != nil {
		l.mu.Unlock()
		return ErrBusy
	}
	prompts, steered, err := begin()
	if err != nil {
		l.mu.Unlock()
		return err
	}
	r := &run{Loop: l, steered: steered, history: slices.Concat(l.history, prompts), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	l.active, l.state = r, trace.State{IsStreaming: true}
	l.mu.Unlock()
	return r.all(prompts)
}

// Wait waits until no run is active.
func (l *Loop) Wait() {
	l.mu.Lock()
	r := l.active
	l.mu.Unlock()
	if r != nil {
		<-r.done
	}
}

// Abort cancels the active run.
func (l *Loop) Abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active != nil {
		l.active.cancel()
	}
}

// Steer queues messages for the next turn.
func (l *Loop) Steer(messages ...*trace.Message) { l.queue(&l.steering, messages) }

// FollowUp queues messages for when the run would end.
func (l *Loop) FollowUp(messages ...*trace.Message) { l.queue(&l.followUps, messages) }

func (l *Loop) queue(q *[]*trace.Message, messages []*trace.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*q = append(*q, messages...)
}

// ClearQueues forgets what is queued.
func (l *Loop) ClearQueues() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steering, l.followUps = nil, nil
}

// Reset forgets everything.
func (l *Loop) Reset() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active != nil {
		return ErrBusy
	}
	l.history, l.steering, l.followUps, l.state = nil, nil, nil, trace.State{}
	return nil
}

// State is what the loop knows of itself.
func (l *Loop) State() trace.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	if s.Messages = len(l.history); s.Messages > 0 {
		s.Last = l.history[s.Messages-1].Tag()
	}
	return s
}

// Subscribe adds a listener.
func (l *Loop) Subscribe(hear Listener) (unsubscribe func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &subscription{number: 1, hear: hear}
	if n := len(l.listeners); n > 0 {
		s.number = l.listeners[n-1].number + 1
	}
	l.listeners = append(l.listeners, s)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.listeners = slices.DeleteFunc(l.listeners, func(other *subscription) bool { return other == s })
	}
}

// listenerAfter is looked up anew for each delivery, as listeners come and go.
func (l *Loop) listenerAfter(number int) *subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.listeners, func(s *subscription) bool { return s.number > number })
	if i < 0 {
		return nil
	}
	return l.listeners[i]
}

// reduce is what an event does to the state.
func (l *Loop) reduce(ev *trace.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.state
	isIt := func(id string) bool { return id == ev.ToolCallID }
	switch ev.Type {
	case trace.MessageStart, trace.MessageUpdate:
		s.Streaming = ev.Message.Role
	case trace.MessageEnd:
		s.Streaming = ""
		l.history = append(l.history, ev.Message)
	case trace.ToolExecutionStart:
		s.Pending = append(slices.DeleteFunc(slices.Clone(s.Pending), isIt), ev.ToolCallID)
	case trace.ToolExecutionEnd:
		s.Pending = slices.DeleteFunc(slices.Clone(s.Pending), isIt)
	case trace.TurnEnd:
		if ev.Message.ErrorMessage != "" {
			s.Error = ev.Message.ErrorMessage
		}
	}
}

func (l *Loop) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active, l.state = nil, trace.State{Error: l.state.Error}
}

// take takes one message off a queue, or all of them.
func take(q *[]*trace.Message, all bool) []*trace.Message {
	n := len(*q)
	if !all {
		n = min(n, 1)
	}
	if n == 0 {
		return nil
	}
	taken := (*q)[:n:n]
	*q = (*q)[n:]
	return taken
}
