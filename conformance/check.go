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
	v := Verdict{Rules: make([]RuleResult, len(rules))}
	for i := range rules {
		r := &rules[i]
		v.Rules[i] = v.apply(h, r, r.check, func(j *judge) { r.check(h, j) })
	}
	v.conclude(h, rules)
	return v
}

// Compare judges a trace by a twin: the trace of the same case with one thing
// left out. Rules that need no twin are not applicable. The entries of findings
// are those of base.
func Compare(base, twin *trace.Trace, rules []Rule, opts ...Option) Verdict {
	h, other := open(base, opts), open(twin, opts)
	h.twin = true
	v := Verdict{Rules: make([]RuleResult, len(rules))}
	for i := range rules {
		r := &rules[i]
		if r.compare == nil {
			v.Rules[i] = RuleResult{Rule: r.ID, Level: r.LevelIn(h.edition), Status: StatusNotApplicable, Reason: "evidence: needs no twin"}
			continue
		}
		v.Rules[i] = v.apply(h, r, nil, func(j *judge) { r.compare(h, other, j) })
	}
	v.conclude(h, rules)
	return v
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

func (v *Verdict) apply(h *history, r *Rule, check func(*history, *judge), run func(*judge)) RuleResult {
	result := RuleResult{Rule: r.ID, Level: r.LevelIn(h.edition)}
	result.Reason = r.notApplicable(h)
	if result.Reason == "" && check == nil && !h.twin {
		result.Reason = "evidence: needs a twin trace"
	}
	if result.Reason != "" {
		result.Status = StatusNotApplicable
		return result
	}
	j := judge{h: h, rule: r, level: result.Level, findings: v.Findings}
	before := len(j.findings)
	run(&j)
	v.Findings = j.findings
	result.Exercised = j.seen
	switch {
	case len(j.findings) > before:
		result.Status = StatusFail
	case j.seen > 0:
		result.Status = StatusPass
	case j.excused > 0:
		result.Status, result.Reason = StatusNotApplicable, "edge: a run failed outside the protocol"
	default:
		result.Status = StatusNotExercised
	}
	return result
}

func (v *Verdict) conclude(h *history, rules []Rule) {
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
