package loop

import "github.com/pi-conform/pi-conform/harness/trace"

// What the defects of a batch do. Without a defect each of these functions is
// what its first line of comment says.

// answered are the calls that get their results now, in their order: all, in
// source order.
func (b *executions) answered() []*call {
	switch {
	case b.of.has(ResultsInCompletionOrder):
		return b.completed
	case b.of.has(MapOrderDecides):
		return inMapOrder(b.calls)
	case b.of.has(ResultsKeyedByID):
		return onePerID(b.calls)
	case b.of.has(FirstFailureEndsBatch):
		return finished(b.calls)
	case b.of.has(SlowUpdateLosesCall):
		return notLost(b.calls)
	case b.of.has(AbortedCallsLeftOut) && b.of.aborted():
		return executed(b.calls)
	}
	return b.calls
}

func inMapOrder(calls []*call) (ordered []*call) {
	byCall := map[*call]bool{}
	for _, c := range calls {
		byCall[c] = true
	}
	for c := range byCall {
		ordered = append([]*call{c}, ordered...)
	}
	return ordered
}

func onePerID(calls []*call) (kept []*call) {
	seen := map[string]bool{}
	for _, c := range calls {
		if !seen[c.block.ID] {
			kept = append(kept, c)
		}
		seen[c.block.ID] = true
	}
	return kept
}

func finished(calls []*call) (kept []*call) {
	for _, c := range calls {
		if c.done {
			kept = append(kept, c)
		}
	}
	return kept
}

// abandoned reports whether the rest of the batch is not waited for: never.
func (b *executions) abandoned() bool {
	if !b.of.has(FirstFailureEndsBatch) {
		return false
	}
	for _, c := range b.completed {
		if c.isError {
			return true
		}
	}
	return false
}

// emitLateEnds emits the ends that were held back: none.
func (b *executions) emitLateEnds() error {
	for _, c := range b.calls {
		late := b.of.has(EndsInSourceOrder) && c.tool != nil || b.of.has(FailureEndHeldBack) && c.tool == nil
		if !late || c.ended {
			continue
		}
		if err := c.emitEnd(); err != nil {
			return err
		}
	}
	return nil
}

// truncateLast takes only the last call of a truncated message for incomplete.
func (r *run) truncateLast(message *trace.Message, calls []*trace.Block) (results []*trace.Message, terminate bool, err error) {
	last := len(calls) - 1
	results, _, err = r.sequential(message, calls[:last])
	if err != nil {
		return nil, false, err
	}
	truncated, err := r.truncated(message, calls[last:])
	return append(results, truncated...), false, err
}
