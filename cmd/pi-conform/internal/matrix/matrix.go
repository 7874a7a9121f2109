// Package matrix puts side by side what several subjects do, rule by rule, and
// says why a subject breaks a rule where that is known.
package matrix

import (
	"cmp"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// Schema is the name and version of the JSON form.
const Schema = "pi-conform/matrix/1"

// Matrix is what came of several subjects. The cells of a row are in the order of
// the subjects.
type Matrix struct {
	Schema    string    `json:"schema"`
	Seed      uint64    `json:"seed"`
	Schedules int       `json:"schedules"` // drawn ones of each case, besides its own
	Subjects  []Subject `json:"subjects"`
	Rules     []Row     `json:"rules"`
}

// Subject is a column.
type Subject struct {
	Name         string   `json:"name"`    // as it is written on a command line
	Edition      string   `json:"edition"` // that it was judged by
	Language     string   `json:"language,omitempty"`
	Barrier      string   `json:"barrier,omitempty"`
	Cases        int      `json:"cases"`     // that were run
	Schedules    int      `json:"schedules"` // of all cases together
	Broken       int      `json:"broken"`    // MUST rules
	Inconclusive []string `json:"inconclusive,omitzero"`
	Lacks        []string `json:"lacks,omitzero"` // capabilities for lack of which cases were left out
}

// Row is a rule.
type Row struct {
	ID       string            `json:"id"`
	Level    conformance.Level `json:"level"`
	Sentence string            `json:"sentence"`
	Cells    []Cell            `json:"cells"`
}

// Inconclusive is the status of a rule of which nothing can be said, because
// the cases that might have exercised it gave no verdict.
const Inconclusive conformance.Status = "inconclusive"

// Cell is what came of one rule on one subject.
type Cell struct {
	Status  conformance.Status `json:"status"`
	Level   conformance.Level  `json:"level"`           // in the subject's edition
	Cases   int                `json:"cases,omitzero"`  // that break the rule
	Reason  string             `json:"reason,omitzero"` // why it is not applicable
	Message string             `json:"message,omitzero"`
	Replay  string             `json:"replay,omitzero"` // the command that shows the simplest finding
	Why     []Why              `json:"why,omitzero"`    // what is known of it
}

// Why explains a finding.
type Why struct {
	Text    string   `json:"text"`
	Reports []string `json:"reports,omitzero"` // by users, REPOSITORY#NUMBER
}

// Result is a subject with its report.
type Result struct {
	Name   string
	Report *report.Report
}

// New puts results side by side. All were judged by the whole catalogue.
func New(results []Result, schedules int) *Matrix {
	m := &Matrix{Schema: Schema, Schedules: schedules}
	for _, r := range results {
		m.Seed = r.Report.Seed
		m.Subjects = append(m.Subjects, column(&r))
	}
	for _, rule := range conformance.Catalogue() {
		row := Row{ID: rule.ID, Level: rule.Level, Sentence: rule.Sentence}
		for _, r := range results {
			row.Cells = append(row.Cells, cell(&r, rule.ID))
		}
		m.Rules = append(m.Rules, row)
	}
	return m
}

func column(r *Result) Subject {
	rep := r.Report
	s := Subject{
		Name: r.Name, Edition: rep.Edition, Language: rep.Subject.Language, Barrier: rep.Subject.Barrier,
		Cases: rep.Cases, Schedules: rep.Schedules,
	}
	for _, rule := range rep.Rules {
		if rule.Status == conformance.StatusFail && rule.Level == conformance.Must {
			s.Broken++
		}
	}
	for _, u := range rep.Unclear {
		s.Inconclusive = append(s.Inconclusive, u.Case+": "+string(u.Outcome))
	}
	for _, skipped := range rep.Skipped {
		s.Lacks = append(s.Lacks, skipped.Needs)
	}
	slices.Sort(s.Inconclusive)
	slices.Sort(s.Lacks)
	s.Inconclusive, s.Lacks = slices.Compact(s.Inconclusive), slices.Compact(s.Lacks)
	return s
}

func cell(r *Result, id string) Cell {
	i := slices.IndexFunc(r.Report.Rules, func(rule report.Rule) bool { return rule.ID == id })
	if i < 0 {
		return Cell{Status: conformance.StatusNotApplicable, Reason: "the subject was not judged by it"}
	}
	rule := r.Report.Rules[i]
	c := Cell{Status: rule.Status, Level: rule.Level}
	switch rule.Status {
	case conformance.StatusFail:
		c.broken(r, id)
	case conformance.StatusNotApplicable:
		c.Reason = rule.Reason
	case conformance.StatusNotExercised:
		if len(r.Report.Unclear) > 0 {
			c.Status = Inconclusive
		}
	case conformance.StatusPass:
	}
	return c
}

func (c *Cell) broken(r *Result, id string) {
	var found []report.Finding
	for _, f := range r.Report.Findings {
		if f.Rule == id {
			found = append(found, f)
		}
	}
	c.Cases = len(found)
	if len(found) == 0 {
		return
	}
	// A case's own schedule is easier to follow than a drawn one, and a short one
	// easier than a long one.
	simplest := slices.MinFunc(found, func(a, b report.Finding) int {
		return cmp.Or(
			cmp.Compare(drawn(&a), drawn(&b)),
			cmp.Compare(len(a.Schedule), len(b.Schedule)),
			cmp.Compare(a.Case, b.Case),
		)
	})
	c.Message, c.Replay = simplest.Message, simplest.Replay
	c.Why = why(r.Name, r.Report.Edition, id)
}

func drawn(f *report.Finding) int {
	if f.Seed != nil {
		return 1
	}
	return 0
}

// Write writes the matrix as indented JSON.
func Write(w io.Writer, m *Matrix) error {
	if err := json.MarshalWrite(w, m, json.Deterministic(true), jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Read reads what [Write] wrote.
func Read(r io.Reader) (*Matrix, error) {
	m := &Matrix{}
	return m, json.UnmarshalRead(r, m)
}
