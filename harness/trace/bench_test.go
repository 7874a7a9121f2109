package trace_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// long is a trace of 20 turns of three calls, about 500 entries.
func long() *trace.Trace {
	s := new(story).act("prompt/0", nil)
	for turn := range 20 {
		ids := []string{fmt.Sprint("a", turn), fmt.Sprint("b", turn), fmt.Sprint("c", turn)}
		s.asks("toolUse", ids...)
		for _, id := range ids {
			s.event(trace.Event{Type: trace.ToolExecutionStart, ToolCallID: id, ToolName: "read", Args: trace.Value(`{"path":"a"}`)})
			s.call("hook/beforeToolCall/"+id, &trace.Answer{Hook: &trace.HookAnswer{}}).call("tool/"+id, nil)
		}
		s.act("model/0/end", nil)
		for i := range ids {
			id := ids[len(ids)-1-i]
			s.event(trace.Event{Type: trace.ToolExecutionUpdate, ToolCallID: id, PartialResult: &trace.Result{Content: trace.TextContent("half")}})
			s.ends(id, "read", false, "all")
			m := &trace.Message{Role: trace.RoleToolResult, ToolCallID: id, Content: trace.TextContent("all"), Details: trace.Value(`{"n":1}`), Timestamp: 1}
			s.event(trace.Event{Type: trace.MessageStart, Message: m}).event(trace.Event{Type: trace.MessageEnd, Message: m})
		}
	}
	return s.add(trace.Entry{Kind: trace.KindEnd, Outcome: trace.OutcomeComplete}).trace()
}

func BenchmarkWrite(b *testing.B) {
	tr := long()
	b.SetBytes(int64(len(encode(b, tr))))
	b.ReportAllocs()
	for b.Loop() {
		if err := trace.Write(io.Discard, tr); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	input := encode(b, long())
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := trace.Decode(bytes.NewReader(input)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNormalize(b *testing.B) {
	tr := long()
	b.ReportAllocs()
	for b.Loop() {
		trace.Normalize(tr)
	}
}

func BenchmarkHash(b *testing.B) {
	tr := long()
	b.ReportAllocs()
	for b.Loop() {
		trace.Hash(tr)
	}
}
