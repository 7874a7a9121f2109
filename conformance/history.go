package conformance

import (
	"math"
	"slices"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// none stands for an index that there is not; never for an entry that has not
// come: later than every entry of the trace.
const (
	none  = -1
	never = math.MaxInt
)

// eventType is the type of an event; the order of the constants is without
// meaning.
type eventType uint8

const (
	noEvent eventType = iota
	agentStart
	turnStart
	messageStart
	messageUpdate
	messageEnd
	toolStart
	toolUpdate
	toolEnd
	turnEnd
	agentEnd
	otherEvent // of a type that the contract does not name; never judged
)

func typeOf(ev *trace.Event) eventType {
	switch ev.Type {
	case trace.AgentStart:
		return agentStart
	case trace.TurnStart:
		return turnStart
	case trace.MessageStart:
		return messageStart
	case trace.MessageUpdate:
		return messageUpdate
	case trace.MessageEnd:
		return messageEnd
	case trace.ToolExecutionStart:
		return toolStart
	case trace.ToolExecutionUpdate:
		return toolUpdate
	case trace.ToolExecutionEnd:
		return toolEnd
	case trace.TurnEnd:
		return turnEnd
	case trace.AgentEnd:
		return agentEnd
	}
	return otherEvent
}

func (t eventType) isTool() bool { return t == toolStart || t == toolUpdate || t == toolEnd }
func (t eventType) isMessage() bool {
	return t == messageStart || t == messageUpdate || t == messageEnd
}

// place is what the history knows about one entry of the trace.
type place struct {
	event    eventType
	callback int32 // callback that begins, is answered, is read or is cancelled here, or none
	run      int32 // run to which the entry belongs, or none
	turn     int32 // latest turn of that run, or none
	call     int32 // tool call that an event speaks of, or none
	first    int32 // event: first of its listener callbacks, or none
	last     int32 // event: last of its listener callbacks, or none
}

// callback is one outward call of the loop.
type callback struct {
	kind   callbackKind
	name   string
	id     string // tool call id, of a callback that belongs to a call
	begin  int    // entry at which it began
	settle int    // entry at which it was answered, or never
	answer *trace.Answer
	throws bool

	listener int // listener: its number
	event    int // listener: entry of the event that it is called for
	next     int // listener: the next callback for the same event, or none

	run, turn, call int
}

// run is what one accepted prompt or continue brought about.
type run struct {
	user    int // user action that began it, or none
	action  int // entry of that action, or none
	begin   int // first entry: the action, or the first event
	stop    int // one past the last entry before the next run
	first   int // first event, or never
	start   int // first agent_start, or never
	end     int // first agent_end, or never
	settled int // entry at which the user action settled, or never
	abort   int // entry at which the run was first aborted, or never
	edge    int // entry of the first e2 or e11 in it, or never
	turns   [2]int
}

// turn is one assistant response with the calls that it asked for.
type turn struct {
	run        int
	start      int // turn_start
	end        int // turn_end, or never
	request    int // first model callback, or none
	requests   int
	answers    int            // assistant messages that the model made
	answered   int            // message_end of the first of them, or never
	message    *trace.Message // that message
	calls      [2]int         // range of its calls
	duplicates bool           // two calls share an id (e5)
	doubled    bool           // its stream started twice (e15)
}

// call is one tool call of an assistant message.
type call struct {
	turn  int
	index int // in source order, within its batch
	block *trace.Block
	alone bool // no other call of the batch has its id

	// Entries of the call's own events; never if they did not come.
	start, end, resultStart, resultEnd int
	starts, ends, results              int

	// Callbacks, or none.
	prepare, before, execute, after        int
	prepares, befores, executes, afterward int
}

// report is one progress update that a tool made.
type report struct {
	call    int
	entry   int
	partial *trace.Result
	kind    reportKind
}

type reportKind uint8

const (
	reportSync reportKind = iota // before execute first yielded
	reportOpen                   // while execute was pending
	reportLate                   // after execute had settled
)

// user is one action of the user.
type user struct {
	kind    userKind
	entry   int
	settled int // entry, or never
	outcome trace.Outcome
	active  int // run that was active when it was done, or none
	run     int // run that it began, or none
}

type span struct{ from, to int }

// stated is an event that comes with a state.
type stated struct {
	entry    int
	previous int // the one before it in the same run, or none
}

// history is a trace, indexed once, so that rules need not search it.
type history struct {
	tr      *trace.Trace
	entries []trace.Entry
	edition edition.Edition
	order   int // of the edition
	form    trace.Form
	ages    []age // what since has found out about it
	outcome trace.Outcome
	end     int // entry of the end, or never

	evidence  evidenceSet
	places    []place
	events    []int // entries of the events, in order
	stated    []stated
	callbacks []callback
	users     []user
	runs      []run
	turns     []turn
	calls     []call
	reports   []report
	updates   []int // entries of tool_execution_update events
	failed    []span
	expected  bool // the expecter has been through the trace
	expecter  expecter
}

// read takes in a trace, in the place of the one before.
func (h *history) read(tr *trace.Trace, ed edition.Edition) {
	if h.edition != ed {
		h.edition, h.order, h.ages = ed, ed.Order(), h.ages[:0]
	}
	*h = history{
		tr: tr, entries: tr.Entries, edition: ed, order: h.order, form: tr.Header.Form, ages: h.ages, stated: h.stated[:0],
		end: never, outcome: trace.OutcomeTruncated,
		places: slices.Grow(h.places[:0], len(tr.Entries)), events: h.events[:0], callbacks: h.callbacks[:0], users: h.users[:0],
		runs: h.runs[:0], turns: h.turns[:0], calls: h.calls[:0], reports: h.reports[:0], updates: h.updates[:0], failed: h.failed[:0],
		expecter: h.expecter,
	}
	for _, e := range tr.Header.Evidence {
		h.evidence.add(e)
	}
	h.gather()
	h.arrange()
	h.findFailures()
	h.findStates()
}

func (h *history) has(e trace.Evidence) bool { return h.evidence.has(e) }

// age says whether the edition by which a trace is judged is not older than
// another.
type age struct {
	than edition.Edition
	yes  bool
}

// since reports whether the edition is not older than another. Rules ask it for
// the same few editions over and over.
func (h *history) since(other edition.Edition) bool {
	for k := range h.ages {
		if h.ages[k].than == other {
			return h.ages[k].yes
		}
	}
	yes := h.edition.AtLeast(other)
	h.ages = append(h.ages, age{other, yes})
	return yes
}

// ---- first pass: callbacks and user actions ----

func (h *history) gather() {
	for i := range h.entries {
		h.places = append(h.places, place{callback: none, run: none, turn: none, call: none, first: none, last: none})
		e := &h.entries[i]
		switch e.Kind {
		case trace.KindEvent:
			if e.Event != nil {
				h.places[i].event = typeOf(e.Event)
				h.events = append(h.events, i)
			}
		case trace.KindCall:
			h.begin(i, e)
		case trace.KindAction:
			h.act(i, e)
		case trace.KindRead, trace.KindCancelled:
			h.places[i].callback = h.find(e.Name)
		case trace.KindSettled:
			h.settle(i, e)
		case trace.KindEnd:
			h.end, h.outcome = i, e.Outcome
		case trace.KindRetained:
		default:
		}
	}
}

func (h *history) begin(i int, e *trace.Entry) {
	c := callback{name: e.Name, begin: i, settle: never, listener: none, event: none, next: none, run: none, turn: none, call: none}
	c.kind, c.id, c.listener = parseCallback(e.Name)
	if e.Payload != nil && e.Payload.ToolCallID != "" {
		c.id = e.Payload.ToolCallID
	}
	if e.Auto {
		c.answer = e.Answer
		if !h.stalls(&c) {
			c.settle = i
		}
		c.throws = e.Answer != nil && e.Answer.Throw != nil
	}
	index := len(h.callbacks)
	h.places[i].callback = int32(index)
	h.callbacks = append(h.callbacks, c)
	if c.kind == callListener {
		h.attach(index, e.Payload)
	}
}

// stalls reports whether an automatic model stream has no end.
func (h *history) stalls(c *callback) bool {
	if c.kind != callModel || c.answer == nil || c.answer.Ends || c.answer.Throw != nil {
		return false
	}
	events := c.answer.Events
	return len(events) == 0 || !endsStream(&events[len(events)-1])
}

// attach links a listener callback to its event.
func (h *history) attach(index int, p *trace.Payload) {
	c := &h.callbacks[index]
	at := h.eventNumbered(p)
	if at == none {
		return
	}
	c.event = at
	place := &h.places[at]
	if place.last == none {
		place.first = int32(index)
	} else {
		h.callbacks[place.last].next = index
	}
	place.last = int32(index)
}

// eventNumbered is the entry of the event that the payload names; the latest
// event if it names none.
func (h *history) eventNumbered(p *trace.Payload) int {
	if len(h.events) == 0 {
		return none
	}
	if p == nil || p.Event == nil {
		return h.events[len(h.events)-1]
	}
	n := *p.Event
	if n >= 0 && n < len(h.events) && h.entries[h.events[n]].N == n {
		return h.events[n]
	}
	for k := len(h.events) - 1; k >= 0; k-- {
		if h.entries[h.events[k]].N == n {
			return h.events[k]
		}
	}
	return none
}

// find is the latest callback of that name, or none.
func (h *history) find(name string) int32 {
	for k := len(h.callbacks) - 1; k >= 0; k-- {
		if h.callbacks[k].name == name {
			return int32(k)
		}
	}
	return none
}

func (h *history) act(i int, e *trace.Entry) {
	if kind := userKindOf(e.Label); kind != noUser {
		h.users = append(h.users, user{kind: kind, entry: i, settled: never, active: none, run: none})
		return
	}
	k := h.find(e.Name)
	if k == none {
		return
	}
	h.places[i].callback = k
	c := &h.callbacks[k]
	if !answersWhole(c.kind, e) || c.settle != never {
		return
	}
	c.settle, c.answer = i, e.Answer
	c.throws = e.Answer != nil && e.Answer.Throw != nil
}

// answersWhole reports whether the action settles its callback, and is not an
// update of a tool or one more event of a stream.
func answersWhole(kind callbackKind, e *trace.Entry) bool {
	switch kind {
	case callTool:
		return e.Answer == nil || e.Answer.Partial == nil
	case callModel:
		return e.Answer == nil || e.Answer.Event == nil || endsStream(e.Answer.Event)
	default:
	}
	return true
}

func endsStream(ev *trace.StreamEvent) bool {
	return ev.Type == trace.StreamDone || ev.Type == trace.StreamError
}

func (h *history) settle(i int, e *trace.Entry) {
	for k := len(h.users) - 1; k >= 0; k-- {
		u := &h.users[k]
		if u.settled == never && h.entries[u.entry].Label == e.Name {
			u.settled, u.outcome = i, e.Outcome
			return
		}
	}
}

// ---- second pass: runs, turns and calls ----

// arranger walks the trace once more and says where each entry belongs.
type arranger struct {
	*history
	run, turn int
	user      int // next user action
}

func (h *history) arrange() {
	a := &arranger{history: h, run: none, turn: none}
	for i := range h.entries {
		e := &h.entries[i]
		switch e.Kind {
		case trace.KindAction:
			a.action(i, e)
		case trace.KindEvent:
			if e.Event != nil {
				a.event(i, e.Event)
			}
		case trace.KindCall:
			a.call(i, e)
		case trace.KindRead, trace.KindCancelled, trace.KindSettled, trace.KindRetained, trace.KindEnd:
		default:
		}
		h.places[i].run, h.places[i].turn = int32(a.run), int32(a.turn)
	}
	a.close(len(h.entries))
}

// active is the run that is active at an entry, or none.
func (a *arranger) active(i int) int {
	if a.run == none || a.runs[a.run].settled < i {
		return none
	}
	return a.run
}

func (a *arranger) open(i, user int) {
	a.close(i)
	r := run{user: user, action: none, begin: i, stop: never, first: never, start: never, end: never, settled: never, abort: never, edge: never}
	r.turns = [2]int{len(a.turns), len(a.turns)}
	if user != none {
		r.action, r.settled = i, a.users[user].settled
		a.users[user].run = len(a.runs)
	}
	a.run, a.turn = len(a.runs), none
	a.runs = append(a.runs, r)
}

func (a *arranger) close(i int) {
	if a.run != none {
		a.runs[a.run].stop = i
		a.runs[a.run].turns[1] = len(a.turns)
	}
}

func (a *arranger) action(i int, e *trace.Entry) {
	if a.user < len(a.users) && a.users[a.user].entry == i {
		a.userAction(i, a.user)
		a.user++
		return
	}
	if e.Answer != nil && e.Answer.Abort {
		a.aborted(i)
	}
	k := a.places[i].callback
	if k == none {
		return
	}
	c := &a.callbacks[k]
	if c.kind == callTool && e.Answer != nil && e.Answer.Partial != nil {
		a.report(int(k), i, e.Answer.Partial, i > c.settle)
	}
	if c.kind == callModel && c.turn != none && e.Answer != nil && e.Answer.Event != nil {
		a.countStarts(c)
	}
}

func (a *arranger) userAction(i, index int) {
	u := &a.users[index]
	u.active = a.active(i)
	switch u.kind {
	case userAbort:
		a.aborted(i)
	case userPrompt, userContinue:
		if u.active == none && u.outcome != trace.OutcomeRefused {
			a.open(i, index)
		}
	default:
	}
}

func (a *arranger) aborted(i int) {
	if r := a.active(i); r != none && a.runs[r].abort == never {
		a.runs[r].abort = i
	}
}

func (a *arranger) report(k, i int, partial *trace.Result, late bool) {
	kind := reportOpen
	if late {
		kind = reportLate
	}
	a.reports = append(a.reports, report{call: a.callbacks[k].call, entry: i, partial: partial, kind: kind})
}

func (a *arranger) call(i int, e *trace.Entry) {
	k := int(a.places[i].callback)
	c := &a.callbacks[k]
	c.run, c.turn = a.run, a.turn
	if e.Answer != nil && e.Answer.Abort {
		a.aborted(i)
	}
	switch c.kind {
	case callModel:
		if a.turn != none {
			t := &a.turns[a.turn]
			if t.request == none {
				t.request = k
			}
			t.requests++
			a.countStarts(c)
		}
	case callTool:
		c.call = a.match(c.id, func(c *call) bool { return c.executes == 0 })
		if c.call != none {
			a.calls[c.call].execute, a.calls[c.call].executes = firstOf(a.calls[c.call].execute, k), a.calls[c.call].executes+1
		}
		if e.Answer != nil {
			for _, partial := range e.Answer.Sync {
				a.reports = append(a.reports, report{call: c.call, entry: i, partial: partial, kind: reportSync})
			}
		}
	case callPrepareArguments:
		c.call = a.match(c.id, func(c *call) bool { return c.prepares == 0 })
		if c.call != none {
			a.calls[c.call].prepare, a.calls[c.call].prepares = firstOf(a.calls[c.call].prepare, k), a.calls[c.call].prepares+1
		}
	case callBefore:
		c.call = a.match(c.id, func(c *call) bool { return c.befores == 0 })
		if c.call != none {
			a.calls[c.call].before, a.calls[c.call].befores = firstOf(a.calls[c.call].before, k), a.calls[c.call].befores+1
		}
	case callAfter:
		c.call = a.match(c.id, func(c *call) bool { return c.afterward == 0 })
		if c.call != none {
			a.calls[c.call].after, a.calls[c.call].afterward = firstOf(a.calls[c.call].after, k), a.calls[c.call].afterward+1
		}
	default:
	}
}

func firstOf(have, k int) int {
	if have == none {
		return k
	}
	return have
}

// countStarts notes whether the stream of a request has started twice (e15).
func (a *arranger) countStarts(c *callback) {
	starts := 0
	a.stream(c, func(ev *trace.StreamEvent, _ int) {
		if ev.Type == trace.StreamStart {
			starts++
		}
	})
	if starts > 1 {
		a.turns[c.turn].doubled = true
	}
}

// stream gives each event that was delivered to a request, with its entry, up
// to the one that ends the stream.
func (h *history) stream(c *callback, yield func(ev *trace.StreamEvent, entry int)) {
	if first := &h.entries[c.begin]; first.Answer != nil {
		for k := range first.Answer.Events {
			yield(&first.Answer.Events[k], c.begin)
			if endsStream(&first.Answer.Events[k]) {
				return
			}
		}
	}
	if h.entries[c.begin].Auto && c.settle == c.begin {
		return
	}
	index := h.places[c.begin].callback
	for i := c.begin + 1; i < len(h.entries) && i <= c.settle; i++ {
		e := &h.entries[i]
		if h.places[i].callback == index && e.Kind == trace.KindAction && e.Answer != nil && e.Answer.Event != nil {
			yield(e.Answer.Event, i)
		}
	}
}

func (a *arranger) event(i int, ev *trace.Event) {
	kind := a.places[i].event
	if a.run == none || kind == agentStart && a.startsAnew(i) {
		a.open(i, none)
	}
	r := &a.runs[a.run]
	if r.first == never {
		r.first = i
	}
	switch kind {
	case agentStart:
		r.start = min(r.start, i)
	case agentEnd:
		r.end = min(r.end, i)
	case turnStart:
		a.turns = append(a.turns, turn{run: a.run, start: i, end: never, request: none, answered: never, calls: [2]int{len(a.calls), len(a.calls)}})
		a.turn = len(a.turns) - 1
	case turnEnd:
		if a.turn != none {
			a.turns[a.turn].end = min(a.turns[a.turn].end, i)
		}
	case messageStart, messageEnd:
		if ev.Message != nil {
			a.message(i, kind, ev.Message)
		}
	case toolStart:
		if c := a.at(i, a.match(ev.ToolCallID, func(c *call) bool { return c.starts == 0 })); c != nil {
			c.starts++
			c.start = min(c.start, i)
		}
	case toolEnd:
		if c := a.at(i, a.match(ev.ToolCallID, func(c *call) bool { return c.ends == 0 })); c != nil {
			c.ends++
			c.end = min(c.end, i)
		}
	case toolUpdate:
		a.updates = append(a.updates, i)
		a.at(i, a.match(ev.ToolCallID, func(c *call) bool { return c.ends == 0 && c.executes > 0 }))
	case noEvent, messageUpdate, otherEvent:
	}
}

// startsAnew reports whether an agent_start begins a run of its own: always
// where actions are not recorded, for then nothing else tells.
func (a *arranger) startsAnew(i int) bool {
	r := &a.runs[a.run]
	return r.user == none && (r.first != never || r.settled < i)
}

func (a *arranger) at(i, index int) *call {
	a.places[i].call = int32(index)
	if index == none {
		return nil
	}
	return &a.calls[index]
}

// match is the call that an id stands for: the first of the latest batch that
// still wants it, else the last that has the id, of an earlier batch if need be.
func (a *arranger) match(id string, wants func(*call) bool) int {
	found := none
	for k := len(a.calls) - 1; k >= 0; k-- {
		c := &a.calls[k]
		if found != none && c.turn != a.calls[found].turn {
			break
		}
		if c.block.ID != id {
			continue
		}
		if found == none || wants(c) {
			found = k
		}
		if c.alone {
			break
		}
	}
	return found
}

func (a *arranger) message(i int, kind eventType, m *trace.Message) {
	if a.turn == none {
		return
	}
	t := &a.turns[a.turn]
	switch {
	case m.Role == trace.RoleToolResult && t.answered < i:
		a.result(i, kind, m)
	case m.Role == trace.RoleAssistant && kind == messageEnd && t.end == never && a.isModels(t):
		t.answers++
		if t.answered == never {
			t.answered, t.message = i, m
			a.batch(t, m)
		}
	}
}

// isModels reports whether an assistant message that comes now is one that the
// model made, and not one that was prompted or queued.
func (a *arranger) isModels(t *turn) bool {
	return a.form == trace.FormStream || !a.has(trace.EvidenceRequests) || t.request != none
}

func (a *arranger) result(i int, kind eventType, m *trace.Message) {
	if kind == messageStart {
		if c := a.at(i, a.match(m.ToolCallID, func(c *call) bool { return c.resultStart == never })); c != nil {
			c.results++
			c.resultStart = min(c.resultStart, i)
		}
		return
	}
	if c := a.at(i, a.match(m.ToolCallID, func(c *call) bool { return c.resultEnd == never })); c != nil {
		c.resultEnd = min(c.resultEnd, i)
	}
}

func (a *arranger) batch(t *turn, m *trace.Message) {
	from := len(a.calls)
	for k := range m.Content.Blocks {
		b := &m.Content.Blocks[k]
		if b.Type != trace.BlockToolCall {
			continue
		}
		c := call{
			turn: a.turn, index: len(a.calls) - from, block: b, alone: true,
			start: never, end: never, resultStart: never, resultEnd: never,
			prepare: none, before: none, execute: none, after: none,
		}
		for j := from; j < len(a.calls); j++ {
			if a.calls[j].block.ID == b.ID {
				c.alone, a.calls[j].alone, t.duplicates = false, false, true
			}
		}
		a.calls = append(a.calls, c)
	}
	t.calls = [2]int{from, len(a.calls)}
}
