package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
)

// TestChannel lets the commands judge the example of a channel of progress in
// JavaScript, whole and with a defect.
func TestChannel(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: THE EXAMPLE IN JAVASCRIPT IS NOT RUN: there is no node")
	}
	example, err := filepath.Abs("../../adapters/js/example-progress/main.mjs")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(t.TempDir(), "pi-conform")
	if err := os.Symlink(self, command); err != nil { // TestMain makes the program of this name
		t.Fatal(err)
	}
	known := filepath.Join(t.TempDir(), "known.yaml")
	if err := os.WriteFile(known, []byte("- match: progress\n  rule: PROG-9\n  reason: views are read leniently\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	for _, c := range []struct {
		args []string
		code exit.Code
		says []string
	}{
		{[]string{"run", "-v", "--", node, example}, exit.OK, []string{"PROG-4", "not applicable (the subject has no producer", "conforms"}},
		{[]string{"run", "--", node, example, "late"}, exit.Broken, []string{"PROG-4 MUST", "replay: pi-conform replay progress@1"}},
		{[]string{"run", "--", node, example, "forgets-failures"}, exit.Broken, []string{"BRIDGE-5 MUST"}},
		{[]string{"run", "-q", "--baseline", known, "--", node, example, "lenient"}, exit.OK, []string{"as expected"}},
		{[]string{"run", "-q", "--baseline", known, "--", node, example}, exit.Stale, []string{"did not happen"}},
		{[]string{"run", "-v", "--rule", "PROG-4", "--", node, example, "late"}, exit.Broken, []string{"PROG-4 MUST", "rules: 0 passed · 1 failed · 0 not exercised"}},
		{[]string{"run", "--rule", "PROG-7", "--run", "progress", "--json", report, "--", node, example, "late"}, exit.OK, []string{"conforms"}},
		{[]string{"run", "--rule", "PROG-4", "--skip", "progress", "--", node, example}, exit.Usage, []string{"no case is left"}},
		{[]string{"run", "--rule", "PROG-4"}, exit.Usage, []string{"has declared no channel of progress"}},
		{[]string{"run", "--rule", "PROG-44"}, exit.Usage, []string{"no rule matches"}},
		{[]string{"run", "--rerun-failed", report, "--", node, example}, exit.Nothing, []string{"nothing is left to run"}},
		{[]string{"replay", "progress@1", "--", node, example, "late"}, exit.Broken, []string{"PROG-4", `"kind":"returned"`}},
		{[]string{"replay", "progress@1", "--", node, example}, exit.OK, []string{"no rule is broken"}},
		{[]string{"replay", "progress@1"}, exit.Usage, []string{"no channel of progress"}},
		{[]string{"doctor", "--", node, example}, exit.OK, []string{"ok    tells of progress"}},
	} {
		cmd := exec.Command(command, c.args...)
		out, _ := cmd.CombinedOutput() // the code says how it went
		if got := cmd.ProcessState.ExitCode(); got != int(c.code) {
			t.Errorf("%v: exit code %d, want %d:\n%s", c.args, got, c.code, out)
		}
		for _, want := range c.says {
			if !strings.Contains(string(out), want) {
				t.Errorf("%v: it does not say %q:\n%s", c.args, want, out)
			}
		}
	}
}
