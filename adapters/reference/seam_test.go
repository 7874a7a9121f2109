package reference_test

import (
	"context"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// TestDriversAgree: coroutines and goroutines give the same traces, in both
// editions and every form, with everything that can be drawn.
func TestDriversAgree(t *testing.T) {
	coroutines, bubbles := reference.New(), reference.NewBubble()
	for seed := range uint64(600) {
		for _, e := range edition.Known() {
			sc := fuzz.Scenario(fuzz.NewSeeded(seed), e, fuzz.Everything())
			a := record(t, coroutines, sc, harness.NewRandom(seed))
			b := record(t, bubbles, sc, harness.NewReplay(a.Schedule))
			if i, diff := trace.FirstDiff(a.Trace, b.Trace); i >= 0 {
				t.Fatalf("seed %d, edition %s: coroutines (a) and goroutines (b) part:\n%s\n\n%s", seed, e, diff, trace.Text(a.Trace))
			}
		}
	}
}

func record(t testing.TB, d harness.Driver, sc *harness.Scenario, p harness.Policy) *harness.Recording {
	t.Helper()
	rec, err := harness.Run(context.Background(), d, sc, p, harness.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
