package suite_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// example starts the registry of adapters/js, perhaps with a defect.
func example(t *testing.T, plant ...string) *protocol.Process {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: THE EXAMPLE IN JAVASCRIPT IS NOT RUN: there is no node")
	}
	main, err := filepath.Abs("../../../adapters/js/example-progress/main.mjs")
	if err != nil {
		t.Fatal(err)
	}
	p := protocol.NewProcess(protocol.Command{Argv: append([]string{node, main}, plant...)}, protocol.Options{Strict: len(plant) == 0})
	t.Cleanup(func() { _ = p.Close() })
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return p
}

// judged gives what the rules say of a subject under a seed.
func judged(t *testing.T, p *protocol.Process, seed uint64) *progress.Verdict {
	t.Helper()
	capabilities := p.Info().Capabilities
	open := func() (*protocol.Channel, error) { return p.Progress(context.Background()) }
	record, err := suite.RemoteCalls(open, capabilities, seed)
	if err != nil {
		t.Fatal(err)
	}
	return progress.Check(record, suite.Applicable(suite.RemoteLacks(capabilities)))
}

// TestExampleInJavaScript holds that the registry of adapters/js keeps all rules
// that are applicable to it, with its bridge, and that it is asked for each but
// PROG-5: what one turn of its event loop does, nothing can come between.
func TestExampleInJavaScript(t *testing.T) {
	p := example(t)
	exercised := map[string]int{}
	for seed := range uint64(25) {
		v := judged(t, p, seed)
		for rule, n := range v.Exercised {
			exercised[rule] += n
		}
		for _, f := range v.Findings {
			t.Errorf("seed %d: %+v", seed, f)
		}
	}
	for _, r := range suite.Applicable(suite.RemoteLacks(p.Info().Capabilities)) {
		if exercised[r.ID] == 0 && r.ID != "PROG-5" {
			t.Errorf("%s is not exercised", r.ID)
		}
	}
}

// TestDefectsInJavaScript holds that each defect that can be planted there is found
// by its rule.
func TestDefectsInJavaScript(t *testing.T) {
	for plant, rule := range map[string]string{
		"shared": "PROG-1", "twice": "PROG-3", "impatient": "PROG-3", "late": "PROG-4", "fragile": "PROG-6", "gossip": "PROG-8",
		"lenient": "PROG-9", "chatty": "PROG-10", "touchy": "PROG-12", "eager": "PROG-12",
		"by-call-id": "BRIDGE-3", "forgets-failures": "BRIDGE-5", "wipes": "BRIDGE-6", "feeds-closed": "BRIDGE-8",
	} {
		t.Run(plant, func(t *testing.T) {
			t.Parallel()
			p := example(t, plant)
			for seed := range uint64(60) {
				for _, f := range judged(t, p, seed).Findings {
					if f.Rule == rule {
						return
					}
				}
			}
			t.Errorf("not found by %s", rule)
		})
	}
}
