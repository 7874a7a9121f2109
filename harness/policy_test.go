package harness_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// batch is one turn of calls that run at once, each with so many updates, and a
// user who steers so many times.
func batch(steers int, updates ...int) *harness.Scenario {
	turn := scriptedmodel.Turn{}
	sc := &harness.Scenario{Calls: map[string]harness.ToolScript{}}
	sc.Config.Tools = []trace.Tool{{Name: "a"}}
	for i, n := range updates {
		id := fmt.Sprintf("c%d", i+1)
		turn.Calls = append(turn.Calls, scriptedmodel.Call{ID: id, Name: "a"})
		script := harness.ToolScript{Gate: true}
		for range n {
			script.Updates = append(script.Updates, &trace.Result{Content: trace.TextContent("half")})
		}
		sc.Calls[id] = script
	}
	sc.Model = []scriptedmodel.Turn{turn}
	sc.User = []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}}
	for range steers {
		sc.User = append(sc.User, harness.UserAction{Kind: harness.UserSteer, Answer: trace.Answer{Text: "left"}})
	}
	return sc
}

// orders counts the schedules of a batch by hand.
func orders(steers int, prompted bool, updates []int) int {
	n := 0
	if steers > 0 {
		n += orders(steers-1, prompted, updates)
	}
	if !prompted {
		return n + orders(steers, true, updates)
	}
	for i, left := range updates {
		rest := slices.Delete(slices.Clone(updates), i, i+1)
		n += orders(steers, true, rest) // it returns
		if left > 0 {
			n += orders(steers, true, append(rest, left-1))
		}
	}
	if n == 0 {
		return 1
	}
	return n
}

func factorial(n int) int {
	if n < 2 {
		return 1
	}
	return n * factorial(n-1)
}

func runOn(sc *harness.Scenario, p harness.Policy) *harness.Recording {
	rec, err := harness.Run(context.Background(), reference.New(), sc, p, harness.Limits{})
	if err != nil {
		panic(err)
	}
	return rec
}

// exhaust gives all schedules as text, each of which has to be new.
func exhaust(sc *harness.Scenario, x *harness.Exhaustive) map[string]bool {
	seen := map[string]bool{}
	for x.Next() {
		schedule := strings.Join(runOn(sc, x).Schedule, "\n")
		if seen[schedule] {
			panic("the schedule was there before:\n" + schedule)
		}
		seen[schedule] = true
	}
	return seen
}

var _ = Describe("the exhaustive policy", func() {
	It("goes through as many schedules as the multinomial says", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			calls := rapid.IntRange(1, 4).Draw(t, "calls")
			steers := rapid.IntRange(0, 2).Draw(t, "steers")
			if calls == 4 {
				steers = 0
			}
			all := exhaust(batch(steers, make([]int, calls)...), harness.NewExhaustive())
			length := 1 + calls
			want := factorial(length+steers) / factorial(length) / factorial(steers) * factorial(calls)
			NewWithT(t).Expect(all).To(HaveLen(want))
		})
	})

	It("counts tools that may return before they have reported all", func() {
		for _, updates := range [][]int{{1}, {2}, {1, 1}, {2, 1}, {1, 1, 0}} {
			Expect(exhaust(batch(1, updates...), harness.NewExhaustive())).To(HaveLen(orders(1, false, updates)), "%v", updates)
		}
	})

	It("gives rising sets when departures are bounded, and all in the end", func() {
		sc := batch(1, 1, 1)
		all := exhaust(sc, harness.NewExhaustive())
		Expect(exhaust(sc, harness.NewExhaustive().Within(0))).To(HaveLen(1))
		before := 1
		for bound := 1; ; bound++ {
			some := exhaust(sc, harness.NewExhaustive().Within(bound))
			for schedule := range some {
				Expect(all).To(HaveKey(schedule))
			}
			if len(some) == len(all) {
				break
			}
			Expect(len(some)).To(BeNumerically(">", before))
			before = len(some)
		}
	})

	It("goes through the same when the work is split", func() {
		sc := batch(1, 1, 1)
		whole := exhaust(sc, harness.NewExhaustive())
		parts := map[string]bool{}
		queue := []*harness.Exhaustive{harness.NewExhaustive()}
		for n := 0; len(queue) > 0; n++ {
			x := queue[0]
			if !x.Next() {
				queue = queue[1:]
				continue
			}
			schedule := strings.Join(runOn(sc, x).Schedule, "\n")
			Expect(parts).NotTo(HaveKey(schedule))
			parts[schedule] = true
			if n%2 == 0 {
				if given := x.Split(); given != nil {
					queue = append(queue, given)
				}
			}
			queue = append(queue[1:], x)
		}
		Expect(parts).To(Equal(whole))
	})

	It("leaves out only what differs in the order of updates of different calls", func() {
		sc := batch(0, 2, 1)
		all := exhaust(sc, harness.NewExhaustive())
		some := exhaust(sc, harness.NewExhaustive().Commuting())
		Expect(len(some)).To(BeNumerically("<", len(all)))
		classes := func(of map[string]bool) map[string]bool {
			found := map[string]bool{}
			for schedule := range of {
				found[sortUpdates(schedule)] = true
			}
			return found
		}
		Expect(classes(some)).To(Equal(classes(all)))
		Expect(classes(some)).To(HaveLen(len(some)), "no class is gone through twice")
	})

	It("keeps its sleeping updates when the work is split", func() {
		sc := batch(0, 2, 2)
		whole := exhaust(sc, harness.NewExhaustive().Commuting())
		parts := map[string]bool{}
		queue := []*harness.Exhaustive{harness.NewExhaustive().Commuting()}
		for len(queue) > 0 {
			x := queue[0]
			if !x.Next() {
				queue = queue[1:]
				continue
			}
			parts[strings.Join(runOn(sc, x).Schedule, "\n")] = true
			if given := x.Split(); given != nil {
				queue = append(queue, given)
			}
		}
		Expect(parts).To(Equal(whole))
	})
})

// sortUpdates brings updates of different calls that follow each other into one
// order.
func sortUpdates(schedule string) string {
	labels := strings.Split(schedule, "\n")
	for first := 0; first < len(labels); first++ {
		last := first
		for last < len(labels) && strings.Contains(labels[last], "/update/") {
			last++
		}
		if last > first {
			slices.SortStableFunc(labels[first:last], func(a, b string) int { return strings.Compare(a[:7], b[:7]) })
			first = last
		}
	}
	return strings.Join(labels, "\n")
}

var _ = Describe("the uniform policy", func() {
	It("gives every schedule of a small tree the same chance", func() {
		for _, sc := range []*harness.Scenario{batch(1, 0, 0, 0), batch(0, 1, 1), batch(1, 2, 0)} {
			all := exhaust(sc, harness.NewExhaustive())
			const each = 60
			seen := map[string]int{}
			for seed := range uint64(each * len(all)) {
				seen[strings.Join(runOn(sc, harness.NewUniform(seed)).Schedule, "\n")]++
			}
			Expect(seen).To(HaveLen(len(all)))
			chi := 0.0
			for _, n := range seen {
				chi += float64((n-each)*(n-each)) / each
			}
			// With f degrees of freedom chi has mean f and variance 2f. The bound is
			// four deviations above, and the seeds are fixed.
			f := float64(len(all) - 1)
			Expect((chi-f)*(chi-f)/(2*f) < 16 || chi < f).To(BeTrue(), "chi square %f of %f", chi, f)
		}
	})

	It("is far from what choosing among the enabled actions gives", func() {
		sc := batch(0, 2, 0)
		all := exhaust(sc, harness.NewExhaustive())
		const each = 60
		seen := map[string]int{}
		for seed := range uint64(each * len(all)) {
			seen[strings.Join(runOn(sc, harness.NewRandom(seed)).Schedule, "\n")]++
		}
		chi := 0.0
		for schedule := range all {
			chi += float64((seen[schedule]-each)*(seen[schedule]-each)) / each
		}
		Expect(chi).To(BeNumerically(">", 5*float64(len(all))))
	})
})

var _ = Describe("the policy of priorities", func() {
	// found is how often, of n runs, the labels come in this order.
	found := func(sc *harness.Scenario, depth, n int, order ...string) (share, bound float64) {
		hits := 0
		bound = 1
		for seed := range uint64(n) {
			p := harness.NewPCT(seed, depth, 0)
			schedule := runOn(sc, p).Schedule
			at := -1
			for _, label := range order {
				i := slices.Index(schedule, label)
				if i < at {
					at = len(schedule)
					break
				}
				at = i
			}
			if at >= 0 && at < len(schedule) {
				hits++
			}
			bound = min(bound, p.Bound())
		}
		return float64(hits) / float64(n), bound
	}

	It("finds bugs of its depth as often as it promises", func() {
		sc := batch(1, 1, 1, 1)
		for _, c := range []struct {
			depth int
			order []string
		}{
			{1, []string{"tool/c3/return", "tool/c1/return"}},
			{1, []string{"tool/c2/return", "tool/c3/return"}},
			{2, []string{"tool/c1/update/0", "tool/c3/return", "tool/c1/return"}},
			{2, []string{"tool/c3/update/0", "steer/0", "tool/c3/return"}},
			{3, []string{"tool/c1/update/0", "tool/c2/update/0", "steer/0", "tool/c2/return", "tool/c1/return"}},
		} {
			share, bound := found(sc, c.depth, 1000, c.order...)
			Expect(bound).To(BeNumerically(">", 0), "%v", c)
			Expect(share).To(BeNumerically(">=", bound), "%v", c)
		}
	})
})

var _ = Describe("the policy of departures", func() {
	It("departs as often as it may, and not more often", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			seed := rapid.Uint64().Draw(t, "seed")
			times := rapid.IntRange(0, 3).Draw(t, "times")
			counting := &counter{Policy: harness.NewDeparting(seed, times, 6)}
			runOn(batch(1, 1, 1), counting)
			NewWithT(t).Expect(counting.departed).To(BeNumerically("<=", times))
		})
	})
})

// counter counts the choices other than the default.
type counter struct {
	harness.Policy
	departed int
}

func (c *counter) Choose(enabled []harness.Action) int {
	i := c.Policy.Choose(enabled)
	if i > 0 {
		c.departed++
	}
	return i
}

var _ = Describe("every policy", func() {
	It("is made again by its name, and makes the same choices for the same seed", func() {
		for _, name := range []string{"auto", "first", "random", "uniform", "pct:1", "pct:3", "delay:2", "exhaustive"} {
			spec, err := harness.ParsePolicy(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(spec.String()).To(Equal(name))
			if p := spec.Policy(7); p != nil {
				sc := batch(2, 1, 1, 1)
				Expect(runOn(sc, spec.Policy(7)).Schedule).To(Equal(runOn(sc, p).Schedule), name)
			}
		}
	})

	It("is refused with a hint if its name is wrong", func() {
		for text, why := range map[string]string{
			"unifrom":  `did you mean "uniform"?`,
			"pct:0":    "needs a number from 1",
			"delay:x":  "needs a number from 1",
			"random:2": "takes no number",
		} {
			_, err := harness.ParsePolicy(text)
			Expect(err).To(MatchError(ContainSubstring(why)))
		}
	})

	It("may be replaced by a replay of what it did", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			names := rapid.SampledFrom([]string{"random", "uniform", "pct:2", "delay:2"})
			spec, err := harness.ParsePolicy(names.Draw(t, "policy"))
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			sc := batch(2, 1, 1)
			done := runOn(sc, spec.Policy(rapid.Uint64().Draw(t, "seed"))).Schedule
			replay := harness.NewReplay(done)
			g.Expect(runOn(sc, replay).Schedule).To(Equal(done))
			g.Expect(replay.Skipped()).To(BeEmpty())
		})
	})
})
