package conformance_test

import (
	"testing"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Stories that several rules are about.
const (
	answer = `
model: [{text: hello, gate: true, stream: deltas}]
user: [{prompt: go}]`
	bare = `
model: [{text: hello, stream: bare}]
user: [{prompt: go}]`
	gone = `
model: [{text: hello, end: throws, throw: connection lost}]
user: [{prompt: go}, {prompt: again}]`
	twice = `
model: [{text: hello, gate: true}]
user: [{prompt: go}, {prompt: {text: too early, busy: true}}]`
	two = `
tools: [a, b]
model:
  - calls: [{id: c1, name: a, args: {x: 1}}, {id: c2, name: a}]
  - text: done
calls: {c1: {updates: [half, most], late: [late]}, c2: {gate: true}}
user: [{prompt: go}]`
	oneByOne = `
toolExecution: sequential` + two
	slow = `
listeners: [{gate: [message_end/assistant, tool_execution_update, agent_end]}, {}]` + two
	hooked = `
hooks: {prepareNextTurn: {}, shouldStopAfterTurn: {}, transformContext: {}, convertToLlm: {}, getApiKey: {else: {key: k}}}` + two
	watched = `
hooks: {beforeToolCall: {gate: true}, afterToolCall: {gate: true}}` + two
	asked = `
hooks: {beforeToolCall: {answers: {c1: {block: true, reason: not now}}}}` + two
	unknown = `
tools: [a]
model:
  - calls: [{id: c1, name: nothing}, {id: c2, name: a}]
  - text: done
calls: {c2: {gate: true}}
user: [{prompt: go}]`
	truncated = `
tools: [a]
model:
  - {calls: [{id: c1, name: a}, {id: c2, name: a}], stop: length}
  - text: done
user: [{prompt: go}]`
	failed = `
tools: [a]
model: [{calls: [{id: c1, name: a}], stop: error, error: overloaded}]
user: [{prompt: go}, {prompt: again}]`
	stopped = `
tools: [a]
model:
  - calls: [{id: c1, name: a}, {id: c2, name: a}, {id: c3, name: a}]
calls: {c1: {gate: true}, c2: {gate: true}, c3: {gate: true}}
user: [{prompt: go}, abort, abort]`
	stoppedOneByOne = `
toolExecution: sequential` + stopped
	stoppedInHook = `
hooks: {beforeToolCall: {gate: true}}` + stopped
	queued = `
tools: [a]
model:
  - calls: [{id: c1, name: a}, {id: c2, name: a}]
  - text: done
calls: {c1: {gate: true}}
user: [{prompt: go}, {steer: s1}, {steer: s2}, {followUp: f1}]`
	views = `
listeners: [{gate: [turn_start]}, {}, {late: true}]
model: [{text: hello, gate: true}]
user: [{prompt: go}, {subscribe: 2}, {subscribe: 2}, {unsubscribe: 1}]`
	newest = `
edition: "1.6"`
)

// rows has one keeping and one breaking trace for each rule that is judged by
// one trace: a story keeps the rule, and the edit of its trace breaks it.
var rows = []struct {
	rule     string
	scenario string
	labels   string
	breaks   func(*edit)
}{
	{"RUN-1", answer, "", func(e *edit) { e.drop("agent_start") }},
	{"RUN-2", answer, "", func(e *edit) { e.again("agent_end") }},
	{"RUN-2r", answer, "", func(e *edit) { e.move("agent_end", "turn_end") }},
	{"RUN-3", answer, "", func(e *edit) {
		e.set("agent_end", func(x *trace.Entry) { x.Event.Messages = x.Event.Messages[1:] })
	}},
	{"RUN-4", twice, "prompt/0 prompt/1", func(e *edit) { e.drop("settled:prompt/1") }},
	{"RUN-5", slow, "", func(e *edit) { e.move("settled:prompt/0", ">listener/0/agent_end/0/done") }},
	{"RUN-6", `user: [waitForIdle]`, "", func(e *edit) { e.drop("settled:waitForIdle/0") }},
	{"RUN-7", gone, "", func(e *edit) { e.drop("turn_end") }},
	{"RUN-8", gone, "", func(e *edit) {
		e.set("agent_start#2", func(x *trace.Entry) { x.State.Pending = []string{"c9"} })
	}},
	{"RUN-9", `user: [continue]`, "", func(e *edit) { e.drop("settled:continue/0") }},
	{"RUN-10", "model: [{text: hello}]\nuser: [{prompt: go}, {steer: more}, continue]", "prompt/0 steer/0 continue/0", func(e *edit) {
		e.drop("message_start/user#2", "message_end/user#2")
	}},
	{"RUN-11", "messages: [{role: user, text: asked before}]\nuser: [continue]", "", func(e *edit) {
		said := &trace.Event{Type: trace.MessageStart, Message: e.tr.Header.Config.Messages[0]}
		e.insert("call:model/0", trace.Entry{Kind: trace.KindEvent, Event: said})
	}},
	{"RUN-12", "user: [{prompt: {text: look, images: [{data: Y2F0, mimeType: image/png}]}}]", "", func(e *edit) {
		e.says("message_end/user", "look")
	}},
	{"RUN-13", "model: [{text: hello, gate: true}]\nuser: [{prompt: go}, {reset: {busy: true}}]", "prompt/0 reset/0", func(e *edit) {
		e.set("settled:reset/0", func(x *trace.Entry) { x.Outcome = trace.OutcomeOK })
	}},
	{"RUN-14", two, "", func(e *edit) { e.copy("call:tool/c1", "end") }},

	{"TURN-1", answer, "", func(e *edit) { e.drop("turn_start") }},
	{"TURN-2", answer, "", func(e *edit) { e.says("turn_end", "something else") }},
	{"TURN-3", two, "", func(e *edit) { e.move("turn_end", "message_end/toolResult/c2") }},
	{"TURN-4", two, "", func(e *edit) {
		e.set("turn_end", func(x *trace.Entry) { x.Event.ToolResults = x.Event.ToolResults[:1] })
	}},
	{"TURN-5", failed, "prompt/0", func(e *edit) {
		e.insert("turn_end", trace.Entry{Kind: trace.KindCall, Name: "tool/c1", Auto: true, Payload: &trace.Payload{ToolCallID: "c1"}})
	}},
	{"TURN-6", two, "", func(e *edit) { e.cut("turn_start#2", "agent_end") }},
	{"TURN-7", terminating("true", "false"), "", func(e *edit) { e.cut("turn_start#2", "agent_end") }},
	{"TURN-8", hooked, "", func(e *edit) { e.move("call:hook/shouldStopAfterTurn/0", "turn_end") }},
	{"TURN-9", replace(hooked, "prepareNextTurn: {}", "prepareNextTurn: {else: {model: other}}"), "", func(e *edit) {
		e.set("call:model/1", func(x *trace.Entry) { x.Payload.Model = "scripted-1" })
	}},
	{"TURN-10", "model: [{text: hello, gate: true}]\nuser: [{prompt: go}, {followUp: more}]", "prompt/0 followUp/0", func(e *edit) {
		e.drop("message_start/user#2", "message_end/user#2")
	}},
	{"TURN-11", hooked, "", func(e *edit) { e.move("call:hook/shouldStopAfterTurn/0", "call:hook/prepareNextTurn/0") }},
	{"TURN-12", newest + "\nhooks: {finishTurn: {}, prepareRequest: {}}" + two, "", func(e *edit) {
		e.move("call:hook/finishTurn/0", "turn_start#2")
	}},
	{"TURN-13", "tools: [a]\nmodel: [{calls: [{id: c1, name: a}], stop: stop}]\nuser: [{prompt: go}]", "", func(e *edit) { e.cut("tool_execution_start/c1", "turn_end") }},
	{"TURN-14", failed, "prompt/0", func(e *edit) {
		e.insert("agent_end", trace.Entry{Kind: trace.KindCall, Name: "hook/getSteeringMessages/7", Auto: true, Answer: &trace.Answer{}})
	}},

	{"MSG-1", answer, "", func(e *edit) { e.again("message_end/user") }},
	{"MSG-2", answer, "", func(e *edit) { e.move("message_update/assistant", "turn_end") }},
	{"MSG-3", answer, "", func(e *edit) { e.drop("message_update/assistant#2") }},
	{"MSG-4", answer, "", func(e *edit) { e.says("message_end/assistant", "hell") }},
	{"MSG-5", bare, "", func(e *edit) { e.drop("message_start/assistant") }},
	{"MSG-6", "model: [{text: hello, end: silent}]\nuser: [{prompt: go}]", "", func(e *edit) { e.says("message_end/assistant", "hell") }},
	{"MSG-7", answer, "", func(e *edit) { e.retained("message_start/assistant") }},
	{"MSG-8", answer, "", func(e *edit) { e.move("call:model/0", "message_end/user") }},
	{"MSG-9", "listeners: [{gate: [message_start/assistant]}]" + answer, "", func(e *edit) {
		e.move("read:model/0/1", ">listener/0/message_start/assistant/0/done")
	}},

	{"TOOL-1", two, "", func(e *edit) { e.drop("tool_execution_end/c1") }},
	{"TOOL-2", two, "", func(e *edit) { e.move("tool_execution_start/c1", "message_end/assistant") }},
	{"TOOL-3", slow, "", func(e *edit) { e.move("call:tool/c1", ">listener/0/message_end/assistant/0/done") }},
	{"TOOL-4", two, "", func(e *edit) { e.move("call:tool/c1", "tool_execution_start/c1") }},
	{"TOOL-5", two, "", func(e *edit) {
		e.set("tool_execution_start/c1", func(x *trace.Entry) { x.Event.Args = trace.Value(`{"x":2}`) })
	}},
	{"TOOL-6", watched, "", func(e *edit) {
		e.set("call:tool/c1", func(x *trace.Entry) { x.Payload.Args = trace.Value(`{"x":2}`) })
	}},
	{"TOOL-7", unknown, "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.IsError = nil })
	}},
	{"TOOL-8", asked, "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.Result.Content = trace.TextContent("no") })
	}},
	{"TOOL-9", two, "", func(e *edit) { e.move("message_start/toolResult/c1", "tool_execution_end/c1") }},
	{"TOOL-10", replace(watched, "afterToolCall: {gate: true}", "afterToolCall: {else: {content: redacted}}"), "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.Result.Content = trace.TextContent("secret") })
	}},
	{"TOOL-11", replace(two, "c2: {gate: true}", "c2: {throw: no disk}"), "", func(e *edit) {
		e.set("tool_execution_end/c2", func(x *trace.Entry) { x.Event.IsError = nil })
	}},
	{"TOOL-12", replace(watched, "afterToolCall: {gate: true}", "afterToolCall: {answers: {c1: {throw: broken}}}"), "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.IsError = nil })
	}},
	{"TOOL-13", two, "", func(e *edit) { e.says("message_start/toolResult/c1", "r") }},
	{"TOOL-14", two, "", func(e *edit) {
		e.set("message_start/toolResult/c1", func(x *trace.Entry) { x.Event.Message.ToolCallID = "c7" })
	}},
	{"TOOL-15", two, "", func(e *edit) {
		e.set("call:model/1", func(x *trace.Entry) {
			m := x.Payload.Messages
			x.Payload.Messages = []string{m[0], m[1], m[3], m[2]}
		})
	}},
	{"TOOL-17", watched, "", func(e *edit) {
		e.set("call:hook/beforeToolCall/c2", func(x *trace.Entry) { x.Payload.Context = x.Payload.Context[:1] })
	}},
	{"TOOL-18", unknown, "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.Result.Details = trace.Value(`{"tool":"nothing"}`) })
	}},
	{"TOOL-19", replace(two, "c2: {gate: true}", "c2: {return: {text: no, isError: true}}"), "", func(e *edit) {
		yes := true
		e.set("tool_execution_end/c2", func(x *trace.Entry) { x.Event.IsError = &yes })
	}},

	{"PAR-1", watched, "", func(e *edit) { e.move("tool_execution_start/c2", ">hook/beforeToolCall/c1/return") }},
	{"PAR-2", two, "tool/c1/return", func(e *edit) { e.move("call:tool/c2", ">tool/c2/return") }},
	{"PAR-3", two, "tool/c2/return tool/c1/return", func(e *edit) { e.move("tool_execution_end/c2", "message_start/toolResult/c1") }},
	{"PAR-4", two, "", func(e *edit) {
		e.move("message_start/toolResult/c2", "message_start/toolResult/c1")
		e.move("message_end/toolResult/c2", "message_start/toolResult/c1")
	}},
	{"PAR-5", two, "tool/c1/return tool/c2/return", func(e *edit) {
		e.move("message_start/toolResult/c1", ">tool/c2/return")
		e.move("message_end/toolResult/c1", ">tool/c2/return")
	}},
	{"PAR-6", unknown, "", func(e *edit) { e.move("tool_execution_end/c1", ">tool/c2/return") }},
	{"PAR-7", oneByOne, "", func(e *edit) { e.move("tool_execution_start/c2", "message_start/toolResult/c1") }},
	{"PAR-8", two, "", func(e *edit) {
		e.set("tool_execution_end/c2", func(x *trace.Entry) { x.Event.ToolCallID = "c1" })
	}},

	{"UPD-1", two, "", func(e *edit) { e.drop("tool_execution_update/c1#2") }},
	{"UPD-2", two, "tool/c1/update/0 tool/c1/return tool/c1/late/0", func(e *edit) { e.copy("tool_execution_update/c1", ">tool/c2/return") }},
	{"UPD-3", slow, "", func(e *edit) {
		e.move("tool_execution_end/c1", ">listener/0/tool_execution_update/c1/0/done")
	}},
	{"UPD-4", two, "", func(e *edit) { e.move("tool_execution_update/c1#2", "message_start/toolResult/c1") }},
	{"UPD-5", replace(two, "c2: {gate: true}", "c2: {sync: [at once]}"), "", func(e *edit) { e.drop("tool_execution_update/c2") }},
	{"UPD-7", two, "", func(e *edit) { e.drop("call:tool/c1") }},
	{"UPD-8", "hooks: {afterToolCall: {}}" + slow, "", func(e *edit) {
		e.move("call:hook/afterToolCall/c1", ">listener/0/tool_execution_update/c1/0/done")
	}},

	{"LEN-1", truncated, "", func(e *edit) {
		e.insert("tool_execution_end/c1", trace.Entry{Kind: trace.KindCall, Name: "tool/c1", Auto: true, Payload: &trace.Payload{ToolCallID: "c1"}})
	}},
	{"LEN-2", truncated, "", func(e *edit) { e.cut("tool_execution_start/c2", "turn_end") }},
	{"LEN-3", truncated, "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.Result.Content = trace.TextContent("cut off") })
	}},
	{"LEN-3s", truncated, "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.Result.Content = trace.TextContent("a: cut off") })
	}},
	{"LEN-4", truncated, "", func(e *edit) { e.cut("turn_start#2", "agent_end") }},
	{"LEN-5", "model: [{text: hello, stop: length, gate: true}]\nuser: [{prompt: go}, {followUp: more}]", "prompt/0 followUp/0", func(e *edit) {
		e.drop("message_start/user#2", "message_end/user#2")
	}},

	{"ABRT-1", stopped, "prompt/0 abort", func(e *edit) { e.drop("cancelled:tool/c2") }},
	{"ABRT-2", stoppedInHook, "prompt/0 abort hook/beforeToolCall/c1/return", func(e *edit) {
		e.insert("tool_execution_end/c1", trace.Entry{Kind: trace.KindCall, Name: "tool/c1", Auto: true, Aborted: true, Answer: &trace.Answer{Result: &trace.Result{}}, Payload: &trace.Payload{ToolCallID: "c1"}})
	}},
	{"ABRT-3", stoppedInHook, "prompt/0 abort hook/beforeToolCall/c1/return", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.IsError = nil })
	}},
	{"ABRT-4", stopped, "prompt/0 abort", func(e *edit) { e.drop("message_start/toolResult/c2", "message_end/toolResult/c2") }},
	{"ABRT-5", newest + stoppedOneByOne, "prompt/0 abort", func(e *edit) { e.cut("tool_execution_start/c3", "turn_end") }},
	{"ABRT-6", stoppedOneByOne, "prompt/0 abort", func(e *edit) {
		x := &trace.Event{Type: trace.ToolExecutionStart, ToolCallID: "c2", ToolName: "a"}
		e.insert("turn_end", trace.Entry{Kind: trace.KindEvent, Event: x})
	}},
	{"ABRT-7", stopped, "prompt/0 abort", func(e *edit) { e.cut("turn_start#2", "agent_end") }},
	{"ABRT-8", "model: [{text: hello}, {text: more}]\nuser: [{prompt: go}, abort, {prompt: again}]", "prompt/0 abort prompt/1", func(e *edit) {
		e.set("call:model/1", func(x *trace.Entry) { x.Aborted = true })
	}},
	{"ABRT-9", stopped, "prompt/0 abort abort/1", func(e *edit) { e.copy("cancelled:tool/c1", ">tool/c1/return") }},
	{"ABRT-10", stopped, "prompt/0 abort", func(e *edit) { e.drop("message_start/toolResult/c2", "message_end/toolResult/c2") }},

	{"QUE-1", queued, "prompt/0 steer/0", func(e *edit) {
		e.set("call:model/1", func(x *trace.Entry) { x.Payload.Messages = x.Payload.Messages[:4] })
	}},
	{"QUE-2", queued, "prompt/0 steer/0", func(e *edit) { e.drop("call:hook/getSteeringMessages/0") }},
	{"QUE-3", queued, "prompt/0 steer/0", func(e *edit) { e.drop("call:tool/c2") }},
	{"QUE-4", queued, "prompt/0 followUp/0", func(e *edit) { e.move("call:hook/getFollowUpMessages/0", "turn_start#2") }},
	{"QUE-5", queued, "prompt/0 steer/0 steer/1", func(e *edit) {
		e.set("call:hook/getSteeringMessages/1", func(x *trace.Entry) { x.Answer.Messages = nil })
	}},
	{"QUE-6", "model: [{text: hello}, {text: more}]\nuser: [{prompt: go}, {steer: s1}, {prompt: again}]\nlisteners: [{gate: [agent_end]}]", "prompt/0 steer/0 listener/0/agent_end/0/done prompt/1", func(e *edit) {
		e.set("call:hook/getSteeringMessages/2", func(x *trace.Entry) { x.Answer.Messages = nil })
	}},
	{"QUE-6r", stopped, "prompt/0 abort", func(e *edit) {
		said := &trace.Message{Role: trace.RoleUser, Content: trace.TextContent("s1")}
		e.set("call:hook/getSteeringMessages/1", func(x *trace.Entry) { x.Answer.Messages = []*trace.Message{said} })
	}},
	{"QUE-7", queued, "steer/0 prompt/0", func(e *edit) {
		e.move("message_start/user#2", "message_start/user")
		e.move("message_end/user#2", "message_start/user#2")
	}},

	{"STATE-1", answer, "", func(e *edit) {
		e.set("message_end/assistant", func(x *trace.Entry) { x.State.Last = "user: go" })
	}},
	{"STATE-2", two, "", func(e *edit) {
		e.set("tool_execution_start/c1", func(x *trace.Entry) { x.State.Pending = nil })
	}},
	{"STATE-3", two, "", func(e *edit) {
		e.set("turn_end", func(x *trace.Entry) { x.State.Pending = []string{"c1"} })
	}},
	{"STATE-4", answer, "", func(e *edit) {
		e.set("message_update/assistant", func(x *trace.Entry) { x.State.Streaming = "" })
	}},
	{"STATE-5", answer, "", func(e *edit) {
		e.set("message_start/assistant", func(x *trace.Entry) { x.State.Messages++ })
	}},
	{"STATE-6", failed, "", func(e *edit) { e.set("agent_start#2", func(x *trace.Entry) { x.State.Error = "overloaded" }) }},
	{"STATE-7", answer, "", func(e *edit) { e.set("agent_end", func(x *trace.Entry) { x.State.IsStreaming = false }) }},
	{"STATE-8", two, "", func(e *edit) { e.retained("tool_execution_start/c1") }},

	{"LIS-1", slow, "", func(e *edit) { e.move("call:listener/1/agent_end/0", ">listener/0/agent_end/0/done") }},
	{"LIS-2", slow, "", func(e *edit) { e.move("call:listener/1/tool_execution_start/c1/0", "message_start/toolResult/c1") }},
	{"LIS-3", views, "prompt/0 unsubscribe/0", func(e *edit) {
		at := e.tr.Entries[e.at("turn_end")].N
		e.insert("agent_end", trace.Entry{Kind: trace.KindCall, Name: "listener/1/turn_end/0", Auto: true, Answer: &trace.Answer{}, Payload: &trace.Payload{Event: &at}})
	}},
	{"LIS-4", slow, "", func(e *edit) {
		e.set("call:listener/1/agent_end/0", func(x *trace.Entry) { x.Payload.Signal = new(bool) })
	}},
	{"LIS-5", "form: stream\nlisteners: [{gate: [agent_start]}]" + answer, "", func(e *edit) {
		e.move("call:model/0", "call:listener/0/agent_start/0")
		e.insert("turn_start", e.tr.Entries[e.at("call:model/0")])
		e.tr.Entries[e.at("call:model/0#2")].Step = e.tr.Entries[e.at(">listener/0/agent_start/0/done")].Step
	}},
	{"LIS-6", slow, "", func(e *edit) { e.move("turn_end", ">listener/0/message_end/assistant/0/done") }},
	{"LIS-7", views, "subscribe/0 subscribe/1 prompt/0", func(e *edit) { e.again("call:listener/2/turn_end/0") }},

	{"CTX-1", hooked, "", func(e *edit) { e.move("call:hook/convertToLlm/0", "call:hook/transformContext/0") }},
	{"CTX-2", two, "", func(e *edit) {
		e.set("call:model/1", func(x *trace.Entry) { x.Payload.Messages = x.Payload.Messages[1:] })
	}},
	{"CTX-3", answer, "", func(e *edit) {
		e.insert("end", trace.Entry{Kind: trace.KindRetained, Changed: []int{-1}})
	}},
	{"CTX-4", hooked, "", func(e *edit) { e.set("call:model/0", func(x *trace.Entry) { x.Payload.Key = "old" }) }},
	{"CTX-5", newest + two, "", func(e *edit) {
		e.set("call:model/1", func(x *trace.Entry) { x.Payload.Messages = x.Payload.Messages[:len(x.Payload.Messages)-1] })
	}},
	{"CTX-6", two, "", func(e *edit) { e.set("call:model/0", func(x *trace.Entry) { x.Payload.Tools = nil }) }},
}

// twins has a base that keeps and one that breaks each rule that needs a twin,
// besides the twin.
var twins = []struct {
	rule               string
	scenario, twin     string
	labels, twinLabels string
	breaks             func(*edit)
}{
	{"PAR-9", two, replace(two, "c2: {gate: true}", "c2: {throw: no disk}"), "", "", func(e *edit) {
		e.set("tool_execution_end/c1", func(x *trace.Entry) { x.Event.Result.Content = trace.TextContent("lost") })
	}},
	{"UPD-6", slow, two, "", "", func(e *edit) { e.drop("tool_execution_update/c1#2") }},
	{"ABRT-9", stopped, stopped, "prompt/0 abort abort/1", "prompt/0 abort", func(e *edit) { e.drop("tool_execution_end/c2") }},
}

func TestEveryRuleIsSeenKeptAndBroken(t *testing.T) {
	for _, row := range rows {
		t.Run(row.rule, func(t *testing.T) {
			keeping := knowing(tell(t, row.scenario, row.labels))
			expectKept(t, conformance.Check(keeping, conformance.Catalogue()), row.rule, keeping)
			e := with(t, keeping)
			row.breaks(e)
			expectBroken(t, conformance.Check(e.tr, conformance.Catalogue()), row.rule, e.tr)
		})
	}
	for _, row := range twins {
		t.Run(row.rule+" by a twin", func(t *testing.T) {
			keeping, twin := tell(t, row.scenario, row.labels), tell(t, row.twin, row.twinLabels)
			expectKept(t, conformance.Compare(keeping, twin, conformance.Catalogue()), row.rule, keeping)
			e := with(t, keeping)
			row.breaks(e)
			expectBroken(t, conformance.Compare(e.tr, twin, conformance.Catalogue()), row.rule, e.tr)
		})
	}
}

func expectKept(t *testing.T, v conformance.Verdict, rule string, tr *trace.Trace) {
	t.Helper()
	if got := result(&v, rule); got.Status != conformance.StatusPass {
		t.Errorf("the keeping trace: %s %s\n%s", got.Status, got.Reason, trace.Text(tr))
	}
	for _, f := range v.Findings {
		if f.Level == conformance.Must {
			t.Errorf("the keeping trace breaks %s: %s %v\n%s", f.Rule, f.Message, f.Entries, trace.Text(tr))
		}
	}
}

func expectBroken(t *testing.T, v conformance.Verdict, rule string, tr *trace.Trace) {
	t.Helper()
	if len(findings(&v, rule)) == 0 {
		t.Errorf("the breaking trace is not found: %+v\n%s", result(&v, rule), trace.Text(tr))
	}
}

// Each rule of the catalogue has its row, so that none is there that cannot find
// anything.
func TestEveryRuleHasItsTraces(t *testing.T) {
	have := map[string]bool{}
	for _, row := range rows {
		have[row.rule] = true
	}
	for _, row := range twins {
		have[row.rule] = true
	}
	for _, r := range conformance.Catalogue() {
		if !have[r.ID] {
			t.Errorf("%s has no keeping and breaking trace", r.ID)
		}
	}
}
