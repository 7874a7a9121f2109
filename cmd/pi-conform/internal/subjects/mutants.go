package subjects

import (
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/loop"
)

// Mutant is the reference loop with one defect.
type Mutant struct {
	Name       string
	Rule       string // id of the rule that has to find it first
	Story      string
	Defect     loop.Defect
	Equivalent string // why no rule can find it, if that is so
}

// Mutants are all mutants, in a fixed order.
func Mutants() []Mutant {
	var all []Mutant
	for _, d := range loop.KnownDefects() {
		all = append(all, Mutant{Name: string(d), Defect: d})
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
