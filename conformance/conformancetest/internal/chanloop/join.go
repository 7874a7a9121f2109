package chanloop

import (
	"context"

	"github.com/pi-conform/pi-conform/conformance/conformancetest"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Subject is the loop as a subject of tests, with a fault or without.
func Subject(plant Plant) conformancetest.Subject {
	return conformancetest.Subject{
		Name:  "chanloop",
		Hooks: []string{trace.HookBeforeToolCall, trace.HookAfterToolCall, trace.HookTransformContext},
		Join: func(s *harness.Surroundings) (harness.Loop, error) {
			with := conformancetest.With(s)
			return with.Join(agent{New(optionsOf(with, plant))}), nil
		},
	}
}

func optionsOf(with *conformancetest.Surroundings, plant Plant) Options {
	o := Options{
		Model: with.Config.Model, History: with.Config.Messages, Sequential: with.Config.ToolExecution == "sequential",
		AllSteering: with.Config.SteeringMode == "all", AllFollowUps: with.Config.FollowUpMode == "all",
		TransformPrompt: with.TransformContext, Polled: with.Polled, Plant: plant,
		Stream: func(ctx context.Context, messages []*trace.Message) (Stream, error) {
			return with.Model(ctx, conformancetest.Request{Messages: messages})
		},
	}
	for _, t := range with.Tools {
		o.Tools = append(o.Tools, Tool{
			Name: t.Name, Parameters: t.Parameters, Sequential: t.ExecutionMode == "sequential",
			Execute: func(ctx context.Context, c Call, onUpdate func(*trace.Result)) (*trace.Result, error) {
				return t.Execute(ctx, callOf(c), onUpdate)
			},
		})
	}
	if before := with.BeforeToolCall; before != nil {
		o.BeforeToolCall = func(ctx context.Context, c Call) (*trace.HookAnswer, error) { return before(ctx, callOf(c)) }
	}
	if after := with.AfterToolCall; after != nil {
		o.AfterToolCall = func(ctx context.Context, c Call, r *trace.Result, isError bool) (*trace.HookAnswer, error) {
			return after(ctx, callOf(c), r, isError)
		}
	}
	return o
}

func callOf(c Call) conformancetest.Call {
	return conformancetest.Call{Assistant: c.Assistant, Block: c.Block, Messages: c.History}
}

// agent is the loop with the names that its user has for things.
type agent struct{ *Loop }

func (a agent) WaitForIdle()                { a.Wait() }
func (a agent) Steer(m *trace.Message)      { a.Loop.Steer(m) }
func (a agent) FollowUp(m *trace.Message)   { a.Loop.FollowUp(m) }
func (a agent) Subscribe(l Listener) func() { return a.Loop.Subscribe(l) }
