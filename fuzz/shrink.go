package fuzz

import (
	"context"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
)

// Shrink makes a case that somebody wrote as small as [Explore] makes those that it
// finds: the kind of thing that is wrong stays, whatever else may be wrong with it.
// It is nil if the case does not show it when it is run again.
func Shrink(ctx context.Context, subject harness.Driver, c harness.Case, kind string, o Options) (*Finding, error) {
	o.Rules = []conformance.Rule{}
	if rule, err := conformance.Lookup(kind); err == nil {
		o.Rules = append(o.Rules, rule)
	}
	o.Edition = c.Scenario.Edition
	x := newExplorer(subject, o)
	seat := x.court.open()
	defer func() { _ = seat.runner.Close() }()
	rec, err := seat.runner.Run(ctx, c.Scenario, harness.NewReplay(c.Schedule))
	if err != nil {
		return nil, contextless(ctx, err)
	}
	seat.runner.Keep()
	f := &Finding{Kind: kind, Original: harness.Case{Scenario: c.Scenario, Schedule: rec.Schedule}, Recording: rec, Count: 1}
	w, err := x.replayed(ctx, c.Scenario, rec, nil, replays)
	if err != nil || w != nil {
		return nil, contextless(ctx, err)
	}
	s := seat.minimise(ctx, f.Original, kind, x.o.ShrinkRuns)
	if s == nil {
		return nil, nil
	}
	f.take(s)
	return f, nil
}

// take takes over the smallest case.
func (f *Finding) take(s *Shrunk) {
	f.Case, f.Recording, f.Cost = s.Case, s.Recording, s.Cost
	f.Level, f.Message, f.Entries, f.Also = s.wrong.level, s.wrong.message, s.wrong.entries, s.wrong.also
}
