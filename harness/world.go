package harness

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// world knows what the surroundings could do next: which callbacks are open
// and what the scenario lets them be answered, and what the user has left to
// do.
type world struct {
	sc      *Scenario
	calls   []*openCall // gated callbacks that wait, and settled tools with late updates left
	user    []userQueue
	turn    int             // script turns used
	open    map[string]bool // user actions that are accepted and have not settled
	runs    int             // how many of those are runs
	options []Action        // reused by enabled
	counts  *counts         // kept for a policy that asks for them, else nil
	wake    time.Duration   // until the subject wakes; 0 if it does not sleep
}

// openCall is a callback that waits.
type openCall struct {
	name      string
	kind      callKind
	plan      []scriptedmodel.Step // model: what is left of the stream
	next      int                  // model: number of the next event; tool: of the next update
	partial   *trace.Message       // model: the last partial message
	script    ToolScript           // tool
	reply     HookReply            // hook
	throw     string               // listener
	throws    bool                 // listener
	cancelled bool
	settled   bool      // tool: answered, but late updates are left
	late      int       // tool: number of the next late update
	options   []Action  // what it can be answered now; nil if that has to be found out
	spare     [2]Action // room for them
}

type callKind int

const (
	callListener callKind = iota
	callHook
	callTool
	callModel
)

// Enabled actions are ordered by rank, then by label: the order of the default
// policy. What lets the loop go on comes before what starts something new.
const (
	rankListener = iota
	rankHook
	rankUpdate
	rankReturn
	rankNotice
	rankModel
	rankModelAborted
	rankLate
	rankClock
	rankUser
)

// userQueue is what is left of one kind of user action, in order.
type userQueue struct {
	kind UserKind
	next int
	left []UserAction
}

func newWorld(sc *Scenario) *world {
	w := &world{sc: sc, open: map[string]bool{}}
	for _, a := range sc.User {
		i := slices.IndexFunc(w.user, func(q userQueue) bool { return q.kind == a.Kind })
		if i < 0 {
			i = len(w.user)
			w.user = append(w.user, userQueue{kind: a.Kind})
		}
		w.user[i].left = append(w.user[i].left, a)
	}
	return w
}

// observe takes in what the subject did.
func (w *world) observe(e *trace.Entry) {
	switch e.Kind {
	case trace.KindCall:
		if !e.Auto {
			w.begin(e)
		} else if strings.HasPrefix(e.Name, "model/") {
			w.turn++
		}
	case trace.KindCancelled:
		if c := w.find(e.Name); c != nil {
			c.cancelled, c.options = true, nil
		}
	case trace.KindSettled:
		if w.open[e.Name] {
			delete(w.open, e.Name)
			if isRun(e.Name) {
				w.runs--
			}
		}
	case trace.KindAction, trace.KindEvent, trace.KindRead, trace.KindRetained, trace.KindEnd:
	default:
	}
}

func isRun(name string) bool {
	return strings.HasPrefix(name, "prompt/") || strings.HasPrefix(name, "continue/")
}

func (w *world) find(name string) *openCall {
	for _, c := range w.calls {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (w *world) begin(e *trace.Entry) {
	c := &openCall{name: e.Name, cancelled: e.Aborted}
	kind, rest, _ := strings.Cut(e.Name, "/")
	switch kind {
	case "listener":
		c.kind = callListener
		c.throw, c.throws = w.listenerThrow(rest)
	case "hook":
		c.kind = callHook
		name, key, _ := strings.Cut(rest, "/")
		c.reply = w.sc.hookReply(name, key)
	case "tool":
		c.kind = callTool
		c.script = w.sc.toolScript(rest)
	case "model":
		c.kind = callModel
		if !e.Aborted {
			c.plan = w.sc.modelPlan(w.turn)
			w.turn++
		}
	}
	w.calls = append(w.calls, c)
	if w.counts != nil {
		w.counts.begin(c)
	}
}

// listenerThrow says whether the listener delivery of that name, such as
// 0/turn_end/0, ends with an error.
func (w *world) listenerThrow(rest string) (string, bool) {
	index, delivery, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(w.sc.Config.Listeners) {
		return "", false
	}
	_, throw, throws := listenerAt(&w.sc.Config.Listeners[i], delivery)
	return throw, throws
}

// enabled lists the actions that could be done now, in canonical order. The
// slice is valid until the next call.
func (w *world) enabled() []Action {
	w.options = w.options[:0]
	for _, c := range w.calls {
		if c.options == nil {
			c.options = c.actions()
		}
		w.options = append(w.options, c.options...)
	}
	if w.wake > 0 {
		w.options = append(w.options, Action{Label: clockLabel(w.wake), Kind: ActionClock, Advance: w.wake, rank: rankClock})
	}
	for i := range w.user {
		w.options = w.userActions(&w.user[i], w.options)
	}
	slices.SortFunc(w.options, func(a, b Action) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return strings.Compare(a.Label, b.Label)
	})
	return w.options
}

// clockLabel is the label of an action that moves the clock, such as clock/30s.
func clockLabel(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return "clock/" + text
}

// actions are what the callback can be answered now.
func (c *openCall) actions() []Action {
	to := c.spare[:0]
	answer := func(rank int, suffix string, a *trace.Answer) {
		to = append(to, Action{Label: c.name + suffix, Name: c.name, Kind: ActionAnswer, Answer: a, rank: rank, call: c})
	}
	switch c.kind {
	case callListener:
		if c.throws {
			answer(rankListener, "/throw", &trace.Answer{Throw: &c.throw})
		} else {
			answer(rankListener, "/done", &trace.Answer{})
		}
	case callHook:
		if c.reply.Throw != nil {
			answer(rankHook, "/throw", &trace.Answer{Throw: c.reply.Throw})
		} else {
			answer(rankHook, "/return", &trace.Answer{Hook: &c.reply.Value})
		}
	case callTool:
		c.toolActions(answer)
	case callModel:
		c.modelActions(answer)
	}
	return to
}

func (c *openCall) toolActions(answer func(int, string, *trace.Answer)) {
	if c.settled {
		if c.late < len(c.script.Late) {
			answer(rankLate, "/late/"+strconv.Itoa(c.late), &trace.Answer{Partial: c.script.Late[c.late]})
		}
		return
	}
	if c.next < len(c.script.Updates) {
		answer(rankUpdate, "/update/"+strconv.Itoa(c.next), &trace.Answer{Partial: c.script.Updates[c.next]})
	}
	if c.script.Throw != nil {
		answer(rankReturn, "/throw", &trace.Answer{Throw: c.script.Throw})
	} else {
		answer(rankReturn, "/return", &trace.Answer{Result: c.script.Return})
	}
	if c.script.Notice && c.cancelled {
		answer(rankNotice, "/aborted", &trace.Answer{Throw: &noticed})
	}
}

var noticed = "the tool noticed the abort"

func (c *openCall) modelActions(answer func(int, string, *trace.Answer)) {
	if len(c.plan) > 0 {
		step := &c.plan[0]
		switch {
		case step.Throws:
			answer(rankModel, "/throw", &trace.Answer{Throw: &step.Throw})
		case step.Ends:
			answer(rankModel, "/end", &trace.Answer{Ends: true, Final: step.Final})
		default:
			answer(rankModel, "/event/"+strconv.Itoa(c.next), &trace.Answer{Event: step.Event, Final: step.Final})
		}
	}
	if c.cancelled {
		m := scriptedmodel.Aborted(c.partial)
		answer(rankModelAborted, "/aborted", &trace.Answer{
			Event: &trace.StreamEvent{Type: trace.StreamError, Reason: trace.StopAborted, Error: m},
		})
	}
}

// userActions appends the next action of the queue, if it may happen now.
func (w *world) userActions(q *userQueue, to []Action) []Action {
	if len(q.left) == 0 {
		return to
	}
	a := &q.left[0]
	switch q.kind {
	case UserPrompt, UserContinue, UserReset:
		if w.runs > 0 && !a.Busy {
			return to
		}
	case UserSteer, UserFollowUp, UserAbort, UserClearQueue, UserWaitForIdle, UserSubscribe, UserUnsubscribe:
	}
	label := string(q.kind) + "/" + strconv.Itoa(q.next)
	if label == "abort/0" {
		label = "abort"
	}
	return append(to, Action{Label: label, Name: label, Kind: ActionUser, User: q.kind, Answer: &a.Answer, rank: rankUser, queue: q})
}

// did takes in that an action was done.
func (w *world) did(a *Action) {
	if a.Kind == ActionUser {
		w.didUser(a)
		return
	}
	i := slices.IndexFunc(w.calls, func(c *openCall) bool { return c.name == a.Name })
	if i < 0 {
		return
	}
	if w.calls[i].answered(a) {
		w.calls = slices.Delete(w.calls, i, i+1)
	}
}

func (w *world) didUser(a *Action) {
	for i := range w.user {
		q := &w.user[i]
		if q.kind == a.User {
			q.left = q.left[1:]
			q.next++
		}
	}
	switch a.User {
	case UserPrompt, UserContinue:
		w.open[a.Name] = true
		w.runs++
	case UserWaitForIdle, UserReset:
		w.open[a.Name] = true
	case UserSteer, UserFollowUp, UserAbort, UserClearQueue, UserSubscribe, UserUnsubscribe:
	}
}

// answered takes in the answer and reports whether nothing more can be said to
// the callback.
func (c *openCall) answered(a *Action) bool {
	c.options = nil
	switch c.kind {
	case callListener, callHook:
		return true
	case callTool:
		switch {
		case a.Answer.Partial != nil && c.settled:
			c.late++
		case a.Answer.Partial != nil:
			c.next++
		default:
			c.settled = true
		}
		return c.settled && c.late >= len(c.script.Late)
	case callModel:
		return c.streamed(a.Answer)
	}
	return true
}

func (c *openCall) streamed(a *trace.Answer) bool {
	if endsStream(a) || len(c.plan) == 0 { // none is left if the subject went another way than predicted
		return true
	}
	c.partial = a.Event.Partial
	c.plan = c.plan[1:]
	c.next++
	return false
}

// endsStream reports whether nothing follows the answer in its stream.
func endsStream(a *trace.Answer) bool {
	return a.Throw != nil || a.Ends || a.Event.Type == trace.StreamDone || a.Event.Type == trace.StreamError
}

// waiting names the callbacks that wait, in the order in which they began.
func (w *world) waiting() []string {
	var names []string
	for _, c := range w.calls {
		if !c.settled {
			names = append(names, c.name)
		}
	}
	return names
}

// pending names the callbacks that wait and the user actions that have not
// settled, in order of their names.
func (w *world) pending() []string {
	names := w.waiting()
	for name := range w.open {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// stalled reports whether the script itself lets a model request hang.
func (w *world) stalled() bool {
	return slices.ContainsFunc(w.calls, func(c *openCall) bool {
		return c.kind == callModel && len(c.plan) == 0 && !c.cancelled
	})
}
