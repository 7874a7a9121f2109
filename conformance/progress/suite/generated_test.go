package suite_test

import (
	"slices"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
)

// TestGenerated holds that each situation which the rules are about is drawn, as
// coroutines and with goroutines that race.
func TestGenerated(t *testing.T) {
	for _, how := range []suite.How{suite.Coroutines, suite.AtOnce} {
		count := map[string]int{}
		for seed := range uint64(150) {
			record, err := suite.Reference().Calls(seed, how)
			if err != nil {
				t.Fatal(err)
			}
			situations(record, count)
		}
		expectCounts(t, how.String(), count, []string{
			"equal ids in two sessions at once",
			"body", "timer", "thread", "hook", "observer", "result", "nested", "nobody's", "invalid", "before the call",
			"timer after the boundary", "thread after the boundary", "hook after the boundary", "result after the boundary",
			"timer across the boundary", "thread across the boundary",
			"no such file", "panic: index out of range", "aborted", "refused", "the worker is gone",
			"session closed while tools run", "disposed while tools run", "throttled",
		})
	}
}

// situations counts what happens in a record of calls.
func situations(r *progress.Record, count map[string]int) {
	boundary, closing, dispatched := map[uint64]int{}, map[uint64]int{}, map[uint64]int{}
	running := map[string]string{} // agent of a call that is under way, by id
	begun := map[int]progress.Entry{}
	open := 0
	left := map[string]bool{}
	if r.Every > 1 {
		count["throttled"]++
	}
	for i, e := range r.Entries {
		_, over := boundary[e.Token]
		switch e.Kind {
		case progress.Dispatched:
			if other, ok := running[e.Call]; ok && other != e.Agent {
				count["equal ids in two sessions at once"]++
			}
			running[e.Call], dispatched[e.Token] = e.Agent, i
			open++
		case progress.Closing:
			closing[e.Token] = i
		case progress.Boundary:
			boundary[e.Token] = i
			delete(running, e.Call)
			open--
		case progress.Report:
			begun[e.Report] = e
			count[e.By]++
			tally(count, over, e.By+" after the boundary")
			tally(count, e.Parent != 0, "nested")
			tally(count, e.Agent == "", "nobody's")
			tally(count, e.Invalid, "invalid")
			tally(count, dispatched[e.Token] == 0 && !over, "before the call")
		case progress.Returned:
			began := slices.IndexFunc(r.Entries, func(b progress.Entry) bool { return b.Kind == progress.Report && b.Report == e.Report })
			tally(count, closing[e.Token] > began, begun[e.Report].By+" across the boundary")
		case progress.Durable:
			if e.Stored == "tool/result" {
				count[outcomeIn(r.Entries[:i], e)]++
			}
		case progress.Outcome:
			count[e.Error]++
		case progress.Leaving:
			left[e.Session] = true
			tally(count, open > 0, map[bool]string{false: "session closed while tools run", true: "disposed while tools run"}[len(left) == 2])
		default:
		}
	}
}

// outcomeIn says of a stored result that nobody has given it but a settlement.
func outcomeIn(before []progress.Entry, stored progress.Entry) string {
	hooked := slices.ContainsFunc(before, func(e progress.Entry) bool {
		return e.Kind == progress.Report && e.By == "hook" && e.Agent == stored.Agent && e.Call == stored.Call
	})
	if hooked {
		return "ended by its tool"
	}
	return "the worker is gone"
}

func tally(count map[string]int, happens bool, what string) {
	if happens {
		count[what]++
	}
}

func expectCounts(t *testing.T, who string, count map[string]int, all []string) {
	t.Helper()
	for _, what := range all {
		t.Logf("%s: %s: %d", who, what, count[what])
		if count[what] == 0 {
			t.Errorf("%s: never drawn: %s", who, what)
		}
	}
}

// TestGeneratedFlows holds that all prefixes of a workflow's events are emitted
// inside Start, and that everything happens in the middle of one that may.
func TestGeneratedFlows(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(400) {
		record, err := suite.Reference().Flow(seed, suite.Coroutines)
		if err != nil {
			t.Fatal(err)
		}
		flowSituations(record, count)
	}
	expectCounts(t, "workflow", count, []string{
		"prefix of 0", "prefix of 1", "prefix of 2", "prefix of 5", "all inside Start",
		"start inside Start", "phase inside Start", "log inside Start", "agent-start inside Start", "agent-end inside Start", "end inside Start",
		"another run inside Start", "another run later",
		"Start fails", "the tool fails", "cancelled while it runs", "worker dies while it runs", "session closed while it runs", "disposed while it runs",
		"cancelled before Start", "disposed before Start",
	})
}

func flowSituations(r *progress.Record, count map[string]int) {
	stage, prefix := "before Start", 0
	for _, e := range r.Entries {
		switch e.Kind {
		case progress.Entered:
			stage = "inside Start"
		case progress.Started:
			count["prefix of "+string(rune('0'+min(prefix, 9)))]++
			stage = "while it runs"
		case progress.NotStarted:
			count["Start fails"]++
			stage = "after it"
		case progress.Boundary:
			stage = "after it"
		case progress.Outcome:
			tally(count, e.Error == "a child failed", "the tool fails")
		case progress.Emitted:
			switch {
			case e.Event.Run == "other" && stage == "inside Start":
				count["another run inside Start"]++
			case e.Event.Run == "other":
				count["another run later"]++
			case stage == "inside Start":
				prefix++
				count[e.Event.Kind+" inside Start"]++
				tally(count, e.Event.Kind == "end", "all inside Start")
			}
		case progress.Happened:
			count[e.By+" "+stage]++
		default:
		}
	}
}
