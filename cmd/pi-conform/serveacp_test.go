package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
)

// publicClient is the library whose client is tried.
const publicClient = "@agentclientprotocol/sdk@2.4.0"

// seenUpdate is what the client was told of a card.
type seenUpdate struct {
	Update string `json:"sessionUpdate"`
	ID     string `json:"toolCallId"`
	Status string `json:"status"`
}

// TestPublicClient lets a client made with the public library open a session,
// prompt, cancel and load.
func TestPublicClient(t *testing.T) {
	if os.Getenv("PI_CONFORM_NPM") == "" && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: NO PUBLIC CLIENT IS TRIED. It is installed with npm, which needs a network: set PI_CONFORM_NPM=1")
	}
	dir := t.TempDir()
	do := func(where, name string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = where
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return out
	}
	program := filepath.Join(dir, "pi-conform")
	do(".", "go", "build", "-o", program, ".")
	do(dir, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", publicClient)
	client, err := os.ReadFile("testdata/acp/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "client.mjs"), client, 0o600); err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Version                 int
		First, Second           string
		Live, Cancelled, Replay []seenUpdate
	}
	if err := json.Unmarshal(do(dir, "node", "client.mjs", program, "serve-acp", "--tick", "200ms"), &seen, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if seen.Version != 1 || seen.First != "end_turn" || seen.Second != "cancelled" {
		t.Errorf("version %d, %s, %s", seen.Version, seen.First, seen.Second)
	}
	expectStatuses(t, "live", seen.Live, map[string]int{"pending": 3, "in_progress": 9, "completed": 2, "failed": 1})
	expectStatuses(t, "replay", seen.Replay, map[string]int{"pending": 6, "in_progress": 0})
	expectPairs(t, seen.Cancelled)
	expectPairs(t, seen.Replay)
}

func expectStatuses(t *testing.T, what string, updates []seenUpdate, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for _, u := range updates {
		got[u.Status]++
	}
	for status, n := range want {
		if got[status] != n {
			t.Errorf("%s: %d updates say %s, want %d", what, got[status], status, n)
		}
	}
}

// expectPairs expects each call to be announced once and closed once.
func expectPairs(t *testing.T, updates []seenUpdate) {
	t.Helper()
	announced, closed := map[string]int{}, map[string]int{}
	for _, u := range updates {
		switch u.Status {
		case "pending":
			announced[u.ID]++
		case "completed", "failed":
			closed[u.ID]++
		}
	}
	if len(announced) == 0 {
		t.Error("no card")
	}
	for id, n := range announced {
		if n != 1 || closed[id] != 1 {
			t.Errorf("%s is announced %d times and closed %d times", id, n, closed[id])
		}
	}
}
