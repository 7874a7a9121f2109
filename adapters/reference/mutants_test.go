package reference_test

import (
	"fmt"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/faulty"
)

// schedules are drawn for each case, besides its own.
const schedules = 3

// TestReferenceIsClean: the reference has no finding of the level MUST in any
// case, in either edition.
func TestReferenceIsClean(t *testing.T) {
	for _, e := range edition.Known() {
		s := newSuite(t, e)
		for n := range 1 + schedules {
			s.each(t, reference.New(), n, func(r *judged) {
				if r.level == conformance.Must {
					t.Errorf("edition %s, %s: %s", e, r.name, r.message)
				}
				if r.outcome != trace.OutcomeComplete {
					t.Errorf("edition %s, %s ends %s", e, r.name, r.outcome)
				}
			})
		}
	}
}

// TestMutantsAreKilled: the rule that a mutant names finds it, as the first of
// all MUST rules, or of the SHOULD rules if no other is broken, in the edition
// that it names.
func TestMutantsAreKilled(t *testing.T) {
	for _, m := range faulty.All() {
		if m.Equivalent != "" || m.Driver != "" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			e := m.Edition
			if e == "" {
				e = edition.Default
			}
			killed, others := hunt(t, newSuite(t, e), m)
			if len(killed) == 0 {
				t.Fatalf("%s does not find it first in any case; found first: %v", m.Rule, others)
			}
			t.Logf("%s finds it in %d cases, such as %s", m.Rule, len(killed), killed[0])
		})
	}
}

// hunt gives the cases in whose own schedule the mutant's rule finds it first, or
// if there is none, the first drawn schedules in which it does; and how often
// which other rule did.
func hunt(t *testing.T, s *caseSuite, m faulty.Mutant) (killed []string, others map[string]int) {
	others = map[string]int{}
	driver := reference.New(m.Defect)
	for n := 0; n <= schedules && len(killed) == 0; n++ {
		s.each(t, driver, n, func(r *judged) {
			switch {
			case r.level == conformance.Robust || r.first == "":
			case r.first == m.Rule:
				killed = append(killed, r.name)
			default:
				others[r.first]++
			}
		})
	}
	return killed, others
}

// TestEquivalentMutantsAreNotFound: what is said to be equivalent breaks no rule.
func TestEquivalentMutantsAreNotFound(t *testing.T) {
	for _, m := range faulty.All() {
		if m.Equivalent == "" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for _, e := range edition.Known() {
				s := newSuite(t, e)
				for n := range 1 + schedules {
					s.each(t, reference.New(m.Defect), n, func(r *judged) {
						if r.level == conformance.Must {
							t.Errorf("edition %s, %s: %s", e, r.name, r.message)
						}
					})
				}
			}
		})
	}
}

// TestLeakIsSeen: a task that is left behind ends the recording with an outcome
// of its own, on goroutines as on coroutines.
func TestLeakIsSeen(t *testing.T) {
	s := newSuite(t, edition.Default)
	for _, d := range []harness.Driver{reference.New(loop.LeakAfterAbort), reference.NewBubble(loop.LeakAfterAbort)} {
		leaked := 0
		s.each(t, d, 0, func(r *judged) {
			if r.outcome == trace.OutcomeLeaked {
				leaked++
			}
		})
		if leaked == 0 {
			t.Error("no recording says that a task was left behind")
		}
	}
}

// caseSuite are the cases of the standard suite in one edition. They are its own:
// running a case completes its scenario.
type caseSuite struct {
	edition edition.Edition
	cases   []*harness.CaseFile
	rules   []conformance.Rule
}

func newSuite(t *testing.T, e edition.Edition) *caseSuite {
	t.Helper()
	cases, err := suite.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return &caseSuite{edition: e, cases: cases, rules: conformance.Catalogue()}
}

// judged is one schedule of one case.
type judged struct {
	name    string
	first   string // id of the rule of the highest level that is broken first, or empty
	level   conformance.Level
	message string
	outcome trace.Outcome
}

// each runs schedule number n of every case and judges it.
func (s *caseSuite) each(t *testing.T, d harness.Driver, n int, see func(*judged)) {
	t.Helper()
	for _, c := range s.cases {
		if c.Pinned && c.Case.Scenario.Edition != s.edition {
			continue
		}
		_, seed := suite.Schedule(c, 1, n)
		rep, rec, err := suite.One(t.Context(), d, c, seed, suite.Options{Edition: s.edition, Rules: s.rules})
		if err != nil {
			t.Fatal(err)
		}
		r := &judged{name: c.Name, outcome: rec.Trace.Entries[len(rec.Trace.Entries)-1].Outcome}
		if n > 0 {
			r.name = fmt.Sprintf("%s, drawn schedule %d", c.Name, n)
		}
		if f := rep.First(); f != nil {
			r.first, r.level, r.message = f.Rule, f.Level, fmt.Sprintf("%s: %s", f.Rule, f.Message)
		}
		see(r)
	}
}
