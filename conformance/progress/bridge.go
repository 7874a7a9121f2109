package progress

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

func bridge(id, sentence, why string, check func(*judge)) Rule {
	return Rule{ID: id, Family: FamilyBridge, Level: conformance.Must, Sentence: sentence, Why: why, Source: "P", check: check}
}

var bridgeRules = []Rule{
	bridge("BRIDGE-1", "The first line for a session and call is tool_call, and the durable call precedes it.",
		"There would be no card yet on which to show what follows, or one that is lost with a crash.", bridge1),
	bridge("BRIDGE-2", "Each accepted report gives exactly one tool_call_update with that id, status in_progress, and title or content only.",
		"A client would draw the same twice, or something about the card would change that is not the tool's to change.", bridge2),
	bridge("BRIDGE-3", "A line goes to the live session of the owning agent; the same call id in two sessions at once behaves in each as if alone.",
		"Models number their calls alike, so two sessions would draw on each other's cards.", bridge3),
	bridge("BRIDGE-4", "Nothing follows completed or failed for that card.",
		"A card that is closed would open again, and nothing would ever close it.", bridge4),
	bridge("BRIDGE-5", "Every announced call gets exactly one terminal update before the prompt's response, on every path: success, error, refusal, abort while running, abort before the start, death of the worker.",
		"A card that is left open spins for ever.", bridge5),
	bridge("BRIDGE-6", "Label, kind, raw input, locations and the card's terminal or diff content are after any number of reports what the arguments made them.",
		"The diff that the user is reading would be replaced by a line of progress.", bridge6),
	bridge("BRIDGE-7", "Replay gives, for each call, its tool_call and one terminal update, no in_progress; what a client folds from it equals what it folds from the live log without the progress.",
		"A session that is opened again would look different, or would show tools at work that ended long ago.", bridge7),
	bridge("BRIDGE-8", "After a session is closed there is no line for it, and no error to the tool.",
		"A client would be told of a session that it does not know, and closing a window would break the work.", bridge8),
	bridge("BRIDGE-9", "The bridge depends on no workflow package, and treats no tool by its name.",
		"A tool would lose its progress by being renamed, and each new one would need a change of the bridge.", bridge9),
	bridge("BRIDGE-10", "There is no hidden throttle: as many updates as accepted reports, unless a setting says otherwise; with one, the last view still arrives before the terminal update.",
		"Steps would be missing and nothing would say so, or a card would end at 98 %.", bridge10),
}

// live are the lines that are no replay.
func (x *index) live() []*line { return chosen(x.cards, func(l *line) bool { return !l.replay }) }

func (l *line) key() cardKey { return cardKey{l.session, l.ID} }

// sessionOf is the session that shows an agent, as the entries that prepared its
// executions say.
func (x *index) sessionOf(agent string) string {
	for _, token := range x.order {
		if ex := x.executions[token]; ex.Agent == agent && ex.Session != "" {
			return ex.Session
		}
	}
	return ""
}

// closedAt is the entry at which a session was closed, or never.
func (x *index) closedAt(session string) int { return x.first(Closed, session) }

// leftAt is the entry from which on a session may be closed, or never.
func (x *index) leftAt(session string) int {
	return min(x.first(Leaving, session), x.closedAt(session))
}

func (x *index) first(kind Kind, session string) int {
	i := slices.IndexFunc(x.Entries, func(e Entry) bool { return e.Kind == kind && e.Session == session })
	if i < 0 {
		return never
	}
	return i
}

func bridge1(j *judge) {
	seen := map[cardKey]bool{}
	for _, l := range j.live() {
		if seen[l.key()] {
			continue
		}
		if x := j.ofReport(l.report); l.report != 0 && x != nil && !x.shown() {
			continue // PROG-11 says so
		}
		seen[l.key()] = true
		stored := slices.ContainsFunc(j.Entries[:l.entry], func(e Entry) bool {
			return e.Kind == Durable && e.Stored == "tool/call" && e.Call == l.ID
		})
		j.expect(l.isCall() && stored && l.report == 0, l.entry, "the first line of %s in %s is %s, at a time when it stands in the log: %t", l.ID, l.session, l.Update, stored)
	}
}

// shownReports are the reports that were accepted and have a card in a session
// that was open all the time.
func (j *judge) shownReports(f func(r *report, x *execution, session string)) {
	for k := range j.reports {
		r := &j.reports[k]
		x := j.executions[r.token]
		if x == nil || !r.accepted || !x.shown() || r.begin < x.call {
			continue
		}
		session := j.sessionOf(x.Agent)
		if session != "" && j.leftAt(session) > r.end {
			f(r, x, session)
		}
	}
}

func bridge2(j *judge) {
	j.shownReports(func(r *report, x *execution, _ string) {
		lines := chosen(r.lines, (*line).isProgress)
		if j.Every <= 1 {
			none := len(lines) == 0 && !j.shownBefore(r)
			j.expect(!none && len(lines) < 2, r.end, "report %d gave %d lines", r.number, len(lines))
		}
		for _, l := range lines {
			extra := slices.DeleteFunc(slices.Clone(l.members), func(name string) bool {
				return slices.Contains([]string{"sessionUpdate", "toolCallId", "status", "title", "content"}, name)
			})
			j.expect(l.Status == "in_progress" && l.ID == x.Call && len(extra) == 0, l.entry, "progress of %s is sent as %s of %s with %s", x.Call, l.Status, l.ID, strings.Join(extra, ", "))
		}
	})
}

// shownBefore reports whether an earlier report of the execution has given a line.
func (j *judge) shownBefore(r *report) bool {
	return slices.ContainsFunc(j.reports, func(o report) bool { return o.token == r.token && o.begin < r.begin && len(o.lines) > 0 })
}

func bridge3(j *judge) {
	for _, l := range j.live() {
		if x := j.ofReport(l.report); x != nil && x.shown() {
			j.expect(l.session == j.sessionOf(x.Agent), l.entry, "progress of %s's %s goes to %s", x.Agent, x.Call, l.session)
		}
		if !l.isCall() && !l.isTerminal() {
			continue
		}
		kind := "tool/call"
		if l.isTerminal() {
			kind = "tool/result"
		}
		owner := slices.ContainsFunc(j.Entries[:l.entry], func(e Entry) bool {
			return e.Kind == Durable && e.Stored == kind && e.Call == l.ID && j.sessionOf(e.Agent) == l.session
		})
		foreign := !owner && slices.ContainsFunc(j.Entries[:l.entry], func(e Entry) bool {
			return e.Kind == Durable && e.Stored == kind && e.Call == l.ID
		})
		j.expect(!foreign, l.entry, "a line about %s in %s is about the other session's call", l.ID, l.session)
	}
}

func bridge4(j *judge) {
	over := map[cardKey]bool{}
	for _, l := range j.live() {
		if l.isCall() {
			delete(over, l.key())
		}
		j.expect(!over[l.key()], l.entry, "%s in %s is told of after its end", l.ID, l.session)
		if l.isTerminal() {
			over[l.key()] = true
		}
	}
}

func bridge5(j *judge) {
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Kind != Response {
			continue
		}
		announced, ended := map[string]int{}, map[string]int{}
		for _, l := range j.live() {
			switch {
			case l.entry > i || l.session != e.Session:
			case l.isCall():
				announced[l.ID]++
			case l.isTerminal():
				ended[l.ID]++
			}
		}
		for id, n := range announced {
			j.expect(ended[id] == n, i, "at the response of %s, %s was announced %d times and ended %d times", e.Session, id, n, ended[id])
		}
	}
}

func bridge6(j *judge) {
	cards := map[cardKey]*card{}
	for _, l := range j.live() {
		key := l.key()
		if cards[key] == nil || l.isCall() {
			cards[key] = &card{}
		}
		c := cards[key]
		c.fold(l)
		if want := j.cardOf(l); want != nil && !l.isCall() {
			j.expect(c.is(want, l.isTerminal()), l.entry, "the card of %s in %s is not what its arguments made it", l.ID, l.session)
		}
	}
}

// cardOf is what the arguments have made of the card that a line is about.
func (x *index) cardOf(l *line) *Card {
	for i := l.entry; i >= 0; i-- {
		if e := &x.Entries[i]; e.Kind == Durable && e.Stored == "tool/call" && e.Call == l.ID && x.sessionOf(e.Agent) == l.session {
			return e.Card
		}
	}
	return nil
}

// is reports whether a card is still what it was made. The label of a generic
// card may be another one while the tool runs.
func (c *card) is(want *Card, ended bool) bool {
	if c.title != want.Title && (ended || !want.Generic) {
		return false
	}
	for _, item := range want.Fixed {
		if !slices.Contains(c.content, canonical(item)) {
			return false
		}
	}
	return c.kind == want.Kind && c.rawInput == canonical(want.RawInput) && c.locations == canonical(want.Locations)
}

func bridge7(j *judge) {
	replayed := chosen(j.cards, func(l *line) bool { return l.replay })
	if len(replayed) == 0 {
		return
	}
	last := replayed[len(replayed)-1].entry
	calls, ends := map[cardKey]int{}, map[cardKey]int{}
	for _, l := range replayed {
		if l.isCall() {
			calls[l.key()]++
		}
		if l.isTerminal() {
			ends[l.key()]++
		}
		j.expect(!l.isProgress(), l.entry, "progress of %s is replayed", l.ID)
	}
	for key, n := range calls {
		j.expect(ends[key] == n, last, "%s is replayed %d times, and its end %d times", key.call, n, ends[key])
	}
	live := folded(chosen(j.live(), func(l *line) bool { return !l.isProgress() }))
	for key, c := range folded(replayed) {
		if was := live[key]; was != nil && j.closedAt(key.session) == never {
			j.expect(c.equal(was), last, "the card of %s is another one after a replay", key.call)
		}
	}
}

func bridge8(j *judge) {
	for _, l := range j.live() {
		at := j.closedAt(l.session)
		j.expect(l.entry < at, l.entry, "a line for %s, which is closed", l.session)
	}
	for k := range j.reports {
		r := &j.reports[k]
		x := j.executions[r.token]
		if x == nil || !x.shown() || r.begin < j.closedAt(j.sessionOf(x.Agent)) || r.end > x.closing || r.begin < x.dispatched || j.Entries[r.begin].Invalid {
			continue
		}
		if by := j.Entries[r.begin].By; by != "observer" {
			j.expect(r.accepted && r.error == "", r.end, "a report on %s is answered by %q after its session was closed", x.Call, r.error)
		}
	}
}

func bridge9(j *judge) {
	for i := range j.Entries {
		if e := &j.Entries[i]; e.Kind == Imports {
			known := slices.ContainsFunc(e.Names, func(name string) bool { return strings.Contains(name, "workflow") })
			j.expect(!known, i, "the bridge depends on a workflow package")
		}
	}
	if !j.sameCourse() {
		return
	}
	var renamed []*Entry
	for i := range j.Renamed {
		if j.Renamed[i].Kind == Wire {
			renamed = append(renamed, &j.Renamed[i])
		}
	}
	for k, l := range j.cards {
		if k < len(renamed) {
			j.expect(string(renamed[k].Value) == string(j.Entries[l.entry].Value), l.entry, "a tool of another name would give another line: %s", renamed[k].Value)
		}
	}
}

// sameCourse reports whether the run with other names is the same but for its
// lines. Goroutines may take another course, and then there is nothing to compare.
func (j *judge) sameCourse() bool {
	course := func(entries []Entry) []string {
		var steps []string
		for i := range entries {
			if e := &entries[i]; e.Kind != Wire {
				steps = append(steps, strings.Join([]string{string(e.Kind), e.Agent, e.Call, e.Observer, strconv.Itoa(e.Report)}, " "))
			}
		}
		return steps
	}
	return j.Renamed != nil && slices.Equal(course(j.Entries), course(j.Renamed))
}

func bridge10(j *judge) {
	if j.Every <= 1 {
		j.shownReports(func(r *report, _ *execution, _ string) {
			missing := len(chosen(r.lines, (*line).isProgress)) == 0 && j.shownBefore(r)
			j.expect(!missing, r.end, "report %d is not shown, though no setting says so", r.number)
		})
		return
	}
	for _, token := range j.order {
		j.lastView(j.executions[token])
	}
}

// lastView: the last view of an execution is on its card when that is closed.
func (j *judge) lastView(x *execution) {
	session := j.sessionOf(x.Agent)
	end := slices.IndexFunc(j.cards, func(l *line) bool { return !l.replay && l.session == session && l.ID == x.Call && l.isTerminal() })
	if end < 0 || !x.shown() {
		return
	}
	last := j.lastReports(x)
	if last == nil {
		return
	}
	for _, l := range slices.Backward(j.cards[:end]) {
		if !l.replay && l.session == session && l.ID == x.Call {
			shown := slices.ContainsFunc(last, func(r *report) bool { return shows(l, viewTexts(j.Entries[r.begin].View)) })
			j.expect(shown, j.cards[end].entry, "the last view of %s is not shown before its end", x.Call)
			return
		}
	}
}

// lastReports are the reports on an execution after whose end none began: of
// those that were made at once, any may have been the last.
func (j *judge) lastReports(x *execution) []*report {
	var all []*report
	j.shownReports(func(r *report, o *execution, _ string) {
		if o == x {
			all = append(all, r)
		}
	})
	return slices.DeleteFunc(all, func(r *report) bool {
		return slices.ContainsFunc(all, func(o *report) bool { return o.begin > r.end })
	})
}
