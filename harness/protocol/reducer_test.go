//go:build !windows

package protocol_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/view"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

func TestAReducerIsTheSameOverPipes(t *testing.T) {
	p := fake(t, "reference", protocol.Options{})
	remote, err := p.Reducer(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(10) {
		here, there := watch(t, view.Reducer{}, seed), watch(t, remote, seed)
		for i := range here.Entries {
			a, b := here.Entries[i].View, there.Entries[i].View
			if (a == nil) != (b == nil) || a != nil && string(a.State) != string(b.State) {
				t.Fatalf("entry %d: %s\n%s", i, trace.Line(&here.Entries[i]), trace.Line(&there.Entries[i]))
			}
		}
	}
}

func TestASubjectWithoutReducer(t *testing.T) {
	p := fake(t, "ok", protocol.Options{})
	if _, err := p.Reducer(context.Background()); err == nil {
		t.Error("it is said to have one")
	}
}

// TestTheExampleInTypeScript: the reducer of adapters/js keeps the rules.
func TestTheExampleInTypeScript(t *testing.T) {
	main, err := filepath.Abs("../../adapters/js/example-reducer/main.mjs")
	if err != nil {
		t.Fatal(err)
	}
	node := nodeForTypeScript(t)
	p := protocol.NewProcess(protocol.Command{Argv: []string{node, "--no-warnings", main}}, protocol.Options{Strict: true})
	t.Cleanup(func() { _ = p.Close() })
	reducer, err := p.Reducer(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rules, err := conformance.Select("VIEW")
	if err != nil {
		t.Fatal(err)
	}
	base := watch(t, reducer, 0)
	for seed := range uint64(5) {
		tr := watch(t, reducer, seed)
		for _, v := range []conformance.Verdict{conformance.Check(tr, rules), conformance.Compare(base, tr, rules)} {
			for _, f := range v.Findings {
				t.Errorf("seed %d: %s %s\n%s", seed, f.Rule, f.Message, trace.Text(tr))
			}
		}
	}
}

// nodeForTypeScript is a Node that runs TypeScript as it is.
func nodeForTypeScript(t *testing.T) string {
	node := os.Getenv("PI_CONFORM_NODE")
	if node == "" {
		node = "node"
	}
	out, err := exec.Command(node, "-p", "process.features.typescript || ''").Output()
	if err != nil || len(out) < 2 {
		t.Skip("SKIPPED: set PI_CONFORM_NODE to a Node that runs TypeScript (22.18 or newer)")
	}
	return node
}

func watch(t *testing.T, r harness.Reducer, seed uint64) *trace.Trace {
	t.Helper()
	rec, err := harness.Run(context.Background(), harness.WithViews(reference.New(), r), busy(), harness.NewRandom(seed), harness.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return rec.Trace
}

// TestASessionIsTheSameOverPipes: the clock moves for a subject in a process as
// for one in process.
func TestASessionIsTheSameOverPipes(t *testing.T) {
	p := fake(t, "reference", protocol.Options{})
	ctx := context.Background()
	for seed := range uint64(20) {
		here, err := harness.Run(ctx, reference.New(), retrying(), harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		there, err := harness.Run(ctx, p, retrying(), harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, here.Trace, there.Trace)
		played, err := harness.RunPredicted(ctx, p, reference.New(), retrying(), harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, here.Trace, played.Trace)
	}
}

func retrying() *harness.Scenario {
	failing := scriptedmodel.Turn{Stop: trace.StopError, Error: "overloaded"}
	return &harness.Scenario{
		Edition: "0.84.3", Form: trace.FormSession,
		Config: trace.Config{Session: &trace.SessionConfig{MaxRetries: 2, BaseDelayMs: 1500, Compact: []string{"threshold"}}},
		Model:  []scriptedmodel.Turn{failing, failing, {Text: "done"}, failing},
		Hooks:  map[string]harness.HookScript{trace.HookCompact: {Gate: true}},
		User: []harness.UserAction{
			{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}},
			{Kind: harness.UserFollowUp, Answer: trace.Answer{Text: "more"}},
			{Kind: harness.UserAbort},
			{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "again"}},
		},
	}
}
