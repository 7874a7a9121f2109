package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// TestFindingsCanBeReplayed: the command that a finding comes with shows that
// finding again.
func TestFindingsCanBeReplayed(t *testing.T) {
	subjects := []string{"mutant:late-update-accepted", "mutant:results-in-completion-order", "mutant:one-throttle-buffer", "mutant:tools-kept-by-name"}
	if os.Getenv("PI_CONFORM_NPM") != "" || os.Getenv("CI") != "" {
		subjects = append(subjects, "pi@0.75.5")
	} else {
		t.Log("SKIPPED: a real loop, which npm installs; set PI_CONFORM_NPM=1")
	}
	for _, subject := range subjects {
		t.Run(subject, func(t *testing.T) {
			found := findingsOf(t, subject)
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			const enough = 5 // each starts the subject anew
			for _, f := range found[:min(enough, len(found))] {
				replayed(t, &f)
			}
		})
	}
}

// findingsOf are the first findings of each MUST rule that the subject breaks.
func findingsOf(t *testing.T, subject string) []report.Finding {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	code := newProgram(nil, io.Discard, io.Discard).run(context.Background(), []string{"run", subject, "--schedules", "3", "--quiet", "--json", file})
	if code != exit.Broken {
		t.Fatalf("the run ended with %d", code)
	}
	data, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	rep, err := report.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	var first []report.Finding
	for _, f := range rep.Broken(conformance.Must) {
		if len(first) == 0 || first[len(first)-1].Rule != f.Rule {
			first = append(first, f)
		}
	}
	return first
}

func replayed(t *testing.T, f *report.Finding) {
	t.Helper()
	args := strings.Fields(f.Replay)
	var out bytes.Buffer
	code := newProgram(nil, &out, io.Discard).run(context.Background(), args[1:])
	if code != exit.Broken || !strings.Contains(out.String(), f.Rule+" MUST") {
		t.Errorf("%s: «%s» ended with %d and did not show it:\n%s", f.Rule, f.Replay, code, out.String())
	}
}
