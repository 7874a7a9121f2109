package fuzz_test

import (
	"context"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop"
)

// BenchmarkScenario draws scenarios.
func BenchmarkScenario(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		fuzz.Scenario(fuzz.NewSeeded(uint64(i)), edition.Default, fuzz.Wide())
	}
}

// BenchmarkExplore runs b.N schedules of the automatic mixture, with all rules.
func BenchmarkExplore(b *testing.B) {
	b.ReportAllocs()
	mustExplore(b, reference.New(), fuzz.Options{Runs: max(b.N, 1)})
}

// BenchmarkExhaustive goes through all schedules of one scenario.
func BenchmarkExhaustive(b *testing.B) {
	b.ReportAllocs()
	schedules := 0
	for range b.N {
		r := mustExplore(b, reference.New(), fuzz.Options{Scenario: threeCalls(), Runs: 1 << 30})
		schedules += r.Runs
	}
	b.ReportMetric(float64(schedules)/b.Elapsed().Seconds(), "schedules/s")
}

// BenchmarkMinimise finds a late update and shrinks the case.
func BenchmarkMinimise(b *testing.B) {
	runs := 0
	for i := range b.N {
		r := mustExplore(b, reference.New(loop.LateUpdateAccepted), fuzz.Options{Seed: uint64(i), Stop: 1})
		runs += r.ShrinkRuns
	}
	b.ReportMetric(float64(runs)/float64(b.N), "shrinks/op")
}

func mustExplore(b *testing.B, d harness.Driver, o fuzz.Options) *fuzz.Result {
	b.Helper()
	r, err := fuzz.Explore(context.Background(), d, o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// threeCalls are three calls at once, each of which may report once.
func threeCalls() *harness.Scenario {
	sc := twoCalls()
	calls := &sc.Model[0].Calls
	third := (*calls)[0]
	third.ID = "c3"
	*calls = append(*calls, third)
	sc.Calls["c3"] = sc.Calls["c1"]
	return sc
}
