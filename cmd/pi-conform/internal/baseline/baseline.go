// Package baseline holds what a team lives with for a while: failures that are
// expected, each with its reason. It is checked both ways: what is not expected
// counts as always, and what is expected but does not happen is told too.
package baseline

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// Entry is one expected failure.
type Entry struct {
	Line int // in the file, from 1

	Match   string // pattern of cases
	Rule    string // that they break; none for crash and timeout
	Status  Status // fail if empty
	Message string // prefix of the finding's message; empty for any
	Reason  string
	Issue   string // where it is dealt with
	Expires time.Time

	first, end int // lines that the entry takes up with the comment above it, as in a slice
}

// Status is what is expected.
type Status string

// The statuses.
const (
	Fail    Status = "fail"    // the rule is broken
	Flaky   Status = "flaky"   // the rule is broken at times, or the schedule gives different traces
	Crash   Status = "crash"   // the subject dies
	Timeout Status = "timeout" // the subject hangs
)

var statuses = []string{string(Fail), string(Flaky), string(Crash), string(Timeout)}

// File is a baseline as it was read.
type File struct {
	Path    string
	Entries []Entry

	lines []string // of the text, with their line feeds
}

// Read reads a baseline. The error for a mistake names its line.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(text))
}

// Check compares the entries with what there is. An entry whose pattern matches
// no case, whose rule does not exist, or that has expired, is an error: it would
// otherwise stay unnoticed for ever.
func (f *File) Check(cases []string, now time.Time) error {
	var faults []error
	for i := range f.Entries {
		if fault := f.Entries[i].fault(cases, now); fault != "" {
			faults = append(faults, fmt.Errorf("%s:%d: %s", f.Path, f.Entries[i].Line, fault))
		}
	}
	return errors.Join(faults...)
}

func (e *Entry) fault(cases []string, now time.Time) string {
	if e.Rule != "" {
		if _, err := conformance.Lookup(e.Rule); err != nil && !isProgress(e.Rule) {
			return err.Error()
		}
	}
	if _, err := pick.Filter("case", cases, func(name string) string { return name }, []string{e.Match}, nil); err != nil {
		return err.Error()
	}
	if !e.Expires.IsZero() && now.After(e.Expires.AddDate(0, 0, 1)) {
		return fmt.Sprintf("the entry for %s %s expired on %s: mend it, or give it another date",
			e.Match, e.Rule, e.Expires.Format(time.DateOnly))
	}
	return ""
}

func isProgress(rule string) bool {
	_, ok := progress.Lookup(rule)
	return ok
}

// Apply marks in the report what is expected, and lists the entries that are
// stale. An entry is judged only if every case that it speaks of and that could
// be run was run in full: all names those.
func (f *File) Apply(rep *report.Report, all []string) {
	used := make([]bool, len(f.Entries))
	for i := range rep.Findings {
		rep.Findings[i].Expected = f.expectFinding(&rep.Findings[i], used)
	}
	for i := range rep.Unclear {
		rep.Unclear[i].Expected = f.expectUnclear(&rep.Unclear[i], used)
	}
	rep.Stale = nil
	for i := range f.Entries {
		e := &f.Entries[i]
		if !used[i] && e.Status != Flaky && e.judged(rep, all) {
			rep.Stale = append(rep.Stale, report.Stale{File: f.Path, Line: e.Line, Match: e.Match, Rule: e.Rule})
		}
	}
	rep.Settle()
}

func (f *File) expectFinding(found *report.Finding, used []bool) string {
	for i := range f.Entries {
		e := &f.Entries[i]
		if (e.Status == Fail || e.Status == Flaky) && strings.EqualFold(e.Rule, found.Rule) && e.matches(found.Case, found.Message) {
			used[i] = true
			return e.why()
		}
	}
	return ""
}

// outcomes are what each status makes of a case without a verdict.
var outcomes = map[Status]report.Status{
	Flaky: report.StatusFlaky, Crash: report.StatusCrashed, Timeout: report.StatusTimeout,
}

func (f *File) expectUnclear(u *report.Unclear, used []bool) string {
	for i := range f.Entries {
		e := &f.Entries[i]
		if outcomes[e.Status] == report.StatusOf(u.Outcome) && e.matches(u.Case, u.Message) {
			used[i] = true
			return e.why()
		}
	}
	return ""
}

func (e *Entry) matches(name, message string) bool {
	return pick.Matches(e.Match, name) && strings.HasPrefix(message, e.Message)
}

// why is never empty: that is what tells an expected failure from another one.
func (e *Entry) why() string {
	return strings.TrimSpace(strings.TrimSpace(e.Reason) + " " + e.Issue)
}

// judged reports whether the run says that the entry is stale.
func (e *Entry) judged(rep *report.Report, all []string) bool {
	if rep.Partial || rep.Shard != nil || !judgesBy(rep, e.Rule) {
		return false
	}
	ran := map[string]bool{}
	for _, result := range rep.Results {
		ran[result.Case] = result.Status != report.StatusNotRun
	}
	some := false
	for _, name := range all {
		if !pick.Matches(e.Match, name) {
			continue
		}
		if !ran[name] {
			return false
		}
		some = true
	}
	return some
}

func judgesBy(rep *report.Report, rule string) bool {
	return rule == "" || slices.ContainsFunc(rep.Rules, func(r report.Rule) bool {
		return strings.EqualFold(r.ID, rule) && r.Status != conformance.StatusNotApplicable
	})
}
