package conformancetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// tell makes subtests of what was found.
func (r *runner) tell() {
	r.collect()
	r.t.Logf("%s, edition %s: %d cases (%d left out), %d schedules; %d cases replayed",
		r.subject.Name, r.edition, r.report.Cases, len(r.report.Skipped), r.report.Schedules, r.steady)
	if r.explored != nil {
		r.t.Logf("explored, from seed %d:\n%s", r.seed, strings.Join(r.explored.Established(), "\n"))
	}
	for i := range r.report.Rules {
		rule := &r.report.Rules[i]
		r.t.Run(rule.ID, func(t *testing.T) { r.rule(t, rule) })
	}
	r.t.Run("ends", func(t *testing.T) { r.others(t, func(kind string) bool { return kind != fuzz.NotDeterministic }) })
	r.t.Run("deterministic", func(t *testing.T) { r.others(t, func(kind string) bool { return kind == fuzz.NotDeterministic }) })
}

// collect adds what the suite found to the rest.
func (r *runner) collect() {
	for i := range r.report.Findings {
		f := &r.report.Findings[i]
		from, token := "case "+f.Case, f.Case
		if f.Seed != nil {
			from, token = fmt.Sprintf("%s, schedule drawn by seed %d", from, *f.Seed), fmt.Sprintf("%s@%d", f.Case, *f.Seed)
		}
		r.found = append(r.found, finding{
			kind: f.Rule, level: f.Level, message: f.Message, entries: f.Entries, trace: f.Trace, from: from, replay: token,
		})
	}
	for _, u := range r.report.Unclear {
		r.found = append(r.found, finding{
			kind: string(u.Outcome), message: u.Message + "\nschedule: " + strings.Join(u.Schedule, " "),
			from: "case " + u.Case, replay: r.tokenOf(u),
		})
	}
}

func (r *runner) tokenOf(u report.Unclear) string {
	i := slices.IndexFunc(r.cases, func(c *harness.CaseFile) bool { return c.Name == u.Case })
	if _, seed := suite.Schedule(r.cases[i], r.seed, u.Number); seed != nil {
		return fmt.Sprintf("%s@%d", u.Case, *seed)
	}
	return u.Case
}

// rule is the subtest of one rule.
func (r *runner) rule(t *testing.T, rule *report.Rule) {
	found := r.of(func(kind string) bool { return kind == rule.ID })
	reason, expected := r.expected[rule.ID]
	switch {
	case len(found) > 0 && expected:
		t.Skipf("expected to fail: %s (%d findings, such as: %s)", reason, len(found), found[0].message)
	case len(found) > 0 && r.fails(rule.Level):
		r.show(t, found)
	case len(found) > 0:
		t.Skipf("broken, which does not fail the test at the level %s: %s", rule.Level, r.describe(found[0]))
	case expected && rule.Status == conformance.StatusPass:
		t.Errorf("it is kept, and was expected to fail: %s", reason)
	case rule.Status == conformance.StatusNotApplicable:
		t.Skipf("not applicable: %s", rule.Reason)
	case rule.Status == conformance.StatusNotExercised:
		t.Skip("not exercised: no case had an occasion to keep or break it")
	}
}

// others is the subtest of what is not about rules.
func (r *runner) others(t *testing.T, is func(kind string) bool) {
	r.show(t, r.of(func(kind string) bool {
		_, err := conformance.Lookup(kind)
		return err != nil && is(kind)
	}))
}

func (r *runner) of(is func(kind string) bool) []*finding {
	var found []*finding
	for i := range r.found {
		if is(r.found[i].kind) {
			found = append(found, &r.found[i])
		}
	}
	return found
}

// shownFindings are told in full; of the rest, where they are is enough.
const shownFindings, namedFindings = 2, 8

func (r *runner) show(t *testing.T, found []*finding) {
	t.Helper()
	slices.SortStableFunc(found, func(a, b *finding) int { return a.weight() - b.weight() })
	for i, f := range found {
		switch {
		case i < shownFindings:
			t.Error(r.describe(f))
		case i < namedFindings:
			t.Logf("also %s in %s: %s", f.kind, f.from, r.command(f.replay))
		case i == namedFindings:
			t.Logf("and %d more", len(found)-i)
			return
		}
	}
}

// weight puts what was saved first, and then what is easier to follow.
func (f *finding) weight() int {
	if f.saved || f.trace == nil {
		return 0
	}
	return len(f.trace.Entries)
}

// describe is a finding for people: the rule, what is wrong, the entries that clash
// with what stands around them, and how to see it again.
func (r *runner) describe(f *finding) string {
	var b strings.Builder
	if rule, err := conformance.Lookup(f.kind); err == nil {
		fmt.Fprintf(&b, "%s (%s): %s\n", f.kind, f.level, rule.Sentence)
	} else {
		fmt.Fprintf(&b, "%s\n", f.kind)
	}
	fmt.Fprintf(&b, "%s: %s\n", f.from, f.message)
	if f.trace != nil {
		b.WriteString(excerpt(f.trace, f.entries))
	}
	fmt.Fprintf(&b, "replay: %s", r.command(f.replay))
	return b.String()
}

const around = 3 // entries that are shown before and after one that clashes

// excerpt are the entries that clash and those around them.
func excerpt(t *trace.Trace, entries []int) string {
	var b strings.Builder
	last := -1
	for i := range t.Entries {
		near := slices.ContainsFunc(entries, func(e int) bool { return i >= e-around && i <= e+around })
		if !near {
			continue
		}
		if i > last+1 {
			fmt.Fprintf(&b, "      … %d entries\n", i-last-1)
		}
		mark := " "
		if slices.Contains(entries, i) {
			mark = "▶"
		}
		line, _, _ := strings.Cut(trace.Line(&t.Entries[i]), "\n")
		fmt.Fprintf(&b, "  %s %3d %s\n", mark, t.Entries[i].Step, line)
		last = i
	}
	return b.String()
}
