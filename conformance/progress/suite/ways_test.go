package suite_test

import (
	"testing"

	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
)

// TestGoroutines holds that the reference keeps the rules with goroutines too, of
// which one is woken at a time or several at once. It is worth most with the race
// detector.
func TestGoroutines(t *testing.T) {
	for _, how := range []suite.How{suite.InTurn, suite.AtOnce} {
		exercised := map[string]int{}
		for seed := range uint64(100) {
			record, err := suite.Reference().Calls(seed, how)
			if err != nil {
				t.Fatal(how, err)
			}
			v := progress.Check(record, progress.Rules())
			for rule, n := range v.Exercised {
				exercised[rule] += n
			}
			for _, f := range v.Findings {
				t.Errorf("%s, seed %d: %+v", how, seed, f)
			}
		}
		for _, rule := range []string{"PROG-3", "PROG-4", "PROG-5", "PROG-6", "BRIDGE-4", "BRIDGE-5", "BRIDGE-7"} {
			if exercised[rule] == 0 {
				t.Errorf("%s: %s is not exercised", how, rule)
			}
		}
	}
}

// TestBoundaryMutants holds that goroutines which race show what is wrong with the
// boundary (PROG-3, PROG-4, PROG-5).
func TestBoundaryMutants(t *testing.T) {
	for _, m := range suite.Mutants() {
		if (m.Rule == "PROG-3" || m.Rule == "PROG-4" || m.Rule == "PROG-5") && !foundBy(t, m, suite.AtOnce) {
			t.Errorf("%s is not found by %s", m.Name, m.Rule)
		}
	}
}

// TestMutantsInTurn holds that in a bubble, where other people's are judged, each
// mutant is found that is found as a coroutine.
func TestMutantsInTurn(t *testing.T) {
	for _, m := range suite.Mutants() {
		if !foundBy(t, m, suite.InTurn) {
			t.Errorf("%s is not found by %s", m.Name, m.Rule)
		}
	}
}

func foundBy(t *testing.T, m suite.Mutant, how suite.How) bool {
	t.Helper()
	rule, _ := progress.Lookup(m.Rule)
	for seed := range uint64(100) {
		for _, play := range []func(uint64, suite.How) (*progress.Record, error){m.Subject().Calls, m.Subject().Flow} {
			record, err := play(seed, how)
			if err != nil {
				t.Fatal(err)
			}
			if len(progress.Check(record, []progress.Rule{rule}).Findings) > 0 {
				return true
			}
		}
	}
	return false
}
