package conformance_test

import (
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// viewed begins a scenario that is watched by the reference's reducer.
const viewed = "# viewed\n"

const (
	seen = viewed + `
tools: [a]
model:
  - {thinking: hmm, text: look, stream: deltas, calls: [{id: c1, name: a, args: {x: 1}}, {id: c2, name: a}]}
  - text: done
calls: {c1: {updates: [half]}, c2: {gate: true}}
user: [{prompt: go}, {prompt: again}]`
)

func init() {
	rows = append(rows, viewRows...)
	twins = append(twins, viewTwins...)
}

var viewRows = []struct {
	rule     string
	scenario string
	labels   string
	breaks   func(*edit)
}{
	{"VIEW-1", seen, "", func(e *edit) { e.viewOf("turn_end", func(v *trace.View) { v.Before = v.State }) }},
	{"VIEW-1", seen, "", func(e *edit) { e.viewOf("turn_end", func(v *trace.View) { v.Again = trace.Value("{}") }) }},
	{"VIEW-1", seen, "", func(e *edit) { e.viewOf("turn_end", func(v *trace.View) { v.InputChanged = true }) }},
	{"VIEW-2", seen, "", func(e *edit) { e.shows("tool_execution_start/c1", `{"x":1}`, `{"x":2}`) }},
	{"VIEW-2", seen, "", func(e *edit) { e.shows("tool_execution_start/c2", `"id":"c1"`, `"id":"c2"`) }},
	{"VIEW-2", seen, "", func(e *edit) { e.shows("tool_execution_update/c1", "half", "whole") }},
	{"VIEW-2", seen, "", func(e *edit) { e.shows("tool_execution_end/c1", "done", "error") }},
	{"VIEW-3", seen, "", func(e *edit) {
		e.set("view:unheard-of", func(x *trace.Entry) {
			v := *x.View
			v.State = trace.Value(strings.Replace(string(v.State), `"c1"`, `"c3"`, 1))
			x.View = &v
		})
	}},
	{"VIEW-4", seen, "", func(e *edit) { e.shows("message_start/assistant#2", `"turn":2,"text":""`, `"turn":1,"text":""`) }},
	{"VIEW-4", seen, "", func(e *edit) { e.shows("message_end/assistant", "look", "loo") }},
	{"VIEW-5", seen, "", func(e *edit) { e.shows("agent_end", "settling", "idle") }},
	{"VIEW-5", seen, "", func(e *edit) { e.shows("settled:prompt/0", "idle", "settling") }},
	{"VIEW-6", seen, "", func(e *edit) { e.shows("message_end/toolResult/c2", `"id":"c2"`, `"id":"c3"`) }},
	{"VIEW-8", seen, "", func(e *edit) { e.shows("message_update/assistant#2", `"text":""`, `"text":"hmm"`) }},
	{"VIEW-9", seen, "", func(e *edit) { e.shows("turn_start#3", `"turn":3`, `"turn":1`) }},
}

var viewTwins = []struct {
	rule               string
	scenario, twin     string
	labels, twinLabels string
	breaks             func(*edit)
}{
	{"VIEW-7", seen, seen, "", "prompt/0 tool/c2/return tool/c1/update/0 tool/c1/return", func(e *edit) {
		e.shows("settled:prompt/1", `"name":"a"`, `"name":"b"`)
	}},
}

// viewOf changes what the reducer made of the entry of that name.
func (e *edit) viewOf(name string, change func(*trace.View)) {
	e.t.Helper()
	x := &e.tr.Entries[e.at(name)+1]
	v := *x.View
	change(&v)
	x.View = &v
}

// shows changes the view after the entry of that name.
func (e *edit) shows(name, old, by string) {
	e.t.Helper()
	e.viewOf(name, func(v *trace.View) {
		changed := strings.Replace(string(v.State), old, by, 1)
		if changed == string(v.State) {
			e.t.Fatalf("the view after %s has no %s: %s", name, old, v.State)
		}
		v.State = trace.Value(changed)
	})
}
