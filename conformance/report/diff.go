package report

import (
	"slices"

	"github.com/pi-conform/pi-conform/conformance"
)

// Diff is what changed from one report to another.
type Diff struct {
	Before Side         `json:"before"`
	After  Side         `json:"after"`
	Rules  []RuleChange `json:"rules"` // whose status changed
	// Failing are findings of the second report that the first does not have;
	// Passing those of the first that the second does not have, although it ran
	// the case.
	Failing []Finding `json:"newlyFailing"`
	Passing []Finding `json:"newlyPassing"`
	// Unclear are cases without a verdict in the second report that had one in
	// the first.
	Unclear []Result `json:"newlyUnclear"`
	Added   []string `json:"addedCases"`
	Removed []string `json:"removedCases"`
}

// Side is one of two reports that are compared.
type Side struct {
	Subject Subject `json:"subject"`
	Edition string  `json:"edition"`
	Tool    string  `json:"tool"`
	Partial bool    `json:"partial,omitzero"`
}

// RuleChange is a rule that has another status than before.
type RuleChange struct {
	ID     string             `json:"id"`
	Level  conformance.Level  `json:"level"`
	Before conformance.Status `json:"before"`
	After  conformance.Status `json:"after"`
}

// Compare gives what changed from a to b.
func Compare(a, b *Report) *Diff {
	d := &Diff{
		Before: a.side(), After: b.side(),
		Rules:   changedRules(a, b),
		Failing: without(b.Findings, a.Findings),
	}
	ran := map[string]Status{}
	for _, result := range b.Results {
		ran[result.Case] = result.Status
	}
	for _, f := range without(a.Findings, b.Findings) {
		if status := ran[f.Case]; status == StatusPassed || status == StatusFailed || status == StatusExpected {
			d.Passing = append(d.Passing, f)
		}
	}
	d.Unclear, d.Added = newCases(a, b)
	_, d.Removed = newCases(b, a)
	return d
}

// Worse reports whether a MUST rule is newly broken, or a case newly without a
// verdict.
func (d *Diff) Worse() bool {
	return len(d.Unclear) > 0 || slices.ContainsFunc(d.Failing, func(f Finding) bool { return f.Level == conformance.Must })
}

func (r *Report) side() Side {
	return Side{Subject: r.Subject, Edition: r.Edition, Tool: r.Tool, Partial: r.Partial}
}

func changedRules(a, b *Report) []RuleChange {
	before := map[string]conformance.Status{}
	for _, rule := range a.Rules {
		before[rule.ID] = rule.Status
	}
	var changed []RuleChange
	for _, rule := range b.Rules {
		if was, known := before[rule.ID]; known && was != rule.Status {
			changed = append(changed, RuleChange{rule.ID, rule.Level, was, rule.Status})
		}
	}
	return changed
}

// without are the findings that have none of the same rule and case among the
// others.
func without(findings, others []Finding) []Finding {
	type place struct{ rule, name string }
	have := map[place]bool{}
	for _, f := range others {
		have[place{f.Rule, f.Case}] = true
	}
	var rest []Finding
	for _, f := range findings {
		if !have[place{f.Rule, f.Case}] {
			rest = append(rest, f)
		}
	}
	return rest
}

func newCases(a, b *Report) (unclear []Result, added []string) {
	before := map[string]Status{}
	for _, result := range a.Results {
		before[result.Case] = result.Status
	}
	for _, result := range b.Results {
		was, known := before[result.Case]
		switch {
		case !known:
			added = append(added, result.Case)
		case result.Status.unclear() && !was.unclear():
			unclear = append(unclear, result)
		}
	}
	return unclear, added
}

// unclear reports whether the status says that there is no verdict.
func (s Status) unclear() bool { return s.Bad() && s != StatusFailed }
