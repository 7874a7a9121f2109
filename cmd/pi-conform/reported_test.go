package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
)

const reportedFile = "../../docs/REPORTED.md"

// TestReportedCases holds docs/REPORTED.md, which says of each case that comes from
// a public report which releases show it, to what the releases do.
func TestReportedCases(t *testing.T) {
	if os.Getenv("PI_CONFORM_NPM") == "" && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: NO REAL LOOP IS JUDGED. They are installed with npm, which needs a network: set PI_CONFORM_NPM=1")
	}
	names := []string{"pi@0.73.1", "pi@0.75.5", "pi@0.80.2", "pi@0.84.3", "pi@0.84.4", "pi@0.87.1", "pi@1.6.0", "oh-my-pi@18.2.3"}
	broken := map[string]map[string]string{}
	for _, name := range names {
		broken[name] = reported(t, name)
	}
	want := reportedTable(t, names, broken)
	if *update {
		if err := os.WriteFile(reportedFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(reportedFile); err != nil || string(got) != want {
		t.Errorf("%s is not what the releases do (%v): run this test with -update and look at what has changed\n%s", reportedFile, err, want)
	}
}

// reported are the rules that a release breaks in each of the cases, by case; a
// case that it cannot run is left out.
func reported(t *testing.T, name string) map[string]string {
	t.Helper()
	p := newProgram(nil, io.Discard, io.Discard)
	f := &matrixFlags{subjectFlags: subjectFlags{timeoutScale: 4}, seed: 1}
	f.run = []string{"reports/**"}
	result, err := p.survey(context.Background(), f, name)
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for _, r := range result.Report.Results {
		switch r.Status {
		case report.StatusNotApplicable, report.StatusNotRun:
		case report.StatusPassed, report.StatusFailed, report.StatusExpected:
			cells[r.Case] = "·"
		case report.StatusCrashed, report.StatusTimeout, report.StatusFlaky, report.StatusInconclusive:
			cells[r.Case] = string(r.Status)
		}
	}
	for _, f := range result.Report.Findings {
		cells[f.Case] = strings.TrimSpace(strings.TrimPrefix(cells[f.Case], "·") + " " + f.Rule)
	}
	return cells
}

func reportedTable(t *testing.T, names []string, broken map[string]map[string]string) string {
	t.Helper()
	cases, err := suite.Cases()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Cases from public reports\n\n<!-- Written by «go test ./cmd/pi-conform -run TestReportedCases -update» from a real run: do not edit. -->\n\n" +
		"Which releases show what was reported: the rules that each breaks in the case, of every level, by the newest edition that is not\n" +
		"above it and the case's own order. A dot: none. Empty: the case is not for that edition, or needs what the release lacks.\n" +
		"`pi-conform show CASE` tells its story.\n\n")
	fmt.Fprintf(&b, "| case | reported in | %s |\n|---|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, c := range slices.DeleteFunc(cases, notReported) {
		fmt.Fprintf(&b, "| %s | %s |", c.Name, c.Origin)
		for _, name := range names {
			fmt.Fprintf(&b, " %s |", broken[name][c.Name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

func notReported(c *harness.CaseFile) bool { return !strings.HasPrefix(c.Name, "reports/") }
