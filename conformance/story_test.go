package conformance_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/view"
)

// A story is told by a scenario, as case files write it, and labels; what comes
// of it on the reference loop is a trace that keeps the rules. An edit of that
// trace breaks one.

// tell plays a scenario on the reference, with the labels first.
func tell(t testing.TB, scenario, labels string) *trace.Trace {
	t.Helper()
	c, err := harness.ParseCase("story", []byte("A story.\n-- scenario --\n"+scenario+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	replay := harness.NewReplay(strings.Fields(labels))
	driver := reference.New()
	if strings.HasPrefix(scenario, viewed) {
		driver = harness.WithViews(driver, view.Reducer{})
	}
	rec, err := harness.Run(context.Background(), driver, c.Case.Scenario, replay, harness.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if skipped := replay.Skipped(); len(skipped) > 0 {
		t.Fatalf("labels that were not enabled: %v\n%s", skipped, trace.Text(rec.Trace))
	}
	return rec.Trace
}

// edit changes a trace. Entries are named by what they record:
//
//	tool_execution_end/c1   message_start/user   message_end/toolResult/c1   turn_end
//	>tool/c1/return         call:tool/c1         read:model/0/1              settled:prompt/0
//	cancelled:tool/c1       end
//
// A name may end with #2 for the second entry of that name.
type edit struct {
	t  testing.TB
	tr *trace.Trace
}

// with gives an edit of a copy of the trace.
func with(t testing.TB, tr *trace.Trace) *edit {
	c := *tr
	c.Entries = slices.Clone(tr.Entries)
	c.Header.Evidence = slices.Clone(tr.Header.Evidence)
	return &edit{t: t, tr: &c}
}

func nameOf(e *trace.Entry) string {
	switch e.Kind {
	case trace.KindAction:
		return ">" + e.Label
	case trace.KindCall, trace.KindSettled, trace.KindCancelled:
		return string(e.Kind) + ":" + e.Name
	case trace.KindRead:
		return "read:" + e.Name + "/" + strconv.Itoa(e.N)
	case trace.KindEvent:
		return nameOfEvent(e.Event)
	case trace.KindView:
		if e.View.Input != nil {
			return "view:" + e.View.Input.ToolCallID
		}
	case trace.KindRetained, trace.KindEnd:
	}
	return string(e.Kind)
}

func nameOfEvent(ev *trace.Event) string {
	name := ev.Type
	if ev.ToolCallID != "" {
		return name + "/" + ev.ToolCallID
	}
	if ev.Message != nil && strings.HasPrefix(name, "message_") {
		name += "/" + ev.Message.Role
		if ev.Message.ToolCallID != "" {
			name += "/" + ev.Message.ToolCallID
		}
	}
	return name
}

// at is the index of the entry of that name.
func (e *edit) at(name string) int {
	e.t.Helper()
	name, count, _ := strings.Cut(name, "#")
	n, _ := strconv.Atoi(count)
	n = max(n, 1)
	for i := range e.tr.Entries {
		if nameOf(&e.tr.Entries[i]) == name {
			if n--; n == 0 {
				return i
			}
		}
	}
	e.t.Fatalf("no entry %s in\n%s", name, trace.Text(e.tr))
	return 0
}

func (e *edit) drop(names ...string) {
	for _, name := range names {
		i := e.at(name)
		e.tr.Entries = slices.Delete(e.tr.Entries, i, i+1)
	}
}

// cut drops the entries from one to another, that one not included.
func (e *edit) cut(from, to string) {
	i := e.at(from)
	j := slices.IndexFunc(e.tr.Entries[i:], func(x trace.Entry) bool { return nameOf(&x) == to })
	e.tr.Entries = slices.Delete(e.tr.Entries, i, i+j)
}

// move puts an entry before another, into its step.
func (e *edit) move(name, before string) {
	i := e.at(name)
	x := e.tr.Entries[i]
	to := e.at(before)
	x.Step = e.tr.Entries[to].Step
	if nameOf(&e.tr.Entries[to])[0] == '>' {
		x.Step = e.tr.Entries[max(to-1, 0)].Step
	}
	e.tr.Entries = slices.Delete(e.tr.Entries, i, i+1)
	if to > i {
		to--
	}
	e.tr.Entries = slices.Insert(e.tr.Entries, to, x)
}

// again lets an entry follow itself once more.
func (e *edit) again(name string) {
	i := e.at(name)
	e.tr.Entries = slices.Insert(e.tr.Entries, i+1, e.tr.Entries[i])
}

// copy puts a copy of an entry before another.
func (e *edit) copy(name, before string) {
	x := e.tr.Entries[e.at(name)]
	e.insert(before, x)
}

func (e *edit) insert(before string, x trace.Entry) {
	to := e.at(before)
	x.Step = e.tr.Entries[max(to-1, 0)].Step
	e.tr.Entries = slices.Insert(e.tr.Entries, to, x)
}

// set changes an entry; what it points to may be changed as well.
func (e *edit) set(name string, change func(*trace.Entry)) {
	x := &e.tr.Entries[e.at(name)]
	x.Event, x.State, x.Payload, x.Answer = clone(x.Event), clone(x.State), clone(x.Payload), clone(x.Answer)
	if x.Event != nil {
		x.Event.Message, x.Event.Result = clone(x.Event.Message), clone(x.Event.Result)
	}
	change(x)
}

// says lets the message of an event have another text.
func (e *edit) says(name, text string) {
	e.set(name, func(x *trace.Entry) { x.Event.Message.Content = trace.TextContent(text) })
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func findings(v *conformance.Verdict, rule string) []conformance.Finding {
	return slices.DeleteFunc(slices.Clone(v.Findings), func(f conformance.Finding) bool { return f.Rule != rule })
}

func result(v *conformance.Verdict, rule string) conformance.RuleResult {
	i := slices.IndexFunc(v.Rules, func(r conformance.RuleResult) bool { return r.Rule == rule })
	return v.Rules[i]
}

// retained notes after the run that what was kept of an event has changed.
func (e *edit) retained(name string) {
	n := e.tr.Entries[e.at(name)].N
	e.insert("end", trace.Entry{Kind: trace.KindRetained, Changed: []int{n}})
}

// knowing gives the trace of a recorder that compares kept references, too.
func knowing(tr *trace.Trace) *trace.Trace {
	if tr.Header.Form == trace.FormAgent && !tr.Has(trace.EvidenceKept) {
		tr.Header.Evidence = append(slices.Clone(tr.Header.Evidence), trace.EvidenceKept)
	}
	return tr
}

func replace(scenario, old, by string) string {
	changed := strings.Replace(scenario, old, by, 1)
	if changed == scenario {
		panic("nothing to replace: " + old)
	}
	return changed
}

// terminating is a batch of two calls whose results ask, or do not ask, for the
// end of the tool cycle.
func terminating(first, second string) string {
	return `
tools: [a]
model:
  - calls: [{id: c1, name: a}, {id: c2, name: a}]
  - text: done
calls: {c1: {return: {text: r, terminate: ` + first + `}}, c2: {return: {text: r, terminate: ` + second + `}}}
user: [{prompt: go}]`
}
