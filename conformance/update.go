package conformance

var updateRules = []Rule{
	{
		ID: "UPD-1", Family: FamilyUpdate, Level: Must, Source: "U6", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: upd1,
		Sentence: "Each onUpdate call while execute is pending gives exactly one update with that partial result as a whole, in call order.",
		Why:      "Progress is shown as it comes; a line that is lost, doubled or swapped misleads whoever watches.",
	},
	{
		ID: "UPD-2", Family: FamilyUpdate, Level: Must, Source: "U7", From: "0.79.2", Needs: evidence{needE, needC}, Edges: []int{9}, AfterFailure: true, check: upd2,
		Sentence: "An onUpdate call after execute has settled gives no event, in this turn, a later turn or a later run.",
		Why:      "A tool that kept its callback must not touch a card that is finished, nor one of the next run.",
	},
	{
		ID: "UPD-3", Family: FamilyUpdate, Level: Must, Source: "U7", Needs: evidence{needE, needL}, Edges: []int{2, 5, 11}, check: upd3,
		Sentence: "Every accepted update is delivered to every listener before that call's end.",
		Why:      "A listener that gets progress for a finished card would open it again.",
	},
	{
		ID: "UPD-4", Family: FamilyUpdate, Level: Must, Source: "U3", Needs: evidence{needE}, Edges: onFailures, check: upd4,
		Sentence: "Updates lie between start and end of the same call.",
		Why:      "There is no card to show them on before the start, and none to be changed after the end.",
	},
	{
		ID: "UPD-5", Family: FamilyUpdate, Level: Must, Source: "U6", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: upd5,
		Sentence: "Updates made synchronously before execute first yields are delivered like any other.",
		Why:      "Many tools say what they are about to do before they do it; that is the line the user looks for.",
	},
	{
		ID: "UPD-6", Family: FamilyUpdate, Level: Must, Source: "U7, K, R", Needs: evidence{needE, needL}, Edges: []int{2, 5, 11, 13}, compare: upd6,
		Sentence: "A slow listener on an update changes neither the outcome nor the order of that call's events.",
		Why:      "A slow terminal must not decide what a tool did.",
	},
	{
		ID: "UPD-7", Family: FamilyUpdate, Level: Must, Source: "U7", Needs: evidence{needE, needC}, Edges: onFailures, check: upd7,
		Sentence: "No update for a call that was never executed.",
		Why:      "A blocked command that shows progress looks as if it had been run.",
	},
	{
		ID: "UPD-8", Family: FamilyUpdate, Level: Must, Source: "K, R", Needs: evidence{needC, needL, needE}, Edges: []int{2, 5, 11}, check: upd8,
		Sentence: "afterToolCall begins only after the call's updates are delivered.",
		Why:      "That hook may rewrite what is shown; an older line must not be written over it.",
	},
}

func upd1(h *history, j *judge) { h.expectReports(j, reportOpen) }
func upd5(h *history, j *judge) { h.expectReports(j, reportSync) }

// expectReports expects that the reports of one kind gave one update each, in
// order; those of the other kinds only take their place in the order.
func (h *history) expectReports(j *judge, kind reportKind) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.execute == none {
			continue
		}
		next := 0 // in updates
		for i := range h.reports {
			r := &h.reports[i]
			if r.call != k || r.kind == reportLate {
				continue
			}
			at := h.nextUpdate(c, &next)
			if r.kind != kind {
				continue
			}
			h.expectReported(j, c, r, at)
		}
		if extra := h.nextUpdate(c, &next); kind == reportOpen && extra != never && !h.madeLate(k, extra) {
			j.expect(false, h.cb(c.execute).begin, extra, "an update comes that the tool did not make")
		}
	}
}

// expectReported expects that the update at an entry is the one that a tool
// reported: at once, unless a listener holds up the loop, and with the same partial
// result.
func (h *history) expectReported(j *judge, c *call, r *report, at int) {
	if at == never || at < r.entry || h.step(at) != h.step(r.entry) && !h.heldUp(r.entry, at) {
		j.expect(false, r.entry, h.afterStep(r.entry), "a progress update gives no event")
		return
	}
	j.expect(sameResult(h.event(at).PartialResult, r.partial), r.entry, at, "an update does not carry the partial result that is due")
}

// nextUpdate is the next update event of a call from an index of updates on, or
// never; the index moves behind it.
func (h *history) nextUpdate(c *call, next *int) int {
	for *next < len(h.updates) {
		i := h.updates[*next]
		*next++
		if h.hasCall(i) && h.callAt(i) == c {
			return i
		}
	}
	return never
}

// afterStep is the first entry of the next step, or the last of the trace.
func (h *history) afterStep(i int) int {
	for k := i; k < len(h.entries); k++ {
		if h.step(k) != h.step(i) {
			return k
		}
	}
	return len(h.entries) - 1
}

// madeLate reports whether an update event came in the step of a late report.
func (h *history) madeLate(call, event int) bool {
	for i := range h.reports {
		if r := &h.reports[i]; r.kind == reportLate && h.step(r.entry) == h.step(event) {
			return true
		}
	}
	return false
}

func upd2(h *history, j *judge) {
	for i := range h.reports {
		r := &h.reports[i]
		if r.kind != reportLate {
			continue
		}
		at := none
		for _, u := range h.updates {
			if u > r.entry && h.step(u) == h.step(r.entry) {
				at = u
				break
			}
		}
		j.expect(at == none, r.entry, max(at, r.entry), "an update made after the tool had settled gives an event")
	}
}

func upd3(h *history, j *judge) {
	for _, u := range h.updates {
		if !h.hasCall(u) || h.places[u].first == none {
			continue
		}
		c := h.callAt(u)
		if c.end == never || !c.alone || u > c.end {
			continue
		}
		j.expect(h.delivered(u) < c.end, u, c.end, "a call ends before every listener has finished with its updates")
	}
}

func upd4(h *history, j *judge) {
	for _, u := range h.updates {
		if !h.hasCall(u) {
			j.expect(false, none, u, "an update belongs to no call")
			continue
		}
		c := h.callAt(u)
		if c.alone {
			j.expect(c.start < u, u, min(c.start, h.turnEnd(c)), "an update comes before the start of its call")
			j.expect(u < c.end, c.end, u, "an update comes after the end of its call")
		}
	}
}

func upd7(h *history, j *judge) {
	for _, u := range h.updates {
		if !h.hasCall(u) {
			continue
		}
		c := h.callAt(u)
		executed := c.execute != none && h.cb(c.execute).begin < u
		j.expect(executed || !c.alone, min(c.start, u), u, "a call that is not executed gives an update")
	}
}

func upd8(h *history, j *judge) {
	for _, u := range h.updates {
		if !h.hasCall(u) || h.places[u].first == none {
			continue
		}
		c := h.callAt(u)
		if c.after == none || !c.alone {
			continue
		}
		begin := h.cb(c.after).begin
		j.expect(h.delivered(u) < begin, u, begin, "afterToolCall begins before the call's updates are delivered")
	}
}

func upd6(base, twin *history, j *judge) {
	for k := range base.calls {
		c := &base.calls[k]
		other := twin.counterpart(base, c)
		if other == nil || !c.alone || !base.hasUpdates(c) || !base.sameScript(c, twin, other) {
			continue
		}
		base.expectSameCall(j, c, twin, other, "a slow listener changed what a call does")
	}
}

func (h *history) hasUpdates(c *call) bool {
	next := 0
	return h.nextUpdate(c, &next) != never
}
