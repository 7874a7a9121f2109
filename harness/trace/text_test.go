package trace_test

import (
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestText(t *testing.T) {
	s := new(story).act("prompt/0", &trace.Answer{Messages: []*trace.Message{{Role: trace.RoleUser, Content: trace.TextContent("go\non")}}})
	busy := trace.State{IsStreaming: true, Pending: []string{"c1", "c2"}, Messages: 2}
	less := busy
	less.Pending = []string{"c2"}
	s.add(trace.Entry{Kind: trace.KindEvent, Event: &trace.Event{Type: trace.MessageEnd, Message: assistant("toolUse", "c1", "c2")}, State: &busy}).
		event(trace.Event{Type: trace.ToolExecutionStart, ToolCallID: "c1", ToolName: "read", Args: trace.Value(`{"path":"a"}`)}).
		call("tool/c1", nil).
		act("tool/c1/return", &trace.Answer{Result: &trace.Result{Content: trace.TextContent("A")}}).
		ends("c1", "read", false, "A")
	s.entries[len(s.entries)-1].State = &less
	s.call("hook/beforeToolCall/c2", answerHook(trace.HookAnswer{Block: true, Reason: "no"})).
		ends("c2", "read", true, "no").
		cancelled("tool/c1").
		event(trace.Event{Type: "x_news", Extra: trace.Value(`{"a":1}`)}).
		event(trace.Event{Type: trace.AgentEnd, Messages: []*trace.Message{nil}}).
		add(trace.Entry{Kind: trace.KindRetained, Changed: []int{3}}).
		add(trace.Entry{Kind: trace.KindSettled, Name: "prompt/0", Outcome: trace.OutcomeError, Message: "no"}).
		add(trace.Entry{Kind: trace.KindEnd, Outcome: trace.OutcomeDeadlock, Pending: []string{"tool/c1"}})
	want := `
# story · 0.84.3 · agent
 1  > prompt/0 user: go\non
    message_end assistant toolUse [c1 c2]:   {busy, 2 messages, pending c1 c2}
    tool_execution_start c1 read {"path":"a"}
    call tool/c1
 2  > tool/c1/return "A"
    tool_execution_end c1 ok "A"  {pending c2}
    call hook/beforeToolCall/c2 [auto block "no"]
    tool_execution_end c2 error "no"
    cancelled tool/c1
    x_news {"a":1}
    agent_end 1 message
    retained changed [3]
    settled prompt/0 error "no"
    end deadlock pending [tool/c1]
`
	if got := trace.Text(s.trace()); got != want[1:] {
		t.Errorf("got\n%s", got)
	}
}

func TestTextIsALineAnEntry(t *testing.T) {
	long := strings.Repeat("é\n", 500)
	tr := new(story).act("prompt/0", &trace.Answer{Text: long, Throw: &long}).
		event(trace.Event{Type: trace.MessageStart, Message: &trace.Message{Role: long, Content: trace.TextContent(long)}}).
		event(trace.Event{Type: "x\ny", ToolCallID: "\x1b[31m"}).trace()
	tr.Header.Case = "a\nb"
	text := trace.Text(tr)
	if got := strings.Count(text, "\n"); got != 4 || strings.ContainsRune(text, '\x1b') {
		t.Errorf("%d lines:\n%q", got, text)
	}
}

func TestFirstDiff(t *testing.T) {
	base := func() *story { return new(story).act("prompt/0", nil).asks("toolUse", "c1").call("tool/c1", nil) }
	short := base().trace()
	for name, c := range map[string]struct {
		other *trace.Trace
		index int
		want  string
	}{
		"the same":     {base().trace(), -1, ""},
		"longer":       {base().ends("c1", "read", false, "A").trace(), 3, "entry 3 differs:\n  a: (nothing more)\n  b: step 1: tool_execution_end c1 ok \"A\""},
		"another":      {new(story).act("prompt/0", nil).asks("toolUse", "c2").trace(), 1, "  a: step 1: message_end assistant toolUse [c1]:"},
		"looks alike":  {withUsage(base(), `{"in":1}`), 1, `"usage":{"in":1}`},
		"other header": {func() *trace.Trace { tr := base().trace(); tr.Header.Capabilities = []string{"clock"}; return tr }(), -1, ""},
	} {
		i, diff := trace.FirstDiff(short, c.other)
		if i != c.index || !strings.Contains(diff, c.want) {
			t.Errorf("%s: %d, %s", name, i, diff)
		}
		if same := trace.Hash(short) == trace.Hash(c.other); same != (c.index < 0) {
			t.Errorf("%s: the digests say %v", name, same)
		}
	}
}

func withUsage(s *story, usage string) *trace.Trace {
	s.entries[1].Event.Message.Usage = trace.Value(usage)
	return s.trace()
}
