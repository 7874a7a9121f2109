package conformance

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Outcome is the answer that a verdict gives as a whole.
type Outcome string

// The outcomes.
const (
	Pass         Outcome = "pass"
	Fail         Outcome = "fail"         // at least one MUST rule is broken
	Inconclusive Outcome = "inconclusive" // the recording did not come to its end, and nothing was broken before
)

// Status is what a trace says about one rule.
type Status string

// The statuses.
const (
	StatusPass          Status = "pass"
	StatusFail          Status = "fail"
	StatusNotApplicable Status = "not applicable" // Reason says why
	StatusNotExercised  Status = "not exercised"  // there was no occasion to keep or break it
)

// RuleResult is what a trace says about one rule.
type RuleResult struct {
	Rule      string
	Level     Level
	Status    Status
	Reason    string // of not applicable: edition, form, evidence, or edge
	Exercised int    // number of occasions to keep or break the rule
}

// Verdict is what the rules say about one trace.
type Verdict struct {
	Outcome Outcome
	Reason  string       // of inconclusive: how the recording ended
	Rules   []RuleResult // in the order in which the rules were given
	// Findings of every level, by position, then in the order of the rules.
	Findings []Finding
}

// First is the first finding of the highest level that there is: the one that
// names what is wrong. It is nil if there is none.
func (v *Verdict) First() *Finding {
	for _, level := range [...]Level{Must, Should, Robust} {
		for i := range v.Findings {
			if v.Findings[i].Level == level {
				return &v.Findings[i]
			}
		}
	}
	return nil
}

// Option changes how a trace is judged.
type Option func(*options)

type options struct{ edition edition.Edition }

// InEdition judges by an edition other than the one that the trace names.
func InEdition(e edition.Edition) Option { return func(o *options) { o.edition = e } }

// Check judges a trace by the rules. It is a pure function and never panics,
// whatever the trace holds.
func Check(tr *trace.Trace, rules []Rule, opts ...Option) Verdict {
	h := open(tr, opts)
	return h.verdict(rules, func(r *Rule, j *judge) string {
		if r.check == nil {
			return "evidence: needs a twin trace"
		}
		r.check(h, j)
		return ""
	})
}

// Compare judges a trace by a twin: the trace of the same case with one thing
// left out. Rules that need no twin are not applicable. The entries of findings
// are those of base.
func Compare(base, twin *trace.Trace, rules []Rule, opts ...Option) Verdict {
	h, other := open(base, opts), open(twin, opts)
	return h.verdict(rules, func(r *Rule, j *judge) string {
		if r.compare == nil {
			return "evidence: needs no twin"
		}
		r.compare(h, other, j)
		return ""
	})
}

func open(tr *trace.Trace, opts []Option) *history {
	o := options{edition: edition.Edition(tr.Header.Edition)}
	for _, opt := range opts {
		opt(&o)
	}
	if o.edition == "" {
		o.edition = edition.Default
	}
	return newHistory(tr, o.edition)
}

// verdict applies each rule that can be applied; apply gives the reason if it
// cannot.
func (h *history) verdict(rules []Rule, apply func(*Rule, *judge) string) Verdict {
	v := Verdict{Rules: make([]RuleResult, len(rules))}
	j := judge{h: h}
	for i := range rules {
		r := &rules[i]
		result := &v.Rules[i]
		result.Rule, result.Level = r.ID, r.Level
		if h.order < r.ready.mustFrom {
			result.Level = Robust
		}
		result.Reason = r.notApplicable(h)
		before := len(j.findings)
		if result.Reason == "" {
			j.rule, j.level, j.seen, j.excused = r, result.Level, 0, 0
			result.Reason = apply(r, &j)
		}
		result.conclude(&j, len(j.findings)-before)
	}
	v.Findings = j.findings
	v.conclude(h)
	return v
}

// conclude says what it means that a rule, if it was applied, had so many
// findings.
func (r *RuleResult) conclude(j *judge, findings int) {
	if r.Reason != "" {
		r.Status = StatusNotApplicable
		return
	}
	r.Exercised = j.seen
	switch {
	case findings > 0:
		r.Status = StatusFail
	case j.seen > 0:
		r.Status = StatusPass
	case j.excused > 0:
		r.Status, r.Reason = StatusNotApplicable, "edge: a run failed outside the protocol"
	default:
		r.Status = StatusNotExercised
	}
}

func (v *Verdict) conclude(h *history) {
	// Findings were added rule by rule, so a stable sort keeps that order where
	// the position is the same.
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return a.Position() - b.Position() })
	v.Outcome = Pass
	switch h.outcome {
	case trace.OutcomeComplete, trace.OutcomeDeadlock:
	default:
		v.Outcome, v.Reason = Inconclusive, string(h.outcome)
	}
	for i := range v.Findings {
		if v.Findings[i].Level == Must {
			v.Outcome, v.Reason = Fail, ""
			return
		}
	}
}
