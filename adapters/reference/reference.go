// Package reference joins the reference loop, and its mutants, to the harness.
// For the harness it is one subject among others.
//
// [New] runs it on coroutines, [NewBubble] the same loop on goroutines.
package reference

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/bubble"
	"github.com/pi-conform/pi-conform/harness/coro"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/session"
)

// New gives the reference loop, with the defects switched on, on coroutines.
func New(defects ...loop.Defect) harness.Driver { return NewFaulty(Defects{Loop: defects}) }

// Defects are the defects of the reference's parts.
type Defects struct {
	Loop    []loop.Defect
	Session []session.Defect
}

// NewFaulty gives the reference on coroutines, with defects in any of its parts.
func NewFaulty(defects Defects) harness.Driver {
	return &coro.Driver{
		About: about(defects),
		Join: func(s *harness.Surroundings, sched *coro.Scheduler) (harness.Loop, error) {
			return join(s, sched, defects), nil
		},
	}
}

// NewBubble gives the reference loop on goroutines in a bubble.
func NewBubble(defects ...loop.Defect) harness.Driver {
	all := Defects{Loop: defects}
	return &bubble.Driver{
		About: about(all),
		Join: func(s *harness.Surroundings) (harness.Loop, error) {
			return join(s, &sleepers{loop.Goroutines(), s}, all), nil
		},
	}
}

// sleepers is a runtime that tells when its tasks sleep: nobody can ask a timer.
type sleepers struct {
	loop.Runtime
	s *harness.Surroundings
}

func (r *sleepers) Sleep(ctx context.Context, d time.Duration) error {
	defer r.s.Asleep(r.Now().Add(d))()
	return r.Runtime.Sleep(ctx, d)
}

func about(defects Defects) harness.SubjectInfo {
	info := harness.SubjectInfo{
		Name:     "reference",
		Language: "Go",
		Barrier:  harness.BarrierQuiescent,
		Capabilities: []string{
			"state", "polls", "reads", "listeners", "signals", "forms:agent", "forms:loop", "forms:stream", "retained", "forms:session", "clock",
		},
		Evidence: []trace.Evidence{
			trace.EvidenceEvents, trace.EvidenceState, trace.EvidenceListeners, trace.EvidenceCallbacks,
			trace.EvidenceRequests, trace.EvidenceActions, trace.EvidencePolls, trace.EvidenceReads,
		},
	}
	for _, hook := range trace.Hooks() {
		info.Capabilities = append(info.Capabilities, "hooks:"+hook)
	}
	for _, e := range edition.Known() {
		info.Editions = append(info.Editions, string(e))
	}
	for _, d := range defects.Loop {
		info.Name = "mutant:" + string(d)
	}
	for _, d := range defects.Session {
		info.Name = "mutant:" + string(d)
	}
	return info
}

func join(s *harness.Surroundings, rt loop.Runtime, defects Defects) harness.Loop {
	j := &joint{s: s, rt: rt, sc: s.Scenario, await: func(f func()) { loop.Await(rt, f) }}
	switch j.sc.Form {
	case trace.FormAgent:
		return newAgent(j, defects.Loop, nil)
	case trace.FormSession:
		return newLayered(j, defects)
	default:
	}
	return newLowLevel(j, defects.Loop)
}

// joint is what the forms of the loop have in common.
type joint struct {
	s       *harness.Surroundings
	rt      loop.Runtime
	sc      *harness.Scenario
	await   func(func())
	numbers numbers
	// The latest assistant message. Tools ask for it outside of loop code.
	assistant atomic.Pointer[trace.Message]
}

// source is the place of a call among those of its message.
func (j *joint) source(call *trace.Block) harness.Source {
	m := j.assistant.Load()
	if m == nil {
		return 0
	}
	for i := range m.Content.Blocks {
		if &m.Content.Blocks[i] == call {
			return harness.Source(i)
		}
	}
	return 0
}

// note takes in an event as the first listener sees it.
func (j *joint) note(ev *trace.Event, state *trace.State) int {
	if ev.Type == trace.MessageEnd && ev.Message.Role == trace.RoleAssistant {
		j.assistant.Store(ev.Message)
	}
	j.s.Event(ev, state)
	if len(j.sc.Config.Listeners) == 0 {
		return len(j.numbers) // nobody asks
	}
	return j.numbers.note(ev)
}

// numbers remembers the events by number, for the listeners that are told of
// them after the first: deliveries may overlap, so the last number alone will not
// do. It is used by loop code only.
type numbers []*trace.Event

func (ns *numbers) note(ev *trace.Event) int {
	*ns = append(*ns, ev)
	return len(*ns) - 1
}

// of is the number of an event.
func (ns numbers) of(ev *trace.Event) int {
	for n, noted := range slices.Backward(ns) {
		if noted == ev {
			return n
		}
	}
	return len(ns) - 1
}

const provider = "scripted"

func (j *joint) model(id string) loop.Model {
	return loop.Model{ID: id, Provider: provider, API: provider}
}

func (j *joint) tools() []*loop.Tool {
	tools := make([]*loop.Tool, len(j.sc.Config.Tools))
	for i := range j.sc.Config.Tools {
		tools[i] = j.tool(&j.sc.Config.Tools[i])
	}
	return tools
}

func (j *joint) tool(t *trace.Tool) *loop.Tool {
	tool := &loop.Tool{Name: t.Name, Description: t.Name, Parameters: t.Parameters, ExecutionMode: t.ExecutionMode}
	if tool.Parameters == nil {
		tool.Parameters = anyObject
	}
	tool.Execute = func(ctx context.Context, call loop.Execution, onUpdate func(*trace.Result)) (*trace.Result, error) {
		payload := &trace.Payload{ToolCallID: call.ID, ToolName: t.Name, Args: call.Args, Signal: given(ctx)}
		return j.s.Execute(ctx, payload, j.source(call.Call), onUpdate)
	}
	if t.PrepareArguments {
		tool.PrepareArguments = j.prepareArguments(t.Name)
	}
	return tool
}

// anyObject is what a tool accepts that says nothing about its arguments.
var anyObject = trace.Value(`{"type":"object","properties":{}}`)

func (j *joint) prepareArguments(name string) func(*trace.Block) (trace.Value, error) {
	return func(call *trace.Block) (trace.Value, error) {
		payload := &trace.Payload{ToolCallID: call.ID, ToolName: name, RawArgs: call.Arguments}
		answer, err := j.s.CallHook(noSignal, trace.HookPrepareArguments, payload, j.source(call))
		if err != nil || answer.Args == nil {
			return call.Arguments, err
		}
		return answer.Args, nil
	}
}

var yes, no = true, false

// noSignal stands for the abort signal of a callback that is given none.
var noSignal context.Context

// given says whether an abort signal was passed.
func given(ctx context.Context) *bool {
	if ctx == nil {
		return &no
	}
	return &yes
}

func (j *joint) stream(ctx context.Context, r *loop.Request) (loop.Stream, error) {
	payload := &trace.Payload{
		Model: r.Model.ID, Level: r.Level, Key: r.Key, SystemPrompt: r.SystemPrompt,
		Tools: j.namesOf(r.Tools), Messages: j.tags(r.Messages), Signal: given(ctx),
	}
	return j.s.Model(ctx, payload)
}

// memory is that of the loop in the case before.
func (j *joint) memory() *loop.Memory {
	return j.s.Memory(func() harness.Memory { return &loop.Memory{} }).(*loop.Memory)
}

// namesOf are the names of the tools; nil if there are none.
func (j *joint) namesOf(tools []*loop.Tool) []string {
	if len(tools) == 0 {
		return nil
	}
	names := j.s.Texts(len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

// tags are the tags of messages.
func (j *joint) tags(messages []*trace.Message) []string {
	tags := j.s.Texts(len(messages))
	for _, m := range messages {
		tags = append(tags, m.Tag())
	}
	return tags
}

// hooks are those that the scenario configures.
func (j *joint) hooks() loop.Hooks {
	var h loop.Hooks
	for name := range j.sc.Config.Hooks {
		switch name {
		case trace.HookTransformContext:
			h.TransformContext = j.transformContext
		case trace.HookConvertToLlm:
			h.ConvertToLlm = j.convertToLlm
		case trace.HookGetAPIKey:
			h.GetAPIKey = j.getAPIKey
		case trace.HookBeforeToolCall:
			h.BeforeToolCall = j.beforeToolCall
		case trace.HookAfterToolCall:
			h.AfterToolCall = j.afterToolCall
		case trace.HookPrepareNextTurn:
			h.PrepareNextTurn = j.prepareNextTurn
		case trace.HookShouldStopAfterTurn:
			h.ShouldStopAfterTurn = j.shouldStopAfterTurn
		case trace.HookFinishTurn:
			h.FinishTurn = j.finishTurn
		case trace.HookPrepareRequest:
			h.PrepareRequest = j.prepareRequest
		}
	}
	return h
}

func (j *joint) transformContext(ctx context.Context, messages []*trace.Message) ([]*trace.Message, error) {
	payload := &trace.Payload{Messages: trace.Tags(messages), Signal: given(ctx)}
	answer, err := j.s.Hook(ctx, trace.HookTransformContext, payload)
	if err != nil {
		return nil, err
	}
	return edited(messages, answer), nil
}

// edited is the list with the hook's changes made.
func edited(messages []*trace.Message, a *trace.HookAnswer) []*trace.Message {
	if a.Drop == 0 && len(a.Append) == 0 {
		return messages
	}
	return append(slices.Clone(messages[min(a.Drop, len(messages)):]), a.Append...)
}

func (j *joint) convertToLlm(messages []*trace.Message) ([]*trace.Message, error) {
	answer, err := j.s.Hook(noSignal, trace.HookConvertToLlm, &trace.Payload{Messages: trace.Tags(messages)})
	if err != nil {
		return nil, err
	}
	kept := make([]*trace.Message, 0, len(messages))
	for _, m := range messages {
		if !slices.Contains(answer.Without, m.Role) {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

func (j *joint) getAPIKey(provider string) (string, error) {
	answer, err := j.s.Hook(noSignal, trace.HookGetAPIKey, &trace.Payload{Provider: provider})
	if err != nil {
		return "", err
	}
	return answer.Key, nil
}

func callPayload(ctx context.Context, c *loop.BeforeToolCallContext) *trace.Payload {
	return &trace.Payload{
		ToolCallID: c.Call.ID, ToolName: c.Call.Name, RawArgs: c.Call.Arguments, Args: c.Args,
		Assistant: c.Assistant.Tag(), Context: trace.Tags(c.Context.Messages), Signal: given(ctx),
	}
}

func (j *joint) beforeToolCall(ctx context.Context, c loop.BeforeToolCallContext) (*loop.BeforeToolCallResult, error) {
	answer, err := j.s.CallHook(ctx, trace.HookBeforeToolCall, callPayload(ctx, &c), j.source(c.Call))
	if err != nil {
		return nil, err
	}
	return &loop.BeforeToolCallResult{
		Block: answer.Block, Reason: answer.Reason, Terminate: answer.Terminate != nil && *answer.Terminate,
	}, nil
}

func (j *joint) afterToolCall(ctx context.Context, c loop.AfterToolCallContext) (*loop.AfterToolCallResult, error) {
	payload := callPayload(ctx, &c.BeforeToolCallContext)
	payload.Result, payload.IsError = c.Result, &c.IsError
	answer, err := j.s.CallHook(ctx, trace.HookAfterToolCall, payload, j.source(c.Call))
	if err != nil {
		return nil, err
	}
	return &loop.AfterToolCallResult{
		Content: answer.Content, Details: answer.Details, Usage: answer.Usage,
		IsError: answer.IsError, Terminate: answer.Terminate,
	}, nil
}

func turnPayload(t *loop.TurnContext) *trace.Payload {
	payload := &trace.Payload{Assistant: t.Message.Tag(), Context: trace.Tags(t.Context.Messages)}
	for _, r := range t.ToolResults {
		payload.Results = append(payload.Results, r.ToolCallID)
	}
	return payload
}

// editedContext is the context with the hook's changes, or nil if it made none.
func (j *joint) editedContext(c *loop.Context, a *trace.HookAnswer) *loop.Context {
	if a.Drop == 0 && len(a.Append) == 0 && a.SystemPrompt == nil {
		return nil
	}
	changed := *c
	changed.Messages = slices.Clone(edited(c.Messages, a))
	switch {
	case a.SystemPrompt == nil:
	case j.sc.Edition.AtLeast("0.86"):
		changed.Messages = prompted(changed.Messages, *a.SystemPrompt)
	default:
		changed.SystemPrompt = *a.SystemPrompt
	}
	return &changed
}

// prompted is a transcript that says another system prompt, for editions in which
// it is what all system messages say together: the first says it now, the others
// keep only their tools.
func prompted(messages []*trace.Message, prompt string) []*trace.Message {
	isSystem := func(m *trace.Message) bool { return m.Role == trace.RoleSystem }
	first := slices.IndexFunc(messages, isSystem)
	if first < 0 {
		return slices.Insert(messages, 0, &trace.Message{Role: trace.RoleSystem, Content: plain(prompt)})
	}
	for i, m := range messages {
		if !isSystem(m) {
			continue
		}
		changed := *m
		changed.Content = plain("")
		if i == first {
			changed.Content = plain(prompt)
		}
		messages[i] = &changed
	}
	return messages
}

func plain(text string) trace.Content { return trace.Content{Text: text, IsText: true} }

func (j *joint) modelOf(a *trace.HookAnswer) *loop.Model {
	if a.Model == "" {
		return nil
	}
	m := j.model(a.Model)
	return &m
}

func levelOf(a *trace.HookAnswer) *string {
	if a.Level == "" {
		return nil
	}
	return &a.Level
}

func (j *joint) prepareNextTurn(ctx context.Context, t loop.TurnContext) (*loop.TurnUpdate, error) {
	answer, err := j.s.Hook(ctx, trace.HookPrepareNextTurn, turnPayload(&t))
	if err != nil {
		return nil, err
	}
	return &loop.TurnUpdate{
		Context: j.editedContext(t.Context, answer), Messages: answer.Messages,
		Model: j.modelOf(answer), Level: levelOf(answer),
	}, nil
}

func (j *joint) shouldStopAfterTurn(ctx context.Context, t loop.TurnContext) (bool, error) {
	answer, err := j.s.Hook(ctx, trace.HookShouldStopAfterTurn, turnPayload(&t))
	if err != nil {
		return false, err
	}
	return answer.Stop, nil
}

func (j *joint) finishTurn(ctx context.Context, t loop.TurnContext) (loop.Decision, error) {
	answer, err := j.s.Hook(ctx, trace.HookFinishTurn, turnPayload(&t))
	if err != nil {
		return "", err
	}
	return loop.Decision(answer.Action), nil
}

func (j *joint) prepareRequest(ctx context.Context, r loop.RequestContext) (*loop.RequestUpdate, error) {
	payload := &trace.Payload{Context: trace.Tags(r.Context.Messages), Model: r.Model.ID, Level: r.Level}
	answer, err := j.s.Hook(ctx, trace.HookPrepareRequest, payload)
	if err != nil {
		return nil, err
	}
	return &loop.RequestUpdate{
		Context: j.editedContext(r.Context, answer), Model: j.modelOf(answer), Level: levelOf(answer),
	}, nil
}

// outcome is how a user action settled that had been accepted.
func outcome(err error) trace.Outcome {
	if err != nil {
		return trace.OutcomeError
	}
	return trace.OutcomeOK
}
