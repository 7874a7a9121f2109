package loop

import "github.com/pi-conform/pi-conform/harness/trace"

// What the defects of updates do. Without a defect each of these functions is
// what the first sentence of its comment says.

// updated is the call that an update is shown on: its own.
func (r *run) updated(c *call) *call {
	if r.has(UpdateUnderLastID) && r.notes.last != nil {
		return r.notes.last
	}
	return c
}

// open reports whether a closed gate lets updates through: it does not.
func (u *updates) open() bool {
	return u.call.run.has(LateUpdateInNextRun) && u.call.run.over
}

// lost reports whether an update in time is lost: it is not.
func (u *updates) lost() bool {
	r := u.call.run
	return r.has(OneGateForBatch) && r.notes.gateClosed || r.has(UpdateDroppedAfterAbort) && r.aborted() ||
		r.has(EarlyUpdateLost) && !u.call.listens
}

// held reports whether an update is not delivered now: it is.
func (u *updates) held(partial *trace.Result) bool {
	r := u.call.run
	switch {
	case r.has(FirstUpdateSwallowed), r.has(UpdatesReversed):
		if u.first == nil {
			u.first = partial
			return true
		}
	case r.has(UpdateAfterEnd):
		u.call.backlog = append(u.call.backlog, partial)
		return true
	case r.has(OneThrottleBuffer):
		r.notes.buffered, r.notes.buffer = u, partial
		return true
	}
	return false
}

// flush comes when the tool has settled: nothing happens.
func (u *updates) flush() {
	r := u.call.run
	r.notes.gateClosed = true
	switch {
	case r.has(UpdatesReversed) && u.first != nil:
		u.deliver(u.first)
	case r.notes.buffered != nil:
		r.notes.buffered.deliver(r.notes.buffer)
		r.notes.buffered = nil
	}
}
