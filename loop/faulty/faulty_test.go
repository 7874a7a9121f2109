package faulty_test

import (
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/faulty"
)

// TestEveryDefectIsAMutant: each defect of the loop is one mutant, in the same
// order, and none is left without its story.
func TestEveryDefectIsAMutant(t *testing.T) {
	known := loop.KnownDefects()
	all := faulty.All()
	if len(all) != len(known) {
		t.Fatalf("%d mutants of %d defects", len(all), len(known))
	}
	inList := map[loop.Defect]bool{}
	for _, d := range known {
		if inList[d] {
			t.Errorf("the defect %s is there twice", d)
		}
		inList[d] = true
	}
	for _, m := range all {
		if !inList[m.Defect] || m.Name != string(m.Defect) {
			t.Errorf("%s is a mutant of no defect, or of one that has another mutant", m.Name)
		}
		delete(inList, m.Defect)
		if m.Story == "" || !strings.HasSuffix(m.Story, ".") {
			t.Errorf("the story of %s is no sentence: %q", m.Name, m.Story)
		}
	}
}

// TestRulesExist: a mutant names a rule of the catalogue, unless only the race
// detector shows it.
func TestRulesExist(t *testing.T) {
	for _, m := range faulty.All() {
		if m.Driver != "" {
			continue
		}
		if _, err := conformance.Lookup(m.Rule); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func TestLookup(t *testing.T) {
	m, err := faulty.Lookup("late-update-accepted")
	if err != nil || m.Defect != loop.LateUpdateAccepted {
		t.Errorf("got %v, %v", m, err)
	}
	_, err = faulty.Lookup("late-update-acepted")
	if err == nil || !strings.Contains(err.Error(), `did you mean "late-update-accepted"?`) {
		t.Errorf("got %v", err)
	}
	_, err = faulty.Lookup("nothing of the kind")
	if err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}
