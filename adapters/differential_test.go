package adapters_test

import (
	"context"
	"os"
	"testing"

	"github.com/pi-conform/pi-conform/adapters"
	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/subject"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// TestReferenceIsTheRealLoop: on random cases the reference and the release of
// the npm loop that its edition is named after give the same normal form.
func TestReferenceIsTheRealLoop(t *testing.T) {
	if os.Getenv("PI_CONFORM_NPM") == "" && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: set PI_CONFORM_NPM=1 to compare with the real loop, which npm installs")
	}
	for version, e := range map[string]edition.Edition{"0.84.3": edition.V0843, "1.6.0": edition.V16} {
		t.Run(version, func(t *testing.T) { compare(t, version, e) })
	}
}

// differentialCases are drawn for each release, in every form.
const differentialCases = 1200

func compare(t *testing.T, version string, e edition.Edition) {
	ctx := context.Background()
	real, err := subject.Pi(ctx, version, subject.Options{Adapters: adapters.Files, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	oracle := reference.New()
	for seed := range uint64(differentialCases) {
		sc := fuzz.Scenario(fuzz.NewSeeded(seed), e, fuzz.Everything())
		want, err := harness.Run(ctx, oracle, sc, harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := harness.RunPredicted(ctx, real, oracle, sc, harness.NewRandom(seed), harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		// The adapter also compares what was kept, which the reference does not.
		a, b := trace.Project(want.Trace, want.Trace.Header.Evidence...), trace.Project(got.Trace, want.Trace.Header.Evidence...)
		if i, diff := trace.FirstDiff(a, b); i >= 0 {
			t.Fatalf("seed %d: the reference (a) and pi@%s (b) part:\n%s\n\n%s", seed, version, diff, trace.Text(got.Trace))
		}
	}
}
