package acp_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/fixtures"
)

func judge(text string, p acp.Profile) *acp.Judge {
	j := acp.New(p)
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		j.Line(i+1, []byte(line))
	}
	j.End()
	return j
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(fixtures.FS, "acp/"+name+".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// broken are the made-up logs that break a rule, with the line at which that
// becomes evident.
var broken = []struct {
	log, rule string
	line      int
}{
	{"01-answered-twice", "ACP-1", 7},
	{"01-no-object", "ACP-1", 6},
	{"01-unknown-id", "ACP-1", 6},
	{"01-result-and-error", "ACP-1", 6},
	{"02-update-before-call", "ACP-2", 6},
	{"03-update-after-end", "ACP-3", 8},
	{"03-second-end", "ACP-3", 8},
	{"04-left-open", "ACP-4", 8},
	{"04-left-open-when-cancelled", "ACP-4", 8},
	{"05-back-to-pending", "ACP-5", 7},
	{"05-announced-twice", "ACP-5", 7},
	{"06-error", "ACP-6", 7},
	{"06-other-reason", "ACP-6", 7},
	{"06-update-afterwards", "ACP-6", 10},
	{"07-text-afterwards", "ACP-7", 7},
	{"08-before-the-session", "ACP-8", 4},
	{"08-replay-afterwards", "ACP-8", 7},
	{"09-relative-path", "ACP-9", 6},
	{"09-relative-diff", "ACP-9", 7},
	{"09-no-capability", "ACP-9", 6},
	{"10-not-announced", "ACP-10", 6},
	{"10-not-waited-for", "ACP-10", 8},
	{"11-other-session", "ACP-11", 10},
	{"11-end-for-the-other", "ACP-11", 12},
	{"12-progress", "ACP-12", 13},
	{"12-other-card", "ACP-12", 12},
	{"12-missing", "ACP-12", 12},
}

func TestBroken(t *testing.T) {
	for _, b := range broken {
		t.Run(b.log, func(t *testing.T) {
			j := judge(read(t, b.log), acp.Seed)
			at := slices.IndexFunc(j.Findings, func(f acp.Finding) bool { return f.Rule == b.rule && slices.Max(f.Lines) == b.line })
			if at < 0 || j.Findings[at].Level != conformance.Must {
				t.Errorf("%+v", j.Findings)
			}
			rule := j.Results()[slices.IndexFunc(acp.Rules(), func(r acp.Rule) bool { return r.ID == b.rule })]
			if rule.Status != conformance.StatusFail {
				t.Errorf("%+v", rule)
			}
		})
	}
}

// keeping is the name of the log that keeps a rule.
func keeping(r acp.Rule) string {
	number := strings.TrimPrefix(r.ID, "ACP-")
	if len(number) == 1 {
		number = "0" + number
	}
	return number + "-kept"
}

// TestKept holds that a log which keeps a rule exercises it, and breaks none.
func TestKept(t *testing.T) {
	for i, rule := range acp.Rules() {
		for _, p := range []acp.Profile{acp.Spec, acp.Seed} {
			j := judge(read(t, keeping(rule)), p)
			if result := j.Results()[i]; len(j.Findings) > 0 || result.Status != conformance.StatusPass {
				t.Errorf("%s: %+v, %+v", rule.ID, result, j.Findings)
			}
		}
	}
}

func TestEveryLogIsUsed(t *testing.T) {
	for _, name := range fixtures.ACPLogs() {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "acp/"), ".jsonl")
		used := name == "version-2" || strings.HasSuffix(name, "-kept")
		for _, b := range broken {
			used = used || b.log == name
		}
		if !used {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// TestProfiles holds that what only the note demands is no failure by the
// protocol.
func TestProfiles(t *testing.T) {
	for log, want := range map[string]conformance.Level{
		"04-left-open": conformance.Should, "04-left-open-when-cancelled": conformance.Robust, "06-error": conformance.Must, "02-update-before-call": conformance.Should,
	} {
		if got := judge(read(t, log), acp.Spec).Findings[0].Level; got != want {
			t.Errorf("%s: %s, want %s", log, got, want)
		}
	}
}

func TestVersion2IsNotCovered(t *testing.T) {
	j := judge(read(t, "version-2"), acp.Seed)
	for _, r := range j.Results() {
		if r.Status != conformance.StatusNotApplicable || !strings.Contains(r.Reason, "version 2") {
			t.Errorf("%+v", r)
		}
	}
	if len(j.Findings) > 0 || len(j.Notes) != 1 {
		t.Errorf("%+v %q", j.Findings, j.Notes)
	}
}

// TestMarks holds that a log says the same with marks of who sent a line.
func TestMarks(t *testing.T) {
	arrow := map[bool]string{true: "--> ", false: "<-- "}
	word := map[bool]string{true: "client", false: "agent"}
	for name, mark := range map[string]func(client bool, line string) string{
		"arrows": func(client bool, line string) string { return arrow[client] + line },
		"records": func(client bool, line string) string {
			return `{"from":"` + word[client] + `","time":1,"message":` + line + `}`
		},
	} {
		for _, b := range broken {
			if b.log == "01-no-object" {
				continue
			}
			var marked strings.Builder
			for line := range strings.Lines(read(t, b.log)) {
				marked.WriteString(mark(isClients(line), strings.TrimSuffix(line, "\n")) + "\n")
			}
			want := judge(read(t, b.log), acp.Seed).Findings
			if got := judge(marked.String(), acp.Seed).Findings; len(got) != len(want) {
				t.Errorf("%s with %s: %+v, want %+v", b.log, name, got, want)
			}
		}
	}
}

func isClients(line string) bool {
	for _, part := range []string{`"initialize"`, "session/new", "session/load", "session/prompt", "session/cancel", `"outcome"`, `"terminalId"`, `{"content":"x"}`, `"no"`} {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// TestAgentsSideAlone holds that what depends on the client is not judged.
func TestAgentsSideAlone(t *testing.T) {
	for _, rule := range acp.Rules() {
		if j := judge(agentsSide(read(t, keeping(rule))), acp.Seed); len(j.Findings) > 0 {
			t.Errorf("%s: %+v", rule.ID, j.Findings)
		}
	}
	for log, rule := range map[string]string{
		"02-update-before-call": "ACP-2", "03-update-after-end": "ACP-3", "04-left-open": "ACP-4", "05-back-to-pending": "ACP-5",
	} {
		j := judge(agentsSide(read(t, log)), acp.Seed)
		if len(j.Findings) != 1 || j.Findings[0].Rule != rule {
			t.Errorf("%s: %+v", log, j.Findings)
		}
	}
	j := judge(agentsSide(read(t, "06-kept")), acp.Seed)
	if r := j.Results()[5]; r.Status != conformance.StatusNotApplicable {
		t.Errorf("%+v", r)
	}
}

func agentsSide(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !isClients(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}
