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
	table := tableOf(t, "import table")
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

// TestModuleTable holds what is imported of other modules to the table in
// docs/ARCHITECTURE.md.
func TestModuleTable(t *testing.T) {
	table := tableOf(t, "module table")
	used := map[string]bool{}
	for _, pkg := range packages(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module)
		for _, imported := range pkg.Imports {
			domain, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(domain, ".") || strings.HasPrefix(imported, module) {
				continue
			}
			of := moduleOf(table, imported)
			used[of] = true
			if !slices.ContainsFunc(table[of], func(may string) bool { return may == "everything" || covers(may, name) }) {
				t.Errorf("%s imports %s, which the module table does not allow", name, imported)
			}
		}
	}
	for row := range table {
		if !used[row] {
			t.Errorf("the module table has a row for %s, which nothing imports", row)
		}
	}
}

// moduleOf is the row of the module that a package belongs to; empty if there is none.
func moduleOf(table map[string][]string, imported string) string {
	for row := range table {
		if imported == row || strings.HasPrefix(imported, row+"/") {
			return row
		}
	}
	return ""
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
		if covers(row, name) {
			return row, true
		}
	}
	return "", false
}

// covers reports whether a name of a table means the package.
func covers(row, name string) bool {
	prefix, below := strings.CutSuffix(row, "/...")
	return name == prefix || below && strings.HasPrefix(name, prefix+"/")
}

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

// tableOf reads the rows after the marker.
func tableOf(t *testing.T, marker string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "<!-- "+marker+":")
	if !ok {
		t.Fatalf("docs/ARCHITECTURE.md has no %s", marker)
	}
	after, _, _ = strings.Cut(after, "\n\n")
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
