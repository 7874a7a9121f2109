package view_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fixtures"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/view"
)

func TestView(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "view")
}

func parsed(file string) *harness.CaseFile {
	data, err := fixtures.FS.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	c, err := harness.ParseCase(file, data)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// watched runs a case on the reference loop, watched by a reducer.
func watched(r harness.Reducer, sc *harness.Scenario, p harness.Policy) *trace.Trace {
	rec, err := harness.Run(context.Background(), harness.WithViews(reference.New(), r), sc, p, harness.Limits{})
	Expect(err).NotTo(HaveOccurred())
	return rec.Trace
}

func rules() []conformance.Rule {
	rules, err := conformance.Select("VIEW")
	Expect(err).NotTo(HaveOccurred())
	return rules
}

// racing has two tools that may end in either order, one of them after progress.
const racing = `Two tools race.
-- scenario --
tools: [a]
model:
  - {thinking: hmm, text: look, stream: deltas, result: looked, calls: [{id: c1, name: a}, {id: c2, name: a}]}
  - {text: done, stream: deltas}
calls:
  c1: {updates: [half]}
  c2: {gate: true}
user:
  - prompt: go
  - prompt: again
`

func race(r harness.Reducer, p harness.Policy) *trace.Trace {
	c, err := harness.ParseCase("racing", []byte(racing))
	Expect(err).NotTo(HaveOccurred())
	return watched(r, c.Case.Scenario, p)
}

var _ = Describe("The view", func() {
	text := func(s string) *trace.Message {
		return &trace.Message{Role: trace.RoleAssistant, Content: trace.TextContent(s)}
	}
	after := func(events ...*trace.Event) view.View {
		v := view.View{Phase: view.Idle}
		for _, ev := range events {
			v = view.Reduce(v, ev)
		}
		return v
	}
	event := func(name string) *trace.Event { return &trace.Event{Type: name} }

	It("has a bubble for each message of the assistant, with the text that counts", func() {
		v := after(event(trace.AgentStart), event(trace.TurnStart),
			&trace.Event{Type: trace.MessageStart, Message: text("")},
			&trace.Event{Type: trace.MessageUpdate, Message: text("hal"), StreamEvent: &trace.StreamEvent{Type: trace.StreamTextDelta}},
			&trace.Event{Type: trace.MessageEnd, Message: text("hello")})
		Expect(v).To(Equal(view.View{Phase: view.Running, Turn: 1, Bubbles: []view.Bubble{{Turn: 1, Text: "hello"}}}))
	})

	It("has a card for each call, as far as it has come", func() {
		started := after(&trace.Event{Type: trace.ToolExecutionStart, ToolCallID: "c1", ToolName: "a", Args: trace.Value("{}")})
		Expect(started.Tools).To(Equal([]view.Tool{{ID: "c1", Name: "a", Args: trace.Value("{}"), Status: view.Preparing}}))
		half := &trace.Result{Content: trace.TextContent("half")}
		working := view.Reduce(started, &trace.Event{Type: trace.ToolExecutionUpdate, ToolCallID: "c1", PartialResult: half})
		Expect(working.Tools[0].Text).To(Equal("half"))
		Expect(started.Tools[0].Status).To(Equal(view.Preparing), "what was there before is not changed")
	})

	It("is idle only when the prompt has returned", func() {
		Expect(after(event(trace.AgentStart), event(trace.AgentEnd)).Phase).To(Equal(view.Settling))
		Expect(after(event(trace.AgentStart), event(trace.AgentEnd), event(trace.PromptReturned)).Phase).To(Equal(view.Idle))
	})
})

var _ = Describe("The reducer", func() {
	for _, file := range fixtures.Cases() {
		It("keeps the rules in "+file, func() {
			c := parsed(file)
			tr := watched(view.Reducer{}, c.Case.Scenario, harness.NewReplay(c.Case.Schedule))
			v := conformance.Check(tr, rules())
			Expect(v.Findings).To(BeEmpty(), trace.Text(tr))
			again, err := harness.RecordViews(unwatched(tr), view.Reducer{})
			Expect(err).NotTo(HaveOccurred())
			Expect(again).To(Equal(tr), "a recorded trace gives the same views")
			Expect(trace.Hash(tr)).To(Equal(trace.Hash(unwatched(tr))), "views are no part of the normal form")
		})
	}

	It("comes to the same view in any order of the same outcomes", func() {
		base := race(view.Reducer{}, harness.First{})
		compared := 0
		for seed := range uint64(50) {
			v := conformance.Compare(base, race(view.Reducer{}, harness.NewRandom(seed)), rules())
			Expect(v.Findings).To(BeEmpty())
			compared += v.Rules[slices.IndexFunc(v.Rules, func(r conformance.RuleResult) bool { return r.Rule == "VIEW-7" })].Exercised
		}
		Expect(compared).To(BeNumerically(">", 10))
	})

	It("is the same in the trace as it is written and read", func() {
		tr := race(view.Reducer{}, harness.First{})
		var file strings.Builder
		Expect(trace.Write(&file, tr)).To(Succeed())
		read, err := trace.Decode(strings.NewReader(file.String()))
		Expect(err).NotTo(HaveOccurred())
		Expect(conformance.Check(read, rules()).Findings).To(BeEmpty())
	})

	It("may be any value with two functions", func() {
		type counter struct{ Turn int }
		reduce := func(c counter, ev *trace.Event) counter {
			if ev.Type == trace.TurnStart {
				c.Turn++
			}
			return c
		}
		show := func(c counter) (trace.Value, error) {
			return trace.Value(`{"turn":` + string(rune('0'+c.Turn)) + `}`), nil
		}
		tr := race(harness.ReducerOf(counter{}, reduce, show), harness.First{})
		v := conformance.Check(tr, rules())
		status := map[string]conformance.Status{}
		for _, r := range v.Rules {
			status[r.Rule] = r.Status
		}
		Expect(status).To(HaveKeyWithValue("VIEW-9", conformance.StatusPass))
		Expect(status).To(HaveKeyWithValue("VIEW-2", conformance.StatusFail))
	})
})

func unwatched(tr *trace.Trace) *trace.Trace {
	out := &trace.Trace{Header: tr.Header}
	out.Header.Evidence = slices.DeleteFunc(slices.Clone(tr.Header.Evidence), func(e trace.Evidence) bool { return e == trace.EvidenceViews })
	for _, e := range tr.Entries {
		if e.Kind != trace.KindView {
			out.Entries = append(out.Entries, e)
		}
	}
	return out
}

var _ = Describe("Every mutant of the reducer", func() {
	for _, m := range view.Mutants() {
		It(m.Name+" is found by "+m.Rule, func() {
			Expect(m.Story).To(HaveSuffix("."))
			mutant := view.Reducer{Defects: view.Defects{m.Defect}}
			base := race(mutant, harness.First{})
			v := conformance.Check(base, rules())
			if m.Rule != "VIEW-7" {
				Expect(v.First()).NotTo(BeNil())
				Expect(v.First().Rule).To(Equal(m.Rule))
				return
			}
			Expect(v.Findings).To(BeEmpty(), "one order alone does not show it")
			other := harness.NewReplay([]string{"prompt/0", "tool/c2/return", "tool/c1/update/0", "tool/c1/return"})
			v = conformance.Compare(base, race(mutant, other), rules())
			Expect(v.First().Rule).To(Equal(m.Rule))
		})
	}

	It("leaves the loop's own rules alone", func() {
		for _, m := range view.Mutants() {
			tr := race(view.Reducer{Defects: view.Defects{m.Defect}}, harness.First{})
			for _, f := range conformance.Check(tr, conformance.Catalogue(), conformance.InEdition(edition.V0843)).Findings {
				Expect(f.Rule).To(HavePrefix("VIEW-"))
			}
		}
	})
})
