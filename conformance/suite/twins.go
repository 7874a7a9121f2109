package suite

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// twin is a case with one thing left out that should make no difference to the
// rest, for the rules that compare two runs.
type twin struct {
	rule string // the one that it is made for
	harness.Case
	drawn bool // the order is drawn, not that of the case
}

func (t *twin) policy() harness.Policy {
	if t.drawn {
		return harness.NewRandom(seedOf(t.Scenario.Name, 0, 0))
	}
	return harness.NewReplay(t.Schedule)
}

// twins are the twins of a case that was run by that schedule.
func twins(sc *harness.Scenario, schedule []string) []twin {
	base := harness.Case{Scenario: sc, Schedule: schedule}
	var all []twin
	add := func(rule string, c *harness.Case) {
		if c != nil {
			all = append(all, twin{rule: rule, Case: *c})
		}
	}
	add("ABRT-9", withoutSecondAbort(base))
	add("UPD-6", withoutSlowUpdates(base))
	for _, id := range batchmates(sc) {
		add("PAR-9", withPlainCall(base, id))
	}
	return append(all, twin{rule: "VIEW-7", Case: base, drawn: true})
}

// changed is the case with a scenario to be changed and without the labels that
// drop says.
func changed(c harness.Case, drop func(label string) bool) *harness.Case {
	sc := *c.Scenario
	return &harness.Case{Scenario: &sc, Schedule: slices.DeleteFunc(slices.Clone(c.Schedule), drop)}
}

func aborts(sc *harness.Scenario) int {
	n := 0
	for _, a := range sc.User {
		if a.Kind == harness.UserAbort {
			n++
		}
	}
	return n
}

// withoutSecondAbort leaves out every abort but the first.
func withoutSecondAbort(c harness.Case) *harness.Case {
	if aborts(c.Scenario) < 2 {
		return nil
	}
	t := changed(c, func(label string) bool { return strings.HasPrefix(label, "abort/") })
	t.Scenario.User = nil
	for _, a := range c.Scenario.User {
		if a.Kind == harness.UserAbort && aborts(t.Scenario) > 0 {
			continue
		}
		t.Scenario.User = append(t.Scenario.User, a)
	}
	return t
}

// withoutSlowUpdates makes the listeners quick that are slow on progress updates
// alone.
func withoutSlowUpdates(c harness.Case) *harness.Case {
	slow := func(pattern string) bool {
		return pattern == trace.ToolExecutionUpdate || strings.HasPrefix(pattern, trace.ToolExecutionUpdate+"/")
	}
	listeners := slices.Clone(c.Scenario.Config.Listeners)
	found := false
	for i := range listeners {
		found = found || slices.ContainsFunc(listeners[i].Gate, slow)
		listeners[i].Gate = slices.DeleteFunc(slices.Clone(listeners[i].Gate), slow)
	}
	if !found {
		return nil
	}
	t := changed(c, func(label string) bool {
		return strings.HasPrefix(label, "listener/") && strings.Contains(label, "/"+trace.ToolExecutionUpdate+"/")
	})
	t.Scenario.Config.Listeners = listeners
	return t
}

// batchmates are the ids of calls that have others beside them and that are slow
// or fail. Where the run may be aborted there are none: which call an abort meets
// depends on the others.
func batchmates(sc *harness.Scenario) []string {
	if aborts(sc) > 0 || sc.Config.ToolExecution == "sequential" {
		return nil
	}
	var ids []string
	for i := range sc.Model {
		calls := sc.Model[i].Calls
		if len(calls) < 2 {
			continue
		}
		for _, call := range calls {
			script, scripted := sc.Calls[call.ID]
			if scripted && !script.Abort && (script.Gate || script.Throw != nil) {
				ids = append(ids, call.ID)
			}
		}
	}
	return ids
}

// withPlainCall lets one call return a plain text at once.
func withPlainCall(c harness.Case, id string) *harness.Case {
	t := changed(c, func(label string) bool { return strings.HasPrefix(label, "tool/"+id+"/") })
	t.Scenario.Calls = maps.Clone(c.Scenario.Calls)
	delete(t.Scenario.Calls, id)
	return t
}

// judgeTwins runs the twins of a case by its own schedule and adds what the rules
// say that compare two runs.
func (r *run) judgeTwins(ctx context.Context, to *caseResult, sc *harness.Scenario, rec *harness.Recording) {
	for _, t := range twins(sc, rec.Schedule) {
		i := slices.IndexFunc(r.o.Rules, func(rule conformance.Rule) bool { return rule.ID == t.rule })
		if i < 0 || t.drawn && r.o.Reducer == nil {
			continue
		}
		other, err := r.record(ctx, t.Scenario, t.policy())
		if err != nil || ctx.Err() != nil {
			continue
		}
		if other.Trace, err = r.withViews(other.Trace); err != nil {
			continue
		}
		verdict := conformance.Compare(rec.Trace, other.Trace, r.o.Rules[i:i+1], conformance.InEdition(r.o.Edition))
		r.compared(ctx, to, sc, rec, i, verdict)
	}
}

// compared adds the verdict of a comparison, which is about the one rule number
// i.
func (r *run) compared(ctx context.Context, to *caseResult, sc *harness.Scenario, rec *harness.Recording, i int, v conformance.Verdict) {
	to.compared = append(to.compared, comparison{i, v.Rules[0]})
	for _, f := range v.Findings {
		r.found(ctx, to, sc, rec, f, drawn{})
	}
}

// comparison is what a twin says about the rule of that number.
type comparison struct {
	rule   int
	result conformance.RuleResult
}
