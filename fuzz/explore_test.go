package fuzz_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/faulty"
)

func explore(d harness.Driver, o fuzz.Options) *fuzz.Result {
	GinkgoHelper()
	r, err := fuzz.Explore(context.Background(), d, o)
	Expect(err).NotTo(HaveOccurred())
	return r
}

var _ = Describe("exploring", func() {
	for _, e := range edition.Known() {
		It("finds nothing wrong with the reference in edition "+string(e), func() {
			r := explore(reference.New(), fuzz.Options{Edition: e, Runs: 3000, Rules: shouldRules(e), Jobs: 2})
			for _, f := range r.Findings {
				Fail(f.Kind + " " + f.Message + "\n" + string(harness.FormatCase(f.CaseFile("", "reference"))))
			}
			Expect(r.Runs).To(Equal(3000))
			Expect(r.Shapes).To(BeNumerically(">", 1000))
			Expect(strings.Join(r.Established(), "\n")).To(SatisfyAll(
				MatchRegexp(`all \d+ schedules of \d+ scenarios: none failed`),
				MatchRegexp(`by uniform: none failed; fewer than 3/\d+ of schedules`),
				MatchRegexp(`by pct:2: none failed; each finds a fault of depth 2`),
			))
		})
	}

	for i, m := range faulty.All() {
		if unfound[m.Defect] != "" || m.Equivalent != "" || testing.Short() && i%8 > 0 {
			continue
		}
		It("finds the mutant "+m.Name+" in 2,000 runs and shrinks it", func() {
			subject := reference.New(m.Defect)
			e := cmp.Or(m.Edition, edition.Default)
			r := explore(subject, fuzz.Options{Edition: e, Seed: 1, Runs: 2000, Stop: 1, Rules: shouldRules(e), Jobs: 2})
			Expect(r.Findings).NotTo(BeEmpty())
			if unsteady[m.Defect] {
				return
			}
			for _, f := range r.Findings {
				comesAgain(subject, m.Name, f)
			}
			f := r.Findings[0]
			turns, calls := sizeOf(f.Case.Scenario)
			text := string(harness.FormatCase(f.CaseFile("found", "mutant:"+m.Name)))
			Expect(turns).To(BeNumerically("<=", 2), text)
			Expect(calls).To(BeNumerically("<=", 3), text)
			Expect(f.Cost.Departures).To(BeNumerically("<=", 2), text)
		})
	}

	It("leaves out what the subject has not declared", func() {
		able := reference.New()
		r := explore(able, fuzz.Options{Seed: 1, Runs: 500})
		Expect(r.Unsupported).To(BeZero())
		r = explore(&lacking{able}, fuzz.Options{Seed: 1, Runs: 500})
		Expect(r.Unsupported).To(BeZero())
		Expect(r.Failed()).To(BeFalse())
	})

	It("gives the same whatever the number of jobs", func() {
		options := fuzz.Options{Seed: 7, Runs: 1200}
		one := explore(reference.New(loop.LateUpdateAccepted), options)
		options.Jobs = 4
		four := explore(reference.New(loop.LateUpdateAccepted), options)
		Expect(four.Established()).To(Equal(one.Established()))
		Expect(four.Shapes).To(Equal(one.Shapes))
		Expect(four.Findings).To(HaveLen(len(one.Findings)))
		for i := range one.Findings {
			Expect(four.Findings[i].Origin).To(Equal(one.Findings[i].Origin))
			Expect(four.Findings[i].Count).To(Equal(one.Findings[i].Count))
			Expect(four.Findings[i].Case).To(Equal(one.Findings[i].Case))
		}
	})

	It("exhausts a scenario that it is given, with any number of jobs", func() {
		sc := twoCalls()
		for _, jobs := range []int{1, 3} {
			r := explore(reference.New(), fuzz.Options{Scenario: sc, Time: 1 << 40, Jobs: jobs})
			Expect(r.Established()).To(Equal([]string{"all 14 schedules of 1 scenario: none failed"}))
		}
	})

	It("says so if it could only go through the schedules near the default order", func() {
		r := explore(reference.New(), fuzz.Options{Scenario: twoCalls(), Runs: 8, Policy: harness.PolicySpec{Kind: harness.PolicyExhaustive}})
		Expect(r.Exhausted).To(BeEmpty())
		Expect(r.Runs).To(Equal(8))
	})

	It("saves what it found and runs it first the next time", func() {
		dir := GinkgoT().TempDir()
		options := fuzz.Options{Seed: 1, Runs: 2000, Stop: 1, SaveDir: dir, Subject: "mutant:truncated-executed"}
		first := explore(reference.New(loop.TruncatedExecuted), options)
		Expect(first.Findings).To(HaveLen(1))
		file := first.Findings[0].File
		Expect(filepath.Base(file)).To(MatchRegexp(`^len-1-[0-9a-f]{8}\.txtar$`))
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(data)).To(ContainSubstring("replay: pi-conform replay " + file + " mutant:truncated-executed"))

		options.Runs = 10
		second := explore(reference.New(loop.TruncatedExecuted), options)
		Expect(second.Findings).To(HaveLen(1))
		Expect(second.Findings[0].Saved).To(BeTrue())
		Expect(second.Findings[0].File).To(Equal(file))
		Expect(second.Runs).To(Equal(1))
		cases, err := fuzz.Saved(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(cases).To(HaveLen(1))
	})

	It("reports what differs from the oracle and breaks no rule", func() {
		r := explore(reference.New(loop.ResultsInCompletionOrder), fuzz.Options{
			Runs: 600, Stop: 1, Rules: rules[:0:0], Oracle: reference.New(), Differential: true,
		})
		Expect(r.Findings).NotTo(BeEmpty())
		Expect(r.Findings[0].Kind).To(Equal(fuzz.Differential))
		Expect(r.Findings[0].Message).To(ContainSubstring("the oracle (a) and the subject (b) part"))
		Expect(r.Findings[0].Cost.Departures).To(BeNumerically("<=", 1))
	})
})

// unsteady mutants do not go the same way twice, so that there is nothing to
// shrink.
var unsteady = map[loop.Defect]bool{loop.MapOrderDecides: true, loop.RaceOnResults: true}

// unfound mutants are not found, and why. docs/EXPLORING.md says so too.
var unfound = map[loop.Defect]string{
	loop.RaceOnResults: "only goroutines under the race detector show it",
}

func shouldRules(e edition.Edition) []conformance.Rule {
	return slices.DeleteFunc(conformance.Catalogue(), func(r conformance.Rule) bool { return r.LevelIn(e) == conformance.Robust })
}

func sizeOf(sc *harness.Scenario) (turns, calls int) {
	for _, t := range sc.Model {
		calls += len(t.Calls)
	}
	return len(sc.Model), calls
}

// comesAgain sees to it that the case of a finding, as it is saved, shows the same
// again, and shows nothing on the right loop.
func comesAgain(subject harness.Driver, name string, f *fuzz.Finding) {
	GinkgoHelper()
	text := string(harness.FormatCase(f.CaseFile("found", "mutant:"+name)))
	again, err := harness.ParseCase("found.txtar", []byte(text))
	Expect(err).NotTo(HaveOccurred(), text)
	again.Case.Scenario.Keep = true
	rec, err := harness.RunCase(context.Background(), subject, again.Case, harness.Limits{})
	Expect(err).NotTo(HaveOccurred())
	Expect(rec.Skipped).To(BeEmpty(), text)
	rule, err := conformance.Lookup(f.Kind)
	if err != nil {
		return
	}
	e := f.Case.Scenario.Edition
	verdict := conformance.Check(rec.Trace, rules, conformance.InEdition(e))
	Expect(verdict.First()).To(HaveField("Rule", rule.ID), text)
	clean, err := harness.RunCase(context.Background(), reference.New(), again.Case, harness.Limits{})
	Expect(err).NotTo(HaveOccurred())
	Expect(broken(clean, e)).To(BeNil(), text)
}

// lacking is a subject without most hooks and without low-level forms.
type lacking struct{ harness.Driver }

func (l *lacking) Info() harness.SubjectInfo {
	info := l.Driver.Info()
	info.Capabilities = []string{"state", "polls", "reads", "listeners", "signals", "forms:agent", "hooks:" + trace.HookBeforeToolCall}
	return info
}

// twoCalls are two calls at once, each of which may report once: six orders in
// which both do, three each in which one does, and two in which neither does.
func twoCalls() *harness.Scenario {
	c, err := harness.ParseCase("two", []byte(`Two calls.
-- scenario --
tools: [a]
model:
  - calls: [{id: c1, name: a}, {id: c2, name: a}]
  - text: done
calls:
  c1: {updates: [half]}
  c2: {updates: [half]}
user:
  - prompt: go
`))
	if err != nil {
		panic(err)
	}
	return c.Case.Scenario
}
