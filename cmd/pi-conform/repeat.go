package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// unsteady records every schedule several times and gives those that did not
// come out the same each time.
func unsteady(ctx context.Context, s *subjects.Subject, cases []*harness.CaseFile, rules []conformance.Rule, f *runFlags) []report.Unclear {
	var found []report.Unclear
	for _, c := range cases {
		for n := range 1 + f.schedules {
			if ctx.Err() != nil {
				return found
			}
			if u := compareRepeats(ctx, s, c, rules, f, n); u != nil {
				found = append(found, *u)
			}
		}
	}
	return found
}

// compareRepeats records schedule n of a case and compares each recording with
// the first one.
func compareRepeats(ctx context.Context, s *subjects.Subject, c *harness.CaseFile, rules []conformance.Rule, f *runFlags, n int) *report.Unclear {
	var r rate
	for range f.repeat {
		policy, _ := suite.Schedule(c, f.seed, n)
		again, err := s.Record(ctx, scenarioIn(c, s.Edition), policy)
		if err != nil {
			return nil // has been told when the case was judged
		}
		r.add(again, rules)
	}
	if r.unlike == 0 {
		return nil
	}
	return &report.Unclear{Case: c.Name, Schedule: r.first.Schedule, Outcome: report.Unsteady, Message: r.String()}
}

// rate says how often recordings of one schedule are unlike the first, and how
// often rules are broken by them.
type rate struct {
	first      *harness.Recording
	recorded   int
	unlike     int
	difference string         // from the first of them
	broken     map[string]int // MUST rules, with the number of recordings that break them
}

func (r *rate) add(rec *harness.Recording, rules []conformance.Rule) {
	r.recorded++
	if r.first == nil {
		r.first, r.broken = rec, map[string]int{}
	}
	for _, rule := range brokenBy(rec, rules) {
		r.broken[rule]++
	}
	at, text := trace.FirstDiff(r.first.Trace, rec.Trace)
	if at < 0 {
		return
	}
	if r.unlike == 0 {
		r.difference = text
	}
	r.unlike++
}

// String is for people: the rates, of rules only where they are not always or
// never broken.
func (r *rate) String() string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%d of %d recordings of the same schedule are unlike the first", r.unlike, r.recorded))
	for _, rule := range slices.Sorted(maps.Keys(r.broken)) {
		if n := r.broken[rule]; n < r.recorded {
			text.WriteString(fmt.Sprintf(", %d of %d break %s", n, r.recorded, rule))
		}
	}
	return text.String() + ": " + r.difference
}
