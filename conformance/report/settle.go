package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Settle puts everything into its order and works out what came of each case,
// so that reports of the same things are the same whichever way they were put
// together. Results has to name every case of the plan; of each, the status
// counts only where it says that the case was not run or not applicable.
func (r *Report) Settle() {
	r.sort()
	rules, unclear := map[string][]Finding{}, map[string][]Unclear{}
	for _, f := range r.Findings {
		rules[f.Case] = append(rules[f.Case], f)
	}
	for _, u := range r.Unclear {
		unclear[u.Case] = append(unclear[u.Case], u)
	}
	for i := range r.Results {
		r.Results[i].settle(rules[r.Results[i].Case], unclear[r.Results[i].Case])
	}
}

// sort puts findings into the order of the rules, and everything else into that
// of the cases: cases end in any order when several run at a time.
func (r *Report) sort() {
	order := map[string]int{}
	for i, rule := range r.Rules {
		order[rule.ID] = i
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.Rule], order[b.Rule]), strings.Compare(a.Case, b.Case), cmp.Compare(a.Number, b.Number))
	})
	slices.SortStableFunc(r.Unclear, func(a, b Unclear) int {
		return cmp.Or(strings.Compare(a.Case, b.Case), cmp.Compare(a.Number, b.Number))
	})
	slices.SortStableFunc(r.Skipped, func(a, b Skipped) int { return strings.Compare(a.Case, b.Case) })
	slices.SortStableFunc(r.Results, func(a, b Result) int { return strings.Compare(a.Case, b.Case) })
}

func (c *Result) settle(findings []Finding, unclear []Unclear) {
	if len(findings) == 0 && len(unclear) == 0 && (c.Status == StatusNotRun || c.Status == StatusNotApplicable) {
		return
	}
	c.Status, c.Rules, c.Message = StatusPassed, nil, ""
	for i := range findings {
		c.Rules = append(c.Rules, findings[i].Rule)
		c.worsen(findings[i].status(), "")
	}
	for i := range unclear {
		c.worsen(unclear[i].status(), strings.TrimSuffix(string(unclear[i].Outcome)+": "+unclear[i].Message, ": "))
	}
}

// severity are the statuses that a case can come to, from the mildest on.
var severity = []Status{StatusPassed, StatusExpected, StatusInconclusive, StatusFlaky, StatusTimeout, StatusCrashed, StatusFailed}

func (c *Result) worsen(status Status, message string) {
	if slices.Index(severity, status) > slices.Index(severity, c.Status) {
		c.Status, c.Message = status, message
	}
}

// status is what one finding makes of a case. Only a MUST rule makes it fail.
func (f *Finding) status() Status {
	switch {
	case f.Expected != "":
		return StatusExpected
	case f.Level == conformance.Must:
		return StatusFailed
	}
	return StatusPassed
}

func (u *Unclear) status() Status {
	switch {
	case u.Expected != "":
		return StatusExpected
	case u.Outcome == trace.OutcomeCrashed:
		return StatusCrashed
	case u.Outcome == trace.OutcomeHung:
		return StatusTimeout
	case u.Outcome == Unsteady:
		return StatusFlaky
	}
	return StatusInconclusive
}

// StatusOf is the status that an outcome without a verdict makes a case have.
func StatusOf(outcome trace.Outcome) Status { return (&Unclear{Outcome: outcome}).status() }

// Add adds what one trace, or another report, says about a rule. A rule passes
// if some trace exercised it and none broke it; it is not applicable only if no
// trace could have exercised it.
func (r *Rule) Add(other Rule) {
	r.Exercised += other.Exercised
	r.Schedules += other.Schedules
	r.Findings += other.Findings
	for _, status := range [...]conformance.Status{conformance.StatusFail, conformance.StatusPass, conformance.StatusNotExercised} {
		if r.Status == status || other.Status == status {
			r.Status, r.Reason = status, ""
			return
		}
	}
	// Of several reasons the first in order is kept, so that it does not depend
	// on the order of the traces.
	if r.Status == "" || other.Reason < r.Reason && other.Status != "" {
		r.Status, r.Reason = other.Status, other.Reason
	}
}

// AddFinding adds a finding. Of several schedules of one case that break the
// same rule, that with the least number stays.
func AddFinding(to []Finding, f Finding) []Finding {
	i := slices.IndexFunc(to, func(have Finding) bool { return have.Rule == f.Rule && have.Case == f.Case })
	if i < 0 {
		return append(to, f)
	}
	count := to[i].Count + f.Count
	if f.Number < to[i].Number {
		to[i] = f
	}
	to[i].Count = count
	return to
}
