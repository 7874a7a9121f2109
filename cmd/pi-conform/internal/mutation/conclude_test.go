package mutation

import (
	"slices"
	"testing"
)

func TestConclude(t *testing.T) {
	s := &Score{
		Editions: []Edition{{Name: "1.6", Broken: []string{"MSG-1"}}, {Name: "0.84.3"}},
		Mutants: []Mutant{
			{Name: "dead", Rule: "UPD-2", Killed: true, Findings: []string{"UPD-2"}},
			{Name: "found by another", Rule: "UPD-2", Findings: []string{"UPD-4", "UPD-2"}},
			{Name: "alive", Rule: "LEN-1"},
			{Name: "the same", Equivalent: "nobody can see it"},
		},
		Rules: []Rule{{ID: "UPD-2", Exercised: 4}, {ID: "UPD-4", Exercised: 1}, {ID: "LEN-1", Reasons: []string{"1.6: no K"}}},
	}
	s.conclude()
	want := []string{
		"the reference breaks MSG-1 in edition 1.6",
		"mutant:found by another is found by UPD-4, UPD-2, but never first by UPD-2",
		"mutant:alive survives: LEN-1 should find it",
		"LEN-1 is never exercised (1.6: no K)",
	}
	if !slices.Equal(s.Short, want) {
		t.Errorf("short of %q, want %q", s.Short, want)
	}
	if s.Killed != 1 || s.Counted != 3 {
		t.Errorf("%d of %d killed, want 1 of 3", s.Killed, s.Counted)
	}
	if r := s.Rules[0]; r.Kills != 2 || r.Only != 1 {
		t.Errorf("UPD-2 kills %d, %d alone, want 2 and 1", r.Kills, r.Only)
	}
}
