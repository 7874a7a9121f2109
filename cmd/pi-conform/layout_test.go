package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pi-conform/pi-conform/"

// TestImportTable holds the tree to the table in docs/ARCHITECTURE.md.
func TestImportTable(t *testing.T) {
	table := importTable(t)
	seen := map[string]bool{}
	for _, pkg := range packages(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module)
		row, ok := rowOf(table, name)
		if !ok {
			t.Errorf("%s is not in the import table of docs/ARCHITECTURE.md", name)
			continue
		}
		seen[row] = true
		for _, imported := range pkg.Imports {
			dep, ours := strings.CutPrefix(imported, module)
			if ours && !slices.Contains(table[row], "everything") && !slices.Contains(table[row], dep) {
				t.Errorf("%s imports %s, which the import table does not allow", name, dep)
			}
		}
	}
	for row := range table {
		if !seen[row] {
			t.Errorf("the import table has a row for %s, which does not exist", row)
		}
	}
}

// TestTopLevel holds what stands at the top of the tree.
func TestTopLevel(t *testing.T) {
	allowed := []string{
		"go.mod", "go.sum", "harness", "scriptedmodel", "conformance", "fuzz", "loop", "fixtures", "cmd", "Makefile",
		"README.md", "LICENSE", "docs", "adapters", ".ci", "deploy", ".gitignore", ".git", "action.yml",
	}
	out, err := exec.Command("git", "-C", "../..", "ls-files").Output()
	if err != nil {
		t.Skipf("SKIPPED: not in a git checkout: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		top, _, _ := strings.Cut(strings.TrimSpace(line), "/")
		if !slices.Contains(allowed, top) {
			t.Errorf("%s does not belong at the top of the tree", top)
		}
	}
}

func rowOf(table map[string][]string, name string) (string, bool) {
	if _, ok := table[name]; ok {
		return name, true
	}
	for row := range table {
		if prefix, ok := strings.CutSuffix(row, "/..."); ok && (name == prefix || strings.HasPrefix(name, prefix+"/")) {
			return row, true
		}
	}
	return "", false
}

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

// importTable reads the rows after the marker.
func importTable(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "<!-- import table:")
	if !ok {
		t.Fatal("docs/ARCHITECTURE.md has no import table")
	}
	table := map[string][]string{}
	for _, m := range tableRow.FindAllStringSubmatch(after, -1) {
		table[m[1]] = []string{}
		for dep := range strings.SplitSeq(m[2], ",") {
			table[m[1]] = append(table[m[1]], strings.Trim(dep, " `"))
		}
	}
	return table
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
