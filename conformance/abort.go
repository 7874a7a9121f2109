package conformance

import "github.com/pi-conform/pi-conform/harness/trace"

var abortRules = []Rule{
	{
		ID: "ABRT-1", Family: FamilyAbort, Level: Must, Source: "K, R", Needs: evidence{needC, needA}, Edges: onFailures, check: abrt1,
		Sentence: "abort reaches the model stream, running tools, beforeToolCall, afterToolCall, transformContext and listeners by the run's signal.",
		Why:      "A command that is not told goes on for minutes after the user has pressed escape.",
	},
	{
		ID: "ABRT-2", Family: FamilyAbort, Level: Must, Source: "U5, U8, R", From: "0.75.4", Needs: evidence{needC, needE, needA}, Edges: onFailures, check: abrt2,
		Sentence: "A call whose preparation ends after the abort is never executed; from 0.85 nor is one that was prepared but not begun.",
		Why:      "What the user has stopped must not be done after all.",
	},
	{
		ID: "ABRT-3", Family: FamilyAbort, Level: Must, Source: "K", From: "0.75.4", Needs: evidence{needE, needC, needA}, Edges: []int{2, 5, 11}, check: abrt3,
		Sentence: "abort during beforeToolCall gives that call an error outcome; no execute, no afterToolCall, even if the hook allowed it.",
		Why:      "The user who stops the run while asked for permission has said no.",
	},
	{
		ID: "ABRT-4", Family: FamilyAbort, Level: Must, Source: "U5", Needs: evidence{needE, needA}, Edges: onFailures, check: abrt4,
		Sentence: "Every start is followed by its end and result message, abort or not.",
		Why:      "Stopping must leave no card that spins for ever.",
	},
	{
		ID: "ABRT-5", Family: FamilyAbort, Level: Must, MustFrom: "1.6", Source: "R", Needs: evidence{needE, needA}, Edges: onFailures, check: abrt5,
		Sentence: "After an aborted batch no call of the message is left without a result.",
		Why:      "Providers refuse the next request if a call has no result, and the session is stuck.",
	},
	{
		ID: "ABRT-6", Family: FamilyAbort, Level: Must, Source: "K, R", From: "0.75.4", Needs: evidence{needE, needC, needA}, Edges: []int{2, 5, 11}, check: abrt6,
		Sentence: "Up to 1.5 at most one call is started, prepared or hooked after the abort, and no call later in source order; from 1.6 each remaining call gets start, error end and result, and no hooks.",
		Why:      "The user has stopped the run and must not be asked about one more command after another.",
	},
	{
		ID: "ABRT-7", Family: FamilyAbort, Level: Must, Source: "K, R", Needs: evidence{needE, needA, needC}, Edges: onFailures, check: abrt7,
		Sentence: "An aborted run ends with turn_end and agent_end and becomes idle; after an aborted batch one more turn follows, unless every result terminates or a hook stops the run.",
		Why:      "After escape the user wants to type again; a run that never ends forces a restart.",
	},
	{
		ID: "ABRT-8", Family: FamilyAbort, Level: Must, Source: "K", Needs: evidence{needA, needE}, AfterFailure: true, check: abrt8,
		Sentence: "abort with no active run does nothing, now or to the next run.",
		Why:      "Escape pressed once too often must not kill the next question.",
	},
	{
		ID: "ABRT-9", Family: FamilyAbort, Level: Must, Source: "K", Needs: evidence{needA, needE}, check: abrt9, compare: abrt9Twin,
		Sentence: "A second abort changes nothing.",
		Why:      "Impatient users press escape twice, and must get no other outcome than patient ones.",
	},
	{
		ID: "ABRT-10", Family: FamilyAbort, Level: Must, Source: "K", Needs: evidence{needE, needC, needA}, Edges: []int{2, 5, 11}, check: abrt10,
		Sentence: "A tool that ignores the signal and returns after abort still gets its own result; the run neither hangs on nor drops it.",
		Why:      "What the tool did has been done; the model and the user have to know it.",
	},
}

// getsSignal reports whether a callback is given the run's signal.
func getsSignal(kind callbackKind) bool {
	switch kind {
	case callModel, callTool, callBefore, callAfter, callTransform, callListener:
		return true
	default:
	}
	return false
}

func abrt1(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if !getsSignal(c.kind) || c.run == none {
			continue
		}
		if signal := h.payload(c).Signal; signal != nil && !*signal && c.kind != callListener {
			j.expect(false, none, c.begin, "a callback is not given the run's signal")
		}
		r := &h.runs[c.run]
		switch abort := r.abort; {
		case abort == never || h.entries[c.begin].Auto && c.kind == callModel:
		case c.begin < abort && c.settle > abort:
			j.expect(h.cancelled(k, abort), c.begin, abort, "a pending callback is not told of the abort")
		case c.begin > abort && c.begin < r.settled:
			j.expect(h.entries[c.begin].Aborted, abort, c.begin, "a callback that begins after the abort is not told of it")
		}
	}
}

// cancelled reports whether the signal of a callback fired in the step of the
// abort.
func (h *history) cancelled(k, abort int) bool {
	for i := abort; i < len(h.entries) && h.step(i) == h.step(abort); i++ {
		if h.entries[i].Kind == trace.KindCancelled && int(h.places[i].callback) == k {
			return true
		}
	}
	return false
}

func abrt2(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		t := h.turnOf(c)
		abort := h.runOf(t).abort
		if abort == never || !t.ran() || t.truncated() || !c.alone {
			continue
		}
		prepared := h.preparedAt(c)
		if prepared == never || h.abortsItself(c) {
			continue
		}
		switch {
		case prepared >= abort:
			j.expect(c.execute == none, abort, h.executedAt(c, prepared), "a call whose preparation ended after the abort is executed")
		case h.since("0.85.0"):
			began := c.execute != none && h.cb(c.execute).begin > abort
			j.expect(!began, abort, h.executedAt(c, prepared), "a call that had not begun when the run was aborted is executed")
		}
	}
}

func (h *history) executedAt(c *call, otherwise int) int {
	if c.execute != none {
		return h.cb(c.execute).begin
	}
	return otherwise
}

// abortsItself reports whether prepareArguments of a call aborted the run: from
// edition 0.85 a call without beforeToolCall is executed then, which is an edge.
func (h *history) abortsItself(c *call) bool {
	return h.since("0.85.0") && c.prepare != none && h.runOf(h.turnOf(c)).abort == h.cb(c.prepare).begin
}

func abrt3(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.before == none {
			continue
		}
		abort := h.abortDuringHook(c)
		if abort == never {
			continue
		}
		if c.end != never {
			j.expect(isTrue(h.event(c.end).IsError), abort, c.end, "the run was aborted while a hook was asked, and the call has no error outcome")
		} else if end := h.turnOf(c).end; end != never {
			j.expect(false, abort, end, "the run was aborted while a hook was asked, and the call has no end")
		}
		for _, k := range [...]int{c.execute, c.after} {
			if k != none {
				j.expect(false, abort, h.cb(k).begin, "the run was aborted while a hook was asked, and the call goes on")
			}
		}
	}
}

// abortDuringHook is where the run was aborted while beforeToolCall was asked about
// a call, or never; also if that hook has not answered.
func (h *history) abortDuringHook(c *call) int {
	if c.before == none {
		return never
	}
	before, abort := h.cb(c.before), h.runOf(h.turnOf(c)).abort
	if abort < before.begin || abort > before.settle || before.settle == never {
		return never
	}
	return abort
}

// abortedTurns gives each turn with calls whose run was aborted before it ended.
func (h *history) abortedTurns(yield func(index int, t *turn)) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.ran() && t.end != never && h.abortedBy(t, t.end) {
			yield(k, t)
		}
	}
}

func abrt4(h *history, j *judge) {
	h.abortedTurns(func(_ int, t *turn) {
		for k := t.calls[0]; k < t.calls[1]; k++ {
			c := &h.calls[k]
			if c.start != never {
				j.expect(c.end < t.end && c.resultEnd < t.end, c.start, t.end, "a call of an aborted batch has started and is not brought to its end")
			}
		}
	})
}

func abrt5(h *history, j *judge) {
	h.abortedTurns(func(_ int, t *turn) {
		for k := t.calls[0]; k < t.calls[1]; k++ {
			j.expect(h.calls[k].resultEnd < t.end, t.answered, t.end, "a call of an aborted batch is left without a result")
		}
	})
}

func abrt6(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		abort := h.runOf(t).abort
		if !t.ran() || t.truncated() || t.duplicates || !h.abortedBy(t, min(t.end, len(h.entries)-1)) {
			continue
		}
		if h.since("1.6") {
			h.expectAnsweredAfter(j, t, abort)
		} else {
			h.expectBrokenOff(j, t, abort)
		}
	}
}

// expectBrokenOff expects that at most one call is begun after an abort: the one
// under way, or the batch's first.
func (h *history) expectBrokenOff(j *judge, t *turn, abort int) {
	begun := none
	for k := t.calls[0]; k < t.calls[1]; k++ {
		c := &h.calls[k]
		at := h.begunAfter(c, abort)
		if at == never {
			continue
		}
		j.expect(begun == none && (c.start < abort || c.index == 0), abort, at, "one more call is begun after the abort")
		begun = k
	}
	if begun == none && t.end != never {
		j.expect(true, t.end, none, "")
	}
}

// begunAfter is where a call is started, prepared or hooked after an abort, or
// never.
func (h *history) begunAfter(c *call, abort int) int {
	at := never
	if c.start > abort {
		at = c.start
	}
	for _, k := range [...]int{c.prepare, c.before} {
		if k != none && h.cb(k).begin > abort {
			at = min(at, h.cb(k).begin)
		}
	}
	return at
}

// expectAnsweredAfter expects that each call which had not been started when the
// run was aborted is answered by an error, and no hook is asked about it.
func (h *history) expectAnsweredAfter(j *judge, t *turn, abort int) {
	for k := t.calls[0]; k < t.calls[1]; k++ {
		c := &h.calls[k]
		for _, k := range [...]int{c.prepare, c.before} {
			if k != none && h.cb(k).begin > abort && !h.abortsItself(c) {
				j.expect(false, abort, h.cb(k).begin, "a call is prepared or hooked after the abort")
			}
		}
		if c.start < abort {
			continue
		}
		if c.start == never || c.end == never || c.resultEnd == never {
			if t.end != never {
				j.expect(false, abort, t.end, "a call that was left when the run was aborted is not answered")
			}
			continue
		}
		j.expect(isTrue(h.event(c.end).IsError) && c.execute == none && c.after == none, abort, c.end, "a call that was left when the run was aborted is not answered by an error")
	}
}

func abrt7(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.abort == never || r.user == none {
			continue
		}
		if r.settled != never && r.first != never {
			last, before := h.lastTwo(r)
			ends := last != none && h.places[last].event == agentEnd && before != none && h.places[before].event == turnEnd
			j.expect(ends, r.abort, r.settled, "an aborted run does not end with turn_end and agent_end")
		}
	}
	if r := h.stuck(); r != nil && r.abort != never && h.droppedTool(r) == none {
		j.expect(false, r.abort, h.end, "an aborted run never becomes idle")
	}
	h.abortedTurns(func(index int, t *turn) {
		all, _ := h.terminates(t)
		if all || h.stopped(index) || len(h.event(t.end).ToolResults) == 0 {
			return
		}
		if h.nextTurn(index) != nil {
			j.expect(true, t.end, none, "")
		} else if end := h.endOfRun(t); end != never {
			j.expect(false, t.end, end, "no turn follows an aborted batch")
		}
	})
}

// lastTwo are the last two events of a run; none if there are fewer.
func (h *history) lastTwo(r *run) (last, before int) {
	events := h.eventsIn(r.first, r.stop)
	last, before = none, none
	if n := len(events); n > 0 {
		last = events[n-1]
		if n > 1 {
			before = events[n-2]
		}
	}
	return last, before
}

func abrt8(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userAbort || u.active != none {
			continue
		}
		at := h.noise(u.entry)
		j.expect(at == none, u.entry, max(at, u.entry), "no run is active, and abort does something")
		h.expectUnharmed(j, u)
	}
}

// expectUnharmed expects that the run after an abort that came too late is not
// aborted.
func (h *history) expectUnharmed(j *judge, u *user) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.begin < u.entry || c.run == none || h.runs[c.run].begin < u.entry {
			continue
		}
		if c.begin >= h.runs[c.run].abort || h.runs[c.run].begin != h.nextRunAfter(u.entry) {
			return
		}
		j.expect(!h.entries[c.begin].Aborted || h.off(c.begin), u.entry, c.begin, "an abort that came when no run was active aborts the next one")
	}
}

func (h *history) nextRunAfter(entry int) int {
	for k := range h.runs {
		if h.runs[k].begin > entry {
			return h.runs[k].begin
		}
	}
	return never
}

func abrt9(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userAbort || u.active == none || h.runs[u.active].abort >= u.entry {
			continue
		}
		at := h.noise(u.entry)
		j.expect(at == none, u.entry, max(at, u.entry), "a second abort changes something")
	}
}

func abrt9Twin(base, twin *history, j *judge) {
	second := none
	for k := range base.users {
		if u := &base.users[k]; u.kind == userAbort && u.active != none && base.runs[u.active].abort < u.entry {
			second = u.entry
			break
		}
	}
	if second == none {
		return
	}
	for n, i := range base.events {
		if n >= len(twin.events) || base.places[i].event != twin.places[twin.events[n]].event || !sameToolEvent(base.event(i), twin.event(twin.events[n])) {
			j.expect(false, second, i, "a second abort changes what follows")
			return
		}
	}
	j.expect(len(base.events) == len(twin.events), second, len(base.entries)-1, "a second abort changes what follows")
}

func abrt10(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.execute == none {
			continue
		}
		execute, t := h.cb(c.execute), h.turnOf(c)
		abort := h.runOf(t).abort
		if abort == never || execute.begin > abort || execute.settle == never || execute.settle < abort || t.end == never {
			continue
		}
		j.expect(c.end < t.end && c.resultEnd < t.end, execute.settle, t.end, "a tool returned after the abort, and its result is dropped")
	}
	if r := h.stuck(); r != nil && r.abort != never {
		if k := h.droppedTool(r); k != none {
			j.expect(false, h.settles(k), h.end, "a tool returned after the abort, and the run hangs")
		}
	}
}

// droppedTool is the execution of a tool that settled after the abort of a run
// and whose call has not ended, or none.
func (h *history) droppedTool(r *run) int {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind == callTool && c.call != none && c.settle != never && c.settle > r.abort && c.begin > r.begin && h.calls[c.call].end == never {
			return k
		}
	}
	return none
}
