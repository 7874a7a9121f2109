package fuzz_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop"
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
			r := explore(reference.New(), fuzz.Options{Edition: e, Runs: 3000, Size: everything(), Jobs: 2})
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

	for i, defect := range loop.KnownDefects() {
		if unsteady[defect] || unjudged[defect] || undrawn[defect] != "" || testing.Short() && i%8 > 0 {
			continue
		}
		It("finds the mutant "+string(defect)+" and shrinks it", func() {
			f := findMutant(defect)
			text := string(harness.FormatCase(f.CaseFile("found", "mutant:"+string(defect))))
			calls := 0
			for _, t := range f.Case.Scenario.Model {
				calls += len(t.Calls)
			}
			Expect(len(f.Case.Scenario.Model)).To(BeNumerically("<=", 2), text)
			Expect(calls).To(BeNumerically("<=", 3), text)
			Expect(f.Cost.Departures).To(BeNumerically("<=", 2), text)

			again, err := harness.ParseCase("found.txtar", []byte(text))
			Expect(err).NotTo(HaveOccurred(), text)
			e := f.Case.Scenario.Edition
			rec, err := harness.RunCase(context.Background(), reference.New(defect), again.Case, harness.Limits{})
			Expect(err).NotTo(HaveOccurred())
			Expect(rec.Skipped).To(BeEmpty(), text)
			if rule, err := conformance.Lookup(f.Kind); err == nil {
				Expect(broken(rec, e)).To(HaveField("Rule", rule.ID), text)
			}
			clean, err := harness.RunCase(context.Background(), reference.New(), again.Case, harness.Limits{})
			Expect(err).NotTo(HaveOccurred())
			Expect(broken(clean, e)).To(BeNil(), text)
		})
	}

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

// unjudged mutants do what no trace of the coroutine driver shows: they change what
// was handed out before, read the real clock, or leave a task behind.
var unjudged = map[loop.Defect]bool{
	loop.ContextAliased: true, loop.CallersMessagesChanged: true, loop.WallClockUsed: true,
}

// undrawn mutants need what the generator does not draw, or what no MUST rule is
// about; the suite finds them all.
var undrawn = map[loop.Defect]string{
	loop.ConfiguredKeyWins:      "a form without an agent, with a key of its own",
	loop.StreamHeldByReader:     "the plain event stream",
	loop.ImagesDropped:          "prompts with images",
	loop.StopReasonBelieved:     "calls in a turn whose stop reason says stop",
	loop.ThinkingAskedAgain:     "a turn of nothing but thinking",
	loop.PendingChangedInPlace:  "kept references; a SHOULD rule",
	loop.TruncatedNotAskedAgain: "a SHOULD rule",
}

// findMutant explores in each edition, by the rules alone and then also with the
// reference as oracle.
func findMutant(defect loop.Defect) *fuzz.Finding {
	GinkgoHelper()
	for _, differential := range []bool{false, true} {
		for _, e := range edition.Known() {
			r := explore(reference.New(defect), fuzz.Options{
				Edition: e, Seed: 1, Runs: 2000, Stop: 1, Size: everything(), Jobs: 2,
				Oracle: oracleIf(differential), Differential: differential,
			})
			if len(r.Findings) > 0 {
				return r.Findings[0]
			}
		}
	}
	Fail("not found in 2,000 runs")
	return nil
}

func oracleIf(differential bool) harness.Driver {
	if differential {
		return reference.New()
	}
	return nil
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
