package conformancetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/conformancetest"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// In a test file of the loop's own module. The loop of this example is wrong in so
// many ways that it is not run here; internal/chanloop has one that conforms.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T) {
		conformancetest.Run(t, conformancetest.Subject{
			Name: "myloop",
			Join: func(s *harness.Surroundings) (harness.Loop, error) {
				with := conformancetest.With(s)
				return with.Join(&myAgent{model: with.Model}), nil
			},
		},
			conformancetest.Cases("run", "turn"),
			conformancetest.ExpectFail("QUE-1", "steering comes with the next release"),
		)
	}
}

// myAgent asks the model once and has no tools.
type myAgent struct {
	model func(context.Context, conformancetest.Request) (*harness.Stream, error)

	mu        sync.Mutex
	listeners []conformancetest.Listener
	running   bool
}

func (a *myAgent) Prompt(messages []*trace.Message) error {
	stream, err := a.model(context.Background(), conformancetest.Request{Messages: messages})
	if err != nil {
		return err
	}
	for {
		if _, more, err := stream.Next(); err != nil || !more {
			return err
		}
	}
}

func (a *myAgent) Subscribe(l conformancetest.Listener) (unsubscribe func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners = append(a.listeners, l)
	return func() {}
}

func (a *myAgent) State() trace.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return trace.State{IsStreaming: a.running}
}

func (a *myAgent) Continue() error           { return errors.New("it cannot") }
func (a *myAgent) Reset() error              { return nil }
func (a *myAgent) WaitForIdle()              {}
func (a *myAgent) Steer(m *trace.Message)    {}
func (a *myAgent) FollowUp(m *trace.Message) {}
func (a *myAgent) Abort()                    {}
func (a *myAgent) ClearQueues()              {}
