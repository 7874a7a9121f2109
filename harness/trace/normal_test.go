package trace_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/harness/trace"
	"pgregory.net/rapid"
)

// story makes traces of tool calls by hand.
type story struct {
	step    int
	entries []trace.Entry
}

func (s *story) act(label string, answer *trace.Answer) *story {
	s.step++
	name := label
	if i := strings.LastIndex(label, "/"); answer != nil && i > 0 {
		name = label[:i]
	}
	return s.add(trace.Entry{Kind: trace.KindAction, Label: label, Name: name, Answer: answer})
}

func (s *story) add(e trace.Entry) *story {
	e.Step = s.step
	if e.Kind == trace.KindEvent {
		for i := range s.entries {
			if s.entries[i].Kind == trace.KindEvent {
				e.N++
			}
		}
	}
	s.entries = append(s.entries, e)
	return s
}

func (s *story) event(e trace.Event) *story {
	return s.add(trace.Entry{Kind: trace.KindEvent, Event: &e})
}

func (s *story) call(name string, answer *trace.Answer) *story {
	return s.add(trace.Entry{Kind: trace.KindCall, Name: name, Auto: answer != nil, Answer: answer})
}

func (s *story) cancelled(name string) *story {
	return s.add(trace.Entry{Kind: trace.KindCancelled, Name: name})
}

// asks is the assistant message that asks for calls of tool read.
func (s *story) asks(stop string, ids ...string) *story {
	return s.event(trace.Event{Type: trace.MessageEnd, Message: assistant(stop, ids...)})
}

func (s *story) ends(id, tool string, isError bool, text string) *story {
	return s.event(trace.Event{
		Type: trace.ToolExecutionEnd, ToolCallID: id, ToolName: tool, IsError: &isError,
		Result: &trace.Result{Content: trace.TextContent(text)},
	})
}

func (s *story) trace() *trace.Trace {
	return &trace.Trace{
		Header: trace.Header{
			Format: trace.Format, Case: "story", Edition: "0.84.3", Form: trace.FormAgent,
			Config:   trace.Config{Tools: []trace.Tool{{Name: "read"}}},
			Evidence: []trace.Evidence{trace.EvidenceEvents, trace.EvidenceCallbacks},
		},
		Entries: s.entries,
	}
}

func assistant(stop string, ids ...string) *trace.Message {
	m := &trace.Message{Role: trace.RoleAssistant, StopReason: stop, Content: trace.Content{Blocks: []trace.Block{}}}
	for _, id := range ids {
		m.Content.Blocks = append(m.Content.Blocks, trace.Block{Type: trace.BlockToolCall, ID: id, Name: "read", Arguments: trace.Value(`{}`)})
	}
	return m
}

func answerHook(h trace.HookAnswer) *trace.Answer { return &trace.Answer{Hook: &h} }

func lines(tr *trace.Trace) []string {
	var lines []string
	for i := range tr.Entries {
		lines = append(lines, trace.Line(&tr.Entries[i]))
	}
	return lines
}

func TestCancelledFollowsTheAction(t *testing.T) {
	s := new(story).act("prompt/0", nil).asks("toolUse", "c2", "c1").
		act("abort", nil).call("hook/finishTurn/0", nil).
		cancelled("listener/0/turn_end/0").cancelled("tool/c1").cancelled("hook/afterToolCall/c1").
		cancelled("tool/c2").cancelled("model/0")
	got := lines(trace.Normalize(s.trace()))[2:]
	want := []string{
		"> abort", "cancelled model/0", "cancelled tool/c2", "cancelled tool/c1", "cancelled hook/afterToolCall/c1",
		"cancelled listener/0/turn_end/0", "call hook/finishTurn/0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestRunsAreSortedWithinTheirBounds(t *testing.T) {
	s := new(story).act("prompt/0", nil).asks("toolUse", "c2", "c1").
		act("model/0/event/1", nil).
		call("tool/c1", nil).ends("c1", "read", false, "A").call("hook/beforeToolCall/c2", nil).ends("c2", "read", false, "B").
		event(trace.Event{Type: trace.ToolExecutionStart, ToolCallID: "c1"}).
		call("tool/c1~1", nil).call("tool/c2", nil)
	reference := s.entries[5]
	reference.Kind, reference.Event, reference.Name, reference.N = trace.KindCall, nil, "listener/0/tool_execution_end/c2/0", 0
	reference.Payload = &trace.Payload{Event: new(2)}
	s.entries = slices.Insert(s.entries, 7, reference)

	in := s.trace()
	before := trace.Text(in)
	got := trace.Normalize(in)
	want := []string{
		"call hook/beforeToolCall/c2", `tool_execution_end c2 ok "B"`, "call listener/0/tool_execution_end/c2/0 #1",
		"call tool/c1", `tool_execution_end c1 ok "A"`,
		"tool_execution_start c1", "call tool/c2", "call tool/c1~1",
	}
	if tail := lines(got)[3:]; !slices.Equal(tail, want) {
		t.Errorf("got %q", tail)
	}
	if trace.Text(in) != before || *in.Entries[7].Payload.Event != 2 {
		t.Error("the input was changed")
	}
}

func TestPendingIsForgottenOnlyWhereItDepends(t *testing.T) {
	state := func() *trace.State { return &trace.State{Pending: []string{"c2"}, Messages: 1} }
	s := new(story).act("prompt/0", nil).asks("toolUse", "c1", "c2").
		act("a", nil).ends("c1", "read", false, "A").ends("c2", "read", false, "B").
		act("b", nil).ends("c1", "read", false, "A").call("tool/c2", nil)
	for i := range s.entries {
		if s.entries[i].Kind == trace.KindEvent {
			s.entries[i].State = state()
		}
	}
	var got []int
	for _, e := range trace.Normalize(s.trace()).Entries {
		if e.State != nil {
			got = append(got, len(e.State.Pending))
		}
	}
	if !slices.Equal(got, []int{1, 0, 0, 1}) {
		t.Errorf("got %v", got)
	}
}

func TestValuesAreCanonical(t *testing.T) {
	e := trace.Event{
		Type: "x_news", DurationMs: new(int64(3)), Args: trace.Value("null"),
		Message: &trace.Message{
			Role: trace.RoleUser, Timestamp: 5, Usage: trace.Value(`{"b":1.0, "a":"\u0041"}`),
			Details: trace.Value(`{"list":[null,{"x":null,"timestamp":1}]}`), Extra: trace.Value(`{"durationMs":1}`),
		},
		Extra: trace.Value(`{"z":null,"timestamp":9,"a":{"b":null}}`),
	}
	got := trace.Normalize(new(story).act("a", nil).event(e).trace()).Entries[1].Event
	want := &trace.Event{
		Type: "x_news",
		Message: &trace.Message{
			Role: trace.RoleUser, Usage: trace.Value(`{"a":"A","b":1}`), Details: trace.Value(`{"list":[null,{}]}`),
		},
		Extra: trace.Value(`{"a":{}}`),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %+v", got, got.Message)
	}
}

func TestTextsOfTheLoop(t *testing.T) {
	block := trace.HookAnswer{Block: true}
	for _, c := range []struct {
		name, want string
		story      *story
	}{
		{"not found", "<not-found>", new(story).act("p", nil).asks("toolUse", "c1").ends("c1", "walk", true, "no tool walk")},
		{"invalid", "<invalid>", new(story).act("p", nil).asks("toolUse", "c1").ends("c1", "read", true, "bad path")},
		{"truncated", "<truncated>", new(story).act("p", nil).asks("length", "c1").ends("c1", "walk", true, "cut off")},
		{"aborted by an action", "<aborted>", new(story).act("p", nil).asks("toolUse", "c1").act("abort", nil).ends("c1", "read", true, "stopped")},
		{"aborted by a hook", "<aborted>", new(story).act("p", nil).asks("toolUse", "c1").
			call("hook/beforeToolCall/c1", &trace.Answer{Abort: true}).ends("c1", "read", true, "stopped")},
		{"aborted in an earlier run", "<invalid>", new(story).act("abort", nil).event(trace.Event{Type: trace.AgentStart}).
			asks("toolUse", "c1").ends("c1", "read", true, "bad path")},
		{"blocked", "<blocked>", new(story).act("p", nil).asks("toolUse", "c1").
			call("hook/beforeToolCall/c1", answerHook(block)).ends("c1", "read", true, "was blocked")},
		{"blocked for a reason", "no", new(story).act("p", nil).asks("toolUse", "c1").call("hook/beforeToolCall/c1", nil).
			act("hook/beforeToolCall/c1/return", answerHook(trace.HookAnswer{Block: true, Reason: "no"})).ends("c1", "read", true, "no")},
		{"thrown", "oh", new(story).act("p", nil).asks("toolUse", "c1").
			call("hook/prepareArguments/c1", &trace.Answer{Throw: new("oh")}).ends("c1", "read", true, "oh")},
		{"executed", "stopped", new(story).act("p", nil).asks("toolUse", "c1").call("tool/c1", nil).act("abort", nil).ends("c1", "read", true, "stopped")},
		{"executed in an earlier turn", "<invalid>", new(story).act("p", nil).asks("toolUse", "c1").call("tool/c1", nil).
			asks("toolUse", "c1").ends("c1", "read", true, "bad path")},
		{"no error", "bad path", new(story).act("p", nil).asks("toolUse", "c1").ends("c1", "read", false, "bad path")},
	} {
		t.Run(c.name, func(t *testing.T) { checkShown(t, c.story, c.want) })
	}
}

// checkShown holds that the text of the last end is shown as want wherever its
// result message appears.
func checkShown(t *testing.T, s *story, want string) {
	t.Helper()
	end := s.entries[len(s.entries)-1].Event
	m := &trace.Message{Role: trace.RoleToolResult, ToolCallID: "c1", ToolName: end.ToolName, Content: end.Result.Content, IsError: *end.IsError}
	s.event(trace.Event{Type: trace.MessageStart, Message: m}).
		add(trace.Entry{Kind: trace.KindEvent, Event: &trace.Event{Type: trace.MessageEnd, Message: m}, State: &trace.State{Last: m.Tag()}}).
		event(trace.Event{Type: trace.TurnEnd, ToolResults: []*trace.Message{m}}).
		add(trace.Entry{Kind: trace.KindCall, Name: "model/1", Payload: &trace.Payload{Messages: []string{"user: go", m.Tag()}, Context: []string{m.Tag()}}}).
		event(trace.Event{Type: trace.AgentEnd, Messages: []*trace.Message{m}})

	n := trace.Normalize(s.trace())
	tail := n.Entries[len(n.Entries)-6:]
	shown := *m
	shown.Content = trace.TextContent(want)
	tag := shown.Tag()
	for where, got := range map[string]string{
		"end":         tail[0].Event.Result.Content.PlainText(),
		"start":       tail[1].Event.Message.Content.PlainText(),
		"toolResults": tail[3].Event.ToolResults[0].Content.PlainText(),
		"messages":    tail[5].Event.Messages[0].Content.PlainText(),
	} {
		if got != want {
			t.Errorf("%s shows %q, want %q", where, got, want)
		}
	}
	for where, got := range map[string]string{
		"last":     tail[2].State.Last,
		"messages": tail[4].Payload.Messages[1],
		"context":  tail[4].Payload.Context[0],
	} {
		if got != tag {
			t.Errorf("%s shows %q, want %q", where, got, tag)
		}
	}
	if i, diff := trace.FirstDiff(n, s.trace()); i >= 0 {
		t.Error(diff)
	}
}

func TestTextsStayWhereCallbacksAreUnseen(t *testing.T) {
	tr := new(story).act("p", nil).asks("toolUse", "c1").ends("c1", "walk", true, "no tool walk").trace()
	tr.Header.Evidence = []trace.Evidence{trace.EvidenceEvents}
	if got := trace.Normalize(tr).Entries[2].Event.Result.Content.PlainText(); got != "no tool walk" {
		t.Errorf("got %q", got)
	}
}

func TestMessagesOfSettled(t *testing.T) {
	settled := func(o trace.Outcome, m string) trace.Entry {
		return trace.Entry{Kind: trace.KindSettled, Name: "prompt/0", Outcome: o, Message: m}
	}
	s := new(story).act("listener/0/agent_end/0/throw", &trace.Answer{Throw: new("mine")}).
		add(settled(trace.OutcomeRefused, "busy")).add(settled(trace.OutcomeError, "its own")).add(settled(trace.OutcomeError, "mine"))
	got := lines(trace.Normalize(s.trace()))[1:]
	if want := []string{"settled prompt/0 refused", "settled prompt/0 error", `settled prompt/0 error "mine"`}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// piece is an entry that is not numbered yet; a listener call refers to the
// event of the piece that it is called for.
type piece struct {
	entry trace.Entry
	call  string // tool call that it may be sorted by; empty if it stays
	event *piece
}

var callIDs = []string{"c3", "c1", "c2"} // in source order

// drawSteps draws steps of pieces; each begins with an action.
func drawSteps(t *rapid.T) [][]*piece {
	prompt := new(story).act("prompt/0", nil).asks("toolUse", callIDs...).entries
	steps := [][]*piece{{{entry: prompt[0]}, {entry: prompt[1]}}}
	for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
		pieces := []*piece{{entry: trace.Entry{Kind: trace.KindAction, Label: fmt.Sprintf("steer/%d", step)}}}
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			pieces = append(pieces, drawPieces(t, len(steps)*100+len(pieces))...)
		}
		steps = append(steps, pieces)
	}
	return steps
}

func drawPieces(t *rapid.T, mark int) []*piece {
	id := rapid.SampledFrom(callIDs).Draw(t, "call")
	text := fmt.Sprint("text ", mark)
	one := func(call string, e trace.Entry) []*piece { return []*piece{{entry: e, call: call}} }
	switch rapid.IntRange(0, 6).Draw(t, "piece") {
	case 0:
		return one("", trace.Entry{Kind: trace.KindEvent, Event: &trace.Event{Type: trace.ToolExecutionStart, ToolCallID: id}})
	case 1:
		return one("", trace.Entry{Kind: trace.KindRead, Name: "model/0", N: mark})
	case 2:
		return one(id, trace.Entry{Kind: trace.KindCall, Name: fmt.Sprintf("hook/beforeToolCall/%s~%d", id, mark)})
	case 3:
		return one(id, trace.Entry{Kind: trace.KindCall, Name: fmt.Sprintf("tool/%s~%d", id, mark)})
	case 4:
		return one("", trace.Entry{Kind: trace.KindCancelled, Name: fmt.Sprintf("tool/%s~%d", id, mark)})
	}
	e := trace.Event{Type: trace.ToolExecutionUpdate, ToolCallID: id, PartialResult: &trace.Result{Content: trace.TextContent(text)}}
	if rapid.Bool().Draw(t, "end") {
		e = trace.Event{Type: trace.ToolExecutionEnd, ToolCallID: id, ToolName: "read", IsError: new(mark%3 == 0), Result: &trace.Result{Content: trace.TextContent(text)}}
	}
	event := &piece{entry: trace.Entry{Kind: trace.KindEvent, Event: &e}, call: id}
	listener := &piece{entry: trace.Entry{Kind: trace.KindCall, Name: fmt.Sprintf("listener/0/%s/%s/%d", e.Type, id, mark)}, call: id, event: event}
	return []*piece{event, listener}
}

// shuffled moves the cancelled entries of a step anywhere behind its action,
// and mixes the calls of each run of sortable pieces anew.
func shuffled(t *rapid.T, step []*piece) []*piece {
	isCancelled := func(p *piece) bool { return p.entry.Kind == trace.KindCancelled }
	rest := slices.DeleteFunc(slices.Clone(step), isCancelled)
	var out []*piece
	for len(rest) > 0 {
		n := 0
		for n < len(rest) && rest[n].call != "" {
			n++
		}
		out = append(out, mixed(t, rest[:n])...)
		if n < len(rest) {
			out = append(out, rest[n])
			n++
		}
		rest = rest[n:]
	}
	for _, p := range step {
		if isCancelled(p) {
			out = slices.Insert(out, rapid.IntRange(1, len(out)).Draw(t, "place"), p)
		}
	}
	return out
}

// mixed keeps the order of each call's pieces.
func mixed(t *rapid.T, run []*piece) []*piece {
	byCall := map[string][]*piece{}
	var order []string
	for _, p := range run {
		byCall[p.call] = append(byCall[p.call], p)
		order = append(order, p.call)
	}
	var out []*piece
	for _, call := range rapid.Permutation(order).Draw(t, "order") {
		out = append(out, byCall[call][0])
		byCall[call] = byCall[call][1:]
	}
	return out
}

// recorded numbers the pieces as an adapter would, and gives events the state
// that an agent would have.
func recorded(steps [][]*piece) *trace.Trace {
	tr := new(story).trace()
	numbers := map[*piece]int{}
	pending := slices.Clone(callIDs)
	for i, step := range steps {
		for _, p := range step {
			e := p.entry
			e.Step = i + 1
			if e.Kind == trace.KindEvent {
				e.N = len(numbers)
				numbers[p] = e.N
				if e.Event.Type == trace.ToolExecutionEnd {
					pending = slices.DeleteFunc(slices.Clone(pending), func(id string) bool { return id == e.Event.ToolCallID })
				}
				e.State = &trace.State{IsStreaming: true, Pending: pending}
			}
			if p.event != nil {
				e.Payload = &trace.Payload{Event: new(numbers[p.event])}
			}
			tr.Entries = append(tr.Entries, e)
		}
	}
	return tr
}

func TestNormalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t)
		a := recorded(steps)
		normal := trace.Normalize(a)

		if again := trace.Normalize(normal); !reflect.DeepEqual(again, normal) {
			t.Fatalf("not idempotent:\n%s\n%s", trace.Text(normal), trace.Text(again))
		}
		if before, after := fixed(a), fixed(normal); !slices.Equal(before, after) {
			t.Fatalf("moved what must stay:\n%q\n%q", before, after)
		}
		other := make([][]*piece, len(steps))
		for i := range steps {
			other[i] = shuffled(t, steps[i])
		}
		b := recorded(other)
		if i, diff := trace.FirstDiff(a, b); i >= 0 {
			t.Fatalf("the order shows: %s\n%s\n%s", diff, trace.Text(a), trace.Text(b))
		}
		if trace.Hash(a) != trace.Hash(b) {
			t.Fatal("the digests differ")
		}
	})
}

// fixed are the entries that nothing may reorder, each with the number of
// sortable entries that stand before it.
func fixed(tr *trace.Trace) []string {
	var out []string
	sortable := 0
	for i := range tr.Entries {
		e := &tr.Entries[i]
		line := trace.Line(e)
		switch {
		case e.Kind == trace.KindCancelled:
		case e.Kind == trace.KindCall, strings.HasPrefix(line, "tool_execution_update"), strings.HasPrefix(line, "tool_execution_end"):
			sortable++
		default:
			out = append(out, fmt.Sprint(sortable, " ", e.N, " ", line))
		}
	}
	return out
}

func TestProject(t *testing.T) {
	s := new(story).act("prompt/0", nil)
	s.call("hook/getSteeringMessages/0", &trace.Answer{}).call("model/0", nil).call("tool/c1", nil).
		call("listener/0/turn_end/0", nil).add(trace.Entry{Kind: trace.KindRead, Name: "model/0"}).
		add(trace.Entry{Kind: trace.KindEvent, Event: &trace.Event{Type: "turn_start"}, State: &trace.State{}}).
		add(trace.Entry{Kind: trace.KindRetained}).add(trace.Entry{Kind: trace.KindEnd, Outcome: trace.OutcomeComplete})
	tr := s.trace()
	got := trace.Project(tr, trace.EvidenceEvents, trace.EvidenceActions, trace.EvidenceRequests)
	if want := []string{"> prompt/0", "call model/0", "turn_start", "end complete"}; !slices.Equal(lines(got), want) {
		t.Errorf("got %q", lines(got))
	}
	if got.Entries[2].State != nil || tr.Entries[6].State == nil {
		t.Error("the state is shown, or the input was changed")
	}
	if want := []trace.Evidence{trace.EvidenceEvents}; !slices.Equal(got.Header.Evidence, want) || len(tr.Header.Evidence) != 2 {
		t.Errorf("evidence %v", got.Header.Evidence)
	}
}
