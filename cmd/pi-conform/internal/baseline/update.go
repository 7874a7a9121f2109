package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// Prune is the text of the baseline without those entries.
func (f *File) Prune(stale []report.Stale) string {
	var b strings.Builder
	next := 0
	for i := range f.Entries {
		e := &f.Entries[i]
		if !slices.ContainsFunc(stale, func(s report.Stale) bool { return s.Line == e.Line }) {
			continue
		}
		b.WriteString(strings.Join(f.lines[next:e.first], ""))
		next = e.end
	}
	b.WriteString(strings.Join(f.lines[next:], ""))
	return b.String()
}

// Update is the text of the baseline with an entry for everything in the report
// that would fail a run and is not expected yet; added is how many. What stands
// there already stays as it is.
func (f *File) Update(rep *report.Report) (text string, added int) {
	entries := missing(rep)
	var b strings.Builder
	b.WriteString(strings.Join(f.lines, ""))
	if b.Len() == 0 {
		b.WriteString("# Expected failures. Each is checked both ways: «pi-conform baseline prune» removes those that no longer happen.\n")
	} else if !strings.HasSuffix(b.String(), "\n") {
		b.WriteString("\n")
	}
	for _, e := range entries {
		b.WriteString(e.String())
	}
	return b.String(), len(entries)
}

// missing are the entries that the report lacks.
func missing(rep *report.Report) []Entry {
	reason := "known to fail in " + strings.TrimSpace(rep.Subject.String()+", edition "+rep.Edition)
	type kind struct {
		status Status
		rule   string
	}
	failing := map[kind][]string{}
	for _, f := range rep.Broken(conformance.Must) {
		failing[kind{Fail, f.Rule}] = append(failing[kind{Fail, f.Rule}], f.Case)
	}
	for _, u := range rep.Unexpected() {
		if status, known := statusOf(u); known {
			failing[kind{status, ""}] = append(failing[kind{status, ""}], u.Case)
		}
	}
	var entries []Entry
	for k, names := range failing {
		for _, pattern := range fewest(names, rep.Results) {
			entries = append(entries, Entry{Match: pattern, Rule: k.rule, Status: k.status, Reason: reason})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(string(a.Status), string(b.Status)), strings.Compare(a.Match, b.Match))
	})
	return entries
}

func statusOf(u report.Unclear) (Status, bool) {
	for status, outcome := range outcomes {
		if outcome == report.StatusOf(u.Outcome) {
			return status, true
		}
	}
	return "", false
}

// fewest are the fewest patterns that match all those names and no other case
// that was run: the first parts of a name, where everything below them is among
// those names.
func fewest(names []string, results []report.Result) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	var patterns []string
	for _, name := range names {
		if slices.ContainsFunc(patterns, func(p string) bool { return pick.Matches(p, name) }) {
			continue
		}
		patterns = append(patterns, widest(name, names, results))
	}
	return patterns
}

func widest(name string, names []string, results []report.Result) string {
	parts := strings.Split(name, "/")
	for n := 1; n < len(parts); n++ {
		pattern := strings.Join(parts[:n], "/")
		below := 0
		only := !slices.ContainsFunc(results, func(r report.Result) bool {
			if !pick.Matches(pattern, r.Case) || r.Status == report.StatusNotApplicable {
				return false
			}
			below++
			return !slices.Contains(names, r.Case)
		})
		if only && below > 1 {
			return pattern
		}
	}
	return name
}

// String is the entry as it is written in a file.
func (e *Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- match: %s\n", quoted(e.Match))
	if e.Rule != "" {
		fmt.Fprintf(&b, "  rule: %s\n", e.Rule)
	}
	if e.Status != Fail {
		fmt.Fprintf(&b, "  status: %s\n", e.Status)
	}
	fmt.Fprintf(&b, "  reason: %s\n", quoted(e.Reason))
	return b.String()
}

// quoted is a text as YAML reads it back, whatever it holds.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
