package conformance

import "github.com/pi-conform/pi-conform/harness/trace"

// counterpart is the call of a twin that stands where c stands in the base: in
// the turn of the same number, with the same place and id. It is nil if there
// is none.
func (twin *history) counterpart(base *history, c *call) *call {
	if c.turn >= len(twin.turns) {
		return nil
	}
	t := &twin.turns[c.turn]
	k := t.calls[0] + c.index
	if k >= t.calls[1] || twin.calls[k].block.ID != c.block.ID || !sameBlock(twin.calls[k].block, c.block) {
		return nil
	}
	return &twin.calls[k]
}

// sameScript reports whether the surroundings gave a call and its counterpart
// the same answers.
func (h *history) sameScript(c *call, twin *history, other *call) bool {
	return h.sameReply(c.prepare, twin, other.prepare) && h.sameReply(c.before, twin, other.before) &&
		h.sameReply(c.execute, twin, other.execute) && h.sameReply(c.after, twin, other.after) &&
		h.countReports(c) == twin.countReports(other)
}

func (h *history) sameReply(k int, twin *history, other int) bool {
	if k == none || other == none {
		return k == other
	}
	a, b := h.cb(k), twin.cb(other)
	if a.throws != b.throws || h.thrown(k) != twin.thrown(other) || (a.settle == never) != (b.settle == never) {
		return false
	}
	if a.kind == callTool && a.answer != nil && b.answer != nil {
		return sameResult(a.answer.Result, b.answer.Result)
	}
	x, y := h.hookAnswer(k), twin.hookAnswer(other)
	return x.Block == y.Block && x.Reason == y.Reason && isTrue(x.Terminate) == isTrue(y.Terminate) &&
		isTrue(x.IsError) == isTrue(y.IsError) && sameValue(x.Details, y.Details) && sameValue(x.Args, y.Args)
}

func (h *history) countReports(c *call) int {
	n := 0
	for i := range h.reports {
		if k := h.reports[i].call; k != none && &h.calls[k] == c && h.reports[i].kind != reportLate {
			n++
		}
	}
	return n
}

// expectSameCall expects that a call and its counterpart have the same events.
func (h *history) expectSameCall(j *judge, c *call, twin *history, other *call, text string) {
	mine, theirs := h.eventsOf(c), twin.eventsOf(other)
	for n, i := range mine {
		if n >= len(theirs) || !sameToolEvent(h.event(i), twin.event(theirs[n])) {
			j.expect(false, c.start, i, text)
			return
		}
	}
	at := h.turnEnd(c)
	j.expect(len(mine) == len(theirs), min(c.start, at), at, text)
}

// eventsOf are the entries of all events of a call, its result included, and
// without what came too late.
func (h *history) eventsOf(c *call) []int {
	var events []int
	for _, i := range h.events {
		if h.hasCall(i) && h.callAt(i) == c && !h.isLate(i) {
			events = append(events, i)
		}
	}
	return events
}

func sameToolEvent(a, b *trace.Event) bool {
	return a.Type == b.Type && isTrue(a.IsError) == isTrue(b.IsError) && sameResult(a.PartialResult, b.PartialResult) &&
		sameResult(a.Result, b.Result) && sameTag(a.Message, b.Message)
}
