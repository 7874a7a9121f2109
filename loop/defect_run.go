package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// notes is what only defects remember of a run.
type notes struct {
	last       *call                    // the call that was begun last
	byTool     map[string]*trace.Result // results by the name of the tool
	gateClosed bool                     // one gate for all calls of a batch
	buffered   *updates                 // whose update waits in the one buffer
	buffer     *trace.Result            // that update
	results    []*trace.Result
	key        *string          // that was looked up
	untold     []*trace.Message // results that are told after turn_end
	started    bool             // the starts of a message's calls are out
}

// note takes in that a call has been begun.
func (n *notes) note(c *call) { n.last, n.gateClosed = c, false }

// keep takes in the result of a call.
func (n *notes) keep(c *call) {
	if n.byTool == nil {
		n.byTool = map[string]*trace.Result{}
	}
	n.byTool[c.block.Name] = c.result
}

// What the defects of a run do. Without a defect each of these functions is what
// the first sentence of its comment says.

// hookSignal is the run's signal.
func (r *run) hookSignal() context.Context { return r.signalUnless(SignalMissingFromHooks) }

// toolSignal is the run's signal.
func (r *run) toolSignal() context.Context { return r.signalUnless(SignalMissingFromTools) }

// modelSignal is the run's signal.
func (r *run) modelSignal() context.Context { return r.signalUnless(SignalMissingFromModel) }

func (r *run) signalUnless(d Defect) context.Context {
	if r.has(d) {
		return nil
	}
	return r.ctx
}

// now is the time on the runtime's clock.
func (r *run) now() time.Time {
	if r.has(WallClockUsed) {
		return time.Now()
	}
	return r.rt.Now()
}

// opening are agent_start and the first turn_start.
func (r *run) opening(prompts []*trace.Message) []*trace.Event {
	turn := r.event(trace.TurnStart)
	if r.has(AgentStartMissing) && prompts == nil {
		return []*trace.Event{turn}
	}
	return []*trace.Event{r.event(trace.AgentStart), turn}
}

// toldFirst are the messages that a run begins by telling of: the prompts.
func (r *run) toldFirst(prompts []*trace.Message) []*trace.Message {
	n := len(r.context.Messages)
	switch {
	case prompts == nil && n > 0 && r.has(ContinuationRepeats):
		return r.context.Messages[n-1:]
	case len(prompts) > 1 && r.has(OnlyFirstPromptTold):
		return prompts[:1]
	}
	return prompts
}

// toldLast are the messages of agent_end: those that the run has added.
func (r *run) toldLast() []*trace.Message {
	if r.has(TranscriptAtEnd) {
		return slices.Clip(r.context.Messages)
	}
	return slices.Clip(r.added)
}

// withoutImages are the messages with nothing but their text and calls.
func withoutImages(messages []*trace.Message) (kept []*trace.Message) {
	for _, m := range messages {
		without := *m
		without.Content.Blocks = slices.DeleteFunc(slices.Clone(m.Content.Blocks), func(b trace.Block) bool {
			return b.Type == trace.BlockImage
		})
		kept = append(kept, &without)
	}
	return kept
}

// believed are the calls of a message that are answered: all, whatever its stop
// reason says.
func (r *run) believed(m *trace.Message) []*trace.Block {
	if r.has(StopReasonBelieved) && m.StopReason == trace.StopStop {
		return nil
	}
	return m.ToolCalls()
}

// thinksOn reports whether a message without text and calls is no answer: it is
// one.
func (r *run) thinksOn(t *turn) bool {
	return r.has(ThinkingAskedAgain) && len(t.results) == 0 && t.message.Content.PlainText() == ""
}

// reorder comes when the results of a batch have joined the context: nothing
// happens.
func (r *run) reorder(results int) {
	n := len(r.context.Messages)
	switch {
	case r.has(LastResultMissingFromContext):
		r.context.Messages = r.context.Messages[:n-1]
	case r.has(ResultsReversedInContext):
		slices.Reverse(r.context.Messages[n-results:])
	case r.has(FailedResultsNotTold):
		r.context.Messages = append(r.context.Messages[:n-results], withoutErrors(r.context.Messages[n-results:])...)
	}
}

// tellLateResults tells of the results that were held back: none.
func (r *run) tellLateResults() error {
	for _, m := range r.notes.untold {
		if err := r.emitMessage(m); err != nil {
			return err
		}
	}
	r.notes.untold = nil
	return nil
}

// turnResults are the turn's results.
func (r *run) turnResults(t *turn) []*trace.Message {
	n := len(t.results)
	switch {
	case n == 0:
	case r.has(LastResultMissingFromTurnEnd):
		return t.results[:n-1]
	case r.has(TurnResultsSwapped):
		return append(t.results[n-1:n:n], t.results[:n-1]...)
	}
	return t.results
}

// executesCallsOfFailed reports whether a failed message's calls are executed
// all the same: they are not.
func (r *run) executesCallsOfFailed(t *turn) bool {
	switch {
	case r.has(ErrorMessageCallsExecuted):
		return t.message.StopReason == trace.StopError && len(t.message.ToolCalls()) > 0
	case r.has(AbortedMessageCalls):
		return t.message.StopReason == trace.StopAborted && len(t.message.ToolCalls()) > 0
	}
	return false
}

// breaksOff reports whether the run ends with the turn, whatever it brought: it
// does not.
func (r *run) breaksOff(t *turn) bool {
	return r.has(AbortEndsRunAtOnce) && r.aborted() ||
		r.has(TruncatedEndsRun) && t.unanswered && t.message.StopReason == trace.StopLength
}

// pollInVain looks at a queue although the run is over: it does not.
func (r *run) pollInVain(t *turn) {
	if r.has(SteeringDrainedByDyingRun) && r.failed(t) || r.has(PolledAfterStop) && !r.failed(t) {
		_, _ = r.poll(r.config.Steering)
	}
}

// steerNow takes queued messages between a message and the results of its calls.
func (r *run) steerNow() error {
	queued, err := r.poll(r.config.Steering)
	for _, m := range queued {
		if err := r.emitMessage(m); err != nil {
			return err
		}
		r.add(m)
	}
	return err
}

// addBeforeResults puts a message into the context before the results that stand
// last there.
func (r *run) addBeforeResults(m *trace.Message) {
	at := len(r.context.Messages)
	for at > 0 && r.context.Messages[at-1].Role == trace.RoleToolResult {
		at--
	}
	r.context.Messages = slices.Insert(slices.Clip(r.context.Messages), at, m)
	r.added = append(r.added, m)
}

// endWhilePreparing tells of a message's end, and prepares its first call while
// listeners are still busy with that.
func (r *run) endWhilePreparing(m *trace.Message) (err error) {
	told := r.rt.Go(func() { err = r.emit(r.about(m, trace.MessageEnd)) })
	if calls := m.ToolCalls(); len(calls) > 0 && m.StopReason == trace.StopToolUse {
		(&call{run: r, message: m, block: calls[0]}).prepare()
	}
	Await(r.rt, told.Join)
	return err
}

var errClosedTwice = errors.New("panic: close of closed channel")

// steered reports whether steering is queued.
func (a *Agent) steered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.steering.waiting) > 0
}

// queueInstead takes a prompt that comes at the wrong time for steering.
func (a *Agent) queueInstead(messages []*trace.Message, done func(error)) error {
	a.mu.Lock()
	a.steering.put(messages...)
	a.mu.Unlock()
	if done != nil {
		a.rt.Post(func() { done(nil) })
	}
	return nil
}

// stamp changes a list in place that is somebody else's.
func stamp(messages []*trace.Message, at time.Time) {
	for i, m := range messages {
		stamped := *m
		stamped.Timestamp = at.UnixMilli()
		messages[i] = &stamped
	}
}

// tellAtOnce calls the listeners at once; each of them still before the next
// event.
func (a *Agent) tellAtOnce(ctx context.Context, ev *trace.Event) (err error) {
	var tasks []Task
	for l := a.listenerAfter(0); l != nil; l = a.listenerAfter(l.number) {
		tasks = append(tasks, a.rt.Go(func() { err = errors.Join(err, l.listen(ctx, ev)) }))
	}
	for _, task := range tasks {
		Await(a.rt, task.Join)
	}
	return err
}

// tellByIndex calls the listeners by their index in a list that may get shorter
// meanwhile.
func (a *Agent) tellByIndex(ctx context.Context, ev *trace.Event) error {
	for i := 0; ; i++ {
		l := a.listenerAt(i)
		if l == nil {
			return nil
		}
		if i > 0 {
			yield(a.rt)
		}
		if err := l.listen(ctx, ev); err != nil {
			return err
		}
	}
}

func (a *Agent) listenerAt(i int) *subscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i >= len(a.listeners.subscribed) {
		return nil
	}
	return a.listeners.subscribed[i]
}
