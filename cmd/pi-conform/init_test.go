package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/project"
)

// toolchains are the programs without which a language's project cannot be run.
var toolchains = map[string][]string{
	"ts": {"node"}, "python": {"python3"}, "go": {"go"}, "rust": {"cargo", "rustc"}, "java": {"javac", "java"},
}

// TestProjects: what init writes runs at once and conforms, and the bug that each
// project offers is found by the rule for it.
func TestProjects(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range project.Languages() {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			needToolchain(t, lang)
			p := newProject{dir: filepath.Join(t.TempDir(), "adapter"), env: []string{"PI_CONFORM_SOURCE=" + root}}
			if out, code := p.run(t, ".", "init", "--lang", lang, p.dir); code != 0 {
				t.Fatalf("init ends with %d:\n%s", code, out)
			}
			if out, code := p.run(t, p.dir, "run", "-q", "--schedules", "1"); code != 0 {
				t.Fatalf("run ends with %d:\n%s", code, out)
			}
			p.env = append(p.env, "PI_CONFORM_PLANT=late-update")
			out, code := p.run(t, p.dir, "run", "-q", "--schedules", "0", "--run", "updates", "--json", "-")
			if code != 1 {
				t.Fatalf("with the planted bug run ends with %d:\n%s", code, out)
			}
			if rules := brokenRules(t, out); !slices.Contains(rules, "UPD-2") || slices.ContainsFunc(rules, unexpected) {
				t.Errorf("the planted bug is said to break %v", rules)
			}
		})
	}
}

// unexpected: an update that is not dropped breaks rules about updates, and the one
// that compares what a call does with what else goes on.
func unexpected(rule string) bool { return !strings.HasPrefix(rule, "UPD-") && rule != "PAR-9" }

// needToolchain skips a language whose tools are missing, but not in CI.
func needToolchain(t *testing.T, lang string) {
	t.Helper()
	for _, tool := range toolchains[lang] {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not on the PATH, and in CI it has to be", tool)
		}
		t.Skipf("SKIPPED: the %s project, as %s is not on the PATH", lang, tool)
	}
}

type newProject struct {
	dir string
	env []string
}

// run runs pi-conform in a directory and gives what it wrote to standard output, or
// if it failed otherwise than with a finding, all that it wrote.
func (p *newProject) run(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command("pi-conform", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), p.env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.ExitCode() != 1 {
			out = append(out, exit.Stderr...)
		}
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// brokenRules are the MUST rules that a report says are broken.
func brokenRules(t *testing.T, text string) []string {
	t.Helper()
	var report struct {
		Findings []struct{ Rule, Level string }
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	var rules []string
	for _, f := range report.Findings {
		if f.Level == "MUST" || f.Level == "must" {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}
