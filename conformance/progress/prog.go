package progress

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

func reporter(id, sentence, why string, check func(*judge)) Rule {
	return Rule{ID: id, Family: FamilyReporter, Level: conformance.Must, Sentence: sentence, Why: why, Source: "P", check: check}
}

var reporterRules = []Rule{
	reporter("PROG-1", "Every observer sees the view as it was at the call; what the caller changes later in its own value is invisible.",
		"What is drawn later would be something that the tool had not said yet.", prog1),
	reporter("PROG-2", "Observers cannot affect each other through the view.",
		"One panel that shortens texts would shorten them for all.", prog2),
	reporter("PROG-3", "Accepted means exactly one round of dispatch, done before the call returns; not accepted or an error means none. Finalize waits for a round already begun.",
		"Who reports could not rely on the answer, and steps would be shown twice or never.", prog3),
	reporter("PROG-4", "Once finalize has begun, every report is not accepted, whoever makes it: a timer, another thread, a hook, an observer of the result, after a throw, after abort.",
		"A timer that was forgotten would go on drawing on a card that is closed.", prog4),
	reporter("PROG-5", "No dispatch happens after finalize has begun, even for a report whose call began before it.",
		"Once in a while a view would overtake the end of its tool.", prog5),
	reporter("PROG-6", "An observer that panics, fails or is slow is logged and isolated: later observers run, and the tool's outcome, the durable log and the terminal card are the same as without it.",
		"Whoever watches a tool could break it.", prog6),
	reporter("PROG-7", "The identity in an observation is the registry's; nothing in a view can override it.",
		"A tool could write on the card of another one.", prog7),
	reporter("PROG-8", "A scoped observer sees its own agent's progress only.",
		"One session would show what another one is doing.", prog8),
	reporter("PROG-9", "A view cannot carry kind, raw input, locations, status or card type; in the JSON form such a key is refused.",
		"A tool would believe that it has changed its card, or worse, would have done so.", prog9),
	reporter("PROG-10", "Progress enters neither the model's input nor the durable log: both are the same, byte for byte, with reports on and off.",
		"Sessions would grow with every line of progress, and the model would read progress bars.", prog10),
	reporter("PROG-12", "An invalid view is an error to the caller and harms nothing; a report before the durable call is refused.",
		"One view that is too long would end all progress, or there would be progress of a call that nobody has announced.", prog12),
	reporter("PROG-11", "A nested execution, or one without an agent, never gives an ACP update under its own id.",
		"A client would be told of a card that it does not know.", prog11),
}

// prog1 judges what observers that keep views have of them at the end.
func prog1(j *judge) {
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Kind != Kept {
			continue
		}
		k, ok := j.byReport[e.Report]
		if ok {
			j.expect(string(e.View) == string(j.Entries[j.reports[k].begin].View), i, "what %s has kept of report %d has changed", e.Observer, e.Report)
		}
	}
}

func prog2(j *judge) {
	for k := range j.reports {
		r := &j.reports[k]
		for _, i := range r.observed {
			j.expect(string(j.Entries[i].View) == string(j.Entries[r.begin].View), i, "%s does not see what was reported", j.Entries[i].Observer)
		}
	}
}

// registered are the observers that a report of an agent has to reach, as far as
// they were there when it began.
func (x *index) registered(agent string, before int) []string {
	var names []string
	for i := range x.Entries[:before] {
		if e := &x.Entries[i]; e.Kind == Observers && (e.Scope == "" || e.Scope == agent) {
			names = append(names, e.Observer)
		}
	}
	return names
}

func prog3(j *judge) {
	for k := range j.reports {
		r := &j.reports[k]
		x := j.executions[r.token]
		if r.end == never || x == nil {
			continue
		}
		if !r.accepted {
			j.expect(len(r.observed) == 0, r.end, "report %d was not accepted, and was dispatched", r.number)
			continue
		}
		late := slices.IndexFunc(r.observed, func(i int) bool { return i > r.end })
		j.expect(late < 0, r.end, "report %d returned before it was dispatched", r.number)
		told := map[string]int{}
		for _, i := range r.observed {
			told[j.Entries[i].Observer]++
		}
		for _, name := range j.registered(x.Agent, r.begin) {
			missed := told[name] == 0 && len(r.broke) == 0
			j.expect(!missed && told[name] < 2, r.end, "%s was told %d times of report %d", name, told[name], r.number)
		}
		if n := len(r.observed); n > 0 && r.observed[0] < x.boundary {
			j.expect(r.observed[n-1] < x.boundary, x.boundary, "finalize did not wait for the round of report %d", r.number)
		}
	}
}

func prog4(j *judge) {
	for k := range j.reports {
		r := &j.reports[k]
		if x := j.executions[r.token]; x != nil && r.begin > x.boundary && r.end != never {
			j.expect(!r.accepted && r.error == "", r.end, "report %d by %s came after the boundary: accepted %t, %q", r.number, j.Entries[r.begin].By, r.accepted, r.error)
		}
	}
}

func prog5(j *judge) {
	for k := range j.reports {
		r := &j.reports[k]
		x := j.executions[r.token]
		if x == nil || r.begin > x.boundary || x.boundary == never || r.end < x.boundary {
			continue
		}
		if len(r.observed) > 0 && r.observed[0] > x.boundary {
			j.expect(false, r.observed[0], "the round of report %d began after the boundary", r.number)
			continue
		}
		j.expect(true, r.begin, "")
	}
}

func prog6(j *judge) {
	for k := range j.reports {
		r := &j.reports[k]
		x := j.executions[r.token]
		if x == nil || len(r.broke) == 0 || !r.accepted {
			continue
		}
		logged := slices.ContainsFunc(j.Entries[r.broke[0]:], func(e Entry) bool { return e.Kind == Logged })
		j.expect(logged, r.end, "the failure in report %d was not logged", r.number)
		for _, name := range j.registered(x.Agent, r.begin) {
			told := slices.ContainsFunc(r.observed, func(i int) bool { return j.Entries[i].Observer == name })
			j.expect(told, r.end, "%s was not told of report %d, after another observer had failed", name, r.number)
		}
	}
	if broke := slices.IndexFunc(j.Entries, func(e Entry) bool { return e.Kind == Broke }); broke >= 0 && j.Quiet != nil {
		j.sameFailures()
	}
}

// sameFailures compares which tools have failed with the quiet twin.
func (j *judge) sameFailures() {
	quiet := map[string]string{}
	for i := range j.Quiet {
		if e := &j.Quiet[i]; e.Kind == Outcome || e.Kind == Durable {
			quiet[entryKey(e)] = e.Error
		}
	}
	for i := range j.Entries {
		if e := &j.Entries[i]; e.Kind == Outcome || e.Kind == Durable {
			was, ok := quiet[entryKey(e)]
			j.expect(!ok || was == e.Error, i, "the tool of %s failed with %q where an observer had failed", e.Call, e.Error)
		}
	}
}

func prog7(j *judge) {
	j.eachObserved(func(i int, e *Entry, x *execution) {
		same := e.Agent == x.Agent && e.Call == x.Call && e.Token == x.Token && e.Parent == x.Parent
		j.expect(same, i, "the observation is of %s/%s, the execution is %s/%s", e.Agent, e.Call, x.Agent, x.Call)
	})
}

func prog8(j *judge) {
	j.eachObserved(func(i int, e *Entry, x *execution) {
		if e.Scope != "" {
			j.expect(e.Scope == x.Agent, i, "%s watches %s and is told of %s", e.Observer, e.Scope, x.Agent)
		}
	})
}

func (j *judge) eachObserved(f func(i int, e *Entry, x *execution)) {
	for k := range j.reports {
		r := &j.reports[k]
		x := j.executions[r.token]
		for _, i := range r.observed {
			if x != nil {
				f(i, &j.Entries[i], x)
			}
		}
	}
}

var viewMembers = []string{"title", "content"}

func prog9(j *judge) {
	for i := range j.Entries {
		if e := &j.Entries[i]; e.Kind == Parsed {
			foreign := slices.ContainsFunc(members(e.Value), func(name string) bool { return !slices.Contains(viewMembers, name) })
			j.expect((e.Error != "") == foreign, i, "a view %s was taken as %q", e.Value, e.Error)
		}
	}
}

// prog10 compares what was stored and what the model gets, call by call, with
// the quiet twin: in which order calls end may differ. Outcomes that an observer
// may have spoiled are left to PROG-6.
func prog10(j *judge) {
	if j.Quiet == nil {
		return
	}
	quiet := map[string]string{}
	for i := range j.Quiet {
		if e := &j.Quiet[i]; e.Kind == Durable || e.Kind == Outcome {
			quiet[entryKey(e)] = string(e.Value)
		}
	}
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Kind != Durable && e.Kind != Outcome {
			continue
		}
		was, ok := quiet[entryKey(e)]
		foreign := e.Kind == Durable && e.Stored != "tool/call" && e.Stored != "tool/result"
		j.expect(!foreign && (!ok || was == string(e.Value)), i, "%s of %s/%s is another one without reports", e.Kind, e.Agent, e.Call)
	}
}

func entryKey(e *Entry) string {
	return strings.Join([]string{string(e.Kind), e.Stored, e.Agent, e.Call}, "/")
}

func prog11(j *judge) {
	for i := range j.Entries {
		if e := &j.Entries[i]; e.Kind == Durable {
			x := j.latest(e.Agent, e.Call)
			j.expect(x == nil || x.shown(), i, "%s/%s is nested, or nobody's, and is stored as if it had a card", e.Agent, e.Call)
		}
	}
	for _, l := range j.cards {
		inner := l.report != 0 && j.ofReport(l.report) != nil && !j.ofReport(l.report).shown()
		j.expect(!inner, l.entry, "a line is sent because of a nested execution")
	}
}

func (x *index) ofReport(number int) *execution {
	k, ok := x.byReport[number]
	if !ok {
		return nil
	}
	return x.executions[x.reports[k].token]
}

// latest is the execution of a call.
func (x *index) latest(agent, call string) *execution {
	for _, token := range slices.Backward(x.order) {
		if ex := x.executions[token]; ex.Agent == agent && ex.Call == call {
			return ex
		}
	}
	return nil
}

func prog12(j *judge) {
	invalid := map[uint64]bool{}
	for k := range j.reports {
		r := &j.reports[k]
		x, e := j.executions[r.token], &j.Entries[r.begin]
		switch {
		case x == nil || r.end == never:
		case r.begin < x.dispatched && r.begin < x.closing:
			j.expect(!r.accepted && r.error != "", r.end, "report %d came before the call: accepted %t, %q", r.number, r.accepted, r.error)
		case r.end > x.closing:
		case e.Invalid:
			j.expect(r.error != "" && !r.accepted, r.end, "report %d was invalid: accepted %t, %q", r.number, r.accepted, r.error)
			invalid[r.token] = true
		case invalid[r.token]:
			j.expect(r.accepted || r.error != "", r.end, "after an invalid view report %d was not accepted", r.number)
		}
	}
}
