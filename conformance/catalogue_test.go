package conformance_test

import (
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// No rule may be there that does not say what it means and why.
func TestRulesAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	whys := map[string]string{}
	for _, r := range conformance.Catalogue() {
		if seen[r.ID] {
			t.Errorf("two rules have the id %s", r.ID)
		}
		seen[r.ID] = true
		if other := whys[r.Why]; other != "" {
			t.Errorf("%s and %s have the same reason", r.ID, other)
		}
		whys[r.Why] = r.ID
		for fault, is := range map[string]bool{
			"its id does not begin with its family": !strings.HasPrefix(r.ID, string(r.Family)+"-"),
			"it has no level":                       r.Level != conformance.Must && r.Level != conformance.Should && r.Level != conformance.Robust,
			"its sentence is none":                  !isSentence(r.Sentence, 4),
			"its reason is no sentence":             !isSentence(r.Why, 7),
			"it has no source":                      r.Source == "",
			"it needs no evidence":                  len(r.Needs) == 0,
			"its editions are in the wrong order":   r.Until != "" && r.From.AtLeast(r.Until),
		} {
			if is {
				t.Errorf("%s: %s", r.ID, fault)
			}
		}
	}
}

func isSentence(text string, words int) bool {
	return len(strings.Fields(text)) >= words && strings.HasSuffix(text, ".") && strings.TrimSpace(text) == text
}

func TestLookup(t *testing.T) {
	if r, err := conformance.Lookup("upd-2"); err != nil || r.ID != "UPD-2" {
		t.Errorf("upd-2 gives %v, %v", r.ID, err)
	}
	if _, err := conformance.Lookup("UDP-2"); err == nil || !strings.Contains(err.Error(), `did you mean "UPD-2"?`) {
		t.Errorf("UDP-2 gives %v", err)
	}
	if _, err := conformance.Lookup("something else"); err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("something else gives %v", err)
	}
}

func TestSelect(t *testing.T) {
	all := len(conformance.Catalogue())
	for _, c := range []struct {
		patterns string
		want     int
	}{{"", all}, {"*", all}, {"upd-2", 1}, {"UPD", 8}, {"UPD-*", 8}, {"LEN-3 LEN-3s LEN-*", 6}} {
		rules, err := conformance.Select(strings.Fields(c.patterns)...)
		if err != nil || len(rules) != c.want {
			t.Errorf("%q selects %d rules (%v), not %d", c.patterns, len(rules), err, c.want)
		}
	}
	if _, err := conformance.Select("UPD-1", "NONE-*"); err == nil || !strings.Contains(err.Error(), "NONE-*") {
		t.Errorf("a pattern that matches nothing gives %v", err)
	}
}

func TestNotApplicableSaysWhy(t *testing.T) {
	tr := tell(t, answer, "")
	tr.Header.Evidence = []trace.Evidence{trace.EvidenceEvents}
	v := conformance.Check(tr, conformance.Catalogue(), conformance.InEdition(edition.V16))
	for rule, reason := range map[string]string{
		"TURN-8":  "edition: holds before 0.87.0",
		"LIS-5":   "form: cannot be judged in the form agent",
		"TOOL-3":  "evidence: the trace has no L",
		"PAR-9":   "evidence: the trace has no C",
		"STATE-1": "evidence: the trace has no S",
	} {
		got := result(&v, rule)
		if got.Status != conformance.StatusNotApplicable || got.Reason != reason {
			t.Errorf("%s: %s, %q", rule, got.Status, got.Reason)
		}
	}
	if got := result(&v, "PAR-8"); got.Status != conformance.StatusNotExercised {
		t.Errorf("PAR-8 without tools: %s", got.Status)
	}
}

func TestEdges(t *testing.T) {
	tr := tell(t, "tools: [a]\nmodel: [{calls: [{id: c1, name: a}]}]\nlisteners: [{throw: {tool_execution_end: cannot draw}}]\nuser: [{prompt: go}]", "")
	v := conformance.Check(tr, conformance.Catalogue())
	if v.Outcome != conformance.Pass {
		t.Errorf("a listener that throws: %+v", v.Findings)
	}
	if got := result(&v, "TOOL-9"); got.Status == conformance.StatusPass {
		t.Errorf("the call has no result, and TOOL-9 passes")
	}
	if got := result(&v, "RUN-7"); got.Status != conformance.StatusPass {
		t.Errorf("RUN-7: %s", got.Status)
	}
}

func TestLevelsByEdition(t *testing.T) {
	r, err := conformance.Lookup("ABRT-5")
	if err != nil {
		t.Fatal(err)
	}
	if r.LevelIn(edition.V0843) != conformance.Robust || r.LevelIn(edition.V16) != conformance.Must {
		t.Error("ABRT-5 is robust before 1.6, and must from there on")
	}
	tr := tell(t, stoppedOneByOne, "prompt/0 abort")
	v := conformance.Check(tr, conformance.Catalogue())
	if v.Outcome != conformance.Pass || len(findings(&v, "ABRT-5")) == 0 {
		t.Errorf("a robust finding must be reported and not fail: %s %+v", v.Outcome, v.Findings)
	}
}

func TestOutcomes(t *testing.T) {
	whole := tell(t, answer, "")
	for name, c := range map[string]struct {
		breaks func(*edit)
		want   conformance.Outcome
	}{
		"complete":              {func(*edit) {}, conformance.Pass},
		"crashed":               {func(e *edit) { ended(e, trace.OutcomeCrashed) }, conformance.Inconclusive},
		"hung":                  {func(e *edit) { ended(e, trace.OutcomeHung) }, conformance.Inconclusive},
		"truncated":             {func(e *edit) { ended(e, trace.OutcomeTruncated) }, conformance.Inconclusive},
		"no end":                {func(e *edit) { e.drop("end") }, conformance.Inconclusive},
		"broken, then crashed":  {func(e *edit) { e.drop("agent_start"); ended(e, trace.OutcomeCrashed) }, conformance.Fail},
		"deadlock":              {func(e *edit) { e.cut("agent_end", "end"); ended(e, trace.OutcomeDeadlock) }, conformance.Fail},
		"stalled by the script": {func(e *edit) { e.cut(">model/0/event/3", "end") }, conformance.Pass},
	} {
		e := with(t, whole)
		c.breaks(e)
		v := conformance.Check(e.tr, conformance.Catalogue())
		if v.Outcome != c.want {
			t.Errorf("%s: %s, %+v", name, v.Outcome, v.Findings)
		}
	}
}

func ended(e *edit, outcome trace.Outcome) {
	e.set("end", func(x *trace.Entry) { x.Outcome = outcome })
}

// A run that hangs after an abort is a matter of the abort.
func TestDeadlockAfterAbort(t *testing.T) {
	e := with(t, tell(t, stopped, "prompt/0 abort"))
	e.cut("tool_execution_end/c3", "end")
	ended(e, trace.OutcomeDeadlock)
	v := conformance.Check(e.tr, conformance.Catalogue())
	if len(findings(&v, "ABRT-10")) == 0 {
		t.Errorf("%s: %+v", v.Outcome, v.Findings)
	}
}

// The first finding is the one that became evident first, and the first of the
// catalogue where several did at one place.
func TestFirstFinding(t *testing.T) {
	e := with(t, tell(t, answer, ""))
	e.says("turn_end", "something else")
	e.again("message_end/user")
	v := conformance.Check(e.tr, conformance.Catalogue())
	first := v.First()
	if first == nil || first.Rule != "MSG-1" {
		t.Fatalf("first is %+v", first)
	}
	for i := 1; i < len(v.Findings); i++ {
		if v.Findings[i-1].Position() > v.Findings[i].Position() {
			t.Errorf("findings are not in order: %+v", v.Findings)
		}
	}
}
