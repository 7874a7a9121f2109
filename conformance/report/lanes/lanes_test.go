package lanes_test

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/conformance/report/lanes"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestLanes(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "lanes")
}

func action(step int, label string) trace.Entry {
	return trace.Entry{Step: step, Kind: trace.KindAction, Label: label, Name: label}
}

func event(step, n int, kind, id string) trace.Entry {
	return trace.Entry{Step: step, Kind: trace.KindEvent, N: n, Event: &trace.Event{Type: kind, ToolCallID: id}}
}

func call(step int, name string) trace.Entry {
	return trace.Entry{Step: step, Kind: trace.KindCall, Name: name}
}

func story(entries ...trace.Entry) *trace.Trace { return &trace.Trace{Entries: entries} }

var _ = Describe("Of", func() {
	It("gives each of those who act a lane", func() {
		l := lanes.Of(story(
			action(1, "prompt/0"), event(1, 0, trace.AgentStart, ""), call(1, "model/0"), call(1, "hook/beforeToolCall/c1"),
			call(1, "tool/c1"), call(1, "tool/c1~1"), call(1, "listener/0/turn_end/0"), action(2, "tool/c1/late/0"),
		))
		var names []string
		for _, lane := range l.Lanes {
			names = append(names, lane.Name)
		}
		Expect(names).To(Equal([]string{"user", "loop", "model", "c1", "c1~1", "hooks", "listeners"}))
		Expect(l.Rows[0]).To(And(HaveField("From", 0), HaveField("To", 1)), "an action comes from outside")
		Expect(l.Rows[2]).To(And(HaveField("From", 1), HaveField("To", 2)), "a call goes outside")
		Expect(l.Rows[7]).To(And(HaveField("From", 3), HaveField("To", 1)))
	})

	It("bounds the lanes of tools", func() {
		var entries []trace.Entry
		for i := range 50 {
			entries = append(entries, call(1, "tool/c"+strings.Repeat("x", i)))
		}
		Expect(len(lanes.Of(story(entries...)).Lanes)).To(BeNumerically("<=", 10))
	})
})

var _ = Describe("Align", func() {
	a := story(action(1, "prompt/0"), event(1, 0, "agent_start", ""), action(2, "tool/c1/late/0"), action(3, "abort"))
	b := story(action(1, "prompt/0"), event(1, 0, "agent_start", ""), action(2, "tool/c1/late/0"), event(2, 1, "tool_execution_update", "c1"), action(3, "abort"))

	It("puts step beside step", func() {
		Expect(lanes.Align(a, b)).To(Equal([]lanes.Pair{
			{A: 0, B: 0, Like: lanes.Same}, {A: 1, B: 1, Like: lanes.Same}, {A: 2, B: 2, Like: lanes.Same}, {A: -1, B: 3}, {A: 3, B: 4, Like: lanes.Same},
		}))
	})

	It("says where only what is not shown differs", func() {
		usage := event(1, 0, trace.AgentEnd, "")
		usage.Event.Messages = []*trace.Message{{Role: "user"}}
		other := event(1, 0, trace.AgentEnd, "")
		other.Event.Messages = []*trace.Message{{Role: "assistant"}}
		Expect(lanes.Align(story(usage), story(other))).To(Equal([]lanes.Pair{{A: 0, B: 0, Like: lanes.SameLine}}))
	})

	It("bears anything", func() {
		Expect(lanes.Align(story(), story())).To(BeEmpty())
		Expect(lanes.Align(a, story())).To(HaveLen(4))
		Expect(lanes.Align(story(), a)).To(HaveLen(4))
	})
})

var _ = Describe("WriteMermaid", func() {
	It("lets nothing that a subject printed mean anything", func() {
		evil := "a;b#c<d>\"`\nend\nloop x"
		var b strings.Builder
		Expect(lanes.WriteMermaid(&b, story(call(1, "tool/"+evil), action(2, evil), event(2, 0, evil, "")), 1)).To(Succeed())
		for line := range strings.Lines(b.String()) {
			Expect(line).To(MatchRegexp(`^(sequenceDiagram|  (participant p\d+ as .*|p\d+--?>>p\d+: .*|Note over p\d+: .*|rect rgb\(.*\)|end))\n$`))
		}
		Expect(b.String()).NotTo(ContainSubstring("<d>"))
	})
})
