package main

import (
	"context"
	"errors"
	"slices"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
)

// freshMost is how many findings are tried again. A loop that breaks a rule in a
// hundred cases does not owe that to what earlier ones left behind.
const freshMost = 12

// labelLeaks runs the schedules of findings once more, each alone in a fresh
// process, and labels those that pass there. A rule that is broken there as well
// needs no other try.
func labelLeaks(ctx context.Context, s *subjects.Subject, cases []*harness.CaseFile, rules []conformance.Rule, rep *report.Report) {
	if s.Oracle == nil { // every case in process has a loop of its own
		return
	}
	confirmed := map[string]bool{}
	tries := 0
	for i := range rep.Findings {
		f := &rep.Findings[i]
		if f.Level != conformance.Must || confirmed[f.Rule] || tries == freshMost {
			continue
		}
		tries++
		broken, err := alone(ctx, s, cases, rules, f)
		if err != nil { // it says nothing; the finding stays as it is
			continue
		}
		for _, rule := range broken {
			confirmed[rule] = true
		}
		f.StateLeak = !slices.Contains(broken, f.Rule)
	}
}

// alone gives the rules that a finding's schedule breaks in a fresh process.
func alone(ctx context.Context, s *subjects.Subject, cases []*harness.CaseFile, rules []conformance.Rule, f *report.Finding) ([]string, error) {
	fresh, err := s.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer fresh.Close()
	i := slices.IndexFunc(cases, func(c *harness.CaseFile) bool { return c.Name == f.Case })
	rep, _, err := suite.One(ctx, fresh.Driver, cases[i], f.Seed, suite.Options{
		Edition: s.Edition, Rules: rules, Oracle: fresh.Oracle, Reducer: fresh.Reducer,
	})
	if err != nil {
		return nil, err
	}
	if len(rep.Unclear) > 0 {
		return nil, errors.New(rep.Unclear[0].Message)
	}
	var broken []string
	for _, found := range rep.Broken(conformance.Must) {
		broken = append(broken, found.Rule)
	}
	return broken, nil
}

// brokenBy are the MUST rules that a recording breaks, in order.
func brokenBy(rec *harness.Recording, rules []conformance.Rule) []string {
	var broken []string
	for _, f := range conformance.Check(rec.Trace, rules).Findings {
		if f.Level == conformance.Must && !slices.Contains(broken, f.Rule) {
			broken = append(broken, f.Rule)
		}
	}
	slices.Sort(broken)
	return broken
}
