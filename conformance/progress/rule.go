package progress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

// The families.
const (
	FamilyReporter conformance.Family = "PROG"
	FamilyBridge   conformance.Family = "BRIDGE"
	FamilyFlow     conformance.Family = "FLOW"
)

// Rule is one sentence of the contract about progress, and the means to judge it.
type Rule struct {
	ID       string             `json:"id"` // never changes once released
	Family   conformance.Family `json:"family"`
	Level    conformance.Level  `json:"level"`
	Sentence string             `json:"sentence"`
	Why      string             `json:"why"`
	Source   string             `json:"source"`

	check func(*judge)
}

// Finding is one place where a record breaks a rule.
type Finding struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Entry   int    `json:"entry"` // index of the entry at which it became evident
}

// Verdict is what all rules say of a record.
type Verdict struct {
	Exercised map[string]int `json:"exercised"` // occasions to keep each rule
	Findings  []Finding      `json:"findings"`  // in the order of their entries
}

// First is the finding that became evident first, or nil.
func (v *Verdict) First() *Finding {
	if len(v.Findings) == 0 {
		return nil
	}
	return &v.Findings[0]
}

// Rules are all rules, in the order of the contract.
func Rules() []Rule { return slices.Concat(reporterRules, bridgeRules, flowRules) }

// Lookup finds a rule by its id.
func Lookup(id string) (Rule, bool) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return strings.EqualFold(r.ID, id) })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// Check judges a record by rules.
func Check(r *Record, rules []Rule) *Verdict {
	v := &Verdict{Exercised: map[string]int{}, Findings: []Finding{}}
	index := newIndex(r)
	for i := range rules {
		j := &judge{index: index, rule: &rules[i], verdict: v}
		rules[i].check(j)
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return a.Entry - b.Entry })
	return v
}

// judge is what a check speaks to.
type judge struct {
	*index
	rule    *Rule
	verdict *Verdict
}

// expect records one occasion to keep the rule.
func (j *judge) expect(ok bool, entry int, format string, args ...any) {
	j.verdict.Exercised[j.rule.ID]++
	if !ok {
		j.verdict.Findings = append(j.verdict.Findings, Finding{j.rule.ID, fmt.Sprintf(format, args...), entry})
	}
}

// index is a record with what rules ask about it.
type index struct {
	*Record
	reports    []report
	byReport   map[int]int // report's number to its place in reports
	executions map[uint64]*execution
	order      []uint64 // tokens, as they were prepared
	cards      []*line  // all lines, parsed
}

const never = int(^uint(0) >> 1)

// report is one report from its begin to its end.
type report struct {
	number, begin, end int // end is never if it did not return
	token              uint64
	accepted           bool
	error              string
	observed           []int // entries
	broke              []int
	lines              []*line
}

// execution is one execution as the registry knows it.
type execution struct {
	Entry
	call, dispatched, closing, boundary, result int // entries, or never
}

func (x *execution) shown() bool { return x.Agent != "" && x.Parent == 0 }

func newIndex(r *Record) *index {
	x := &index{Record: r, byReport: map[int]int{}, executions: map[uint64]*execution{}}
	for i := range r.Entries {
		x.add(i, &r.Entries[i])
	}
	return x
}

func (x *index) add(i int, e *Entry) {
	switch {
	case e.Kind == Prepared:
		x.executions[e.Token] = &execution{*e, never, never, never, never, never}
		x.order = append(x.order, e.Token)
	case e.Kind == Dispatched:
		x.mark(e.Token, func(ex *execution) { ex.dispatched = i })
	case e.Kind == Closing:
		x.mark(e.Token, func(ex *execution) { ex.closing = min(ex.closing, i) })
	case e.Kind == Boundary:
		x.mark(e.Token, func(ex *execution) { ex.boundary = min(ex.boundary, i) })
	case e.Kind == Durable:
		x.durable(i, e)
	case e.Kind == Report:
		x.byReport[e.Report] = len(x.reports)
		x.reports = append(x.reports, report{number: e.Report, begin: i, end: never, token: e.Token})
	case e.Kind == Returned:
		x.of(e.Report, func(r *report) { r.end, r.accepted, r.error = i, e.Accepted, e.Error })
	case e.Kind == Observed:
		x.of(e.Report, func(r *report) { r.observed = append(r.observed, i) })
	case e.Kind == Broke:
		x.of(e.Report, func(r *report) { r.broke = append(r.broke, i) })
	case e.Kind == Wire:
		l := parseLine(i, e)
		x.cards = append(x.cards, l)
		x.of(e.Report, func(r *report) { r.lines = append(r.lines, l) })
	}
}

func (x *index) mark(token uint64, f func(*execution)) {
	if ex := x.executions[token]; ex != nil {
		f(ex)
	}
}

// of applies f to a report, if there is one with the number.
func (x *index) of(number int, f func(*report)) {
	if k, ok := x.byReport[number]; ok {
		f(&x.reports[k])
	}
}

// durable joins an entry of the log to the latest execution of its call.
func (x *index) durable(i int, e *Entry) {
	for _, token := range slices.Backward(x.order) {
		ex := x.executions[token]
		if ex.Agent != e.Agent || ex.Call != e.Call {
			continue
		}
		if e.Stored == "tool/call" {
			ex.call = i
		} else if e.Stored == "tool/result" {
			ex.result = i
		}
		return
	}
}
