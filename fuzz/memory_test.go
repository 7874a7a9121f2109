package fuzz_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// TestUsedMemoryShowsNowhere: who keeps memory from one case to the next records
// and finds the same as who begins anew, and what was kept stays as it was.
func TestUsedMemoryShowsNowhere(t *testing.T) {
	g := NewWithT(t)
	ctx, rules := context.Background(), conformance.Catalogue()
	used, anew := reference.New(), reference.New()
	defer used.Close()
	defer anew.Close()
	runner, judge := harness.NewRunner(used, harness.Limits{}), conformance.NewJudge(rules)
	var kept []*harness.Recording
	var hashes []string
	for seed := range uint64(400) {
		sc := fuzz.Scenario(fuzz.NewSeeded(seed), edition.Default, fuzz.Everything())
		for range 2 {
			rec, err := runner.Run(ctx, sc, harness.NewRandom(seed))
			g.Expect(err).NotTo(HaveOccurred())
			fresh, err := harness.Run(ctx, anew, sc, harness.NewRandom(seed), harness.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			at, difference := trace.FirstDiff(fresh.Trace, rec.Trace)
			g.Expect(at).To(BeNumerically("<", 0), "seed %d: %s", seed, difference)
			g.Expect(rec.Schedule).To(Equal(fresh.Schedule))
			g.Expect(*judge.Check(rec.Trace)).To(Equal(conformance.Check(fresh.Trace, rules)), "seed %d", seed)
			if seed%5 == 0 {
				runner.Keep()
				kept, hashes = append(kept, rec), append(hashes, trace.Hash(rec.Trace))
			}
		}
	}
	for i, rec := range kept {
		g.Expect(trace.Hash(rec.Trace)).To(Equal(hashes[i]))
	}
}

// TestAnswersStay: what a callback was answered is still there when the callback
// has long been forgotten.
func TestAnswersStay(t *testing.T) {
	g := NewWithT(t)
	d := reference.New()
	defer d.Close()
	seen := 0
	for seed := range uint64(2000) {
		sc := fuzz.Scenario(fuzz.NewSeeded(seed), edition.Default, fuzz.Everything())
		rec, err := harness.Run(context.Background(), d, sc, harness.NewRandom(seed), harness.Limits{})
		g.Expect(err).NotTo(HaveOccurred())
		messages := thrown(rec.Trace)
		g.Expect(messages).NotTo(ContainElement(BeEmpty()), "seed %d", seed)
		seen += len(messages)
	}
	g.Expect(seen).To(BeNumerically(">", 100))
}

// thrown are the errors with which the surroundings have answered. Every scenario
// gives each of them a text.
func thrown(t *trace.Trace) (messages []string) {
	for i := range t.Entries {
		if a := t.Entries[i].Answer; t.Entries[i].Kind == trace.KindAction && a != nil && a.Throw != nil {
			messages = append(messages, *a.Throw)
		}
	}
	return messages
}
