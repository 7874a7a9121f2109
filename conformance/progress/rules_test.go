package progress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
)

type (
	entry   = progress.Entry
	entries = []progress.Entry
)

// of is an entry about the only execution.
func of(kind progress.Kind, more func(*entry)) entry {
	e := entry{Kind: kind, Agent: "a", Call: "c1", Token: 1}
	if more != nil {
		more(&e)
	}
	return e
}

const (
	diff = `{"type":"diff","path":"/p/x","oldText":"a","newText":"b"}`
	text = `{"type":"content","content":{"type":"text","text":"half"}}`
)

// wire is a line about a card.
func wire(update string, more func(*entry)) entry {
	line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{%s}}}`, update)
	e := entry{Kind: progress.Wire, Session: "s", Value: trace.Value(line)}
	if more != nil {
		more(&e)
	}
	return e
}

var (
	view      = trace.Value(`{"content":[{"type":"text","text":"half"}]}`)
	announced = `"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit x","kind":"edit","status":"pending","rawInput":{},"content":[` + diff + `]`
	working   = `"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress","content":[` + diff + `,` + text + `]`
	ended     = `"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","title":"Edit x","content":[` + diff + `]`
)

func because(number int) func(*entry) { return func(e *entry) { e.Report = number } }
func replayed(e *entry)               { e.Replay = true }

// call is a call that keeps all rules. The numbers are those of the entries.
func call() entries {
	return entries{
		0:  {Kind: progress.Observers, Observer: "panel"},
		1:  {Kind: progress.Observers, Observer: "of a", Scope: "a"},
		2:  of(progress.Prepared, func(e *entry) { e.Session = "s" }),
		3:  of(progress.Durable, func(e *entry) { e.Stored, e.Value, e.Card = "tool/call", trace.Value(`1`), card() }),
		4:  wire(announced, nil),
		5:  of(progress.Dispatched, nil),
		6:  of(progress.Report, func(e *entry) { e.Report, e.By, e.View = 1, "body", view }),
		7:  of(progress.Observed, func(e *entry) { e.Report, e.Observer, e.View = 1, "panel", view }),
		8:  of(progress.Observed, func(e *entry) { e.Report, e.Observer, e.Scope, e.View = 1, "of a", "a", view }),
		9:  wire(working, because(1)),
		10: of(progress.Returned, func(e *entry) { e.Report, e.Accepted = 1, true }),
		11: of(progress.Closing, nil),
		12: of(progress.Boundary, nil),
		13: of(progress.Report, func(e *entry) { e.Report, e.By, e.View = 2, "timer", view }),
		14: of(progress.Returned, because(2)),
		15: of(progress.Durable, func(e *entry) { e.Stored, e.Value = "tool/result", trace.Value(`2`) }),
		16: wire(ended, nil),
		17: of(progress.Outcome, func(e *entry) { e.Value = trace.Value(`"ok"`) }),
		18: {Kind: progress.Response, Session: "s"},
		19: wire(announced, replayed),
		20: wire(ended, replayed),
		21: {Kind: progress.Kept, Observer: "panel", Report: 1, View: view},
		22: {Kind: progress.Parsed, Value: view},
	}
}

func card() *progress.Card {
	return &progress.Card{Title: "Edit x", Kind: "edit", RawInput: trace.Value(`{}`), Fixed: []trace.Value{trace.Value(diff)}}
}

func event(kind progress.Kind, ev progress.Event) entry {
	return entry{Kind: kind, Event: &ev}
}

func says(lines ...string) func(*entry) {
	return func(e *entry) {
		e.By = "producer"
		e.View = trace.Value(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Join(lines, "\n")))
	}
}

// flow is a workflow that keeps all rules.
func flow() entries {
	phase := progress.Event{Run: "r", Kind: "phase", Phase: "build"}
	child := progress.Event{Run: "r", Kind: "agent-start", Seq: 1, Label: "one"}
	end := progress.Event{Run: "r", Kind: "agent-end", Seq: 1, Outcome: "failed"}
	other := progress.Event{Run: "o", Kind: "log", Log: "foreign"}
	return entries{
		0:  {Kind: progress.Probed, Probe: &progress.Probe{Listeners: 1}},
		1:  of(progress.Prepared, nil),
		2:  {Kind: progress.Listening},
		3:  {Kind: progress.Entered},
		4:  event(progress.Emitted, phase),
		5:  event(progress.Heard, phase),
		6:  event(progress.Emitted, other),
		7:  event(progress.Heard, other),
		8:  {Kind: progress.Started, Run: "r"},
		9:  of(progress.Report, says("phase: build", "active: ", "0 active, 0 completed, 0 failed, 0 cancelled")),
		10: event(progress.Emitted, child),
		11: of(progress.Report, says("phase: build", "active: one", "1 active, 0 completed, 0 failed, 0 cancelled")),
		12: event(progress.Heard, child),
		13: {Kind: progress.Probed, Probe: &progress.Probe{Listeners: 2, Captures: 1, Active: 1, Retained: 1}},
		14: event(progress.Emitted, end),
		15: of(progress.Report, says("phase: build", "active: ", "0 active, 0 completed, 1 failed, 0 cancelled")),
		16: event(progress.Heard, end),
		17: {Kind: progress.Unlistening},
		18: of(progress.Boundary, nil),
		19: {Kind: progress.Probed, Probe: &progress.Probe{Listeners: 1}},
	}
}

// refused is a workflow whose Start fails.
func refused() entries {
	return entries{
		0: of(progress.Prepared, nil),
		1: {Kind: progress.Listening},
		2: {Kind: progress.Entered},
		3: event(progress.Emitted, progress.Event{Run: "r", Kind: "start"}),
		4: {Kind: progress.NotStarted, Error: "no"},
		5: {Kind: progress.Unlistening},
		6: of(progress.Boundary, nil),
		7: of(progress.Outcome, func(e *entry) { e.Error = "no" }),
	}
}

// with is a record in which an entry is changed.
func with(base entries, i int, change func(*entry)) entries {
	change(&base[i])
	return base
}

// instead is a record in which an entry is another one.
func instead(base entries, i int, e entry) entries {
	base[i] = e
	return base
}

func without(base entries, i int) entries { return slices.Delete(base, i, i+1) }

func before(base entries, i int, more ...entry) entries { return slices.Insert(base, i, more...) }

// broken are the records that break a rule, in one thing each.
var broken = []struct {
	rule    string
	entries entries
	quiet   entries
}{
	{rule: "PROG-1", entries: with(call(), 21, func(e *entry) { e.View = trace.Value(`{}`) })},
	{rule: "PROG-2", entries: with(call(), 8, func(e *entry) { e.View = trace.Value(`{}`) })},
	{rule: "PROG-3", entries: without(call(), 7)},
	{rule: "PROG-3", entries: before(call(), 7, call()[7])},
	{rule: "PROG-3", entries: before(call(), 8, of(progress.Boundary, nil))},
	{rule: "PROG-4", entries: with(call(), 14, func(e *entry) { e.Accepted = true })},
	{rule: "PROG-4", entries: with(call(), 14, func(e *entry) { e.Error = "too late" })},
	{rule: "PROG-5", entries: before(call(), 7, of(progress.Boundary, nil))[:14]},
	{rule: "PROG-6", entries: before(without(call(), 8), 8, of(progress.Broke, because(1)), entry{Kind: progress.Logged})},
	{rule: "PROG-6", entries: before(call(), 8, of(progress.Broke, because(1)))},
	{rule: "PROG-7", entries: with(call(), 7, func(e *entry) { e.Call = "c9" })},
	{rule: "PROG-8", entries: with(call(), 8, func(e *entry) { e.Scope = "b" })},
	{rule: "PROG-9", entries: with(call(), 22, func(e *entry) { e.Value = trace.Value(`{"kind":"edit"}`) })},
	{rule: "PROG-10", entries: with(call(), 15, func(e *entry) { e.Value = trace.Value(`3`) }), quiet: call()},
	{rule: "PROG-10", entries: before(call(), 9, of(progress.Durable, func(e *entry) { e.Stored = "tool/progress" })), quiet: call()},
	{rule: "PROG-11", entries: with(call(), 2, func(e *entry) { e.Parent = 7 })},
	{rule: "PROG-12", entries: with(call(), 6, func(e *entry) { e.Invalid = true })},
	{rule: "PROG-12", entries: without(before(call(), 11, call()[5]), 5)},
	{rule: "BRIDGE-1", entries: without(call(), 4)},
	{rule: "BRIDGE-1", entries: without(before(call(), 3, call()[4]), 5)},
	{rule: "BRIDGE-2", entries: without(call(), 9)},
	{rule: "BRIDGE-2", entries: before(call(), 9, call()[9])},
	{rule: "BRIDGE-2", entries: instead(call(), 9, wire(working+`,"kind":"edit"`, because(1)))},
	{rule: "BRIDGE-3", entries: with(call(), 2, func(e *entry) { e.Session = "another" })},
	{rule: "BRIDGE-4", entries: before(call(), 17, wire(working, nil))},
	{rule: "BRIDGE-5", entries: without(call(), 16)},
	{rule: "BRIDGE-5", entries: before(call(), 17, call()[16])},
	{rule: "BRIDGE-6", entries: instead(call(), 9, wire(strings.Replace(working, diff+",", "", 1), because(1)))},
	{rule: "BRIDGE-6", entries: instead(call(), 9, wire(working+`,"title":"50 %"`, because(1)))},
	{rule: "BRIDGE-7", entries: without(call(), 20)},
	{rule: "BRIDGE-7", entries: before(call(), 20, wire(working, replayed))},
	{rule: "BRIDGE-7", entries: instead(call(), 20, wire(strings.Replace(ended, "completed", "failed", 1), replayed))},
	{rule: "BRIDGE-8", entries: before(call(), 5, entry{Kind: progress.Closed, Session: "s"})},
	{rule: "BRIDGE-9", entries: entries{{Kind: progress.Imports, Names: []string{"a/workflow"}}}},
	{rule: "BRIDGE-10", entries: before(call(), 11,
		of(progress.Report, func(e *entry) { e.Report, e.By, e.View = 3, "body", view }),
		of(progress.Observed, func(e *entry) { e.Report, e.Observer, e.View = 3, "panel", view }),
		of(progress.Observed, func(e *entry) { e.Report, e.Observer, e.View = 3, "of a", view }),
		of(progress.Returned, func(e *entry) { e.Report, e.Accepted = 3, true }))},
	{rule: "FLOW-1", entries: without(before(flow(), 4, entry{Kind: progress.Listening}), 2)},
	{rule: "FLOW-2", entries: without(flow(), 9)},
	{rule: "FLOW-2", entries: before(flow(), 5, flow()[9])},
	{rule: "FLOW-3", entries: with(flow(), 11, says("log: foreign", "active: ", "1 active, 0 completed, 0 failed, 0 cancelled"))},
	{rule: "FLOW-3", entries: with(flow(), 13, func(e *entry) { e.Probe.Candidates = 1 })},
	{rule: "FLOW-4", entries: before(refused(), 5, of(progress.Report, says("active: ")))},
	{rule: "FLOW-4", entries: without(refused(), 5)},
	{rule: "FLOW-4", entries: with(refused(), 7, func(e *entry) { e.Error = "another" })},
	{rule: "FLOW-5", entries: without(flow(), 15)},
	{rule: "FLOW-5", entries: with(flow(), 15, says("phase: build", "active: one", "0 active, 0 completed, 1 failed, 0 cancelled"))},
	{rule: "FLOW-6", entries: with(flow(), 13, func(e *entry) { e.Probe.Retained = 100 })},
	{rule: "FLOW-7", entries: with(flow(), 15, says("phase: build", "active: ", "0 active, 0 completed, 2 failed, 0 cancelled"))},
	{rule: "FLOW-8", entries: with(flow(), 19, func(e *entry) { e.Probe.Listeners = 2 })},
	{rule: "FLOW-9", entries: with(flow(), 12, func(e *entry) { e.Event.Label = "ONE" })},
}

// record is the entries with the twins that they are compared with.
func record(list, quiet entries) *progress.Record {
	return &progress.Record{Entries: list, Quiet: quiet, Bare: flow()}
}

func TestBroken(t *testing.T) {
	seen := map[string]bool{}
	for i, b := range broken {
		seen[b.rule] = true
		rule, ok := progress.Lookup(b.rule)
		if !ok {
			t.Fatal(b.rule)
		}
		if v := progress.Check(record(b.entries, b.quiet), []progress.Rule{rule}); len(v.Findings) == 0 {
			t.Errorf("%d: %s is not found broken", i, b.rule)
		}
	}
	for _, r := range progress.Rules() {
		if !seen[r.ID] {
			t.Errorf("%s has no record that breaks it", r.ID)
		}
	}
}

func TestKept(t *testing.T) {
	for _, r := range []*progress.Record{record(call(), call()), record(flow(), nil), record(refused(), nil)} {
		for _, f := range progress.Check(r, progress.Rules()).Findings {
			t.Errorf("%+v", f)
		}
	}
}

func TestRulesAreDescribed(t *testing.T) {
	for _, r := range progress.Rules() {
		if !strings.HasPrefix(r.ID, string(r.Family)+"-") || r.Sentence == "" || r.Why == "" || r.Source == "" || r.Level == "" {
			t.Errorf("%+v", r)
		}
	}
}
