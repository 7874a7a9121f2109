package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

// Merge makes one report of those of the shards of one run. With all shards it
// is the same as that of the run in one piece; shards that are missing make it
// partial, and a note names them.
func Merge(shards []*Report) (*Report, error) {
	if len(shards) == 0 {
		return nil, errors.New("there is nothing to merge")
	}
	if err := belong(shards); err != nil {
		return nil, err
	}
	shards = slices.SortedFunc(slices.Values(shards), func(a, b *Report) int { return a.Shard.Index - b.Shard.Index })
	m := merger{results: map[string]*Result{}}
	for _, shard := range shards {
		if err := m.add(shard); err != nil {
			return nil, err
		}
	}
	return m.finish(shards), nil
}

// belong says what speaks against these being shards of one run.
func belong(shards []*Report) error {
	first := shards[0]
	seen := map[int]bool{}
	for _, r := range shards {
		switch {
		case r.Shard == nil:
			return errors.New("a report is not one of a shard: there is nothing to merge it with")
		case r.Shard.Index < 1 || r.Shard.Index > r.Shard.Count:
			return fmt.Errorf("there is no shard %d of %d", r.Shard.Index, r.Shard.Count)
		case r.Plan != first.Plan || r.Shard.Count != first.Shard.Count:
			return fmt.Errorf("these are shards of different runs: %s, and %s", first.aboutShard(), r.aboutShard())
		case r.Subject != first.Subject:
			return fmt.Errorf("these are shards about different subjects: %s, and %s", first.Subject.String(), r.Subject.String())
		case seen[r.Shard.Index]:
			return fmt.Errorf("shard %d of %d is there twice", r.Shard.Index, r.Shard.Count)
		}
		seen[r.Shard.Index] = true
	}
	return nil
}

func (r *Report) aboutShard() string {
	return fmt.Sprintf("%d of %d (%s, edition %s, seed %d, %d cases, %d schedules each, plan %s)",
		r.Shard.Index, r.Shard.Count, r.Tool, r.Edition, r.Seed, r.Plan.Cases, 1+r.Plan.Schedules, r.Plan.ID)
}

type merger struct {
	whole   *Report
	results map[string]*Result
}

func (m *merger) add(r *Report) error {
	if m.whole == nil {
		whole := *r
		whole.Shard, whole.Schedules, whole.Partial = nil, 0, false
		whole.Results, whole.Findings, whole.Unclear, whole.Skipped, whole.Stale, whole.Notes = nil, nil, nil, nil, nil, nil
		whole.Rules = make([]Rule, len(r.Rules))
		for i, rule := range r.Rules {
			whole.Rules[i] = Rule{ID: rule.ID, Level: rule.Level}
		}
		m.whole = &whole
	}
	if len(r.Rules) != len(m.whole.Rules) {
		return fmt.Errorf("shard %d judges by %d rules, another one by %d", r.Shard.Index, len(r.Rules), len(m.whole.Rules))
	}
	for i, rule := range r.Rules {
		if rule.ID != m.whole.Rules[i].ID {
			return fmt.Errorf("shard %d has the rule %s where another one has %s", r.Shard.Index, rule.ID, m.whole.Rules[i].ID)
		}
		if r.Schedules > 0 { // a shard that got nothing to do says nothing
			m.whole.Rules[i].Add(rule)
		}
	}
	m.whole.Schedules += r.Schedules
	m.whole.Partial = m.whole.Partial || r.Partial
	for _, f := range r.Findings {
		m.whole.Findings = AddFinding(m.whole.Findings, f)
	}
	m.whole.Unclear = append(m.whole.Unclear, r.Unclear...)
	for _, s := range r.Skipped {
		if !slices.Contains(m.whole.Skipped, s) {
			m.whole.Skipped = append(m.whole.Skipped, s)
		}
	}
	for _, note := range r.Notes {
		if !slices.Contains(m.whole.Notes, note) {
			m.whole.Notes = append(m.whole.Notes, note)
		}
	}
	for _, result := range r.Results {
		m.addResult(result)
	}
	return nil
}

// addResult adds what a shard says of a case. Of a case that was not run
// everywhere nothing is known for certain.
func (m *merger) addResult(result Result) {
	have := m.results[result.Case]
	if have == nil {
		m.results[result.Case] = &result
		return
	}
	have.Schedules += result.Schedules
	if have.Status != StatusNotRun && (result.Status == StatusNotRun || result.Status == StatusNotApplicable) {
		have.Status, have.Message = result.Status, result.Message
	}
}

func (m *merger) finish(shards []*Report) *Report {
	whole := m.whole
	for _, result := range m.results {
		whole.Results = append(whole.Results, *result)
	}
	for i := range whole.Rules {
		whole.Rules[i].Status = cmp.Or(whole.Rules[i].Status, conformance.StatusNotExercised)
	}
	whole.Cases = 0
	for _, result := range whole.Results {
		if result.Status != StatusNotRun && result.Status != StatusNotApplicable {
			whole.Cases++
		}
	}
	if missing := missingShards(shards); len(missing) > 0 {
		whole.Partial = true
		whole.Notes = append(whole.Notes, fmt.Sprintf("missing of %d shards: %s", shards[0].Shard.Count, strings.Join(missing, ", ")))
	}
	whole.Settle()
	return whole
}

func missingShards(shards []*Report) []string {
	var missing []string
	for i := range shards[0].Shard.Count {
		if !slices.ContainsFunc(shards, func(r *Report) bool { return r.Shard.Index == i+1 }) {
			missing = append(missing, fmt.Sprint(i+1))
		}
	}
	return missing
}
