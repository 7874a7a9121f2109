//go:build !windows

package protocol_test

import (
	"context"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// busy has two tools and a listener that wait, updates before and after the
// end, hooks, an abort and a steering message.
func busy() *harness.Scenario {
	update := func(text string) *trace.Result { return &trace.Result{Content: trace.TextContent(text)} }
	return &harness.Scenario{
		Edition: "0.84.3", Form: trace.FormAgent,
		Config: trace.Config{
			Tools:     []trace.Tool{{Name: "read"}},
			Listeners: []trace.ListenerConfig{{Gate: []string{"tool_execution_end"}}},
		},
		Model: []scriptedmodel.Turn{
			{Text: "look", Stream: scriptedmodel.StreamDeltas, Calls: []scriptedmodel.Call{
				{ID: "c1", Name: "read"}, {ID: "c2", Name: "read"}, {ID: "c3", Name: "read"},
			}},
			{Gate: true, Text: "done", End: scriptedmodel.EndSilent},
		},
		Calls: map[string]harness.ToolScript{
			"c1": {Gate: true, Updates: []*trace.Result{update("half")}, Late: []*trace.Result{update("late")}},
			"c2": {Gate: true, Sync: []*trace.Result{update("first")}},
		},
		Hooks: map[string]harness.HookScript{
			trace.HookBeforeToolCall:   {Answers: map[string]harness.HookReply{"c3": {Value: trace.HookAnswer{Block: true, Reason: "no"}}}},
			trace.HookTransformContext: {Gate: true},
		},
		User: []harness.UserAction{
			{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}},
			{Kind: harness.UserSteer, Answer: trace.Answer{Text: "also"}},
			{Kind: harness.UserAbort},
			{Kind: harness.UserWaitForIdle},
		},
	}
}

func TestTheReferenceIsTheSameOverPipes(t *testing.T) {
	p := fake(t, "reference", protocol.Options{})
	ctx := context.Background()
	for seed := range uint64(40) {
		here, err := harness.Run(ctx, reference.New(), busy(), harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		there, err := harness.Run(ctx, p, busy(), harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, here.Trace, there.Trace)
		played, err := harness.RunPredicted(ctx, p, reference.New(), busy(), harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, here.Trace, played.Trace)
	}
	if p.Starts() != 1 {
		t.Errorf("%d starts", p.Starts())
	}
}

func same(t *testing.T, a, b *trace.Trace) {
	t.Helper()
	if i, what := trace.FirstDiff(a, b); i >= 0 {
		t.Fatalf("the traces part at entry %d: %s\n%s\n%s", i, what, trace.Text(a), trace.Text(b))
	}
}

// BenchmarkDrivers runs one scenario on the reference by each driver, by drawn
// schedules and with all rules. Over pipes the schedule is written at once, as the
// same loop in process predicts it; CPU time of the other process is not counted.
func BenchmarkDrivers(b *testing.B) {
	type runner interface {
		Run(ctx context.Context, sc *harness.Scenario, p harness.Policy) (*harness.Recording, error)
	}
	oracle := reference.New()
	defer oracle.Close()
	command := fakeCommand(b)
	command.Env = []string{fakeVar + "=quick-reference"}
	process := protocol.NewProcess(command, protocol.Options{})
	defer process.Close()
	for name, on := range map[string]runner{
		"coroutine": harness.NewRunner(oracle, harness.Limits{}),
		"bubble":    harness.NewRunner(reference.NewBubble(), harness.Limits{}),
		"stdio":     harness.NewPredictedRunner(process, oracle, harness.Limits{}),
	} {
		b.Run(name, func(b *testing.B) {
			sc, judge, seed := busy(), conformance.NewJudge(conformance.Catalogue()), uint64(0)
			for b.Loop() {
				seed++
				rec, err := on.Run(b.Context(), sc, harness.NewRandom(seed))
				if err != nil {
					b.Fatal(err)
				}
				if v := judge.Check(rec.Trace); v.Outcome != conformance.Pass {
					b.Fatal(v.Findings)
				}
			}
		})
	}
}
