// Package defect is what the references beside the loop have in common that can be
// broken on purpose: the session, the view, and the parts of the progress channel.
// Each has a type of names of its own defects, and a list of mutants:
//
//	type Mutant = defect.Mutant[Defect]
package defect

// Mutant is a reference with one defect.
type Mutant[D ~string] struct {
	Defect D
	Name   string // the defect's
	Rule   string // id of the rule that has to find it first
	Story  string // what a user would meet
}

// Named gives each mutant the name of its defect.
func Named[D ~string](all []Mutant[D]) []Mutant[D] {
	for i := range all {
		all[i].Name = string(all[i].Defect)
	}
	return all
}
