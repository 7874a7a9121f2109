package conformance

import "slices"

var parallelRules = []Rule{
	{
		ID: "PAR-1", Family: FamilyParallel, Level: Must, Source: "U11", Needs: evidence{needE, needC}, Edges: onFailures, check: par1,
		Sentence: "In parallel mode start and preparation go one call at a time in source order.",
		Why:      "Questions to the user come from preparation; two at once, or out of order, cannot be answered sensibly.",
	},
	{
		ID: "PAR-2", Family: FamilyParallel, Level: Must, Source: "U11", Needs: evidence{needE, needC}, Edges: onFailures, check: par2,
		Sentence: "In parallel mode the allowed calls run together: all have begun execute before any needs to finish.",
		Why:      "Five slow look-ups should take as long as the slowest one, and calls that wait for each other must not hang.",
	},
	{
		ID: "PAR-3", Family: FamilyParallel, Level: Must, Source: "U11, R", From: "0.68.1", Needs: evidence{needE, needC, needL}, Edges: []int{2, 5, 11}, check: par3,
		Sentence: "end comes in the order in which calls were finalized: execute settled, its updates delivered to all listeners, afterToolCall settled.",
		Why:      "A quick tool that is done must not be shown as running until a slow one has finished.",
	},
	{
		ID: "PAR-4", Family: FamilyParallel, Level: Must, Source: "U11", From: "0.68.1", Needs: evidence{needE}, Edges: onFailures, check: par4,
		Sentence: "Result messages and turn_end.toolResults are in source order, whatever the completion order.",
		Why:      "The transcript has to be the same whichever tool was quicker, or caches miss and stored sessions differ.",
	},
	{
		ID: "PAR-5", Family: FamilyParallel, Level: Must, Source: "U11, K", From: "0.68.1", Needs: evidence{needE}, Edges: onFailures, check: par5,
		Sentence: "In parallel mode no result message comes before the last end of the batch.",
		Why:      "The history would show a finished batch while one of its cards is still running.",
	},
	{
		ID: "PAR-6", Family: FamilyParallel, Level: Must, Source: "U11", Needs: evidence{needE, needC}, Edges: onFailures, check: par6,
		Sentence: "A call that fails in preparation emits its end at once, before the next call's start.",
		Why:      "A refused command that goes on spinning looks as if it were being run.",
	},
	{
		ID: "PAR-7", Family: FamilyParallel, Level: Must, Source: "K", From: "0.67.68", Needs: evidence{needE, needC}, Edges: onFailures, check: par7,
		Sentence: "If the setting or any tool in the batch is sequential, the whole batch is: one call's start, preparation, execution, end and result message before the next call's start.",
		Why:      "Tools ask for it because they change the same files; run together they destroy each other's work.",
	},
	{
		ID: "PAR-8", Family: FamilyParallel, Level: Must, Source: "U1, U11", Needs: evidence{needE}, Edges: []int{2, 5, 11}, check: par8,
		Sentence: "Two calls of one tool never share a record: each event belongs to its own call.",
		Why:      "Two searches at once would otherwise write into one card and leave the other one empty.",
	},
	{
		ID: "PAR-9", Family: FamilyParallel, Level: Must, Source: "U14", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, compare: par9,
		Sentence: "One call's failure, block or slowness changes nothing about another's events and result.",
		Why:      "The user loses the work of good tools because one of them failed.",
	},
}

// pairs gives each call of the batches that have a property with the call that
// comes next in source order.
func (h *history) pairs(of func(*turn) bool, yield func(c, next *call)) {
	for k := range h.turns {
		t := &h.turns[k]
		if !of(t) {
			continue
		}
		for i := t.calls[0]; i+1 < t.calls[1]; i++ {
			yield(&h.calls[i], &h.calls[i+1])
		}
	}
}

func par1(h *history, j *judge) {
	h.pairs(h.parallel, func(c, next *call) {
		if next.start == never || !c.alone || !next.alone {
			return
		}
		j.expect(c.start < next.start, next.start, min(c.start, h.turnEnd(c)), "calls start in another order than the model gave them")
		for _, k := range [...]int{c.prepare, c.before} {
			if k != none {
				cb := h.cb(k)
				j.expect(cb.settle < next.start, cb.begin, max(cb.begin, next.start), "the next call starts while a call is being prepared")
			}
		}
	})
}

// turnEnd is where the turn of a call ended, or the last entry of the trace.
func (h *history) turnEnd(c *call) int { return min(h.turnOf(c).end, len(h.entries)-1) }

func par2(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if !h.parallel(t) || t.duplicates {
			continue
		}
		first := none // first call that began execute
		for i := t.calls[0]; i < t.calls[1]; i++ {
			c := &h.calls[i]
			if c.execute == none {
				continue
			}
			begin := h.cb(c.execute).begin
			if first == none {
				first = i
				continue
			}
			other := &h.calls[first]
			at := h.cb(other.execute).begin
			j.expect(h.step(at) == h.step(begin), at, begin, "two calls of a batch do not run together")
			j.expect(other.end > begin, min(other.end, begin), begin, "a call begins only after another one has ended")
		}
	}
}

// finalized is where a call was finalized, or never.
func (h *history) finalized(c *call) int {
	if c.after != none {
		return h.settles(c.after)
	}
	at := h.settles(c.execute)
	for _, u := range h.updates {
		if h.hasCall(u) && h.callAt(u) == c {
			at = max(at, h.delivered(u))
		}
	}
	return at
}

func par3(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if !h.parallel(t) || t.duplicates {
			continue
		}
		for i := t.calls[0]; i < t.calls[1]; i++ {
			c := &h.calls[i]
			if c.execute == none || c.end == never {
				continue
			}
			at := h.finalized(c)
			if at == never {
				if c.after == none {
					j.expect(false, h.cb(c.execute).begin, c.end, "a call ends before it has been finalized")
				}
				continue
			}
			inTime := h.step(at) == h.step(c.end) || h.heldUp(at, c.end) && !h.overtaken(t, c, at)
			j.expect(at < c.end && inTime, at, c.end, "a call does not end when it has been finalized")
		}
	}
}

// overtaken reports whether a call that was finalized later ended before c.
func (h *history) overtaken(t *turn, c *call, finalized int) bool {
	return slices.ContainsFunc(h.calls[t.calls[0]:t.calls[1]], func(other call) bool {
		return other.execute != none && other.end < c.end && h.finalized(&other) > finalized
	})
}

func par4(h *history, j *judge) {
	h.pairs((*turn).ran, func(c, next *call) {
		if c.resultStart == never || next.resultStart == never {
			return
		}
		j.expect(c.resultStart < next.resultStart, next.resultStart, c.resultStart, "results come in another order than the calls")
	})
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || !t.ran() || t.duplicates {
			continue
		}
		j.expect(h.inSourceOrder(t), t.answered, t.end, "turn_end.toolResults are in another order than the calls")
	}
}

func (h *history) inSourceOrder(t *turn) bool {
	last := none
	for _, m := range h.event(t.end).ToolResults {
		for i := t.calls[0]; m != nil && i < t.calls[1]; i++ {
			if h.calls[i].block.ID != m.ToolCallID {
				continue
			}
			if i < last {
				return false
			}
			last = i
		}
	}
	return true
}

func par5(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if !h.parallel(t) || t.calls[1]-t.calls[0] < 2 {
			continue
		}
		first, last := never, none
		for i := t.calls[0]; i < t.calls[1]; i++ {
			first = min(first, h.calls[i].resultStart)
			if h.calls[i].end != never {
				last = max(last, h.calls[i].end)
			}
		}
		if first != never && last != none {
			j.expect(last < first, first, last, "a result comes before the last end of its batch")
		}
	}
}

func par6(h *history, j *judge) {
	h.pairs((*turn).ran, func(c, next *call) {
		if next.start == never || c.start == never || c.execute != none || !c.alone || h.turnOf(c).truncated() || !h.failedInPreparation(c) {
			return
		}
		if c.end == never {
			j.expect(false, c.start, next.start, "the next call starts before the end of one that failed in preparation")
			return
		}
		j.expect(c.end < next.start, next.start, c.end, "the next call starts before the end of one that failed in preparation")
	})
}

// failedInPreparation reports whether a call that was not executed failed while
// it was being prepared. From edition 0.85 an abort also stops a call that was
// prepared already.
func (h *history) failedInPreparation(c *call) bool {
	if h.refusal(c) != causeUnseen {
		return true
	}
	if c.end == never {
		return false
	}
	return !h.since("0.85.0") || !h.abortedBy(h.turnOf(c), c.end)
}

func par7(h *history, j *judge) {
	of := func(t *turn) bool { return t.ran() && !t.truncated() && h.sequential(t) }
	h.pairs(of, func(c, next *call) {
		if next.start == never {
			return
		}
		j.expect(c.resultEnd < next.start, next.start, min(c.resultEnd, h.turnEnd(c)), "a call of a sequential batch starts before the result of the one before it")
	})
}

func par8(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.duplicates || !h.sharesTool(t) {
			continue
		}
		for _, i := range h.eventsIn(min(t.answered, len(h.entries)), min(t.end, len(h.entries))) {
			ev := h.event(i)
			if !h.places[i].event.isTool() {
				continue
			}
			own := h.hasCall(i) && h.callAt(i).block.Name == ev.ToolName
			j.expect(own, t.answered, i, "an event belongs to no call of its tool")
		}
		for i := t.calls[0]; i < t.calls[1]; i++ {
			c := &h.calls[i]
			j.expect(c.starts <= 1 && c.ends <= 1 && c.results <= 1, t.answered, h.evident(c, h.turnEnd(c)), "two calls of one tool share a record")
		}
	}
}

func (h *history) sharesTool(t *turn) bool {
	for i := t.calls[0]; i < t.calls[1]; i++ {
		for k := i + 1; k < t.calls[1]; k++ {
			if h.calls[i].block.Name == h.calls[k].block.Name {
				return true
			}
		}
	}
	return false
}

func par9(base, twin *history, j *judge) {
	for k := range base.calls {
		c := &base.calls[k]
		other := twin.counterpart(base, c)
		if other == nil || !c.alone || !base.sameScript(c, twin, other) {
			continue
		}
		base.expectSameCall(j, c, twin, other, "another call changed what this one does")
	}
}
