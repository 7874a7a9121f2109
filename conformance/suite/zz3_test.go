package suite_test

import (
	"context"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/harness/coro"
	"github.com/pi-conform/pi-conform/harness/lean"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

type zs struct {
	steps []scriptedmodel.Step
	final *trace.Message
}

func (p *zs) Next() (*trace.StreamEvent, bool, error) {
	step := p.steps[0]
	p.steps = p.steps[1:]
	if step.Event.Type == trace.StreamDone {
		p.final = step.Event.Message
	}
	return step.Event, true, nil
}
func (p *zs) Result() (*trace.Message, error) { return p.final, nil }

func BenchmarkZZLoop(b *testing.B) {
	sched := coro.New(time.Unix(0, 0))
	plans := [][]scriptedmodel.Step{threeTools().Model[0].Plan(), threeTools().Model[1].Plan()}
	var events lean.Slab[trace.Event]
	res := &trace.Result{Content: trace.TextContent("r")}
	for b.Loop() {
		sched.Reset(time.Unix(0, 0))
		events.Recycle()
		n := 0
		var gates [3]*coro.Gate
		var ups [3]func(*trace.Result)
		g := 0
		tool := &loop.Tool{Name: "a", Execute: func(_ context.Context, c loop.Execution, up func(*trace.Result)) (*trace.Result, error) {
			k := g
			g++
			gates[k] = sched.NewGate()
			ups[k] = up
			gates[k].Wait()
			return res, nil
		}}
		a := loop.NewAgent(loop.Options{Runtime: sched, Tools: []*loop.Tool{tool}, Events: &events, Stream: func(context.Context, *loop.Request) (loop.Stream, error) {
			n++
			return &zs{steps: plans[n-1]}, nil
		}})
		count := 0
		a.Subscribe(func(context.Context, *trace.Event) error { count++; return nil })
		_ = a.BeginPrompt([]*trace.Message{{Role: "user", Content: trace.TextContent("go")}}, nil)
		for _, k := range []int{1, 0, 2} {
			ups[k](res)
			gates[k].Open()
			sched.Run()
		}
		if sched.Live() != 0 || count != 27 {
			b.Fatal(count)
		}
	}
}
