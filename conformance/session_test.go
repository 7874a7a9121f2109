package conformance_test

import (
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

const (
	session = `
form: session
session: {maxRetries: 2, baseDelayMs: 1000}`
	overloaded = session + `
model: [{stop: error, error: overloaded}, {text: done}]
user: [{prompt: go}, abort]`
	hopeless = session + `
model: [{stop: error, error: overloaded}, {stop: error, error: overloaded}, {stop: error, error: gone}]
user: [{prompt: go}]`
	speechless = session + `
listeners: [{throw: {"*": broken}}]
user: [{prompt: go}]`
	compacting = `
form: session
session: {maxRetries: 1, baseDelayMs: 1000, compact: [threshold]}
model: [{stop: error, error: overloaded}, {text: done}]
hooks: {compact: {}}
user: [{prompt: go}]`
	latecomer = session + `
model: [{text: one}, {text: two}]
listeners: [{gate: [agent_end]}]
user: [{prompt: go}, {followUp: more}]`
)

func init() {
	rows = append(rows, sessionRows...)
}

var sessionRows = []struct {
	rule     string
	scenario string
	labels   string
	breaks   func(*edit)
}{
	{"SESS-1", overloaded, "prompt/0 clock/1s", func(e *edit) { e.cut("auto_retry_start", "agent_settled") }},
	{"SESS-1", hopeless, "", func(e *edit) { e.again("auto_retry_end") }},
	{"SESS-1", hopeless, "", func(e *edit) { e.drop("auto_retry_end") }},
	{"SESS-1", hopeless, "", func(e *edit) { e.carries("auto_retry_end", `"attempt":2`, `"attempt":1`) }},
	{"SESS-1", hopeless, "", func(e *edit) { e.carries("auto_retry_end", "gone", "overloaded") }},
	{"SESS-1", compacting, "", func(e *edit) { e.move("compaction_start", "auto_retry_start") }},
	{"SESS-1", compacting, "", func(e *edit) { e.drop("compaction_start", "compaction_end") }},
	{"SESS-1", latecomer, "prompt/0 followUp/0", func(e *edit) { e.cut("agent_start#2", "agent_settled") }},
	{"SESS-2", overloaded, "prompt/0 clock/1s", func(e *edit) { e.drop("auto_retry_end") }},
	{"SESS-2", overloaded, "prompt/0 clock/1s", func(e *edit) { e.move("auto_retry_end", "agent_settled") }},
	{"SESS-3", overloaded, "prompt/0 clock/1s", func(e *edit) {
		e.set("agent_start#2", func(x *trace.Entry) { x.Time = 0 })
	}},
	{"SESS-3", hopeless, "", func(e *edit) { e.carries("auto_retry_start#2", "2000", "1000") }},
	{"SESS-3", overloaded, "prompt/0 abort", func(e *edit) {
		e.set("auto_retry_end", func(x *trace.Entry) { x.Step++ })
	}},
	{"SESS-4", overloaded, "prompt/0 clock/1s", func(e *edit) {
		e.set("call:model/1", func(x *trace.Entry) { x.Payload.Messages = append(x.Payload.Messages, "assistant error []: ") })
	}},
	{"SESS-5", speechless, "", func(e *edit) { e.copy("agent_start", "settled:prompt/0") }},
}

// carries changes what an event of a session carries.
func (e *edit) carries(name, old, by string) {
	e.t.Helper()
	e.set(name, func(x *trace.Entry) {
		x.Event.Extra = trace.Value(strings.Replace(string(x.Event.Extra), old, by, 1))
	})
}
