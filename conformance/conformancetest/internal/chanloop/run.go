package chanloop

import (
	"context"
	"slices"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// run is one run. All its events come from one goroutine, so they are told one
// after the other.
type run struct {
	*Loop
	ctx     context.Context
	cancel  context.CancelFunc
	steered bool             // it was begun by what was in the steering queue
	history []*trace.Message // what the model is asked with
	added   []*trace.Message
	done    chan struct{}
}

func (r *run) aborted() bool { return r.ctx.Err() != nil }

func (r *run) all(prompts []*trace.Message) error {
	defer close(r.done)
	defer r.ended()
	defer r.cancel()
	r.added = slices.Clone(prompts)
	err := r.turns(prompts)
	if err == nil {
		err = r.tell(&trace.Event{Type: trace.AgentEnd, Messages: slices.Clip(r.added)})
	}
	if err != nil {
		return r.fail(err)
	}
	return nil
}

// fail ends a run that broke with a message that says why.
func (r *run) fail(why error) error {
	m := &trace.Message{
		Role: trace.RoleAssistant, Content: trace.TextContent(""), API: "scripted", Provider: "scripted", Model: r.o.Model,
		StopReason: trace.StopError, ErrorMessage: why.Error(), Timestamp: time.Now().UnixMilli(),
		Usage: trace.Value(`{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
			`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`),
	}
	if r.aborted() {
		m.StopReason = trace.StopAborted
	}
	if err := r.tellMessages(m); err != nil {
		return err
	}
	return r.tell(
		&trace.Event{Type: trace.TurnEnd, Message: m, ToolResults: []*trace.Message{}},
		&trace.Event{Type: trace.AgentEnd, Messages: []*trace.Message{m}},
	)
}

func (r *run) turns(prompts []*trace.Message) error {
	if err := r.tell(&trace.Event{Type: trace.AgentStart}, &trace.Event{Type: trace.TurnStart}); err != nil {
		return err
	}
	if err := r.tellMessages(prompts...); err != nil {
		return err
	}
	var queued []*trace.Message
	if !r.steered {
		queued = r.poll(trace.HookPollSteering, &r.steering, r.o.AllSteering)
	}
	for {
		if err := r.tellMessages(queued...); err != nil {
			return err
		}
		r.add(queued...)
		again, over, err := r.turn()
		if err != nil || over {
			return err
		}
		queued = r.poll(trace.HookPollSteering, &r.steering, r.o.AllSteering)
		if !again && queued == nil {
			if queued = r.poll(trace.HookPollFollowUp, &r.followUps, r.o.AllFollowUps); queued == nil {
				return nil
			}
		}
		if err := r.tell(&trace.Event{Type: trace.TurnStart}); err != nil {
			return err
		}
	}
}

func (r *run) poll(name string, q *[]*trace.Message, all bool) []*trace.Message {
	r.mu.Lock()
	taken := take(q, all)
	r.mu.Unlock()
	r.o.Polled(name, taken)
	return taken
}

// turn asks the model once and runs the tools that it calls. Again says that the
// model has yet to see their results, over that the run has to end.
func (r *run) turn() (again, over bool, err error) {
	m, err := r.ask()
	if err != nil {
		return false, false, err
	}
	r.add(m)
	results := []*trace.Message{}
	over = m.StopReason == trace.StopError || m.StopReason == trace.StopAborted
	if calls := r.callsOf(m); len(calls) > 0 && !over {
		if results, again, err = r.batch(m, calls); err != nil {
			return false, false, err
		}
		r.add(results...)
	}
	return again, over, r.tell(&trace.Event{Type: trace.TurnEnd, Message: m, ToolResults: results})
}

func (r *run) ask() (*trace.Message, error) {
	messages := slices.Clip(r.history)
	if transform := r.o.TransformPrompt; transform != nil {
		var err error
		if messages, err = transform(r.ctx, messages); err != nil {
			return nil, err
		}
	}
	messages = slices.DeleteFunc(slices.Clone(messages), func(m *trace.Message) bool {
		return m.Role != trace.RoleUser && m.Role != trace.RoleAssistant && m.Role != trace.RoleToolResult
	})
	stream, err := r.o.Stream(r.ctx, messages)
	if err != nil {
		return nil, err
	}
	begun, err := r.pass(stream)
	if err != nil {
		return nil, err
	}
	m, err := stream.Result()
	if err != nil {
		return nil, err
	}
	if !begun {
		return m, r.tellMessages(m)
	}
	return m, r.tell(&trace.Event{Type: trace.MessageEnd, Message: m})
}

// pass passes the stream on.
func (r *run) pass(stream Stream) (begun bool, err error) {
	for {
		ev, ok, err := stream.Next()
		switch {
		case err != nil:
			return begun, err
		case !ok || ev.Type == trace.StreamDone || ev.Type == trace.StreamError:
			return begun, nil
		case ev.Type == trace.StreamStart:
			begun = true
			err = r.tell(&trace.Event{Type: trace.MessageStart, Message: ev.Partial})
		case begun && ev.IsDelta():
			err = r.tell(&trace.Event{Type: trace.MessageUpdate, Message: ev.Partial, StreamEvent: ev})
		}
		if err != nil {
			return begun, err
		}
	}
}

// tell tells all listeners of events, one after the other.
func (r *run) tell(events ...*trace.Event) error {
	for _, ev := range events {
		r.reduce(ev)
		for s := r.listenerAfter(0); s != nil; s = r.listenerAfter(s.number) {
			if err := r.hear(s, ev); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) hear(s *subscription, ev *trace.Event) error {
	if r.o.Plant == Mutex && ev.Type == trace.TurnEnd && s.number > 1 {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	return s.hear(r.ctx, ev)
}

func (r *run) tellMessages(messages ...*trace.Message) error {
	for _, m := range messages {
		err := r.tell(&trace.Event{Type: trace.MessageStart, Message: m}, &trace.Event{Type: trace.MessageEnd, Message: m})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) add(messages ...*trace.Message) {
	r.history = append(r.history, messages...)
	r.added = append(r.added, messages...)
}
