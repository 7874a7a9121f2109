package main

import (
	"context"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// unsteady records every schedule several times and gives those that did not
// come out the same each time.
func unsteady(ctx context.Context, s *subjects.Subject, cases []*harness.CaseFile, f *runFlags) []report.Unclear {
	var found []report.Unclear
	for _, c := range cases {
		for n := range 1 + f.schedules {
			if ctx.Err() != nil {
				return found
			}
			if u := compareRepeats(ctx, s, c, f, n); u != nil {
				found = append(found, *u)
			}
		}
	}
	return found
}

// compareRepeats records schedule n of a case and compares each recording with
// the first one.
func compareRepeats(ctx context.Context, s *subjects.Subject, c *harness.CaseFile, f *runFlags, n int) *report.Unclear {
	var first *harness.Recording
	for range f.repeat {
		policy, _ := suite.Schedule(c, f.seed, n)
		again, err := s.Record(ctx, scenarioIn(c, s.Edition), policy)
		if err != nil {
			return nil // has been told when the case was judged
		}
		if first == nil {
			first = again
			continue
		}
		if at, text := trace.FirstDiff(first.Trace, again.Trace); at >= 0 {
			return &report.Unclear{
				Case: c.Name, Number: n, Schedule: first.Schedule, Outcome: report.Unsteady,
				Message: "the same schedule gave two different traces: " + text,
			}
		}
	}
	return nil
}
