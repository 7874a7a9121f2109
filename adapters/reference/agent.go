package reference

import (
	"context"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
)

// agent is the loop in its main form.
type agent struct {
	*joint
	agent     *loop.Agent
	listeners []loop.Listener // of the scenario
	remove    []func()        // their unsubscribe functions, nil if not subscribed
}

// newAgent makes the agent. Second, if not nil, may listen to it after the
// listener that records and before those of the scenario.
func newAgent(j *joint, defects []loop.Defect, second func(*loop.Agent)) *agent {
	cfg := &j.sc.Config
	a := &agent{joint: j}
	a.agent = loop.NewAgent(loop.Options{
		Runtime: j.rt, Edition: j.sc.Edition, SystemPrompt: cfg.SystemPrompt, Model: j.model(cfg.Model), Level: cfg.Level,
		Tools: j.tools(), Messages: cfg.Messages, Stream: j.stream, Hooks: j.hooks(), ToolExecution: cfg.ToolExecution,
		SteeringMode: cfg.SteeringMode, FollowUpMode: cfg.FollowUpMode, Polled: j.s.Polled, Memory: j.memory(), Defects: defects,
	})
	a.agent.Subscribe(a.record)
	if second != nil {
		second(a.agent)
	}
	a.remove = make([]func(), len(cfg.Listeners))
	for i := range cfg.Listeners {
		a.listeners = append(a.listeners, a.listener(i))
		if !cfg.Listeners[i].Late {
			a.remove[i] = a.agent.Subscribe(a.listeners[i])
		}
	}
	return a
}

// record is the first listener: it notes and never waits.
func (a *agent) record(_ context.Context, ev *trace.Event) error {
	state := a.agent.State()
	a.note(ev, &state)
	return nil
}

func (a *agent) listener(i int) loop.Listener {
	return func(ctx context.Context, ev *trace.Event) error {
		return a.s.Deliver(ctx, i, ev, a.numbers.of(ev), a.await)
	}
}

func (a *agent) User(name string, kind harness.UserKind, answer *trace.Answer) {
	switch kind {
	case harness.UserPrompt:
		a.begun(name, a.agent.BeginPrompt(promptMessages(answer), a.done(name)))
	case harness.UserContinue:
		a.begun(name, a.agent.BeginContinue(a.done(name)))
	case harness.UserSteer:
		for _, m := range answer.Messages {
			a.agent.Steer(m)
		}
	case harness.UserFollowUp:
		for _, m := range answer.Messages {
			a.agent.FollowUp(m)
		}
	case harness.UserAbort:
		a.agent.Abort()
	case harness.UserReset:
		if err := a.agent.Reset(); err != nil {
			a.begun(name, err)
			return
		}
		a.s.Settled(name, trace.OutcomeOK, nil)
	case harness.UserClearQueue:
		a.agent.ClearQueues()
	case harness.UserWaitForIdle:
		a.agent.BeginWaitForIdle(func() { a.s.Settled(name, trace.OutcomeOK, nil) })
	case harness.UserSubscribe:
		a.remove[*answer.Listener] = a.agent.Subscribe(a.listeners[*answer.Listener])
	case harness.UserUnsubscribe:
		if remove := a.remove[*answer.Listener]; remove != nil {
			remove()
		}
	}
}

// begun notes a refusal, if it is one.
func (a *agent) begun(name string, err error) {
	if err != nil {
		a.s.Settled(name, trace.OutcomeRefused, err)
	}
}

func (a *agent) done(name string) func(error) {
	return func(err error) { a.s.Settled(name, outcome(err), err) }
}
