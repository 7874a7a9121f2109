package loop_test

import (
	"context"
	"fmt"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// askingClock is a turn of the model that calls a tool.
var askingClock = scriptedmodel.Turn{
	Text:  "Let me look.",
	Calls: []scriptedmodel.Call{{ID: "c1", Name: "clock"}},
}

func Example() {
	model := &script{turns: []scriptedmodel.Turn{askingClock, {Text: "It is noon."}}}
	agent := loop.NewAgent(loop.Options{
		Stream: model.stream,
		Tools: []*loop.Tool{{
			Name: "clock",
			Execute: func(context.Context, loop.Execution, func(*trace.Result)) (*trace.Result, error) {
				return &trace.Result{Content: trace.TextContent("12:00")}, nil
			},
		}},
	})
	agent.Subscribe(func(_ context.Context, ev *trace.Event) error {
		if ev.Type == trace.MessageEnd {
			fmt.Println(ev.Message.Tag())
		}
		return nil
	})
	if err := agent.PromptText("What time is it?"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// user: What time is it?
	// assistant toolUse [c1]: Let me look.
	// toolResult c1: 12:00
	// assistant stop []: It is noon.
}
