package progress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

func flow(id, sentence, why string, check func(*judge)) Rule {
	return Rule{ID: id, Family: FamilyFlow, Level: conformance.Must, Sentence: sentence, Why: why, Source: "P", check: check}
}

var flowRules = []Rule{
	flow("FLOW-1", "The capture is open before the engine's Start is entered.",
		"What a fast workflow does at once would never be shown.", flow1),
	flow("FLOW-2", "An engine that emits any prefix of its events inside Start loses none of it; on correlation one report shows it all, and none is made if there was nothing.",
		"A workflow that begins at once would seem to have no phase and no children.", flow2),
	flow("FLOW-3", "Events of other runs are never reported: before correlation they are candidates, dropped when Start returns; after it they are ignored.",
		"Two workflows at once would write on each other's cards.", flow3),
	flow("FLOW-4", "If Start fails, the capture is closed, candidates are dropped, nothing is reported, and the tool's result is that error.",
		"A workflow that was refused would show progress, and leave something behind.", flow4),
	flow("FLOW-5", "Later events are routed in order, and each report equals the fold of all events so far: current phase, latest log line, active labels in start order, completed, failed and cancelled counts.",
		"A card would show a state in which the workflow never was.", flow5),
	flow("FLOW-6", "State is bounded by the active children: independent of the number of logs, phases and settled children.",
		"A workflow that runs for days would eat the memory.", flow6),
	flow("FLOW-7", "active + completed + failed + cancelled equals the agent-starts; no counter ever falls; an unpaired end changes nothing.",
		"More children would be done than were ever begun.", flow7),
	flow("FLOW-8", "After end, tool settlement, cancel, worker death, tool failure, session close and dispose, captures, candidates and listeners are back at the baseline.",
		"Each workflow that is cancelled would leave a listener behind.", flow8),
	flow("FLOW-9", "The six events, their order and payload, and the run's result are the same with and without the producer.",
		"Watching a workflow would change it.", flow9),
}

func flow1(j *judge) {
	open := 0
	for i := range j.Entries {
		switch {
		case j.Entries[i].Kind == Listening:
			open++
		case j.Entries[i].Kind == Unlistening:
			open--
		case j.Entries[i].Kind == Entered:
			j.expect(open > 0, i, "Start is entered, and nobody listens")
		}
	}
}

// fold is the state of a run as the contract has it.
type fold struct {
	began                        bool
	phase, log                   string
	active                       []Event
	starts                       int
	completed, failed, cancelled int
	ended                        bool
	stop                         string
}

// take folds an event in and reports whether it is meaningful.
func (f *fold) take(e *Event) bool {
	if f.ended {
		return false
	}
	i := slices.IndexFunc(f.active, func(a Event) bool { return a.Seq == e.Seq })
	switch e.Kind {
	case "start":
	case "phase":
		f.phase = e.Phase
	case "log":
		f.log = e.Log
	case "agent-start":
		if i >= 0 {
			return false
		}
		f.active = append(f.active, *e)
		f.starts++
	case "agent-end":
		if i < 0 {
			return false
		}
		f.active = slices.Delete(f.active, i, i+1)
		f.settle(e.Outcome)
	case "end":
		f.ended = true
		f.stop = strings.TrimSuffix(e.Stop+": "+e.Error, ": ")
	default:
		return false
	}
	f.began = true
	return true
}

func (f *fold) settle(outcome string) {
	switch outcome {
	case "completed":
		f.completed++
	case "failed":
		f.failed++
	default:
		f.cancelled++
	}
}

// mostLabels is how many active children a report has to name.
const mostLabels = 32

// lines are what a report has to say, without the counts.
func (f *fold) lines() []string {
	var lines []string
	if f.phase != "" {
		lines = append(lines, "phase: "+f.phase)
	}
	if f.log != "" {
		lines = append(lines, "log: "+f.log)
	}
	var labels []string
	for _, a := range f.active[:min(len(f.active), mostLabels)] {
		labels = append(labels, a.Label)
	}
	if more := len(f.active) - mostLabels; more > 0 {
		labels = append(labels, fmt.Sprintf("and %d more", more))
	}
	lines = append(lines, "active: "+strings.Join(labels, ", "))
	if f.ended {
		lines = append(lines, "ended: "+f.stop)
	}
	return lines
}

// counts are the numbers in a report.
type counts struct{ active, completed, failed, cancelled int }

func (f *fold) counts() counts { return counts{len(f.active), f.completed, f.failed, f.cancelled} }

// split takes the line of counts out of what a report says.
func split(text string) (lines []string, c counts, ok bool) {
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		n, _ := fmt.Sscanf(l, "%d active, %d completed, %d failed, %d cancelled", &c.active, &c.completed, &c.failed, &c.cancelled)
		if n == 4 {
			ok = true
			continue
		}
		lines = append(lines, l)
	}
	return lines, c, ok
}

// follower walks through the life of one capture.
type follower struct {
	*judge
	run        string // after correlation, or what it is going to be
	state      fold
	correlated bool
	failed     bool
	entered    bool
	over       bool // the execution has crossed its boundary
	owed       bool // the last event, or correlation, owes a report
	since      int
	foreign    []string // texts of other runs
	last       counts
}

// walk follows the events and reports of the record's workflow and lets each rule
// take what is about it.
func walk(j *judge) {
	f := &follower{judge: j, run: j.runOf()}
	for i := range j.Entries {
		f.step(i, &j.Entries[i])
	}
}

// runOf is the run that Start has given.
func (x *index) runOf() string {
	for i := range x.Entries {
		if x.Entries[i].Kind == Started {
			return x.Entries[i].Run
		}
	}
	return ""
}

// say is expect, if the rule is the one that is asked.
func (f *follower) say(rule string, ok bool, entry int, format string, args ...any) {
	if f.rule.ID == rule {
		f.expect(ok, entry, format, args...)
	}
}

func (f *follower) step(i int, e *Entry) {
	switch {
	case e.Kind == Entered:
		f.entered = true
	case e.Kind == Emitted:
		f.settled(i)
		f.emitted(i, e.Event)
	case e.Kind == Heard:
		f.settled(i)
	case e.Kind == Started:
		f.correlated, f.owed, f.since = true, f.state.began, i
	case e.Kind == NotStarted:
		f.failed = true
	case e.Kind == Boundary:
		f.over = true
		f.owed = false
	case e.Kind == Report:
		if e.By == "producer" {
			f.report(i, viewTexts(e.View))
		}
	case e.Kind == Probed:
		f.settled(i)
		f.probed(i, e.Probe)
	case e.Kind == Outcome:
		if f.failed {
			f.say("FLOW-4", e.Error == f.startError(), i, "Start failed with %q and the tool with %q", f.startError(), e.Error)
		}
	}
}

func (f *follower) startError() string {
	for i := range f.Entries {
		if f.Entries[i].Kind == NotStarted {
			return f.Entries[i].Error
		}
	}
	return ""
}

func (f *follower) emitted(i int, ev *Event) {
	if ev.Run != f.run {
		f.foreign = append(f.foreign, nonEmpty(ev.Log, ev.Label, ev.Phase)...)
		return
	}
	changed := f.entered && f.state.take(ev)
	f.owed, f.since = f.correlated && changed && !f.over, i
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// settled: whatever owed a report has had its time.
func (f *follower) settled(i int) {
	if !f.owed {
		return
	}
	f.owed = false
	if f.Entries[f.since].Kind == Started {
		f.say("FLOW-2", false, i, "what happened inside Start was not reported on correlation")
		return
	}
	f.say("FLOW-5", false, i, "an event of the run was not reported")
}

func (f *follower) report(i int, texts []string) {
	said := strings.Join(texts, "\n")
	foreign := slices.ContainsFunc(f.foreign, func(s string) bool { return strings.Contains(said, s) })
	if f.over {
		return // PROG-4 says so
	}
	if f.failed {
		f.say("FLOW-4", false, i, "Start failed, and the tool reports")
		return
	}
	if !f.correlated {
		f.say("FLOW-2", false, i, "a report comes before it is known which run is ours")
		return
	}
	f.say("FLOW-3", !foreign && (f.owed || f.lastIsOurs(i)), i, "what another run does is reported")
	if foreign {
		return
	}
	lines, c, ok := split(said)
	sum := c.active + c.completed + c.failed + c.cancelled
	falls := c.completed < f.last.completed || c.failed < f.last.failed || c.cancelled < f.last.cancelled
	f.say("FLOW-7", ok && sum == f.state.starts && !falls, i, "%+v, and %d children were begun", c, f.state.starts)
	f.last = c
	if !ok || sum != f.state.starts {
		f.owed = false
		return
	}
	rule := "FLOW-5"
	if f.Entries[f.since].Kind == Started {
		rule = "FLOW-2"
	}
	f.say(rule, f.owed && slices.Equal(lines, f.state.lines()) && c == f.state.counts(), i, "the report says %q, and the state is %q with %+v (owed: %t)", said, f.state.lines(), f.state.counts(), f.owed)
	f.owed = false
}

// lastIsOurs reports whether the last event before an entry is of our run.
func (f *follower) lastIsOurs(i int) bool {
	for k := i; k >= 0; k-- {
		if ev := f.Entries[k].Event; f.Entries[k].Kind == Emitted && ev != nil {
			return ev.Run == f.run
		}
	}
	return true
}

func (f *follower) probed(i int, p *Probe) {
	if f.correlated {
		f.say("FLOW-3", p.Candidates == 0, i, "%d candidates are kept after correlation", p.Candidates)
	}
}

func flow2(j *judge) { walk(j) }
func flow3(j *judge) { walk(j) }
func flow5(j *judge) { walk(j) }
func flow7(j *judge) { walk(j) }

func flow4(j *judge) {
	walk(j)
	failed := slices.IndexFunc(j.Entries, func(e Entry) bool { return e.Kind == NotStarted })
	if failed < 0 {
		return
	}
	for i := range j.Entries[failed:] {
		if e := &j.Entries[failed+i]; e.Kind == Outcome {
			closed := slices.ContainsFunc(j.Entries[:failed+i], func(e Entry) bool { return e.Kind == Unlistening })
			j.expect(closed, failed+i, "Start failed, and the capture is still open")
		}
	}
}

// spare is what a producer may keep besides the active children.
const spare = 8

func flow6(j *judge) {
	for i := range j.Entries {
		if e := &j.Entries[i]; e.Kind == Probed {
			j.expect(e.Probe.Retained <= e.Probe.Active+spare, i, "%d things are kept, with %d children active", e.Probe.Retained, e.Probe.Active)
		}
	}
}

func flow8(j *judge) {
	var first, last *Probe
	at := 0
	for i := range j.Entries {
		if e := &j.Entries[i]; e.Kind == Probed {
			if first == nil {
				first = e.Probe
			}
			last, at = e.Probe, i
		}
	}
	if first != nil && last != first {
		j.expect(*last == *first, at, "at the end there is %+v, at the beginning %+v", *last, *first)
	}
}

func flow9(j *judge) {
	if j.Bare == nil {
		return
	}
	bare := map[string][]string{}
	for i := range j.Bare {
		if e := &j.Bare[i]; e.Kind == Emitted || e.Kind == RunResult {
			run, said := saidBy(e)
			bare[run] = append(bare[run], said)
		}
	}
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Kind != Heard && e.Kind != RunResult {
			continue
		}
		run, said := saidBy(e)
		rest := bare[run]
		if len(rest) == 0 {
			continue // the bare run was cut short elsewhere
		}
		bare[run] = rest[1:]
		j.expect(said == rest[0], i, "with the producer it is %s, without it %s", said, rest[0])
	}
}

func saidBy(e *Entry) (run, said string) {
	if e.Event != nil {
		return e.Event.Run, fmt.Sprintf("%+v", *e.Event)
	}
	return e.Run, string(e.Value) + e.Error
}
