package harness

import (
	"context"
	"errors"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// Stream is the stream of one model request.
type Stream struct {
	s      *Surroundings
	call   *pending
	isAuto bool
	auto   []scriptedmodel.Step // what an automatic stream has left
	queue  []*trace.Answer      // delivered and not read
	reads  int
	final  *trace.Message
	gate   Gate // of a reader that waits
	ended  bool
}

// Model is a request to the model. It returns as soon as the stream is there,
// or the stream function's error.
func (s *Surroundings) Model(ctx context.Context, payload *trace.Payload) (*Stream, error) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil, errClosing
	}
	st := s.waiting.streams.Of(Stream{s: s})
	name := s.names.numbered("model", "")
	aborted := ctx != nil && ctx.Err() != nil
	if !aborted {
		gated := s.turn < len(s.Scenario.Model) && s.Scenario.Model[s.turn].Gate
		if !gated {
			return st, s.modelAuto(ctx, name, payload, st)
		}
		s.turn++
	}
	st.call = s.waiting.pending.Of(pending{name: name, ctx: ctx, cancelled: aborted, stream: st})
	s.called(name, payload).Aborted = aborted
	s.open = append(s.open, st.call)
	st.gate = s.newGate()
	gate := st.gate
	s.mu.Unlock()
	gate.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := st.queue[0]; first.Throw != nil {
		return nil, thrown(first)
	}
	return st, nil
}

// modelAuto answers the request by the script; it is called with the lock held.
func (s *Surroundings) modelAuto(_ context.Context, name string, payload *trace.Payload, st *Stream) error {
	steps := s.Scenario.planIn(&s.values.model, s.turn)
	s.turn++
	st.isAuto, st.auto = true, steps
	st.call = s.waiting.pending.Of(pending{name: name})
	answer := s.values.answers.New()
	for i := range steps {
		step := &steps[i]
		switch {
		case step.Throws:
			answer.Throw = &step.Throw
		case step.Ends:
			answer.Ends, answer.Final = true, step.Final
		default:
			if answer.Events == nil {
				answer.Events = s.values.streamed.List(len(steps))
			}
			answer.Events = append(answer.Events, *step.Event)
			if step.Final != nil {
				answer.Final = step.Final
			}
		}
	}
	e := s.called(name, payload)
	e.Auto, e.Answer = true, answer
	s.mu.Unlock()
	if len(steps) == 1 && steps[0].Throws {
		return errors.New(steps[0].Throw)
	}
	return nil
}

// Next gives the next event of the stream; ok is false if the stream has ended
// without one.
func (st *Stream) Next() (ev *trace.StreamEvent, ok bool, err error) {
	s := st.s
	s.mu.Lock()
	if !s.closing {
		s.note(trace.KindRead, st.call.name).N = st.reads
	}
	st.reads++
	if st.isAuto {
		defer s.mu.Unlock()
		return st.nextAuto()
	}
	for len(st.queue) == 0 && !st.ended {
		st.gate = s.newGate()
		gate := st.gate
		s.mu.Unlock()
		gate.Wait()
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if st.ended {
		return nil, false, nil
	}
	a := st.queue[0]
	st.queue = st.queue[1:]
	return st.take(a)
}

func (st *Stream) take(a *trace.Answer) (*trace.StreamEvent, bool, error) {
	if a.Throw != nil {
		st.queue = append(st.queue, a) // a stream that has thrown throws again
		return nil, false, thrown(a)
	}
	if a.Final != nil {
		st.final = a.Final
	}
	if a.Ends {
		st.ended = true
		return nil, false, nil
	}
	st.finish(a.Event)
	return a.Event, true, nil
}

func (st *Stream) nextAuto() (*trace.StreamEvent, bool, error) {
	if len(st.auto) == 0 {
		return nil, false, nil
	}
	step := st.auto[0]
	if step.Throws {
		return nil, false, errors.New(step.Throw)
	}
	st.auto = st.auto[1:]
	if step.Final != nil {
		st.final = step.Final
	}
	if step.Ends {
		return nil, false, nil
	}
	st.finish(step.Event)
	return step.Event, true, nil
}

func (st *Stream) finish(ev *trace.StreamEvent) {
	switch ev.Type {
	case trace.StreamDone:
		st.end(ev.Message)
	case trace.StreamError:
		st.end(ev.Error)
	}
}

// end notes that nothing follows and, unless the script said otherwise, what
// the stream comes to.
func (st *Stream) end(m *trace.Message) {
	st.ended = true
	if st.final == nil {
		st.final = m
	}
}

// Result is the message that the stream comes to. It is there once the stream
// has ended.
func (st *Stream) Result() (*trace.Message, error) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.final == nil {
		return nil, errors.New("the stream has no result yet")
	}
	return st.final, nil
}
