package html_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/report/html"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/faulty"
)

// lateUpdate is the report of a loop that passes on late updates.
func lateUpdate(t *testing.T) *report.Report {
	t.Helper()
	cases, err := suite.Cases()
	if err != nil {
		t.Fatal(err)
	}
	mutant, err := faulty.Lookup("late-update-accepted")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := suite.Run(t.Context(), reference.New(mutant.Defect), cases, suite.Options{
		Tool: "pi-conform test", Edition: edition.Default, Reference: reference.New(), Jobs: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// attack is a text that a browser would run if anything let it.
const attack = `</script><script>window.pwned=1</script><img src=x onerror="window.pwned=2">"'` + "`${window.pwned=3}`" + `<!--\u2028` + "\u2028\x1b[31m"

// hostile is a report in which every text that comes from outside is an attack.
func hostile() *report.Report {
	t := &trace.Trace{Header: trace.Header{Case: attack, Form: trace.FormAgent}}
	yes := true
	t.Entries = []trace.Entry{
		{Step: 1, Kind: trace.KindAction, Label: attack, Name: attack, Answer: &trace.Answer{Text: attack}},
		{Step: 1, Kind: trace.KindEvent, Event: &trace.Event{Type: trace.ToolExecutionEnd, ToolCallID: attack, ToolName: attack, IsError: &yes, Result: &trace.Result{Content: trace.TextContent(attack)}}},
		{Step: 2, Kind: trace.KindCall, Name: "tool/" + attack, Payload: &trace.Payload{ToolCallID: attack}},
		{Step: 2, Kind: trace.KindEvent, Event: &trace.Event{Type: attack, ToolCallID: attack}},
		{Step: 2, Kind: trace.KindEnd, Outcome: trace.Outcome(attack), Message: attack, Pending: []string{attack}},
	}
	seed := uint64(7)
	return &report.Report{
		Schema: report.Schema, Tool: attack, Edition: attack, Notes: []string{attack},
		Subject: report.Subject{Name: attack, Version: attack},
		Rules:   []report.Rule{{ID: attack, Level: conformance.Must, Status: conformance.StatusFail, Reason: attack}},
		Findings: []report.Finding{{
			Rule: attack, Level: conformance.Must, Message: attack, Case: attack, Seed: &seed, Entries: []int{1, 3},
			Count: 2, Replay: attack, Trace: t, Reference: t,
		}},
		Unclear: []report.Unclear{{Case: attack, Outcome: trace.Outcome(attack), Message: attack, Expected: attack}},
		Results: []report.Result{{Case: attack, Status: report.StatusNotRun, Message: attack}},
		Stale:   []report.Stale{{File: attack, Line: 1, Match: attack, Rule: attack}},
	}
}

// many is a report with that many findings, each with traces of its own.
func many(t *testing.T, n int) *report.Report {
	rep := lateUpdate(t)
	some := rep.Findings
	rep.Findings = nil
	for i := range n {
		f := some[i%len(some)]
		f.Case = fmt.Sprintf("%s-%d", f.Case, i)
		own, good := *f.Trace, *f.Reference
		f.Trace, f.Reference = &own, &good
		rep.Findings = append(rep.Findings, f)
	}
	return rep
}

// write writes the page of a report into a file, and gives its address.
func write(t *testing.T, rep *report.Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := html.Write(&page, rep); err != nil {
		t.Fatal(err)
	}
	return save(t, page.Bytes())
}

func save(t *testing.T, page []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// TestPageStandsAlone looks at the text of the page alone.
func TestPageStandsAlone(t *testing.T) {
	var page bytes.Buffer
	if err := html.Write(&page, lateUpdate(t)); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, loads := range regexp.MustCompile(`(?i)(src|href)="?(https?:)?//[^"]*`).FindAllString(text, -1) {
		t.Errorf("the page refers to something outside: %s", loads)
	}
	for _, want := range []string{"default-src 'none'", "UPD-2", "pi-conform replay"} {
		if !strings.Contains(text, strings.ReplaceAll(want, "'", "&#39;")) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestHostileText: whatever the subject printed is text.
func TestHostileText(t *testing.T) {
	var page bytes.Buffer
	if err := html.Write(&page, hostile()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "</script>"); n != 2 { // the data, and the page's own
		t.Errorf("the page has %d ends of scripts, want 2", n)
	}
	if strings.Contains(page.String(), "<img") {
		t.Error("an element of the subject's making is in the page")
	}
}
