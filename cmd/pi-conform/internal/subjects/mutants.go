package subjects

import (
	"strings"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop/faulty"
	"github.com/pi-conform/pi-conform/loop/session"
	"github.com/pi-conform/pi-conform/loop/view"
)

// Mutant is the reference with one defect.
type Mutant struct {
	Name       string
	Rule       string // id of the rule that has to find it first
	Story      string
	Edition    edition.Edition // in which it shows; empty means the default one
	Equivalent string          // why no rule can find it, if that is so
	Racy       bool            // only goroutines with the race detector show it
	Reducer    harness.Reducer // the view that goes with it

	make func() harness.Driver
}

// Driver gives the mutant as a subject.
func (m *Mutant) Driver() harness.Driver { return m.make() }

// Mutants are all mutants, in a fixed order: of the loop, of the session layer,
// and of the view.
func Mutants() []Mutant {
	var all []Mutant
	for _, m := range faulty.All() {
		all = append(all, Mutant{
			Name: m.Name, Rule: m.Rule, Story: m.Story, Edition: m.Edition, Equivalent: m.Equivalent,
			Racy: m.Driver == "bubble", Reducer: view.Reducer{},
			make: func() harness.Driver { return reference.New(m.Defect) },
		})
	}
	for _, m := range session.Mutants() {
		all = append(all, Mutant{
			Name: m.Name, Rule: m.Rule, Story: m.Story, Reducer: view.Reducer{},
			make: func() harness.Driver {
				return reference.NewFaulty(reference.Defects{Session: []session.Defect{m.Defect}})
			},
		})
	}
	for _, m := range view.Mutants() {
		all = append(all, Mutant{
			Name: m.Name, Rule: m.Rule, Story: m.Story, Reducer: view.Reducer{Defects: view.Defects{m.Defect}},
			make: func() harness.Driver { return reference.New() },
		})
	}
	return all
}

// MutantsOf are those that name the rule.
func MutantsOf(rule string) []Mutant {
	var named []Mutant
	for _, m := range Mutants() {
		if m.Rule == rule {
			named = append(named, m)
		}
	}
	return named
}

// LookupMutant gives the mutant of that name, with or without «mutant:».
func LookupMutant(name string) (Mutant, error) {
	name = strings.TrimPrefix(name, mutantPrefix)
	var known []string
	for _, m := range Mutants() {
		if m.Name == name {
			return m, nil
		}
		known = append(known, m.Name)
	}
	return Mutant{}, exit.Usagef("unknown mutant %q%s; «pi-conform list mutants» names them", name, pick.DidYouMean(name, known))
}
