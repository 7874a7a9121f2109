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
	return *NewJudge(rules).Check(tr, opts...)
}

// Compare judges a trace by a twin: the trace of the same case with one thing
// left out. Rules that need no twin are not applicable. The entries of findings
// are those of base.
func Compare(base, twin *trace.Trace, rules []Rule, opts ...Option) Verdict {
	j, other := NewJudge(rules), NewJudge(nil)
	j.open(base, opts)
	other.open(twin, opts)
	for _, i := range j.plan.applicable {
		if compare := j.rules[i].compare; compare != nil {
			before := j.begin(i)
			compare(&j.h, &other.h, &j.one)
			j.end(i, before)
			continue
		}
		j.verdict.Rules[i].excuse("evidence: needs no twin")
	}
	return *j.conclude()
}

// Judge judges one trace after the other by the same rules. It keeps its memory
// from one to the next, which is for those who judge very many. It is used by
// one goroutine at a time.
type Judge struct {
	rules   []Rule
	h       history
	one     judge // of the rule that is being applied
	plan    *plan
	plans   []*plan // of the kinds of traces so far
	verdict Verdict
}

// NewJudge gives a judge by the rules, which must not change any more.
func NewJudge(rules []Rule) *Judge {
	return &Judge{rules: rules, verdict: Verdict{Rules: make([]RuleResult, len(rules))}}
}

// Check is [Check]. What it gives holds until the next call.
func (j *Judge) Check(tr *trace.Trace, opts ...Option) *Verdict {
	j.open(tr, opts)
	for _, i := range j.plan.applicable {
		if check := j.rules[i].check; check != nil {
			before := j.begin(i)
			check(&j.h, &j.one)
			j.end(i, before)
			continue
		}
		j.verdict.Rules[i].excuse("evidence: needs a twin trace")
	}
	return j.conclude()
}

func (j *Judge) open(tr *trace.Trace, opts []Option) {
	o := options{edition: edition.Edition(tr.Header.Edition)}
	for _, opt := range opts {
		opt(&o)
	}
	if o.edition == "" {
		o.edition = edition.Default
	}
	j.h.read(tr, o.edition)
	j.one = judge{h: &j.h}
	j.plan = j.planned(j.h.key())
	copy(j.verdict.Rules, j.plan.results)
}

// begin is called before a rule is applied, and end after it, with what begin gave:
// the number of findings.
func (j *Judge) begin(i int) (findings int) {
	j.one.rule, j.one.level, j.one.seen, j.one.excused = &j.rules[i], j.verdict.Rules[i].Level, 0, 0
	return len(j.one.findings)
}

func (j *Judge) end(i, before int) {
	j.verdict.Rules[i].conclude(&j.one, len(j.one.findings)-before)
}

func (j *Judge) conclude() *Verdict {
	j.verdict.Findings, j.verdict.Outcome, j.verdict.Reason = j.one.findings, Pass, ""
	j.verdict.conclude(&j.h)
	return &j.verdict
}

// mostPlans bounds how many are remembered. There are few kinds of traces.
const mostPlans = 64

// planned is the plan for a kind of trace, to which the one that was read belongs.
func (j *Judge) planned(key planKey) *plan {
	for _, p := range j.plans {
		if p.key == key {
			return p
		}
	}
	p := planFor(j.rules, &j.h, key)
	if len(j.plans) == mostPlans {
		j.plans = j.plans[:0]
	}
	j.plans = append(j.plans, p)
	return p
}

// plan says for one kind of trace which rules can be applied, and what is said of
// each before it was.
type plan struct {
	key        planKey
	applicable []int
	results    []RuleResult
}

// planKey is what decides whether a rule can be applied.
type planKey struct {
	order    int // of the edition
	form     trace.Form
	evidence evidenceSet
}

func (h *history) key() planKey { return planKey{h.order, h.form, h.evidence} }

func planFor(rules []Rule, h *history, key planKey) *plan {
	p := &plan{key: key, results: make([]RuleResult, len(rules))}
	for i := range rules {
		r := &rules[i]
		result := &p.results[i]
		*result = RuleResult{Rule: r.ID, Level: r.Level, Status: StatusNotExercised}
		if h.order < r.ready.mustFrom {
			result.Level = Robust
		}
		if reason := r.notApplicable(h); reason != "" {
			result.excuse(reason)
			continue
		}
		p.applicable = append(p.applicable, i)
	}
	return p
}

func (r *RuleResult) excuse(reason string) { r.Status, r.Reason = StatusNotApplicable, reason }

// conclude says what it means that a rule that was applied had so many findings.
func (r *RuleResult) conclude(j *judge, findings int) {
	r.Exercised = j.seen
	switch {
	case findings > 0:
		r.Status = StatusFail
	case j.seen > 0:
		r.Status = StatusPass
	case j.excused > 0:
		r.excuse("edge: a run failed outside the protocol")
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
