package reference

import (
	"context"
	"errors"
	"slices"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
)

// lowLevel is the bare loop: with an awaited sink, or as a plain stream of
// events. It has no transcript and no queues of its own, so they are kept here.
type lowLevel struct {
	*joint
	streamed  bool
	config    loop.Config
	tools     []*loop.Tool
	messages  []*trace.Message
	listeners []seat
	seats     int // that were ever taken
	steering  []*trace.Message
	followUp  []*trace.Message
	cancel    context.CancelFunc // of the active run, or nil
	waiting   []string           // waitForIdle actions that have not settled
}

func newLowLevel(j *joint, defects []loop.Defect) *lowLevel {
	cfg := &j.sc.Config
	l := &lowLevel{joint: j, streamed: j.sc.Form == trace.FormStream, tools: j.tools()}
	l.messages = withSystemPrompt(j.sc.Edition, cfg)
	l.config = loop.Config{
		Edition: j.sc.Edition, Model: j.model(cfg.Model), Level: cfg.Level, Stream: j.stream, Hooks: l.hooks(),
		ToolExecution: cfg.ToolExecution, APIKey: cfg.APIKey, Memory: j.memory(), Defects: defects,
		Steering: func() ([]*trace.Message, error) {
			return l.poll(trace.HookPollSteering, &l.steering, cfg.SteeringMode), nil
		},
		FollowUp: func() ([]*trace.Message, error) {
			return l.poll(trace.HookPollFollowUp, &l.followUp, cfg.FollowUpMode), nil
		},
	}
	for i := range cfg.Listeners {
		if !cfg.Listeners[i].Late {
			l.subscribe(i)
		}
	}
	return l
}

// hooks are those of the scenario. The bare loop hands no signal to the two that
// are asked between turns.
func (l *lowLevel) hooks() loop.Hooks {
	h := l.joint.hooks()
	if prepare := h.PrepareNextTurn; prepare != nil {
		h.PrepareNextTurn = func(_ context.Context, t loop.TurnContext) (*loop.TurnUpdate, error) { return prepare(nil, t) }
	}
	if stop := h.ShouldStopAfterTurn; stop != nil {
		h.ShouldStopAfterTurn = func(_ context.Context, t loop.TurnContext) (bool, error) { return stop(nil, t) }
	}
	return h
}

// withSystemPrompt is the transcript that a run begins with: from edition 0.86
// the system prompt is a message of it.
func withSystemPrompt(e edition.Edition, cfg *trace.Config) []*trace.Message {
	led := len(cfg.Messages) > 0 && cfg.Messages[0].Role == trace.RoleSystem
	if !e.AtLeast("0.86") || cfg.SystemPrompt == "" || led {
		return slices.Clone(cfg.Messages)
	}
	return append([]*trace.Message{{Role: trace.RoleSystem, Content: plain(cfg.SystemPrompt)}}, cfg.Messages...)
}

func (l *lowLevel) poll(hook string, queue *[]*trace.Message, mode string) []*trace.Message {
	n := len(*queue)
	if mode != loop.All {
		n = min(n, 1)
	}
	drained := (*queue)[:n:n]
	*queue = (*queue)[n:]
	l.s.Polled(hook, drained)
	return drained
}

var errActive = errors.New("a run is active")

func (l *lowLevel) User(name string, kind harness.UserKind, a *trace.Answer) {
	switch kind {
	case harness.UserPrompt:
		l.prompt(name, promptMessages(a))
	case harness.UserContinue:
		l.resume(name)
	case harness.UserSteer:
		l.steering = append(l.steering, a.Messages...)
	case harness.UserFollowUp:
		l.followUp = append(l.followUp, a.Messages...)
	case harness.UserAbort:
		if l.cancel != nil {
			l.cancel()
		}
	case harness.UserReset:
		l.reset(name)
	case harness.UserClearQueue:
		l.steering, l.followUp = nil, nil
	case harness.UserWaitForIdle:
		l.waitForIdle(name)
	case harness.UserSubscribe:
		l.subscribe(*a.Listener)
	case harness.UserUnsubscribe:
		l.listeners = slices.DeleteFunc(l.listeners, func(s seat) bool { return s.listener == *a.Listener })
	}
}

// promptMessages are the messages of a prompt in any of its forms.
func promptMessages(a *trace.Answer) []*trace.Message {
	if a.Messages != nil {
		return a.Messages
	}
	blocks := append([]trace.Block{{Type: trace.BlockText, Text: a.Text}}, a.Images...)
	return []*trace.Message{{Role: trace.RoleUser, Content: trace.Content{Blocks: blocks}}}
}

func (l *lowLevel) prompt(name string, prompts []*trace.Message) {
	if l.cancel != nil {
		l.s.Settled(name, trace.OutcomeRefused, errActive)
		return
	}
	ctx := l.begin()
	c := l.context()
	if l.streamed {
		l.read(ctx, loop.Events(ctx, l.rt, prompts, c, &l.config), name)
		return
	}
	loop.Begin(ctx, l.rt, prompts, c, &l.config, l.sink(ctx), l.done(name))
}

func (l *lowLevel) resume(name string) {
	if l.cancel != nil {
		l.s.Settled(name, trace.OutcomeRefused, errActive)
		return
	}
	ctx := l.begin()
	c := l.context()
	var err error
	if l.streamed {
		var events *loop.EventStream
		if events, err = loop.ContinueEvents(ctx, l.rt, &c, &l.config); err == nil {
			l.read(ctx, events, name)
		}
	} else {
		err = loop.BeginContinue(ctx, l.rt, &c, &l.config, l.sink(ctx), l.done(name))
	}
	if err != nil {
		l.end()
		l.s.Settled(name, trace.OutcomeRefused, err)
	}
}

func (l *lowLevel) begin() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	return ctx
}

// end marks the run as over and lets those go on who wait for that. What is left
// over of a broken run is not aborted.
func (l *lowLevel) end() {
	l.cancel = nil
	for _, name := range l.waiting {
		l.s.Settled(name, trace.OutcomeOK, nil)
	}
	l.waiting = nil
}

func (l *lowLevel) context() loop.Context {
	return loop.Context{
		SystemPrompt: l.sc.Config.SystemPrompt, Messages: slices.Clone(l.messages), Tools: l.tools,
	}
}

func (l *lowLevel) sink(ctx context.Context) loop.Sink {
	return func(ev *trace.Event) error { return l.deliver(ctx, ev) }
}

func (l *lowLevel) deliver(ctx context.Context, ev *trace.Event) error {
	n := l.note(ev, nil)
	for s := l.after(0); s.number > 0; s = l.after(s.number) {
		if err := l.s.Deliver(ctx, s.listener, ev, n, l.await); err != nil {
			return err
		}
	}
	return nil
}

// seat is the place of a listener. Its number is never used again, so a delivery
// that goes from number to number reaches those that come meanwhile, and not those
// that have left before their turn.
type seat struct{ number, listener int }

func (l *lowLevel) subscribe(listener int) {
	if !slices.ContainsFunc(l.listeners, func(s seat) bool { return s.listener == listener }) {
		l.seats++
		l.listeners = append(l.listeners, seat{l.seats, listener})
	}
}

// after is the next seat that is taken; the zero seat if there is none.
func (l *lowLevel) after(number int) seat {
	for _, s := range l.listeners {
		if s.number > number {
			return s
		}
	}
	return seat{}
}

func (l *lowLevel) done(name string) func([]*trace.Message, error) {
	return func(added []*trace.Message, err error) {
		l.messages = append(l.messages, added...)
		l.s.Settled(name, outcome(err), err)
		l.end()
	}
}

// read hands the events of a stream to the listeners, one after the other, until
// one of them fails. The loop does not wait for them; the promise of the run does.
func (l *lowLevel) read(ctx context.Context, events *loop.EventStream, name string) {
	done := l.done(name)
	reading := true
	events.Each(func(ev *trace.Event) {
		if !reading {
			return
		}
		err := l.deliver(ctx, ev)
		if err == nil && ev.Type != trace.AgentEnd {
			return
		}
		reading = false
		if err != nil {
			done(nil, err)
			return
		}
		done(ev.Messages, nil)
	})
}

func (l *lowLevel) reset(name string) {
	if l.cancel != nil {
		l.s.Settled(name, trace.OutcomeRefused, errActive)
		return
	}
	l.messages = slices.DeleteFunc(l.messages, func(m *trace.Message) bool { return m.Role != trace.RoleSystem })
	l.steering, l.followUp = nil, nil
	l.s.Settled(name, trace.OutcomeOK, nil)
}

func (l *lowLevel) waitForIdle(name string) {
	if l.cancel == nil {
		l.s.Settled(name, trace.OutcomeOK, nil)
		return
	}
	l.waiting = append(l.waiting, name)
}
