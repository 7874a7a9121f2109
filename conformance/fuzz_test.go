package conformance_test

import (
	"slices"
	"testing"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// whole are traces for the fuzzer to break.
func whole(t testing.TB) []*trace.Trace {
	return []*trace.Trace{
		tell(t, answer, ""), tell(t, slow, ""), tell(t, watched, ""), tell(t, hooked, ""), tell(t, truncated, ""),
		tell(t, stopped, "prompt/0 abort"), tell(t, queued, "prompt/0 steer/0"), tell(t, gone, ""), tell(t, views, "prompt/0 unsubscribe/0"),
		tell(t, newest+stoppedOneByOne, "prompt/0 abort"), tell(t, "form: stream"+two, ""),
	}
}

// FuzzCheck: whatever a trace holds, judging it neither panics nor depends on
// anything but the trace.
func FuzzCheck(f *testing.F) {
	traces := whole(f)
	f.Add([]byte{0, 0, 3, 0, 1, 5, 9})
	f.Add([]byte{5, 2, 7, 3, 30, 4, 12, 9, 60, 5, 1, 6, 2})
	f.Fuzz(func(t *testing.T, tape []byte) {
		tr := mutate(traces, tape)
		for _, e := range edition.Known() {
			a := conformance.Check(tr, conformance.Catalogue(), conformance.InEdition(e))
			b := conformance.Check(tr, conformance.Catalogue(), conformance.InEdition(e))
			if !slices.EqualFunc(a.Findings, b.Findings, func(x, y conformance.Finding) bool {
				return x.Rule == y.Rule && x.Message == y.Message && slices.Equal(x.Entries, y.Entries)
			}) {
				t.Fatal("two verdicts on one trace")
			}
			for _, x := range a.Findings {
				if len(x.Entries) > 2 || !slices.IsSorted(x.Entries) || len(x.Entries) > 0 && (x.Entries[0] < 0 || x.Position() >= len(tr.Entries)) {
					t.Fatalf("%s has entries %v of %d", x.Rule, x.Entries, len(tr.Entries))
				}
			}
		}
		conformance.Compare(tr, traces[0], conformance.Catalogue())
		conformance.Compare(traces[len(tape)%len(traces)], tr, conformance.Catalogue())
	})
}

// mutate breaks one of the traces as the tape says: two bytes an edit, what to
// do and where.
func mutate(traces []*trace.Trace, tape []byte) *trace.Trace {
	if len(tape) == 0 {
		return &trace.Trace{}
	}
	tr := *traces[int(tape[0])%len(traces)]
	tr.Entries = slices.Clone(tr.Entries)
	for tape = tape[1:]; len(tape) >= 2 && len(tr.Entries) > 1; tape = tape[2:] {
		i := int(tape[1]) % len(tr.Entries)
		other := int(tape[0]>>3) % len(tr.Entries)
		x := &tr.Entries[i]
		switch tape[0] & 7 {
		case 0:
			tr.Entries = slices.Delete(tr.Entries, i, i+1)
		case 1:
			tr.Entries = slices.Insert(tr.Entries, i, tr.Entries[other])
		case 2:
			tr.Entries[i], tr.Entries[other] = tr.Entries[other], tr.Entries[i]
		case 3:
			x.Event, x.Payload = tr.Entries[other].Event, tr.Entries[other].Payload
		case 4:
			x.Name, x.Label, x.Answer = tr.Entries[other].Name, tr.Entries[other].Label, tr.Entries[other].Answer
		case 5:
			x.Step, x.N, x.Auto, x.Aborted = int(tape[0]), -x.N, !x.Auto, !x.Aborted
			x.State, x.Outcome = nil, trace.OutcomeDeadlock
		case 6:
			x.Kind = tr.Entries[other].Kind
		case 7:
			bareEntry(x, tape[1])
		}
	}
	return &tr
}

// bareEntry takes out of an entry what a rule might take for granted.
func bareEntry(x *trace.Entry, which byte) {
	switch which & 3 {
	case 0:
		x.Event = &trace.Event{Type: "tool_execution_end", ToolCallID: "c1"}
	case 1:
		x.Event = &trace.Event{Type: "message_end", Message: &trace.Message{Role: "odd"}}
	case 2:
		if x.Answer != nil && which&4 != 0 {
			none := []*trace.Message{nil}
			x.Answer = &trace.Answer{Messages: none, Sync: []*trace.Result{nil}, Hook: &trace.HookAnswer{Append: none, Messages: none, Drop: -2}}
			return
		}
		x.Answer, x.Payload = nil, nil
	case 3:
		x.Event = &trace.Event{Type: "turn_end", ToolResults: []*trace.Message{nil}, Messages: []*trace.Message{nil}}
	}
}

func BenchmarkCheck(b *testing.B) {
	tr := tell(b, two, "")
	rules := conformance.Catalogue()
	b.ReportMetric(float64(len(tr.Entries)), "entries")
	b.ReportAllocs()
	for b.Loop() {
		conformance.Check(tr, rules)
	}
}
