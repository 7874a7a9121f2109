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
	turn    int                  // script turns used
	open    []string             // user actions that are accepted and have not settled
	runs    int                  // how many of those are runs
	options []Action             // reused by enabled
	scripts map[string]*toolPlan // what executions do, by name; it holds for every run of the scenario
	spare   []*openCall          // to be used again
	counts  *counts              // kept for a policy that asks for them, else nil
	wake    time.Duration        // until the subject wakes; 0 if it does not sleep
}

// openCall is a callback that waits.
type openCall struct {
	name      string
	kind      callKind
	plan      []scriptedmodel.Step // model: what is left of the stream
	next      int                  // model: number of the next event; tool: of the next update
	partial   *trace.Message       // model: the last partial message
	tool      *toolPlan            // tool
	reply     *HookReply           // hook
	throw     string               // listener
	throws    bool                 // listener
	cancelled bool
	settled   bool      // tool: answered, but late updates are left
	late      int       // tool: number of the next late update
	options   []Action  // what it can be answered now; nil if that has to be found out
	spare     [3]Action // room for them
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
	all  []queued
}

// queued is one user action and its label.
type queued struct {
	*UserAction
	label string
}

func (q *userQueue) left() []queued { return q.all[q.next:] }

// begin takes up the scenario from its beginning.
func (w *world) begin() {
	w.spare = append(w.spare, w.calls...)
	w.calls, w.open, w.turn, w.runs, w.wake, w.counts = w.calls[:0], w.open[:0], 0, 0, 0, nil
	if w.user == nil {
		w.queueUp()
	}
	for i := range w.user {
		w.user[i].next = 0
	}
}

func (w *world) queueUp() {
	for i := range w.sc.User {
		a := &w.sc.User[i]
		k := slices.IndexFunc(w.user, func(q userQueue) bool { return q.kind == a.Kind })
		if k < 0 {
			k = len(w.user)
			w.user = append(w.user, userQueue{kind: a.Kind})
		}
		q := &w.user[k]
		label := string(q.kind) + "/" + strconv.Itoa(len(q.all))
		if label == "abort/0" {
			label = "abort"
		}
		q.all = append(q.all, queued{a, label})
	}
}

// observe takes in what the subject did.
func (w *world) observe(e *trace.Entry) {
	switch e.Kind {
	case trace.KindCall:
		if !e.Auto {
			w.call(e)
		} else if strings.HasPrefix(e.Name, "model/") {
			w.turn++
		}
	case trace.KindCancelled:
		if c := w.find(e.Name); c != nil {
			c.cancelled, c.options = true, nil
		}
	case trace.KindSettled:
		if i := slices.Index(w.open, e.Name); i >= 0 {
			w.open = slices.Delete(w.open, i, i+1)
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

// call takes in that a callback waits.
func (w *world) call(e *trace.Entry) {
	c := w.fresh()
	c.name, c.cancelled = e.Name, e.Aborted
	kind, rest, _ := strings.Cut(e.Name, "/")
	switch kind {
	case "listener":
		c.kind = callListener
		c.throw, c.throws = w.listenerThrow(rest)
	case "hook":
		c.kind = callHook
		name, key, _ := strings.Cut(rest, "/")
		reply := w.sc.hookReply(name, key)
		c.reply = &reply
	case "tool":
		c.kind = callTool
		c.tool = w.toolPlan(e.Name, rest)
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

// fresh gives a callback of which nothing is known.
func (w *world) fresh() *openCall {
	n := len(w.spare)
	if n == 0 {
		return &openCall{}
	}
	c := w.spare[n-1]
	w.spare = w.spare[:n-1]
	*c = openCall{}
	return c
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
		for i := range c.options {
			w.offer(&c.options[i])
		}
	}
	if w.wake > 0 {
		w.offer(&Action{Label: clockLabel(w.wake), Kind: ActionClock, Advance: w.wake, rank: rankClock})
	}
	for i := range w.user {
		w.offerNext(&w.user[i])
	}
	return w.options
}

// offer puts an action into its place in the canonical order.
func (w *world) offer(a *Action) {
	i := len(w.options)
	for i > 0 && a.before(&w.options[i-1]) {
		i--
	}
	w.options = slices.Insert(w.options, i, *a)
}

func (a *Action) before(b *Action) bool {
	return a.rank < b.rank || a.rank == b.rank && a.Label < b.Label
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
			throw := c.throw // c is used again, what was answered stays
			answer(rankListener, "/throw", &trace.Answer{Throw: &throw})
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
		return c.toolActions(to)
	case callModel:
		c.modelActions(answer)
	}
	return to
}

// toolPlan is what one execution of a tool does, with the actions that it takes.
type toolPlan struct {
	script        ToolScript
	updates, late []Action
	end, notice   Action
}

// toolPlan is what the execution of that name does, worked out once for all runs
// of the scenario.
func (w *world) toolPlan(name, key string) *toolPlan {
	if p := w.scripts[name]; p != nil {
		return p
	}
	p := &toolPlan{script: w.sc.toolScript(key)}
	answer := func(rank int, suffix string, a trace.Answer) Action {
		return Action{Label: name + suffix, Name: name, Kind: ActionAnswer, Answer: &a, rank: rank}
	}
	for i, partial := range p.script.Updates {
		p.updates = append(p.updates, answer(rankUpdate, "/update/"+strconv.Itoa(i), trace.Answer{Partial: partial}))
	}
	for i, partial := range p.script.Late {
		p.late = append(p.late, answer(rankLate, "/late/"+strconv.Itoa(i), trace.Answer{Partial: partial}))
	}
	p.end = answer(rankReturn, "/return", trace.Answer{Result: p.script.Return})
	if p.script.Throw != nil {
		p.end = answer(rankReturn, "/throw", trace.Answer{Throw: p.script.Throw})
	}
	p.notice = answer(rankNotice, "/aborted", trace.Answer{Throw: &noticed})
	w.scripts[name] = p
	return p
}

var noticed = "the tool noticed the abort"

func (c *openCall) toolActions(to []Action) []Action {
	add := func(a Action) {
		a.call = c
		to = append(to, a)
	}
	if c.settled {
		if c.late < len(c.tool.late) {
			add(c.tool.late[c.late])
		}
		return to
	}
	if c.next < len(c.tool.updates) {
		add(c.tool.updates[c.next])
	}
	add(c.tool.end)
	if c.tool.script.Notice && c.cancelled {
		add(c.tool.notice)
	}
	return to
}

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

// offerNext offers the next action of the queue, if it may happen now.
func (w *world) offerNext(q *userQueue) {
	if len(q.left()) == 0 {
		return
	}
	a := &q.left()[0]
	switch q.kind {
	case UserPrompt, UserContinue, UserReset:
		if w.runs > 0 && !a.Busy {
			return
		}
	case UserSteer, UserFollowUp, UserAbort, UserClearQueue, UserWaitForIdle, UserSubscribe, UserUnsubscribe:
	}
	w.offer(&Action{Label: a.label, Name: a.label, Kind: ActionUser, User: q.kind, Answer: &a.Answer, rank: rankUser, queue: q})
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
		w.spare = append(w.spare, w.calls[i])
		w.calls = slices.Delete(w.calls, i, i+1)
	}
}

func (w *world) didUser(a *Action) {
	for i := range w.user {
		q := &w.user[i]
		if q.kind == a.User {
			q.next++
		}
	}
	switch a.User {
	case UserPrompt, UserContinue:
		w.open = append(w.open, a.Name)
		w.runs++
	case UserWaitForIdle, UserReset:
		w.open = append(w.open, a.Name)
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
		return c.settled && c.late >= len(c.tool.late)
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
	names := append(w.waiting(), w.open...)
	slices.Sort(names)
	return names
}

// stalled reports whether the script itself lets a model request hang.
func (w *world) stalled() bool {
	return slices.ContainsFunc(w.calls, func(c *openCall) bool {
		return c.kind == callModel && len(c.plan) == 0 && !c.cancelled
	})
}
