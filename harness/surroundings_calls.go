package harness

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Hook is a call of the hook of that name that belongs to no tool call.
func (s *Surroundings) Hook(ctx context.Context, hook string, payload *trace.Payload) (*trace.HookAnswer, error) {
	s.mu.Lock()
	name := s.names.numbered("hook/", hook)
	s.mu.Unlock()
	return s.hook(ctx, hook, name, payload)
}

// CallHook is a call of the hook of that name that belongs to the tool call of
// the payload.
func (s *Surroundings) CallHook(ctx context.Context, hook string, payload *trace.Payload, source Source) (*trace.HookAnswer, error) {
	id := payload.ToolCallID
	return s.hook(ctx, hook, s.nameOf(prefixOf(hook), id, source), payload)
}

// prefixOf is what comes before the id in the name of a call of the hook.
func prefixOf(hook string) string {
	if prefix, ok := hookPrefixes[hook]; ok {
		return prefix
	}
	return "hook/" + hook + "/"
}

var hookPrefixes = func() map[string]string {
	prefixes := map[string]string{}
	for _, hook := range trace.Hooks() {
		prefixes[hook] = "hook/" + hook + "/"
	}
	return prefixes
}()

func (s *Surroundings) hook(ctx context.Context, hook, name string, payload *trace.Payload) (*trace.HookAnswer, error) {
	answer := s.hookAnswer(ctx, hook, name, payload)
	if answer.Hook == nil {
		return &trace.HookAnswer{}, thrown(answer)
	}
	return answer.Hook, thrown(answer)
}

func (s *Surroundings) hookAnswer(ctx context.Context, hook, name string, payload *trace.Payload) *trace.Answer {
	if s.Scenario.Hooks[hook].Gate || s.Scenario.Config.Hooks[hook] == trace.ModeGate {
		return s.wait(ctx, name, payload)
	}
	reply := s.Scenario.hookReply(hook, strings.TrimPrefix(name, "hook/"+hook+"/"))
	a := &trace.Answer{Throw: reply.Throw, Abort: reply.Abort}
	if reply.Throw == nil {
		a.Hook = &reply.Value
	}
	s.answered(ctx, name, payload, a)
	return a
}

// Execute is one execution of a tool.
func (s *Surroundings) Execute(ctx context.Context, payload *trace.Payload, source Source, onUpdate func(*trace.Result)) (*trace.Result, error) {
	name := s.nameOf("tool/", payload.ToolCallID, source)
	s.mu.Lock()
	script := s.Scenario.toolScriptOr(name[len("tool/"):], s.defaultResult)
	call := s.waiting.tools.Of(toolCall{name: name, onUpdate: onUpdate, returned: !script.Gate})
	call.todo = call.room[:0]
	s.tools = append(s.tools, call)
	s.mu.Unlock()
	if script.Gate {
		return s.executeGated(ctx, call, script, payload, source)
	}
	s.mu.Lock()
	answer := s.values.answers.Of(trace.Answer{Sync: script.Sync, Result: script.Return, Throw: script.Throw, Abort: script.Abort})
	s.mu.Unlock()
	if script.Throw != nil {
		answer.Result = nil
	}
	s.answered(ctx, name, payload, answer)
	for _, update := range script.Sync {
		onUpdate(update)
	}
	s.turnOf(payload.ToolCallID, source)
	return answer.Result, thrown(answer)
}

// executeGated notes the call, makes the updates that come before execute first
// yields, and then waits: in that order, as the gate is there from the start.
func (s *Surroundings) executeGated(ctx context.Context, call *toolCall, script ToolScript, payload *trace.Payload, source Source) (*trace.Result, error) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil, errClosing
	}
	p := s.waiting.pending.Of(pending{name: call.name, ctx: ctx, tool: call, cancelled: ctx != nil && ctx.Err() != nil})
	e := s.called(call.name, payload)
	e.Aborted = p.cancelled
	if len(script.Sync) > 0 {
		e.Answer = &trace.Answer{Sync: script.Sync}
	}
	s.open = append(s.open, p)
	call.gate = s.newGate()
	s.mu.Unlock()
	for _, update := range script.Sync {
		call.onUpdate(update)
	}
	for first := true; ; first = false {
		if !first && s.busy(call) {
			s.turnOf(payload.ToolCallID, source) // it was held up, perhaps with others
		}
		a := s.toDo(call)
		if a.Partial == nil {
			return a.Result, thrown(a)
		}
		call.onUpdate(a.Partial)
	}
}

// defaultResult is what a tool returns of which the scenario says nothing, made once
// for each call id; it is called with the lock held.
func (s *Surroundings) defaultResult(id string) *trace.Result {
	if s.results == nil || len(s.results) > mostSeries {
		s.results = map[string]*trace.Result{}
	}
	if s.results[id] == nil {
		s.results[id] = defaultResult(id)
	}
	return s.results[id]
}

// busy reports whether a tool has something to do already.
func (s *Surroundings) busy(call *toolCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(call.todo) > 0
}

// toDo waits for the next thing that a tool is to do.
func (s *Surroundings) toDo(call *toolCall) *trace.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(call.todo) == 0 {
		if call.gate == nil {
			call.gate = s.newGate()
		}
		gate := call.gate
		s.mu.Unlock()
		gate.Wait()
		s.mu.Lock()
	}
	a := call.todo[0]
	call.todo = slices.Delete(call.todo, 0, 1)
	call.returned = a.Partial == nil
	return a
}

// tell gives a tool something to do; it is called with the lock held.
func (call *toolCall) tell(a *trace.Answer) {
	call.todo = append(call.todo, a)
	if call.gate != nil {
		call.gate.Open()
		call.gate = nil
	}
}

// Deliver is the delivery of an event to the scenario's listener number i.
// About is what the event is about: a tool call id, a message's role, or
// nothing.
func (s *Surroundings) Deliver(ctx context.Context, i int, ev *trace.Event, n int, wait func(func())) error {
	prefix := listenerPrefix(i)
	signal := ctx != nil
	payload := &trace.Payload{Event: &n, Signal: &signal}
	s.mu.Lock()
	name := s.names.delivered(prefix, ev.Type, subjectOf(ev))
	s.mu.Unlock()
	gate, throw, throws := listenerAt(&s.Scenario.Config.Listeners[i], name[len(prefix):])
	if gate {
		var answer *trace.Answer
		wait(func() { answer = s.wait(ctx, name, payload) })
		return thrown(answer)
	}
	answer := &trace.Answer{}
	if throws {
		answer.Throw = &throw
	}
	s.answered(ctx, name, payload, answer)
	return thrown(answer)
}

// listenerPrefix is what the names of the calls of a listener begin with.
func listenerPrefix(i int) string {
	if i < len(listenerPrefixes) {
		return listenerPrefixes[i]
	}
	return "listener/" + strconv.Itoa(i) + "/"
}

var listenerPrefixes = [...]string{"listener/0/", "listener/1/", "listener/2/", "listener/3/"}

func subjectOf(ev *trace.Event) string {
	if ev.ToolCallID != "" {
		return ev.ToolCallID
	}
	if ev.Message != nil && strings.HasPrefix(ev.Type, "message_") {
		return ev.Message.Role
	}
	return ""
}
