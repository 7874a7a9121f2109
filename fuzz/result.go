package fuzz

import (
	"fmt"
	"slices"
	"time"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
)

// Result says what came of an exploration.
type Result struct {
	Seed        uint64
	Policy      harness.PolicySpec
	Runs        int  // schedules run, saved cases included, the minimiser's left out
	Scenarios   int  // different scenarios
	Shapes      int  // different normal forms, by the kinds, names and outcomes of their entries
	ShapesMore  bool // there were more than were counted
	Unsupported int  // cases left out, because the subject lacks what they need
	ShrinkRuns  int  // schedules that the minimiser ran
	Elapsed     time.Duration
	Partial     bool // the context ended before the budget did

	// Exhausted says for which scenarios all schedules were run, by the bound on
	// departures from the default order; a bound of -1 means that there was none.
	Exhausted []Exhausted
	// Sampled says what was drawn, by policy.
	Sampled []Sampled
	// Findings, one for each kind of thing that was wrong, in the order in which
	// they were found.
	Findings []*Finding
}

// Exhausted are scenarios of which all schedules within a bound were run.
type Exhausted struct {
	Departures int  // -1: any number
	Commuting  bool // of schedules that differ in the order of updates of different calls, one was run
	Scenarios  int
	Schedules  int
	Failed     int // how many of the schedules
}

// Sampled are runs of one policy.
type Sampled struct {
	Policy harness.PolicySpec
	Runs   int
	Failed int
	// Of pct: the least probability with which a run finds a bug of its depth that
	// the scenario has, and how many runs were longer than that holds for.
	Bound  float64
	Beyond int
}

// Finding is one kind of thing that is wrong with the subject, and the smallest
// case that shows it.
type Finding struct {
	Kind    string            // a rule id, [Differential], [NotDeterministic], or an outcome such as crashed
	Level   conformance.Level // of a rule
	Message string
	Entries []int    // of the recording's trace
	Also    []string // other rules that the same case breaks, likely for the same reason

	Case      harness.Case // shrunk
	Recording *harness.Recording
	Cost      Cost
	Original  harness.Case // as found
	Origin    string       // how it was drawn, for people: «scenario 17 of seed 1, policy uniform»
	Count     int          // schedules in which this was the first thing wrong
	File      string       // where it was saved, or where it was read from
	Saved     bool         // it is a case that had been saved before

	order int // place in which it was found
}

// Failed reports whether anything is wrong.
func (r *Result) Failed() bool { return len(r.Findings) > 0 }

// Established says in words what was established, one sentence a line.
func (r *Result) Established() []string {
	var lines []string
	for _, e := range r.Exhausted {
		lines = append(lines, e.String())
	}
	for _, s := range r.Sampled {
		lines = append(lines, s.String())
	}
	return lines
}

func (e Exhausted) String() string {
	text := fmt.Sprintf("all %s of %s", count(e.Schedules, "schedule"), count(e.Scenarios, "scenario"))
	if e.Departures >= 0 {
		text += fmt.Sprintf(" with at most %s from the default order", count(e.Departures, "departure"))
	}
	if e.Commuting {
		text += ", if updates of different calls commute"
	}
	return text + ": " + failed(e.Failed)
}

// ruleOfThree is the bound at 95 % on the share that fails if none of n did.
const ruleOfThree = 3.0

func (s Sampled) String() string {
	text := fmt.Sprintf("%s by %s: %s", count(s.Runs, "schedule"), s.Policy, failed(s.Failed))
	switch {
	case s.Failed > 0 || s.Runs == 0:
	case s.Policy.Kind == harness.PolicyUniform && s.Runs > ruleOfThree:
		text += fmt.Sprintf("; fewer than 3/%d of schedules (%.2g %%) fail, at 95 %%", s.Runs, 100*ruleOfThree/float64(s.Runs))
	case s.Policy.Kind == harness.PolicyPCT && s.Bound > 0:
		text += fmt.Sprintf("; each finds a fault of depth %d in its scenario with probability 1/%.0f or more", s.Policy.Depth, 1/s.Bound)
		if s.Beyond > 0 {
			text += fmt.Sprintf(", but for %d that took longer than foreseen", s.Beyond)
		}
	}
	return text
}

func failed(n int) string {
	if n == 0 {
		return "none failed"
	}
	return fmt.Sprintf("%d failed", n)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (r *Result) exhausted(e Exhausted) {
	i := slices.IndexFunc(r.Exhausted, func(have Exhausted) bool {
		return have.Departures == e.Departures && have.Commuting == e.Commuting
	})
	if i < 0 {
		r.Exhausted = append(r.Exhausted, e)
		return
	}
	r.Exhausted[i].Scenarios += e.Scenarios
	r.Exhausted[i].Schedules += e.Schedules
	r.Exhausted[i].Failed += e.Failed
}

func (r *Result) sampled(s Sampled) {
	i := slices.IndexFunc(r.Sampled, func(have Sampled) bool { return have.Policy == s.Policy })
	if i < 0 {
		r.Sampled = append(r.Sampled, s)
		return
	}
	have := &r.Sampled[i]
	have.Runs += s.Runs
	have.Failed += s.Failed
	have.Beyond += s.Beyond
	if have.Bound == 0 || s.Bound > 0 && s.Bound < have.Bound {
		have.Bound = s.Bound
	}
}

// dropRepeated drops findings of one kind after the first. There are several if
// replays of different ones went another way.
func (r *Result) dropRepeated() {
	seen := map[string]bool{}
	r.Findings = slices.DeleteFunc(r.Findings, func(f *Finding) bool {
		again := seen[f.Kind]
		seen[f.Kind] = true
		return again
	})
}
