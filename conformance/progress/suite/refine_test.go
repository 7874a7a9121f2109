package suite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	channel "github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/acp"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// steps are what a run of the loop and its bridge do, in order.
type steps struct {
	mu   sync.Mutex
	list []progress.Step
}

func (s *steps) add(step progress.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step)
}

// answer is one turn of the model.
type answer struct {
	steps []scriptedmodel.Step
	final *trace.Message
}

func (a *answer) Next() (*trace.StreamEvent, bool, error) {
	if len(a.steps) == 0 {
		return nil, false, nil
	}
	step := a.steps[0]
	a.steps = a.steps[1:]
	return step.Event, true, nil
}

func (a *answer) Result() (*trace.Message, error) { return a.final, nil }

// prompted runs the loop on five calls, some of which fail, are refused, or see
// the run aborted.
func prompted(t *testing.T, mode string, aborts bool, ds acp.Defects) []progress.Step {
	t.Helper()
	s := &steps{}
	registry, err := channel.New(channel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bridge, err := acp.New(acp.Options{Registry: registry, Defects: ds, Send: func(line []byte) error {
		s.add(progress.Step{Line: slices.Clone(line)})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := bridge.Open("s", "a"); err != nil {
		t.Fatal(err)
	}
	turns := []scriptedmodel.Turn{{}, {Text: "done"}}
	for i, name := range []string{"works", "fails", "missing", "works", "works"} {
		turns[0].Calls = append(turns[0].Calls, scriptedmodel.Call{ID: fmt.Sprintf("c%d", i+1), Name: name})
	}
	var agent *loop.Agent
	plug := channel.NewPlug(registry, "a", nil)
	works := func(ctx context.Context, call loop.Execution, _ func(*trace.Result)) (*trace.Result, error) {
		x := channel.From(ctx)
		for k := range 3 {
			if _, err := x.ReportProgress(channel.Text(fmt.Sprint(call.ID, k))); err != nil {
				t.Error(err)
			}
		}
		if aborts && call.ID == "c4" {
			agent.Abort()
		}
		go func() { _, _ = x.ReportProgress(channel.Text("late")) }()
		return &trace.Result{Content: trace.TextContent("ok")}, nil
	}
	fails := func(context.Context, loop.Execution, func(*trace.Result)) (*trace.Result, error) {
		return nil, errors.New("it fails")
	}
	agent = loop.NewAgent(loop.Options{
		ToolExecution: mode,
		Tools:         []*loop.Tool{plug.Wrap(&loop.Tool{Name: "works", Execute: works}), plug.Wrap(&loop.Tool{Name: "fails", Execute: fails})},
		Stream: func(ctx context.Context, _ *loop.Request) (loop.Stream, error) {
			turn := turns[0]
			turns = turns[1:]
			if ctx.Err() != nil {
				turn = scriptedmodel.Turn{Stop: trace.StopAborted}
			}
			return &answer{turn.Plan(), turn.Message()}, nil
		},
	})
	agent.Subscribe(func(_ context.Context, ev *trace.Event) error {
		s.add(progress.Step{Event: ev})
		return nil
	})
	agent.Subscribe(plug.Listen)
	if err := agent.PromptText("go"); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// TestRefinement holds that each line about a card is one that an event of the
// loop allows, and that the check sees where it is not.
func TestRefinement(t *testing.T) {
	for range 50 {
		for _, mode := range []string{loop.Parallel, loop.Sequential} {
			for _, aborts := range []bool{false, true} {
				for _, f := range progress.Refine(prompted(t, mode, aborts, nil)) {
					t.Errorf("%s, aborts %t: %+v", mode, aborts, f)
				}
			}
		}
	}
	for _, defect := range []acp.Defect{acp.AnnouncedLate, acp.UpdateAfterTerminal, acp.FailuresNotClosed} {
		if len(progress.Refine(prompted(t, loop.Parallel, false, acp.Defects{defect}))) == 0 {
			t.Errorf("%s is not seen", defect)
		}
	}
}
