// Joins an agent loop to pi-conform. «pi-conform run» starts this program and speaks
// with it on standard input and output; package adapter does the talking.
package main

import (
	"context"

	adapter "github.com/pi-conform/pi-conform/adapters/go"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func main() {
	adapter.Serve(harness.SubjectInfo{
		// YOUR LOOP: what it is, which edition of the contract it follows, and what it can do.
		// What is not declared is not judged. docs/PROTOCOL.md of pi-conform lists the capabilities.
		Name: "toy-loop", Version: "0.1.0", Language: "go",
		Editions: []string{"0.84.3"},
		Capabilities: []string{
			"state", "polls", "reads", "listeners", "signals", "forms:agent", "hooks:beforeToolCall", "hooks:afterToolCall",
		},
	}, open)
}

// open makes a loop whose model, tools and hooks are those of the surroundings.
func open(s *adapter.Surroundings) (harness.Loop, error) {
	config := &s.Scenario.Config
	// YOUR LOOP: make it here, and translate what it calls things.
	o := Options{
		Model: config.Model, Messages: config.Messages, Sequential: config.ToolExecution == "sequential",
		Steering: config.SteeringMode, FollowUps: config.FollowUpMode,
		Stream: func(ctx context.Context, messages []*trace.Message) (Stream, error) {
			payload := &trace.Payload{
				Model: config.Model, SystemPrompt: config.SystemPrompt, Messages: trace.Tags(messages), Signal: adapter.Given(ctx),
			}
			if config.Level != "off" {
				payload.Level = config.Level
			}
			for _, t := range config.Tools {
				payload.Tools = append(payload.Tools, t.Name)
			}
			return s.Model(ctx, payload)
		},
		OnPoll: func(queue string, drained []*trace.Message) {
			hook := trace.HookPollFollowUp
			if queue == "steering" {
				hook = trace.HookPollSteering
			}
			s.Polled(hook, drained)
		},
	}
	for _, t := range config.Tools {
		o.Tools = append(o.Tools, toolOf(s, t))
	}
	// A hook that the case does not have must be absent, not one that does nothing.
	if _, ok := config.Hooks[trace.HookBeforeToolCall]; ok {
		o.BeforeToolCall = func(ctx context.Context, c *Call) (*Change, error) {
			return s.CallHook(ctx, trace.HookBeforeToolCall, payloadOf(ctx, c), sourceOf(c))
		}
	}
	if _, ok := config.Hooks[trace.HookAfterToolCall]; ok {
		o.AfterToolCall = func(ctx context.Context, c *Call) (*Change, error) {
			payload := payloadOf(ctx, c)
			isError := c.IsError
			payload.Result, payload.IsError = c.Result, &isError
			return s.CallHook(ctx, trace.HookAfterToolCall, payload, sourceOf(c))
		}
	}
	return adapter.Join(s, user{NewAgent(o)}), nil
}

func toolOf(s *adapter.Surroundings, t trace.Tool) *Tool {
	return &Tool{
		Name: t.Name, Parameters: t.Parameters, Sequential: t.ExecutionMode == "sequential",
		Execute: func(ctx context.Context, call *trace.Block, onUpdate func(*trace.Result)) (*trace.Result, error) {
			payload := &trace.Payload{ToolCallID: call.ID, ToolName: t.Name, Args: call.Arguments, Signal: adapter.Given(ctx)}
			return s.Execute(ctx, payload, 0, onUpdate)
		},
	}
}

// payloadOf is what a hook that belongs to a tool call was given.
func payloadOf(ctx context.Context, c *Call) *trace.Payload {
	return &trace.Payload{
		ToolCallID: c.Block.ID, ToolName: c.Block.Name, RawArgs: c.Block.Arguments, Args: c.Block.Arguments,
		Assistant: c.Assistant.Tag(), Context: trace.Tags(c.Context()), Signal: adapter.Given(ctx),
	}
}

// sourceOf is the place of a call among those of its message, which tells calls of
// one id apart.
func sourceOf(c *Call) harness.Source {
	for i, block := range c.Assistant.ToolCalls() {
		if block == c.Block {
			return harness.Source(i)
		}
	}
	return 0
}

// user is YOUR LOOP as its user has it; what is not here has the right name already.
type user struct{ *Agent }

// Prompt prompts with messages, or with text and images.
func (u user) Prompt(messages []*trace.Message, text string, images []trace.Block) error {
	if messages == nil {
		messages = []*trace.Message{adapter.UserMessage(text, images)}
	}
	return u.Agent.Prompt(messages)
}

// Subscribe adds a listener.
func (u user) Subscribe(l adapter.Listener) func() { return u.Agent.Subscribe(l) }
