package reference

import (
	"context"
	"errors"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/session"
)

// layered is the agent with the session around it. The session's events are
// recorded among those of the loop; the scenario's listeners hear of the loop's
// alone.
type layered struct {
	*agent
	session *session.Session
	looks   int // at whether compaction is due
}

func newLayered(j *joint, defects Defects) *layered {
	l := &layered{}
	config := j.sc.Config.Session
	if config == nil {
		config = &trace.SessionConfig{}
	}
	o := session.Options{
		Runtime: j.rt, Defects: defects.Session, Tell: func(ev *trace.Event) { _ = l.record(noSignal, ev) },
		Retry: session.Retry{
			Max: config.MaxRetries, BaseDelay: time.Duration(config.BaseDelayMs) * time.Millisecond, Retryable: config.Retryable,
		},
	}
	if _, ok := j.sc.Config.Hooks[trace.HookCompact]; ok {
		o.Compaction = &session.Compaction{Due: l.due(config.Compact), Compact: j.compact}
	}
	// The session listens after the one that records and before the scenario's.
	l.agent = newAgent(j, defects.Loop, func(a *loop.Agent) {
		o.Agent = a
		l.session = session.New(o)
	})
	return l
}

func (l *layered) due(reasons []string) func(*trace.Message) string {
	return func(*trace.Message) string {
		l.looks++
		if l.looks > len(reasons) {
			return ""
		}
		return reasons[l.looks-1]
	}
}

func (j *joint) compact(ctx context.Context, messages []*trace.Message) ([]*trace.Message, bool, error) {
	payload := &trace.Payload{Messages: trace.Tags(messages), Signal: given(ctx)}
	answer, err := j.s.Hook(ctx, trace.HookCompact, payload)
	if err != nil {
		return nil, false, err
	}
	return edited(messages, answer), answer.Continue, nil
}

var errNoContinue = errors.New("a session continues by itself")

func (l *layered) User(name string, kind harness.UserKind, answer *trace.Answer) {
	switch kind {
	case harness.UserPrompt:
		l.begun(name, l.session.BeginPrompt(promptMessages(answer), l.done(name)))
	case harness.UserContinue:
		l.begun(name, errNoContinue)
	case harness.UserAbort:
		l.session.Abort()
	case harness.UserWaitForIdle:
		l.session.BeginWaitForIdle(func() { l.s.Settled(name, trace.OutcomeOK, nil) })
	case harness.UserReset:
		if err := l.session.Reset(); err != nil {
			l.begun(name, err)
			return
		}
		l.s.Settled(name, trace.OutcomeOK, nil)
	case harness.UserSteer, harness.UserFollowUp, harness.UserClearQueue, harness.UserSubscribe, harness.UserUnsubscribe:
		l.agent.User(name, kind, answer)
	}
}
