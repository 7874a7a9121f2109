package conformancetest

import (
	"context"
	"slices"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Surroundings are the surroundings of a loop as plain functions, to be handed to it
// as its model, its tools and its hooks.
type Surroundings struct {
	*harness.Surroundings

	// Config is what the loop is to be made with: its model, its transcript, the modes
	// of its queues.
	Config *trace.Config
	Tools  []Tool
	// Model is a request to the model.
	Model func(ctx context.Context, r Request) (*harness.Stream, error)

	// Hooks are nil if the case has none of that name: a loop must not be given one
	// that does nothing instead. Contexts may be nil where the loop passes none.
	BeforeToolCall      func(ctx context.Context, c Call) (*trace.HookAnswer, error)
	AfterToolCall       func(ctx context.Context, c Call, r *trace.Result, isError bool) (*trace.HookAnswer, error)
	TransformContext    func(ctx context.Context, messages []*trace.Message) ([]*trace.Message, error)
	ConvertToLlm        func(messages []*trace.Message) ([]*trace.Message, error)
	GetAPIKey           func(provider string) (string, error)
	PrepareNextTurn     func(ctx context.Context, t Turn) (*trace.HookAnswer, error)
	ShouldStopAfterTurn func(ctx context.Context, t Turn) (*trace.HookAnswer, error)
	FinishTurn          func(ctx context.Context, t Turn) (*trace.HookAnswer, error)
	PrepareRequest      func(ctx context.Context, messages []*trace.Message, model, level string) (*trace.HookAnswer, error)
}

// Tool is a tool that the case has.
type Tool struct {
	trace.Tool
	// Execute returns what the tool returns, or the error that it throws.
	Execute func(ctx context.Context, c Call, onUpdate func(*trace.Result)) (*trace.Result, error)
	// Prepare prepares the arguments; nil if the tool does not.
	Prepare func(c Call) (trace.Value, error)
}

// Call is a tool call of the assistant's message.
type Call struct {
	Assistant *trace.Message
	Block     *trace.Block // of Assistant's content, as the model gave it
	Args      trace.Value  // prepared and validated; nil means those of Block
	// Messages is the context so far. Hooks need it, tools do not.
	Messages []*trace.Message
}

// Request is what the model is asked with.
type Request struct {
	Messages     []*trace.Message // as they are after all conversion
	Model        string           // empty means the configured one
	Level        string           // thinking level; empty means the configured one
	Key          string
	SystemPrompt string   // empty means the configured one
	Tools        []string // names; nil means those of the case
}

// Turn is a turn that is over.
type Turn struct {
	Assistant *trace.Message
	Results   []*trace.Message
	Messages  []*trace.Message // the context
}

// With gives the surroundings as plain functions.
func With(s *harness.Surroundings) *Surroundings {
	w := &Surroundings{Surroundings: s, Config: &s.Scenario.Config}
	for _, t := range w.Config.Tools {
		w.Tools = append(w.Tools, w.tool(t))
	}
	w.Model = w.model
	for name := range w.Config.Hooks {
		switch name {
		case trace.HookBeforeToolCall:
			w.BeforeToolCall = w.beforeToolCall
		case trace.HookAfterToolCall:
			w.AfterToolCall = w.afterToolCall
		case trace.HookTransformContext:
			w.TransformContext = w.transformContext
		case trace.HookConvertToLlm:
			w.ConvertToLlm = w.convertToLlm
		case trace.HookGetAPIKey:
			w.GetAPIKey = w.getAPIKey
		case trace.HookPrepareNextTurn:
			w.PrepareNextTurn = w.aboutTurn(name)
		case trace.HookShouldStopAfterTurn:
			w.ShouldStopAfterTurn = w.aboutTurn(name)
		case trace.HookFinishTurn:
			w.FinishTurn = w.aboutTurn(name)
		case trace.HookPrepareRequest:
			w.PrepareRequest = w.prepareRequest
		}
	}
	return w
}

// PolledSteering notes what a look at the steering queue gave. It returns that.
func (w *Surroundings) PolledSteering(drained []*trace.Message) []*trace.Message {
	w.Polled(trace.HookPollSteering, drained)
	return drained
}

// PolledFollowUp notes what a look at the follow-up queue gave. It returns that.
func (w *Surroundings) PolledFollowUp(drained []*trace.Message) []*trace.Message {
	w.Polled(trace.HookPollFollowUp, drained)
	return drained
}

func (w *Surroundings) tool(t trace.Tool) Tool {
	tool := Tool{Tool: t}
	tool.Execute = func(ctx context.Context, c Call, onUpdate func(*trace.Result)) (*trace.Result, error) {
		payload := &trace.Payload{ToolCallID: c.Block.ID, ToolName: t.Name, Args: c.args(), Signal: given(ctx)}
		return w.Execute(ctx, payload, c.source(), onUpdate)
	}
	if t.PrepareArguments {
		tool.Prepare = func(c Call) (trace.Value, error) {
			payload := &trace.Payload{ToolCallID: c.Block.ID, ToolName: t.Name, RawArgs: c.Block.Arguments}
			answer, err := w.CallHook(noSignal, trace.HookPrepareArguments, payload, c.source())
			if err != nil || answer.Args == nil {
				return c.Block.Arguments, err
			}
			return answer.Args, nil
		}
	}
	return tool
}

func (c *Call) args() trace.Value {
	if c.Args == nil {
		return c.Block.Arguments
	}
	return c.Args
}

// source is the place of the call among the blocks of its message, which tells calls
// of one id apart.
func (c *Call) source() harness.Source {
	if c.Assistant == nil {
		return 0
	}
	for i := range c.Assistant.Content.Blocks {
		if &c.Assistant.Content.Blocks[i] == c.Block {
			return harness.Source(i)
		}
	}
	return 0
}

// given says whether an abort signal was passed.
func given(ctx context.Context) *bool {
	is := ctx != nil
	return &is
}

func (w *Surroundings) model(ctx context.Context, r Request) (*harness.Stream, error) {
	payload := &trace.Payload{
		Model: r.Model, Level: r.Level, Key: r.Key, SystemPrompt: r.SystemPrompt, Tools: r.Tools,
		Messages: trace.Tags(r.Messages), Signal: given(ctx),
	}
	if payload.Model == "" {
		payload.Model = w.Config.Model
	}
	if payload.Level == "" {
		payload.Level = w.Config.Level
	}
	if payload.Level == "off" {
		payload.Level = ""
	}
	if payload.SystemPrompt == "" {
		payload.SystemPrompt = w.Config.SystemPrompt
	}
	if payload.Tools == nil {
		for _, t := range w.Config.Tools {
			payload.Tools = append(payload.Tools, t.Name)
		}
	}
	return w.Surroundings.Model(ctx, payload)
}

func (c *Call) payload(ctx context.Context) *trace.Payload {
	payload := &trace.Payload{
		ToolCallID: c.Block.ID, ToolName: c.Block.Name, RawArgs: c.Block.Arguments, Args: c.args(),
		Context: trace.Tags(c.Messages), Signal: given(ctx),
	}
	if c.Assistant != nil {
		payload.Assistant = c.Assistant.Tag()
	}
	return payload
}

func (w *Surroundings) beforeToolCall(ctx context.Context, c Call) (*trace.HookAnswer, error) {
	return w.CallHook(ctx, trace.HookBeforeToolCall, c.payload(ctx), c.source())
}

func (w *Surroundings) afterToolCall(ctx context.Context, c Call, r *trace.Result, isError bool) (*trace.HookAnswer, error) {
	payload := c.payload(ctx)
	payload.Result, payload.IsError = r, &isError
	return w.CallHook(ctx, trace.HookAfterToolCall, payload, c.source())
}

func (w *Surroundings) transformContext(ctx context.Context, messages []*trace.Message) ([]*trace.Message, error) {
	payload := &trace.Payload{Messages: trace.Tags(messages), Signal: given(ctx)}
	answer, err := w.Hook(ctx, trace.HookTransformContext, payload)
	if err != nil {
		return nil, err
	}
	return Edited(messages, answer), nil
}

// Edited is a context as the answer of a hook changes it.
func Edited(messages []*trace.Message, a *trace.HookAnswer) []*trace.Message {
	if a.Drop == 0 && len(a.Append) == 0 {
		return messages
	}
	return append(slices.Clone(messages[min(a.Drop, len(messages)):]), a.Append...)
}

func (w *Surroundings) convertToLlm(messages []*trace.Message) ([]*trace.Message, error) {
	answer, err := w.Hook(noSignal, trace.HookConvertToLlm, &trace.Payload{Messages: trace.Tags(messages)})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(messages), func(m *trace.Message) bool {
		return slices.Contains(answer.Without, m.Role)
	}), nil
}

func (w *Surroundings) getAPIKey(provider string) (string, error) {
	answer, err := w.Hook(noSignal, trace.HookGetAPIKey, &trace.Payload{Provider: provider})
	return answer.Key, err
}

func (w *Surroundings) aboutTurn(hook string) func(context.Context, Turn) (*trace.HookAnswer, error) {
	return func(ctx context.Context, t Turn) (*trace.HookAnswer, error) {
		payload := &trace.Payload{Assistant: t.Assistant.Tag(), Context: trace.Tags(t.Messages)}
		for _, r := range t.Results {
			payload.Results = append(payload.Results, r.ToolCallID)
		}
		return w.Hook(ctx, hook, payload)
	}
}

func (w *Surroundings) prepareRequest(ctx context.Context, messages []*trace.Message, model, level string) (*trace.HookAnswer, error) {
	return w.Hook(ctx, trace.HookPrepareRequest, &trace.Payload{Context: trace.Tags(messages), Model: model, Level: level})
}

// noSignal stands for the abort signal of a callback that is given none.
var noSignal context.Context
