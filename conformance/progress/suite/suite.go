package suite

import (
	"context"
	"fmt"
	"slices"

	"github.com/pi-conform/pi-conform/conformance"
	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/acp"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
)

// Mutant is the reference with one defect.
type Mutant struct {
	Name  string `json:"name"`
	Rule  string `json:"rule"` // id of the rule that has to find it first
	Story string `json:"story"`

	defects defects
}

// Mutants are all mutants, in a fixed order.
func Mutants() []Mutant {
	var all []Mutant
	for _, m := range progress.Mutants() {
		all = append(all, Mutant{Name: m.Name, Rule: m.Rule, Story: m.Story, defects: defects{registry: progress.Defects{m.Defect}}})
	}
	for _, m := range acp.Mutants() {
		all = append(all, Mutant{Name: m.Name, Rule: m.Rule, Story: m.Story, defects: defects{bridge: acp.Defects{m.Defect}}})
	}
	for _, m := range workflow.Mutants() {
		all = append(all, Mutant{Name: m.Name, Rule: m.Rule, Story: m.Story, defects: defects{workflow: workflow.Defects{m.Defect}}})
	}
	return all
}

// Subject is the mutant. The zero Mutant is the reference.
func (m Mutant) Subject() Subject { return referenceWith(m.defects) }

// Records are what the mutant does under a seed, as coroutines: its calls, and its
// workflow.
func (m Mutant) Records(seed uint64) (calls, flow *rules.Record, err error) {
	if calls, err = m.Subject().Calls(seed, Coroutines); err != nil {
		return nil, nil, err
	}
	flow, err = m.Subject().Flow(seed, Coroutines)
	return calls, flow, err
}

// Score is what the rules are worth.
type Score struct {
	Seeds   int           `json:"seeds"`
	Rules   []RuleScore   `json:"rules"`
	Mutants []MutantScore `json:"mutants"`
	Killed  int           `json:"killed"`
	Short   []string      `json:"short"` // what falls short; nothing if all is as it should be
}

// RuleScore is what one rule was worth.
type RuleScore struct {
	ID        string `json:"id"`
	Exercised int    `json:"exercised"` // occasions on the reference
	Kills     int    `json:"kills"`
}

// MutantScore is what became of one mutant.
type MutantScore struct {
	Name   string   `json:"name"`
	Rule   string   `json:"rule"`
	Killed bool     `json:"killed"` // by its rule, as the first finding under a seed
	Seed   uint64   `json:"seed"`
	Seeds  int      `json:"seeds"`           // that were run
	Others []string `json:"others,omitzero"` // rules that found it first under another seed
}

// Measure runs the reference under as many seeds as that, and each mutant until
// its rule has found it. Families chooses rules and mutants; nil is all.
func Measure(ctx context.Context, families []conformance.Family, seeds int) (*Score, error) {
	s := &Score{Seeds: seeds, Short: []string{}}
	chosen := slices.DeleteFunc(rules.Rules(), func(r rules.Rule) bool {
		return families != nil && !slices.Contains(families, r.Family)
	})
	for _, r := range chosen {
		s.Rules = append(s.Rules, RuleScore{ID: r.ID})
	}
	if err := s.reference(ctx, chosen); err != nil {
		return nil, err
	}
	for _, m := range Mutants() {
		if slices.ContainsFunc(chosen, func(r rules.Rule) bool { return r.ID == m.Rule }) {
			if err := s.mutant(ctx, m); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range s.Rules {
		if r.Exercised == 0 {
			s.Short = append(s.Short, r.ID+" is exercised by nothing")
		}
		if r.Kills == 0 {
			s.Short = append(s.Short, r.ID+" kills no mutant")
		}
	}
	return s, nil
}

func (s *Score) reference(ctx context.Context, chosen []rules.Rule) error {
	for seed := range uint64(s.Seeds) {
		if err := ctx.Err(); err != nil {
			return err
		}
		calls, flow, err := Mutant{}.Records(seed)
		if err != nil {
			return err
		}
		for _, record := range []*rules.Record{calls, flow} {
			v := rules.Check(record, chosen)
			for i := range s.Rules {
				s.Rules[i].Exercised += v.Exercised[s.Rules[i].ID]
			}
			for _, f := range v.Findings {
				s.Short = append(s.Short, fmt.Sprintf("the reference breaks %s under seed %d: %s", f.Rule, seed, f.Message))
			}
		}
	}
	return nil
}

func (s *Score) mutant(ctx context.Context, m Mutant) error {
	score := MutantScore{Name: m.Name, Rule: m.Rule}
	for seed := range uint64(s.Seeds) {
		if err := ctx.Err(); err != nil {
			return err
		}
		score.Seed, score.Seeds = seed, score.Seeds+1
		first, err := m.firstRule(seed)
		if err != nil {
			return err
		}
		if first == m.Rule {
			score.Killed = true
			break
		}
		if first != "" && !slices.Contains(score.Others, first) {
			score.Others = append(score.Others, first)
		}
	}
	s.count(score)
	return nil
}

func (s *Score) count(score MutantScore) {
	s.Mutants = append(s.Mutants, score)
	if !score.Killed {
		s.Short = append(s.Short, fmt.Sprintf("mutant %s is not found first by %s", score.Name, score.Rule))
		return
	}
	s.Killed++
	for i := range s.Rules {
		if s.Rules[i].ID == score.Rule {
			s.Rules[i].Kills++
		}
	}
}

// firstRule is the rule whose finding is the first under a seed, or empty.
func (m Mutant) firstRule(seed uint64) (string, error) {
	record, err := m.record(seed)
	if err != nil {
		return "", err
	}
	if f := rules.Check(record, rules.Rules()).First(); f != nil {
		return f.Rule, nil
	}
	return "", nil
}

// record is that of the part which has the mutant's defect.
func (m Mutant) record(seed uint64) (*rules.Record, error) {
	if m.defects.workflow != nil {
		return m.Subject().Flow(seed, Coroutines)
	}
	return m.Subject().Calls(seed, Coroutines)
}
