package loop

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Sink gets the events of a bare run, one after the other; those of calls that
// run in parallel may overlap if it waits. It is loop code: what takes long
// belongs into [Await]. An error ends the run without further events.
type Sink func(*trace.Event) error

// The reasons for which there is nothing to continue from.
var (
	ErrNoMessages    = errors.New("cannot continue: there are no messages")
	ErrLastAssistant = errors.New("cannot continue from a message of the assistant")
)

// Run runs the bare loop on prompts, without state, queues or listeners. It waits
// for the run and gives the messages that it added. Whatever fails outside the
// protocol is returned as the error; there is no failure sequence. It must not be
// called from loop code: see [Begin].
func Run(ctx context.Context, rt Runtime, prompts []*trace.Message, c Context, config *Config, sink Sink) ([]*trace.Message, error) {
	return waited(func(done func([]*trace.Message, error)) error {
		Begin(ctx, rt, prompts, c, config, sink, done)
		return nil
	})
}

// Begin is [Run] without waiting. Done, if not nil, is called as loop code.
func Begin(ctx context.Context, rt Runtime, prompts []*trace.Message, c Context, config *Config, sink Sink, done func([]*trace.Message, error)) {
	c.Messages = slices.Clone(c.Messages) // the caller's list stays as it is (CTX-3)
	newBareRun(ctx, rt, &c, config, sink, done).start(append([]*trace.Message{}, prompts...))
}

// Continue is [Run] without prompts: it goes on from the context's last message,
// which must not be the assistant's. As in every release the list of c grows
// with the run (edge 16).
func Continue(ctx context.Context, rt Runtime, c *Context, config *Config, sink Sink) ([]*trace.Message, error) {
	return waited(func(done func([]*trace.Message, error)) error {
		return BeginContinue(ctx, rt, c, config, sink, done)
	})
}

// BeginContinue is [Continue] without waiting. If it returns an error, nothing
// was begun.
func BeginContinue(ctx context.Context, rt Runtime, c *Context, config *Config, sink Sink, done func([]*trace.Message, error)) error {
	if err := continuable(c.Messages); err != nil {
		return err
	}
	newBareRun(ctx, rt, c, config, sink, done).start(nil)
	return nil
}

func continuable(messages []*trace.Message) error {
	switch {
	case len(messages) == 0:
		return ErrNoMessages
	case messages[len(messages)-1].Role == trace.RoleAssistant:
		return ErrLastAssistant
	}
	return nil
}

func newBareRun(ctx context.Context, rt Runtime, c *Context, config *Config, sink Sink, done func([]*trace.Message, error)) *run {
	r := newRun(ctx, rt, c, config, sink, nil)
	r.settled = func(err error) {
		if done == nil {
			return
		}
		if err != nil {
			done(nil, err)
			return
		}
		done(r.added, nil)
	}
	return r
}

// waited waits for what begin begins.
func waited[T any](begin func(done func(T, error)) error) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	settled := make(chan outcome, 1)
	if err := begin(func(value T, err error) { settled <- outcome{value, err} }); err != nil {
		var none T
		return none, err
	}
	o := <-settled
	return o.value, o.err
}

// Events is the bare loop as a plain stream of events, without back pressure: a
// slow reader does not hold it back (LIS-5).
func Events(ctx context.Context, rt Runtime, prompts []*trace.Message, c Context, config *Config) *EventStream {
	s := newEventStream(rt, config)
	Begin(ctx, rt, prompts, c, config, s.push, nil)
	return s
}

// ContinueEvents is [Events] for a continuation.
func ContinueEvents(ctx context.Context, rt Runtime, c *Context, config *Config) (*EventStream, error) {
	s := newEventStream(rt, config)
	if err := BeginContinue(ctx, rt, c, config, s.push, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// EventStream holds the events that were not read yet, however many.
//
// It ends after agent_end. As in every release, a run that fails outside the
// protocol never ends its stream (edge 10).
type EventStream struct {
	rt      Runtime
	mu      sync.Mutex
	queue   []*trace.Event
	ended   bool
	arrived chan struct{} // holds a token if something has come since a reader last looked
	reader  func(*trace.Event)
	reading bool
	held    bool // the loop waits for the reader; only a defect does
}

func newEventStream(rt Runtime, config *Config) *EventStream {
	return &EventStream{rt: rt, arrived: make(chan struct{}, 1), held: config.Defects.Has(StreamHeldByReader)}
}

// Next waits for the next event. It is nil after the last, or when ctx is done.
// It must not be called from loop code: see [EventStream.Each].
func (s *EventStream) Next(ctx context.Context) *trace.Event {
	for {
		ev, more := s.take()
		if ev != nil || !more {
			return ev
		}
		select {
		case <-s.arrived:
		case <-ctx.Done():
			return nil
		}
	}
}

// Each reads the whole stream: f gets every event, one after the other, as loop
// code. It does not wait, and neither does the loop wait for f.
func (s *EventStream) Each(f func(*trace.Event)) {
	s.rt.Post(func() {
		s.reader = f
		if !s.held {
			s.read()
		}
	})
}

// push takes an event from the loop. What comes after agent_end is dropped.
func (s *EventStream) push(ev *trace.Event) error {
	s.put(ev)
	switch {
	case s.reader == nil:
	case s.held:
		s.read()
	case !s.reading:
		s.rt.Go(s.read)
	}
	return nil
}

func (s *EventStream) put(ev *trace.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.queue = append(s.queue, ev)
	s.ended = ev.Type == trace.AgentEnd
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// take is the next event if there is one; more is false if there never will be.
func (s *EventStream) take() (ev *trace.Event, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, !s.ended
	}
	ev = s.queue[0]
	s.queue = s.queue[1:]
	return ev, true
}

// read hands over what has come until there is nothing left.
func (s *EventStream) read() {
	s.reading = true
	defer func() { s.reading = false }()
	for ev, _ := s.take(); ev != nil; ev, _ = s.take() {
		s.reader(ev)
	}
}
