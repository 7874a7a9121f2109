package fuzz_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
)

var _ = Describe("updates of different calls", func() {
	// What the exhaustive policy takes for granted when it leaves out orders.
	It("commute on the reference and on every mutant: their order changes no other event and no verdict", func() {
		subjects := []harness.Driver{reference.New()}
		for _, defect := range loop.KnownDefects() {
			if !unsteady[defect] {
				subjects = append(subjects, reference.New(defect))
			}
		}
		swaps := 0
		size := fuzz.Usual()
		size.Late, size.Listeners = false, false
		for seed := uint64(0); swaps < 400; seed++ {
			subject := subjects[seed%uint64(len(subjects))]
			sc := fuzz.Scenario(fuzz.NewSeeded(seed), edition.Default, size)
			rec, err := harness.Run(context.Background(), subject, sc, harness.NewUniform(seed), harness.Limits{})
			Expect(err).NotTo(HaveOccurred())
			i := swappable(rec.Schedule)
			if i < 0 {
				continue
			}
			swaps++
			other := slices.Clone(rec.Schedule)
			other[i], other[i+1] = other[i+1], other[i]
			swapped, err := harness.RunCase(context.Background(), subject, harness.Case{Scenario: sc, Schedule: other}, harness.Limits{})
			Expect(err).NotTo(HaveOccurred())
			Expect(swapped.Schedule).To(Equal(other))
			Expect(brokenRules(swapped)).To(Equal(brokenRules(rec)), "%s, seed %d", subject.Info().Name, seed)
		}
	})
})

// swappable is the place of two updates of different calls that follow each
// other; -1 if there is none.
func swappable(schedule []string) int {
	call := func(label string) string {
		if call, _, ok := strings.Cut(label, "/update/"); ok && strings.HasPrefix(label, "tool/") {
			return call
		}
		return ""
	}
	for i := range len(schedule) - 1 {
		if a, b := call(schedule[i]), call(schedule[i+1]); a != "" && b != "" && a != b {
			return i
		}
	}
	return -1
}

func brokenRules(rec *harness.Recording) []string {
	var broken []string
	for _, r := range conformance.Check(rec.Trace, rules).Rules {
		if r.Status == conformance.StatusFail {
			broken = append(broken, r.Rule)
		}
	}
	return broken
}

var _ = Describe("a scenario", func() {
	It("is the same again for the same choices, and all its sizes can be run", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g := NewWithT(t)
			seed := rapid.Uint64().Draw(t, "seed")
			e := rapid.SampledFrom(edition.Known()).Draw(t, "edition")
			sc := fuzz.Scenario(fuzz.NewSeeded(seed), e, fuzz.Everything())
			g.Expect(fuzz.Scenario(fuzz.NewSeeded(seed), e, fuzz.Everything())).To(Equal(sc))
			rec, err := harness.Run(context.Background(), reference.New(), sc, harness.First{}, harness.Limits{Steps: 2000})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ended(rec)).To(BeTrue(), trace.Text(rec.Trace))
		})
	})

	It("can be written to a case file and read again", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g := NewWithT(t)
			sc := fuzz.Scenario(drawn{t}, edition.Default, fuzz.Everything())
			before, err := harness.Run(context.Background(), reference.New(), sc, harness.First{}, harness.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			text := harness.FormatCase(&harness.CaseFile{Case: harness.Case{Scenario: sc}})
			read, err := harness.ParseCase("drawn.txtar", text)
			g.Expect(err).NotTo(HaveOccurred(), string(text))
			after, err := harness.Run(context.Background(), reference.New(), read.Case.Scenario, harness.First{}, harness.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			i, difference := trace.FirstDiff(before.Trace, after.Trace)
			g.Expect(i).To(BeNumerically("<", 0), "%s\n%s", difference, text)
		})
	})
})

var _ = Describe("a seed", func() {
	It("gives the same for one thing, whatever else is drawn, and when", func() {
		alone, among := fuzz.NewSeeded(7), fuzz.NewSeeded(7)
		for i := range 100 {
			for range i % 3 {
				among.Choose("something else", 5)
			}
			Expect(among.Choose("calls", 1000)).To(Equal(alone.Choose("calls", 1000)))
		}
	})

	It("gives numbers that are spread over their range", func() {
		counts := make([]int, 8)
		for seed := range uint64(8000) {
			counts[fuzz.NewSeeded(seed).Choose("calls", 8)]++
		}
		for _, n := range counts {
			Expect(n).To(BeNumerically("~", 1000, 150))
		}
	})
})

var _ = Describe("every tape", func() {
	It("means a case, the empty one and its prefixes included", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g := NewWithT(t)
			tape := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "tape")
			sc, policy := fuzz.Decode(tape, edition.Default, fuzz.Everything())
			first, err := harness.Run(context.Background(), reference.New(), sc, policy, harness.Limits{Steps: 2000})
			g.Expect(err).NotTo(HaveOccurred())
			sc, policy = fuzz.Decode(tape, edition.Default, fuzz.Everything())
			second, err := harness.Run(context.Background(), reference.New(), sc, policy, harness.Limits{Steps: 2000})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(second.Schedule).To(Equal(first.Schedule))
		})
	})
})

var _ = Describe("replays", func() {
	It("agree for a subject that is deterministic", func() {
		rec := record(reference.New())
		varies, err := fuzz.Repeat(context.Background(), reference.New(), twoCalls(), rec, 5, harness.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(varies).To(BeNil())
	})

	It("say where a subject that is not goes another way", func() {
		subject := &fickle{Driver: reference.New(), other: reference.New(loop.ResultsInCompletionOrder)}
		rec := record(subject)
		varies, err := fuzz.Repeat(context.Background(), subject, twoCalls(), rec, 5, harness.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(varies).To(HaveField("Difference", ContainSubstring("differs")))

		r := explore(&fickle{Driver: reference.New(), other: reference.New(loop.ResultEndTwice)}, fuzz.Options{Runs: 200, Repeat: 3, Stop: 1})
		Expect(r.Findings).NotTo(BeEmpty())
		Expect(r.Findings[0].Kind).To(Equal(fuzz.NotDeterministic))
	})
})

func record(d harness.Driver) *harness.Recording {
	GinkgoHelper()
	rec, err := harness.RunCase(context.Background(), d, harness.Case{Scenario: twoCalls(), Schedule: []string{"tool/c2/return", "tool/c1/return"}}, harness.Limits{})
	Expect(err).NotTo(HaveOccurred())
	return rec
}

// fickle is every other time another subject.
type fickle struct {
	harness.Driver
	other harness.Driver
	n     int
}

func (f *fickle) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	f.n++
	if f.n%2 == 0 {
		return f.other.Open(ctx, sc)
	}
	return f.Driver.Open(ctx, sc)
}
