package suite_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
)

// TestScore holds that the reference keeps all rules and that each mutant is
// found first by the rule that names it.
func TestScore(t *testing.T) {
	score, err := suite.Measure(context.Background(), nil, 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, short := range score.Short[:min(len(score.Short), 20)] {
		t.Error(short)
	}
	if score.Killed != len(suite.Mutants()) {
		t.Errorf("%d of %d mutants", score.Killed, len(suite.Mutants()))
	}
}

func TestChosenFamily(t *testing.T) {
	score, err := suite.Measure(context.Background(), []conformance.Family{progress.FamilyFlow}, 40)
	if err != nil || len(score.Short) > 0 || len(score.Rules) != 9 {
		t.Error(score, err)
	}
}

// TestExamples holds that each rule has a record that keeps it and one that breaks
// it.
func TestExamples(t *testing.T) {
	for _, r := range progress.Rules() {
		keeping, breaking, err := suite.Examples(r)
		if err != nil {
			t.Errorf("%s: %v", r.ID, err)
			continue
		}
		if v := progress.Check(keeping, []progress.Rule{r}); v.Exercised[r.ID] == 0 || len(v.Findings) > 0 {
			t.Errorf("%s: the keeping record: %+v", r.ID, v)
		}
		if f := progress.Check(breaking, progress.Rules()).First(); f == nil || f.Rule != r.ID {
			t.Errorf("%s: the breaking record: %+v", r.ID, f)
		}
	}
}

// TestReplay holds that a replay folds to the same cards as the live lines, that
// nothing else is broken, and that one seed is one run, over 1,000 runs.
func TestReplay(t *testing.T) {
	rules := progress.Rules()
	folded := 0
	for seed := range uint64(1000) {
		calls, flow, err := suite.Mutant{}.Records(seed)
		if err != nil {
			t.Fatal(err)
		}
		v := progress.Check(calls, rules)
		folded += v.Exercised["BRIDGE-7"]
		for _, f := range append(v.Findings, progress.Check(flow, rules).Findings...) {
			t.Errorf("seed %d: %+v", seed, f)
		}
	}
	if folded < 1000 {
		t.Errorf("only %d occasions", folded)
	}
}

// TestSameSeedSameRun holds that one seed is one run, as coroutines and in turn.
func TestSameSeedSameRun(t *testing.T) {
	for _, how := range []suite.How{suite.Coroutines, suite.InTurn} {
		for seed := range uint64(30) {
			if one, two := recorded(t, how, seed), recorded(t, how, seed); one != two {
				t.Errorf("%s: seed %d gives two runs", how, seed)
			}
		}
	}
}

func recorded(t *testing.T, how suite.How, seed uint64) string {
	t.Helper()
	calls, err := suite.Reference().Calls(seed, how)
	if err != nil {
		t.Fatal(err)
	}
	flow, err := suite.Reference().Flow(seed, how)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]*progress.Record{calls, flow})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWire holds that what the bridge sends keeps the rules of recorded logs too:
// the lines are put between what a client and an agent say around them.
func TestWire(t *testing.T) {
	exercised := map[string]int{}
	for seed := range uint64(300) {
		calls, _, err := suite.Mutant{}.Records(seed)
		if err != nil {
			t.Fatal(err)
		}
		j := acp.New(acp.Seed)
		for n, line := range session(calls) {
			j.Line(n+1, []byte(line))
		}
		j.End()
		for _, f := range j.Findings {
			t.Errorf("seed %d: %+v", seed, f)
		}
		for _, r := range j.Results() {
			exercised[r.Rule] += r.Exercised
		}
	}
	for _, rule := range []string{"ACP-1", "ACP-2", "ACP-3", "ACP-4", "ACP-5", "ACP-8", "ACP-11", "ACP-12"} {
		if exercised[rule] == 0 {
			t.Errorf("%s is not exercised", rule)
		}
	}
}

// session is the record as a log of both sides.
func session(r *progress.Record) []string {
	lines := []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
		`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`,
	}
	ids := map[string]int{"session-a": 1, "session-b": 2}
	for _, name := range []string{"session-a", "session-b"} {
		lines = append(lines,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/p","mcpServers":[]}}`, ids[name]),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"sessionId":%q}}`, ids[name], name),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[]}}`, ids[name]+10, name))
	}
	closed, loading := "", ""
	answer := func() {
		if loading != "" {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, ids[loading]+20))
		}
	}
	for _, e := range r.Entries {
		switch {
		case e.Kind == progress.Closed:
			closed = e.Session
		case e.Kind == progress.Response:
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, ids[e.Session]+10))
		case e.Kind == progress.Wire && e.Replay && e.Session != closed:
			if e.Session != loading {
				answer()
				loading = e.Session
				lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/load","params":{"sessionId":%q,"cwd":"/p","mcpServers":[]}}`, ids[loading]+20, loading))
			}
			lines = append(lines, string(e.Value))
		case e.Kind == progress.Wire && !e.Replay:
			lines = append(lines, string(e.Value))
		}
	}
	answer()
	return lines
}

// TestBridgeImports holds that the bridge depends on no workflow package
// (BRIDGE-9).
func TestBridgeImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/pi-conform/pi-conform/loop/progress/acp").Output()
	if err != nil {
		t.Fatal(err)
	}
	record := &progress.Record{Entries: []progress.Entry{{Kind: progress.Imports, Names: strings.Fields(string(out))}}}
	check := func() []progress.Finding {
		rule, _ := progress.Lookup("BRIDGE-9")
		return progress.Check(record, []progress.Rule{rule}).Findings
	}
	if f := check(); len(f) > 0 || !slices.Contains(record.Entries[0].Names, "github.com/pi-conform/pi-conform/loop/progress") {
		t.Errorf("%+v", f)
	}
	record.Entries[0].Names = append(record.Entries[0].Names, "github.com/pi-conform/pi-conform/loop/progress/workflow")
	if len(check()) == 0 {
		t.Error("a workflow package is let pass")
	}
}
