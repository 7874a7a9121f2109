package adapter

import (
	"context"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Agent is a loop as its user sees it. Prompt, Continue and WaitForIdle wait; each
// is called in a goroutine of its own.
type Agent interface {
	// Prompt runs the loop on messages or, if there are none, on a user message of
	// text and images. It returns an error at once if it is refused.
	Prompt(messages []*trace.Message, text string, images []trace.Block) error
	Continue() error
	WaitForIdle()
	Reset() error
	Steer(m *trace.Message)
	FollowUp(m *trace.Message)
	Abort()
	ClearQueues()
	// Subscribe adds a listener after the others.
	Subscribe(l Listener) (unsubscribe func())
	// State is the agent's state now. IsStreaming is needed also of a loop that has
	// not declared «state».
	State() trace.State
	// Away is called by a listener that has to wait. A loop that holds a lock while
	// it calls its listeners lets go of it meanwhile; others just call wait.
	Away(wait func())
}

// Listener is told of every event. Ctx carries the run's abort signal.
type Listener = func(ctx context.Context, ev *trace.Event) error

// Join makes an agent the loop of a session. It registers the listener that records,
// and then those of the scenario that are not late.
func Join(s *Surroundings, a Agent) harness.Loop {
	j := &joined{s: s, agent: a, numbers: map[*trace.Event]int{}, unsubscribe: map[int]func(){}}
	a.Subscribe(j.record)
	for i := range s.Scenario.Config.Listeners {
		if !s.Scenario.Config.Listeners[i].Late {
			j.subscribe(i)
		}
	}
	return j
}

type joined struct {
	s           *Surroundings
	agent       Agent
	unsubscribe map[int]func() // by listener; used by the driver alone

	mu      sync.Mutex
	numbers map[*trace.Event]int
}

// User does what the user does. It does not wait.
func (j *joined) User(name string, kind harness.UserKind, answer *trace.Answer) {
	switch kind {
	case harness.UserPrompt:
		j.run(name, func() error { return j.agent.Prompt(answer.Messages, answer.Text, answer.Images) })
	case harness.UserContinue:
		j.run(name, j.agent.Continue)
	case harness.UserWaitForIdle:
		go func() {
			j.agent.WaitForIdle()
			j.s.Settled(name, trace.OutcomeOK, nil)
		}()
	case harness.UserReset:
		j.settled(name, trace.OutcomeRefused, j.agent.Reset())
	case harness.UserSteer:
		for _, m := range answer.Messages {
			j.agent.Steer(m)
		}
	case harness.UserFollowUp:
		for _, m := range answer.Messages {
			j.agent.FollowUp(m)
		}
	case harness.UserAbort:
		j.agent.Abort()
	case harness.UserClearQueue:
		j.agent.ClearQueues()
	case harness.UserSubscribe:
		j.subscribe(*answer.Listener)
	case harness.UserUnsubscribe:
		j.remove(*answer.Listener)
	}
}

// run begins a run. One that fails without any event was refused.
func (j *joined) run(name string, begin func() error) {
	busy, events := j.agent.State().IsStreaming, j.events()
	go func() {
		err := begin()
		outcome := trace.OutcomeError
		if busy || j.events() == events {
			outcome = trace.OutcomeRefused
		}
		j.settled(name, outcome, err)
	}()
}

func (j *joined) settled(name string, failed trace.Outcome, err error) {
	if err == nil {
		failed = trace.OutcomeOK
	}
	j.s.Settled(name, failed, err)
}

func (j *joined) events() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.numbers)
}

// record is the first listener: it notes the event and never waits.
func (j *joined) record(_ context.Context, ev *trace.Event) error {
	j.mu.Lock()
	j.numbers[ev] = len(j.numbers)
	j.mu.Unlock()
	state := j.agent.State()
	j.s.Event(ev, &state)
	return nil
}

// subscribe adds listener number i of the scenario, once: functions cannot be
// compared in Go, so a loop could not tell that it has it already.
func (j *joined) subscribe(i int) {
	if j.unsubscribe[i] == nil {
		j.unsubscribe[i] = j.agent.Subscribe(j.listener(i))
	}
}

func (j *joined) remove(i int) {
	if unsubscribe := j.unsubscribe[i]; unsubscribe != nil {
		unsubscribe()
		delete(j.unsubscribe, i)
	}
}

func (j *joined) listener(i int) Listener {
	return func(ctx context.Context, ev *trace.Event) error {
		j.mu.Lock()
		n := j.numbers[ev]
		j.mu.Unlock()
		return j.s.Deliver(ctx, i, ev, n, j.agent.Away)
	}
}

// Given says, for a payload, whether an abort signal was passed.
func Given(ctx context.Context) *bool {
	given := ctx != nil
	return &given
}

// UserMessage is a prompt of text and images as one message.
func UserMessage(text string, images []trace.Block) *trace.Message {
	content := trace.TextContent(text)
	content.Blocks = append(content.Blocks, images...)
	return &trace.Message{Role: trace.RoleUser, Content: content, Timestamp: time.Now().UnixMilli()}
}
