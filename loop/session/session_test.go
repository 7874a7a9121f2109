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
	"github.com/pi-conform/pi-conform/fuzz"
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

	It("keeps the rules in random cases", func() {
		for seed := range uint64(300) {
			for _, e := range edition.Known() {
				rec, err := harness.Run(context.Background(), reference.New(), drawn(seed, e), harness.NewRandom(seed), harness.Limits{Steps: 500})
				Expect(err).NotTo(HaveOccurred())
				v := judged(rec.Trace)
				Expect(v.Outcome).To(Equal(conformance.Pass), "seed %d, edition %s: %v\n%s", seed, e, v.Findings, trace.Text(rec.Trace))
			}
		}
	})

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

// drawn is a random case of the loop, with a session around it.
func drawn(seed uint64, e edition.Edition) *harness.Scenario {
	size := fuzz.Usual()
	size.Faults, size.Duplicates, size.Throws = seed%3 == 1, seed%4 == 2, seed%5 == 3
	sc := fuzz.Scenario(fuzz.NewSeeded(seed), e, size)
	sc.Form = trace.FormSession
	sc.Config.Session = &trace.SessionConfig{MaxRetries: int(seed % 4), BaseDelayMs: 500}
	for i := range sc.Model {
		if (seed>>(i+2))%2 == 0 && seed%2 == 0 {
			sc.Model[i].Stop, sc.Model[i].Error = trace.StopError, "overloaded"
		}
	}
	if seed%3 == 0 {
		return sc
	}
	sc.Config.Session.Compact = []string{session.Threshold, "", session.Overflow, session.Threshold}
	if sc.Hooks == nil {
		sc.Hooks = map[string]harness.HookScript{}
	}
	sc.Hooks[trace.HookCompact] = harness.HookScript{
		Gate: seed%2 == 1, Else: harness.HookReply{Value: trace.HookAnswer{Continue: seed%5 == 0}},
	}
	return sc
}

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
