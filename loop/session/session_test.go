package session_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fixtures"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/session"
)

func TestSession(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "session")
}

// cases are those of the fixtures that run a session.
func cases() []string {
	var names []string
	for _, file := range fixtures.Cases() {
		if path.Dir(file) == "cases/session" {
			names = append(names, file)
		}
	}
	return names
}

// play runs a case by a policy, or by its own schedule if that is nil.
func play(d harness.Driver, file string, e edition.Edition, p harness.Policy) *harness.Recording {
	data, err := fixtures.FS.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	c, err := harness.ParseCase(file, data)
	Expect(err).NotTo(HaveOccurred())
	c.Case.Scenario.Edition = e
	if p == nil {
		p = harness.NewReplay(c.Case.Schedule)
	}
	rec, err := harness.Run(context.Background(), d, c.Case.Scenario, p, harness.Limits{})
	Expect(err).NotTo(HaveOccurred())
	return rec
}

// judged is what the rules of the family say of a trace.
func judged(tr *trace.Trace) conformance.Verdict {
	rules, err := conformance.Select("SESS")
	Expect(err).NotTo(HaveOccurred())
	return conformance.Check(tr, rules)
}

var _ = Describe("A session", func() {
	for _, file := range cases() {
		It("keeps the rules in "+file+", in any order", func() {
			for _, e := range edition.Known() {
				for seed := range uint64(60) {
					tr := play(reference.New(), file, e, harness.NewRandom(seed)).Trace
					v := judged(tr)
					Expect(v.Findings).To(BeEmpty(), "edition %s, seed %d\n%s", e, seed, trace.Text(tr))
					Expect(v.Outcome).To(Equal(conformance.Pass), "edition %s, seed %d\n%s", e, seed, trace.Text(tr))
				}
			}
		})

		It("does in "+file+" the same on coroutines and on goroutines", func() {
			for seed := range uint64(20) {
				a := play(reference.New(), file, edition.V16, harness.NewRandom(seed))
				b := play(reference.NewBubble(), file, edition.V16, harness.NewReplay(a.Schedule))
				_, diff := trace.FirstDiff(a.Trace, b.Trace)
				Expect(diff).To(BeEmpty())
			}
		})
	}

	It("exercises every rule of the family", func() {
		exercised := map[string]int{}
		for _, file := range cases() {
			v := judged(play(reference.New(), file, edition.V0843, nil).Trace)
			for _, r := range v.Rules {
				exercised[r.Rule] += r.Exercised
			}
		}
		for _, id := range []string{"SESS-1", "SESS-2", "SESS-3", "SESS-4", "SESS-5"} {
			Expect(exercised[id]).To(BeNumerically(">", 0), id)
		}
	})

	It("moves the clock by what is left, and writes it down", func() {
		rec := play(reference.New(), "cases/session/gives-up.txtar", edition.V0843, nil)
		Expect(rec.Schedule).To(ContainElements("clock/1s", "clock/2s"))
		end := rec.Trace.Entries[len(rec.Trace.Entries)-1]
		Expect(end.Time).To(Equal(int64(3000)))
	})
})

var _ = Describe("Every mutant of the session", func() {
	for _, m := range session.Mutants() {
		It(m.Name+" is found by "+m.Rule, func() {
			Expect(m.Story).To(HaveSuffix("."))
			driver := reference.NewFaulty(reference.Defects{Session: []session.Defect{m.Defect}})
			Expect(driver.Info().Name).To(Equal("mutant:" + m.Name))
			var first []string
			for _, file := range cases() {
				v := judged(play(driver, file, edition.V0843, nil).Trace)
				if f := v.First(); f != nil {
					first = append(first, f.Rule)
				}
			}
			Expect(slices.Contains(first, m.Rule)).To(BeTrue(), "found by %s", strings.Join(first, " "))
		})
	}
})
