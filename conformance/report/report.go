// Package report holds what came of judging a subject: a value that is written
// as JSON, printed on a console, and compared with others. It never runs
// anything.
package report

import (
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
	Cases     int       `json:"cases"`     // that were run
	Schedules int       `json:"schedules"` // that were run, of all cases together
	Rules     []Rule    `json:"rules"`
	Findings  []Finding `json:"findings"`
	Unclear   []Unclear `json:"inconclusive"`
	Skipped   []Skipped `json:"skipped,omitzero"` // cases that the subject lacks something for
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

// Finding is a rule that was broken by a case. Of several schedules of the case
// that break it, the first is kept.
type Finding struct {
	Rule      string            `json:"rule"`
	Level     conformance.Level `json:"level"`
	Message   string            `json:"message"`
	Case      string            `json:"case"`
	Schedule  []string          `json:"schedule"`
	Seed      *uint64           `json:"seed,omitzero"` // that drew the schedule; absent for the case's own
	Entries   []int             `json:"entries"`       // of Trace, those that clash
	Count     int               `json:"count"`         // schedules of the case that break the rule
	Replay    string            `json:"replay"`        // the command that shows it again
	Trace     *trace.Trace      `json:"-"`
	Reference *trace.Trace      `json:"-"` // the reference in the same case
}

// Unclear is a schedule that gave no verdict.
type Unclear struct {
	Case     string        `json:"case"`
	Schedule []string      `json:"schedule,omitzero"`
	Outcome  trace.Outcome `json:"outcome"`
	Message  string        `json:"message"`
}

// Skipped is a case that says nothing about the subject, because that lacks what
// the case needs.
type Skipped struct {
	Case  string `json:"case"`
	Needs string `json:"needs"` // the capability
}

// Counts are how many rules have each status.
func (r *Report) Counts() map[conformance.Status]int {
	counts := map[conformance.Status]int{}
	for _, rule := range r.Rules {
		counts[rule.Status]++
	}
	return counts
}

// Broken are the findings of that level.
func (r *Report) Broken(level conformance.Level) []Finding {
	var found []Finding
	for _, f := range r.Findings {
		if f.Level == level {
			found = append(found, f)
		}
	}
	return found
}
