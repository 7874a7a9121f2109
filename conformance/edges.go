package conformance

// findFailures finds where a run failed outside the protocol (e2, e11), and how
// much of the trace that excuses: the rest of that run, and if something of the
// run was still busy when it ended, whatever follows (e14).
func (h *history) findFailures() {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.run == none || c.settle == never || !h.failsRun(c) {
			continue
		}
		r := &h.runs[c.run]
		r.edge = min(r.edge, c.settle)
	}
	for k := range h.runs {
		if r := &h.runs[k]; r.edge != never {
			h.failed = append(h.failed, span{r.edge, h.excusedUntil(k)})
		}
	}
}

// failsRun reports whether the answer of a callback makes its run fail outside
// the protocol.
func (h *history) failsRun(c *callback) bool {
	switch c.kind {
	case callListener, callModel, callTransform, callConvert, callKey, callPrepareNext,
		callShouldStop, callFinishTurn, callPrepareRequest, callSteering, callFollowUp:
		return c.throws
	case callTool: // a tool that returns nothing at all (e15)
		return !h.since("0.99.0") && c.answer != nil && c.answer.Throw == nil && c.answer.Result == nil
	case callOther, callPrepareArguments, callBefore, callAfter:
	}
	return false
}

// excusedUntil is the last entry that a failed run excuses.
func (h *history) excusedUntil(k int) int {
	r := &h.runs[k]
	over := min(r.settled, r.stop-1)
	if r.settled == never && r.user == none {
		over = r.stop - 1
	}
	for i := range h.callbacks {
		c := &h.callbacks[i]
		if c.run == k && c.begin <= over && c.settle > over {
			return never
		}
	}
	for over+1 < len(h.entries) && h.entries[over+1].Step == h.entries[over].Step {
		over++
	}
	return over
}

// off reports whether an entry lies in what a failure excuses.
func (h *history) off(i int) bool {
	for _, s := range h.failed {
		if s.from <= i && i <= s.to {
			return true
		}
	}
	return false
}

// failedBefore reports whether any run failed outside the protocol before the
// entry: calls of that run may never have been answered.
func (h *history) failedBefore(i int) bool {
	return len(h.failed) > 0 && h.failed[0].from <= i
}
