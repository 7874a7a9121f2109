// Package report holds what came of judging a subject: a value that is written
// as JSON, JUnit, Markdown and a badge, merged with those of other shards, and
// compared with that of another run. It never runs anything.
package report

import (
	"slices"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Schema is the name and version of the JSON form.
const Schema = "pi-conform/report/1"

// Report is what came of one run of a suite against one subject.
type Report struct {
	Schema    string    `json:"schema"`
	Tool      string    `json:"tool"` // name and version of the program
	Subject   Subject   `json:"subject"`
	Edition   string    `json:"edition"`
	Seed      uint64    `json:"seed"`
	Plan      Plan      `json:"plan,omitzero"`
	Shard     *Shard    `json:"shard,omitzero"` // the part of the plan that was run; absent for the whole
	Cases     int       `json:"cases"`          // that were run
	Schedules int       `json:"schedules"`      // that were run, of all cases together
	Rules     []Rule    `json:"rules"`
	Results   []Result  `json:"results,omitzero"` // of every case of the plan, by name
	Findings  []Finding `json:"findings"`
	Unclear   []Unclear `json:"inconclusive"`
	Skipped   []Skipped `json:"skipped,omitzero"` // cases that the subject lacks something for
	Stale     []Stale   `json:"stale,omitzero"`   // expected failures that did not happen
	Partial   bool      `json:"partial,omitzero"` // the run was interrupted or cut short
	Notes     []string  `json:"notes,omitzero"`
}

// Subject says what was judged.
type Subject struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Language string `json:"language,omitempty"`
	Barrier  string `json:"barrier,omitempty"`
}

// Plan is what a run sets out to do. Two shards belong together only if their
// plans are the same.
type Plan struct {
	ID        string `json:"id,omitempty"`       // digest of all that decides what is run and how it is judged
	Cases     int    `json:"cases,omitzero"`     // in all shards together
	Schedules int    `json:"schedules,omitzero"` // drawn ones of each case, besides its own
}

// Shard is one of Count parts of a plan; Index counts from 1.
type Shard struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// Rule is what came of one rule over all schedules.
type Rule struct {
	ID        string             `json:"id"`
	Level     conformance.Level  `json:"level"`
	Status    conformance.Status `json:"status"`
	Exercised int                `json:"exercised"`        // occasions that the rule saw
	Schedules int                `json:"schedules"`        // in which it saw any
	Findings  int                `json:"findings"`         // schedules in which it was broken
	Reason    string             `json:"reason,omitempty"` // why it is not applicable
}

// Result is what came of one case.
type Result struct {
	Case      string `json:"case"`
	Status    Status `json:"status"`
	Schedules int    `json:"schedules"`
	// Rules that the case broke, of every level.
	Rules []string `json:"rules,omitzero"`
	// Message says why, of a case that neither passed nor broke a rule.
	Message string `json:"message,omitempty"`
}

// Status is what came of one case: one answer, the worst that there is.
type Status string

// The statuses of a case, from the worst on.
const (
	StatusFailed        Status = "failed"         // a MUST rule was broken
	StatusCrashed       Status = "crashed"        // the subject died
	StatusTimeout       Status = "timeout"        // the subject did not come to rest in time
	StatusFlaky         Status = "flaky"          // one schedule gave different traces
	StatusInconclusive  Status = "inconclusive"   // a bound of the harness was reached
	StatusExpected      Status = "expected"       // it failed as the baseline says
	StatusNotRun        Status = "not run"        // the run ended before its turn came
	StatusNotApplicable Status = "not applicable" // the subject lacks what the case needs
	StatusPassed        Status = "passed"
)

// Bad reports whether the status is one that somebody has to look into.
func (s Status) Bad() bool {
	switch s {
	case StatusFailed, StatusCrashed, StatusTimeout, StatusFlaky, StatusInconclusive:
		return true
	case StatusExpected, StatusNotRun, StatusNotApplicable, StatusPassed:
	}
	return false
}

// Finding is a rule that was broken by a case. Of several schedules of the case
// that break it, the first is kept.
type Finding struct {
	Rule     string            `json:"rule"`
	Level    conformance.Level `json:"level"`
	Message  string            `json:"message"`
	Case     string            `json:"case"`
	Number   int               `json:"number,omitzero"` // of the schedule among those of the case; 0 is the case's own
	Schedule []string          `json:"schedule"`
	Seed     *uint64           `json:"seed,omitzero"` // that drew the schedule; absent for the case's own
	Entries  []int             `json:"entries"`       // of Trace, those that clash
	Count    int               `json:"count"`         // schedules of the case that break the rule
	Replay   string            `json:"replay"`        // the command that shows it again
	// Expected is the reason that the baseline gives for it; empty if it was not
	// expected.
	Expected string `json:"expected,omitempty"`
	// StateLeak says that the same schedule passes alone in a fresh process: what
	// earlier cases left behind brings the finding about.
	StateLeak bool         `json:"stateLeak,omitzero"`
	Trace     *trace.Trace `json:"-"`
	Reference *trace.Trace `json:"-"` // the reference in the same case
}

// Unclear is a schedule that gave no verdict.
type Unclear struct {
	Case     string        `json:"case"`
	Number   int           `json:"number,omitzero"` // of the schedule among those of the case
	Schedule []string      `json:"schedule,omitzero"`
	Outcome  trace.Outcome `json:"outcome"`
	Message  string        `json:"message"`
	Expected string        `json:"expected,omitempty"`
}

// Unsteady is the outcome of a schedule that gave different traces when it was
// recorded several times.
const Unsteady trace.Outcome = "unsteady"

// Skipped is a case that says nothing about the subject, because that lacks what
// the case needs.
type Skipped struct {
	Case  string `json:"case"`
	Needs string `json:"needs"` // the capability
}

// Stale is an expected failure that did not happen although everything that it
// speaks of was run.
type Stale struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Match string `json:"match"`
	Rule  string `json:"rule,omitempty"`
}

// Counts are how many rules have each status.
func (r *Report) Counts() map[conformance.Status]int {
	counts := map[conformance.Status]int{}
	for _, rule := range r.Rules {
		counts[rule.Status]++
	}
	return counts
}

// Exercised reports whether any rule was exercised at all.
func (r *Report) Exercised() bool {
	for _, rule := range r.Rules {
		if rule.Exercised > 0 {
			return true
		}
	}
	return false
}

// Broken are the findings of that level that were not expected.
func (r *Report) Broken(level conformance.Level) []Finding {
	var found []Finding
	for _, f := range r.Findings {
		if f.Level == level && f.Expected == "" {
			found = append(found, f)
		}
	}
	return found
}

// First is the finding that names what is wrong: of those of the highest level
// the first in the trace, and of several at one place the first in the catalogue,
// in whose order findings come. It is nil if there is none.
func (r *Report) First() *Finding {
	for _, level := range [...]conformance.Level{conformance.Must, conformance.Should, conformance.Robust} {
		if broken := r.Broken(level); len(broken) > 0 {
			first := slices.MinFunc(broken, func(a, b Finding) int { return a.position() - b.position() })
			return &first
		}
	}
	return nil
}

// position is the entry at which it became evident that the rule is broken.
func (f *Finding) position() int {
	if len(f.Entries) == 0 {
		return 0
	}
	return f.Entries[len(f.Entries)-1]
}

// Unexpected are the schedules without a verdict that were not expected.
func (r *Report) Unexpected() []Unclear {
	var found []Unclear
	for _, u := range r.Unclear {
		if u.Expected == "" {
			found = append(found, u)
		}
	}
	return found
}

// ExpectedFailures is how many findings and schedules without a verdict the
// baseline foresaw.
func (r *Report) ExpectedFailures() int {
	return len(r.Findings) + len(r.Unclear) - len(r.Unexpected()) -
		len(r.Broken(conformance.Must)) - len(r.Broken(conformance.Should)) - len(r.Broken(conformance.Robust))
}
