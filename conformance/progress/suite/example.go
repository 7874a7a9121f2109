package suite

import (
	"fmt"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
)

// exampleSeeds are how many seeds are searched for an example.
const exampleSeeds = 200

// Examples are a record that keeps a rule, which is the reference's, and one that
// breaks it before any other, which is a mutant's.
func Examples(r rules.Rule) (keeping, breaking *rules.Record, err error) {
	if keeping, err = keeps(r); err != nil {
		return nil, nil, err
	}
	breaking, err = breaks(r)
	return keeping, breaking, err
}

func keeps(r rules.Rule) (*rules.Record, error) {
	for seed := range uint64(exampleSeeds) {
		calls, flow, err := Mutant{}.Records(seed)
		if err != nil {
			return nil, err
		}
		for _, record := range []*rules.Record{calls, flow} {
			if v := rules.Check(record, []rules.Rule{r}); v.Exercised[r.ID] > 0 && len(v.Findings) == 0 {
				return record, nil
			}
		}
	}
	return nil, fmt.Errorf("no run exercises %s", r.ID)
}

func breaks(r rules.Rule) (*rules.Record, error) {
	for _, m := range Mutants() {
		for seed := uint64(0); m.Rule == r.ID && seed < exampleSeeds; seed++ {
			record, err := m.record(seed)
			if err != nil {
				return nil, err
			}
			if f := rules.Check(record, rules.Rules()).First(); f != nil && f.Rule == r.ID {
				return record, nil
			}
		}
	}
	return nil, fmt.Errorf("no mutant breaks %s", r.ID)
}
