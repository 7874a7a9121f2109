package harness

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// beginner is a policy that wants to know the case before it begins.
type beginner interface{ begin(w *world) }

// remains says in how many ways an actor can go on, by the number of actions
// that it takes: ends ways for each number from least up to but not including
// most, and full ways for most.
type remains struct {
	least, most int
	ends, full  float64
}

// exactly is one way with that number of actions.
func exactly(n int) remains { return remains{least: n, most: n, full: 1} }

// ways is the number of ways that take n actions.
func (r remains) ways(n int) float64 {
	switch {
	case n == r.most:
		return r.full
	case n >= r.least && n < r.most:
		return r.ends
	}
	return 0
}

// counts knows how much of a case is still to come: what the callbacks that wait
// have left, and what the script holds beyond them.
type counts struct {
	sc     *Scenario
	script int  // actions of the whole script that belong to runs
	begun  int  // how many of them belong to callbacks that have begun
	after  bool // afterToolCall waits
}

func newCounts(sc *Scenario) *counts {
	c := &counts{sc: sc, after: sc.Config.Hooks[trace.HookAfterToolCall] == trace.ModeGate}
	for i := range sc.Model {
		c.script += c.ofTurn(i)
	}
	return c
}

// ofTurn is the number of actions that a turn takes if all goes well.
func (c *counts) ofTurn(i int) int {
	t := &c.sc.Model[i]
	n := 0
	if t.Gate {
		n = len(t.Plan())
	}
	for name, mode := range c.sc.Config.Hooks {
		if mode == trace.ModeGate && !slices.Contains(callHooks, name) {
			n++
		}
	}
	if reason := t.StopReason(); reason != trace.StopToolUse && reason != trace.StopStop {
		return n // its calls are not executed
	}
	for _, call := range t.Calls {
		n += c.ofCall(call.ID, call.Name)
	}
	return n
}

func (c *counts) ofCall(id, tool string) int {
	known := slices.ContainsFunc(c.sc.Config.Tools, func(t trace.Tool) bool { return t.Name == tool })
	if !known {
		return 0
	}
	n := 0
	for _, name := range callHooks {
		if c.sc.Config.Hooks[name] == trace.ModeGate {
			n++
		}
	}
	if script := c.sc.Calls[id]; script.Gate {
		n += len(script.Updates) + 1 + len(script.Late)
	}
	return n
}

// begin takes in that a callback waits. What a hook after a call takes was
// counted with the call, and what listeners take is not known before.
func (c *counts) begin(call *openCall) {
	switch {
	case call.kind == callListener || call.follows():
	case call.kind == callModel && call.cancelled:
	default:
		c.begun += c.left(call).most
	}
}

// follows reports whether the callback is the hook after a call.
func (c *openCall) follows() bool {
	return c.kind == callHook && strings.HasPrefix(c.name, "hook/"+trace.HookAfterToolCall+"/")
}

// ahead is the number of actions that the script holds beyond the callbacks that
// have begun.
func (c *counts) ahead() int { return max(0, c.script-c.begun) }

// left is what a callback has left.
func (c *counts) left(call *openCall) remains {
	switch call.kind {
	case callListener, callHook:
		return exactly(1)
	case callTool:
		return c.leftOfTool(call, len(call.tool.script.Updates)-call.next)
	case callModel:
		return leftOfStream(len(call.plan), call.cancelled)
	}
	return exactly(0)
}

func (c *counts) leftOfTool(call *openCall, updates int) remains {
	late := len(call.tool.script.Late) - call.late
	if call.settled {
		return exactly(late)
	}
	ends := 1.0
	if call.tool.script.Notice && call.cancelled {
		ends = 2
	}
	once := 1 + late + c.hookAfter()
	return remains{least: once, most: once + updates, ends: ends, full: ends}
}

func (c *counts) hookAfter() int {
	if c.after {
		return 1
	}
	return 0
}

func leftOfStream(steps int, cancelled bool) remains {
	switch {
	case !cancelled:
		return exactly(steps)
	case steps == 0:
		return exactly(1)
	}
	return remains{least: 1, most: steps, ends: 1, full: 2}
}

// then is what the actor of an enabled action has left once it was done.
func (c *counts) then(a *Action) remains {
	switch {
	case a.queue != nil:
		return exactly(len(a.queue.left()) - 1)
	case a.call == nil:
		return exactly(0) // the clock
	}
	call := a.call
	switch call.kind {
	case callListener, callHook:
	case callTool:
		switch {
		case call.settled:
			return exactly(len(call.tool.script.Late) - call.late - 1)
		case a.Answer.Partial != nil:
			return c.leftOfTool(call, len(call.tool.script.Updates)-call.next-1)
		}
		return exactly(len(call.tool.script.Late) + c.hookAfter())
	case callModel:
		if !endsStream(a.Answer) {
			return leftOfStream(len(call.plan)-1, call.cancelled)
		}
	}
	return exactly(0)
}

// free reports whether the actor of the action goes on beside the runs, so that
// nothing of the script has to wait for it.
func (a *Action) free() bool {
	if a.Kind == ActionUser {
		return !beginsRun(a.User)
	}
	return a.call != nil && a.call.kind == callTool && a.call.settled
}

func beginsRun(k UserKind) bool { return k == UserPrompt || k == UserContinue || k == UserReset }

// sameActor reports whether one actor does both actions.
func (a *Action) sameActor(b *Action) bool { return a.call == b.call && a.queue == b.queue }

// runsLeft is the number of user actions that have to wait for the end of a run.
func (w *world) runsLeft() int {
	n := 0
	for i := range w.user {
		if q := &w.user[i]; beginsRun(q.kind) && len(q.left()) > 0 && w.runs > 0 && !q.left()[0].Busy {
			n += len(q.left())
		}
	}
	return n
}

// estimate is about how many actions a run of the case takes, and seldom less
// than that.
func (w *world) estimate() int {
	n := newCounts(w.sc).script + len(w.sc.User)
	for i := range w.sc.Config.Listeners {
		n += 4 * len(w.sc.Config.Listeners[i].Gate)
	}
	return max(n, 1)
}
