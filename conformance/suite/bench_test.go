package suite_test

import (
	"context"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// threeTools is the scenario of all speed comparisons: three tools in parallel,
// two updates each, in any order.
func threeTools() *harness.Scenario {
	sc := &harness.Scenario{
		Config: trace.Config{Tools: []trace.Tool{{Name: "a"}}},
		Model: []scriptedmodel.Turn{
			{Calls: []scriptedmodel.Call{{ID: "c1", Name: "a"}, {ID: "c2", Name: "a"}, {ID: "c3", Name: "a"}}},
			{Text: "done"},
		},
		Calls: map[string]harness.ToolScript{},
		User:  []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}},
	}
	for _, id := range []string{"c1", "c2", "c3"} {
		update := &trace.Result{Content: trace.TextContent("u" + id)}
		sc.Calls[id] = harness.ToolScript{Gate: true, Updates: []*trace.Result{update, update}}
	}
	sc.Complete()
	return sc
}

func BenchmarkReferenceWithRules(b *testing.B) {
	runner, judge := harness.NewRunner(reference.New(), harness.Limits{}), conformance.NewJudge(conformance.Catalogue())
	sc := threeTools()
	seed := uint64(0)
	for b.Loop() {
		seed++
		rec, err := runner.Run(context.Background(), sc, harness.NewRandom(seed))
		if err != nil {
			b.Fatal(err)
		}
		if v := judge.Check(rec.Trace); v.Outcome != conformance.Pass {
			b.Fatal(v.Findings)
		}
	}
}

func BenchmarkReference(b *testing.B) {
	runner, sc := harness.NewRunner(reference.New(), harness.Limits{}), threeTools()
	seed := uint64(0)
	for b.Loop() {
		seed++
		if _, err := runner.Run(context.Background(), sc, harness.NewRandom(seed)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRules(b *testing.B) {
	rec, err := harness.Run(context.Background(), reference.New(), threeTools(), harness.NewRandom(1), harness.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	judge := conformance.NewJudge(conformance.Catalogue())
	for b.Loop() {
		judge.Check(rec.Trace)
	}
}
