// Package faulty names the ways in which the reference loop can be made to break
// the contract: its mutants. Each is one defect of the one loop, not a loop of
// its own. They show what the rules are worth: a rule that finds no mutant may
// as well not be there.
package faulty

import (
	"fmt"
	"slices"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/spelling"
	"github.com/pi-conform/pi-conform/loop"
)

// Mutant is the reference loop with one defect.
type Mutant struct {
	Name   string
	Defect loop.Defect
	// Rule is the id of the rule whose finding has to come first among those
	// that a conforming loop must not have, in some case of the standard suite.
	Rule string
	// Edition is where the defect makes a difference; empty means the default.
	Edition edition.Edition
	Story   string // one sentence: what goes wrong for a user
	// Equivalent says why the mutant cannot be told from the right loop; empty
	// if it can.
	Equivalent string
	// Driver is «bubble» if only goroutines with the race detector show the
	// defect; otherwise it is empty.
	Driver string
}

// All are all mutants, family by family.
func All() []Mutant { return slices.Clone(all) }

// Lookup gives the mutant of that name. The error for an unknown one names the
// nearest.
func Lookup(name string) (Mutant, error) {
	for _, m := range all {
		if m.Name == name {
			return m, nil
		}
	}
	return Mutant{}, fmt.Errorf("unknown mutant %q%s", name, didYouMean(name))
}

// all is the whole list, made once.
var all = slices.Concat(runsAndStreams, order, updates, truncation, abort, errorsAndHooks, queuesAndState, more)

// mutant is one that any driver shows in the default edition.
func mutant(d loop.Defect, rule, story string) Mutant {
	return Mutant{Name: string(d), Defect: d, Rule: rule, Story: story}
}

func (m Mutant) inEdition(e edition.Edition) Mutant {
	m.Edition = e
	return m
}

func (m Mutant) equivalent(reason string) Mutant {
	m.Equivalent = reason
	return m
}

func (m Mutant) inBubble() Mutant {
	m.Driver = "bubble"
	return m
}

// didYouMean names the mutant whose name is nearest to what was written, if it
// is near enough to be meant.
func didYouMean(name string) string {
	best, distance := "", 1+len(name)/3
	for i := range all {
		if d := spelling.Distance(name, all[i].Name); d < distance {
			best, distance = all[i].Name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
