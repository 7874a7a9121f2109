package conformancetest

import (
	"context"
	"sync"

	"github.com/pi-conform/pi-conform/adapters/go"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Agent is a loop as its user sees it. Prompt, Continue and WaitForIdle wait until the
// run is over; each is called in a goroutine of its own. The others are not to wait.
// An agent with a method Close is closed at the end of its case.
type Agent interface {
	// Prompt runs the loop on messages. A prompt that is refused, as a run is active,
	// gives an error at once and no event.
	Prompt(messages []*trace.Message) error
	Continue() error
	WaitForIdle()
	Reset() error
	Steer(m *trace.Message)
	FollowUp(m *trace.Message)
	Abort()
	ClearQueues()
	// Subscribe adds a listener, which is called after those that were there before.
	Subscribe(l Listener) (unsubscribe func())
	// State is the agent's state now. Of a loop that lacks «state» only IsStreaming
	// is asked for.
	State() trace.State
}

// Listener is told of every event. Its context carries the run's abort signal. All
// listeners are to be given one event as one pointer; [Once] sees to that for loops
// that have events of another type.
type Listener = func(ctx context.Context, ev *trace.Event) error

// Join makes an agent the loop of the surroundings. It registers a listener that
// records, and then those of the case.
func (w *Surroundings) Join(a Agent) harness.Loop {
	return joined{adapter.Join(w.Surroundings, whole{a}), a}
}

type joined struct {
	harness.Loop
	agent Agent
}

// Close closes an agent that can be closed.
func (j joined) Close() error {
	if c, ok := j.agent.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// whole is an agent with what little is always the same.
type whole struct{ Agent }

func (w whole) Prompt(messages []*trace.Message, text string, images []trace.Block) error {
	if messages == nil {
		messages = []*trace.Message{adapter.UserMessage(text, images)}
	}
	return w.Agent.Prompt(messages)
}

func (w whole) Away(wait func()) { wait() }

func (w whole) Subscribe(l adapter.Listener) func() { return w.Agent.Subscribe(l) }

// Once gives a function that converts each event of a loop once, so that all
// listeners are given the same. E is the loop's type of events, such as a pointer,
// under which no two events are equal.
func Once[E comparable](convert func(E) *trace.Event) func(E) *trace.Event {
	var mu sync.Mutex
	known := map[E]*trace.Event{}
	return func(e E) *trace.Event {
		mu.Lock()
		defer mu.Unlock()
		ev, ok := known[e]
		if !ok {
			ev = convert(e)
			known[e] = ev
		}
		return ev
	}
}
