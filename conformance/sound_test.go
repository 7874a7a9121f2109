package conformance_test

import (
	"context"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// TestReferenceKeepsTheRules: in every form and edition no rule but those of the
// level robust fires on the reference, also where runs fail outside the protocol,
// listeners throw and calls share their ids.
func TestReferenceKeepsTheRules(t *testing.T) {
	driver := reference.New()
	for seed := range uint64(400) {
		size := fuzz.Usual()
		size.Faults, size.Duplicates, size.Throws = seed%3 == 1, seed%4 == 2, seed%5 == 3
		for _, e := range edition.Known() {
			for _, form := range []trace.Form{trace.FormAgent, trace.FormLoop, trace.FormStream} {
				sc := fuzz.Scenario(fuzz.NewSeeded(seed), e, size)
				sc.Form = form
				rec, err := harness.Run(context.Background(), driver, sc, harness.NewRandom(seed), harness.Limits{})
				if err != nil {
					t.Fatalf("seed %d, edition %s, form %s: %v", seed, e, form, err)
				}
				expectSound(t, rec.Trace, seed)
			}
		}
	}
}

func expectSound(t *testing.T, tr *trace.Trace, seed uint64) {
	t.Helper()
	v := conformance.Check(tr, conformance.Catalogue())
	for _, f := range v.Findings {
		if f.Level != conformance.Robust {
			t.Fatalf("seed %d, edition %s, form %s: %s: %s %v\n%s", seed, tr.Header.Edition, tr.Header.Form, f.Rule, f.Message, f.Entries, trace.Text(tr))
		}
	}
}
