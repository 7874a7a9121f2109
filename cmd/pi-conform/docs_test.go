package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/docs"
)

var update = flag.Bool("update", false, "write the generated documents anew")

// TestGeneratedDocs holds the documents that are written from code to the code.
func TestGeneratedDocs(t *testing.T) {
	root := newProgram(nil, io.Discard, io.Discard).root()
	for file, want := range map[string]string{
		"../../docs/RULES.md":    docs.Rules(editionsOf),
		"../../docs/CLI.md":      docs.CommandLine(root),
		"../../docs/EDITIONS.md": docs.Editions(),
		"../../docs/DOCTOR.md":   docs.Doctor(),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is stale (%v): run «make docs»", file, err)
		}
	}
}

// TestEveryStatementHasARule: no numbered statement of the source is left without
// a rule that holds it.
func TestEveryStatementHasARule(t *testing.T) {
	by := docs.BySource()
	for n := range docs.Statements {
		if name := fmt.Sprintf("U%d", n+1); len(by[name]) == 0 {
			t.Errorf("no rule has the source %s", name)
		}
	}
}
