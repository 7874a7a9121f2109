package fuzz_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestMain(m *testing.M) {
	// Fixtures are files of our own.
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestFuzz(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "fuzz")
}

var rules = conformance.Catalogue()

// broken is the first MUST finding of a recording; nil if there is none.
func broken(rec *harness.Recording, e edition.Edition) *conformance.Finding {
	v := conformance.Check(rec.Trace, rules, conformance.InEdition(e))
	if f := v.First(); f != nil && f.Level == conformance.Must {
		return f
	}
	return nil
}

// ended reports whether a recording came to its end. A plain event stream never ends
// for its reader if the request fails (edge e10).
func ended(rec *harness.Recording) bool {
	outcome := rec.Trace.Entries[len(rec.Trace.Entries)-1].Outcome
	return outcome == trace.OutcomeComplete || outcome == trace.OutcomeDeadlock && rec.Trace.Header.Form == trace.FormStream
}

// FuzzLoop looks for a tape whose case the reference gets wrong. It is a target
// for coverage-guided fuzzing: go test -fuzz FuzzLoop ./fuzz.
func FuzzLoop(f *testing.F) {
	f.Add([]byte{})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 16 {
		tape := make([]byte, 160)
		for i := range tape {
			tape[i] = byte(rng.IntN(256))
		}
		f.Add(tape)
	}
	driver := reference.New()
	f.Fuzz(func(t *testing.T, tape []byte) {
		for _, e := range edition.Known() {
			sc, policy := fuzz.Decode(tape, e, fuzz.Everything())
			rec, err := harness.Run(context.Background(), driver, sc, policy, harness.Limits{Steps: 2000})
			if err != nil {
				t.Fatal(err)
			}
			if found := broken(rec, e); found != nil {
				t.Fatalf("edition %s, rule %s: %s\n%s", e, found.Rule, found.Message, trace.Text(rec.Trace))
			}
			if !ended(rec) {
				t.Fatalf("edition %s: the recording did not come to its end:\n%s", e, trace.Text(rec.Trace))
			}
		}
	})
}
