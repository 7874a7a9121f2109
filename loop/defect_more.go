package loop

import (
	"context"
	"fmt"
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Defects of rules that would have no other: what each rule finds, and no rule
// before it.
const (
	DurationOfRefused        Defect = "duration-of-refused"
	CallsBegunFromTheEnd     Defect = "calls-begun-from-the-end"
	UpdateKeyedByTool        Defect = "update-keyed-by-tool"
	FailureHidesReason       Defect = "failure-hides-reason"
	UpdateAfterEnd           Defect = "update-after-end"
	EarlyUpdateLost          Defect = "update-before-first-wait-lost"
	UpdateWhenRefused        Defect = "update-when-refused"
	SlowUpdateLosesCall      Defect = "slow-update-loses-call-after-abort"
	AfterHookBeforeUpdates   Defect = "after-hook-before-updates"
	TruncatedUnnamed         Defect = "truncated-unnamed"
	TruncatedNotAskedAgain   Defect = "truncated-not-asked-again"
	TruncatedAnswerContinued Defect = "truncated-answer-continued"
	AbortedCallNotError      Defect = "aborted-call-not-error"
	AbortedCallsLeftOut      Defect = "aborted-calls-left-out"
	AbortHangsOnModel        Defect = "abort-hangs-on-model"
	AbortKeptForNextRun      Defect = "abort-kept-for-next-run"
	SecondAbortDropsTool     Defect = "second-abort-drops-tool"
	LastPollMissing          Defect = "last-poll-missing"
	QueuesClearedAtEnd       Defect = "queues-cleared-at-end"
	SteeringBeforePrompts    Defect = "steering-before-prompts"
	MessagesAfterListeners   Defect = "messages-after-listeners"
	PendingClearedByAnyEnd   Defect = "pending-cleared-by-any-end"
	StreamingKeptAfterEnd    Defect = "streaming-kept-after-end"
	ResultsStoredTwice       Defect = "results-stored-twice"
	IdleDuringAgentEnd       Defect = "idle-during-agent-end"
	PendingChangedInPlace    Defect = "pending-changed-in-place"
	StartToldLate            Defect = "start-told-late"
	StreamHeldByReader       Defect = "stream-held-by-reader"
	TurnEndNotAwaited        Defect = "turn-end-not-awaited"
	SubscribedTwice          Defect = "subscribed-twice"
	KeyLookedUpOnce          Defect = "key-looked-up-once"
	ConfiguredKeyWins        Defect = "configured-key-wins"
	FailedResultsNotTold     Defect = "failed-results-not-told"
	ToolsForgotten           Defect = "tools-forgotten-after-results"
)

var moreDefects = []Defect{
	DurationOfRefused,
	CallsBegunFromTheEnd, UpdateKeyedByTool, FailureHidesReason,
	UpdateAfterEnd, EarlyUpdateLost, SlowUpdateLosesCall, UpdateWhenRefused, AfterHookBeforeUpdates,
	TruncatedUnnamed, TruncatedNotAskedAgain, TruncatedAnswerContinued,
	AbortedCallNotError, AbortedCallsLeftOut, AbortHangsOnModel, AbortKeptForNextRun, SecondAbortDropsTool,
	LastPollMissing, QueuesClearedAtEnd, SteeringBeforePrompts,
	MessagesAfterListeners, PendingClearedByAnyEnd, StreamingKeptAfterEnd, ResultsStoredTwice, IdleDuringAgentEnd,
	PendingChangedInPlace,
	StartToldLate, StreamHeldByReader, TurnEndNotAwaited, SubscribedTwice,
	KeyLookedUpOnce, ConfiguredKeyWins, FailedResultsNotTold, ToolsForgotten,
}

// What these defects do. Without a defect each function is what the first
// sentence of its comment says.

// inOrder are the calls of a message in source order.
func (r *run) inOrder(blocks []*trace.Block) []*trace.Block {
	if !r.has(CallsBegunFromTheEnd) {
		return blocks
	}
	backwards := slices.Clone(blocks)
	slices.Reverse(backwards)
	return backwards
}

func executed(calls []*call) (kept []*call) {
	for _, c := range calls {
		if c.tool != nil {
			kept = append(kept, c)
		}
	}
	return kept
}

func notLost(calls []*call) (kept []*call) {
	for _, c := range calls {
		if !c.lost {
			kept = append(kept, c)
		}
	}
	return kept
}

// took is how long the execution of the call took; nil if there was none.
func (c *call) took() *int64 {
	if c.durationMs == nil && c.run.is.durations && c.run.has(DurationOfRefused) {
		return new(int64)
	}
	return c.durationMs
}

const textAfterFailure = "The call was left out, because the one before it has failed."

// failedBeside reports whether a call has failed that is of the same batch as
// another one; there may be none at all.
func (c *call) failedBeside(other *call) bool {
	return c != nil && c.done && c.isError && c.message == other.message
}

// truncation is the text for a call that was cut off: it names the tool, and asks
// for the call again.
func (c *call) truncation() string {
	switch {
	case c.run.has(TruncatedUnnamed):
		return "The call was not executed: the answer was cut off. Please issue it again, in full."
	case c.run.has(TruncatedNotAskedAgain):
		return fmt.Sprintf("The answer was cut off at the call of %q.", c.block.Name)
	}
	return fmt.Sprintf("The call of %q was not executed: the answer was cut off by the output limit, "+
		"so its arguments may be incomplete. Please issue it again, in full.", c.block.Name)
}

// updateID is the id of the call that an update is for.
func (c *call) updateID() string {
	if c.run.has(UpdateKeyedByTool) {
		return c.block.Name
	}
	return c.block.ID
}

// listenLater takes in the updates of a tool only once it has waited for
// something.
func (c *call) listenLater() {
	for range climb {
		yield(c.run.rt)
	}
	c.listens = true
}

// tellBacklog tells of the updates that were held back until the end of the call:
// none.
func (c *call) tellBacklog() error {
	for _, partial := range c.backlog {
		if err := c.emitUpdate(partial); err != nil {
			return err
		}
	}
	return nil
}

// hasty reports whether the call does not wait for its updates: it does.
func (u *updates) hasty() bool {
	r := u.call.run
	return r.has(UpdateNotAwaited) || r.has(AfterHookBeforeUpdates)
}

// tired reports whether the call is given up because of a listener that is slow on
// its updates: it is not.
func (u *updates) tired() bool {
	return u.telling > 0 && u.call.run.has(SlowUpdateLosesCall) && u.call.run.aborted()
}

// joinLate waits for the updates after the hook: there is nothing left to wait
// for.
func (u *updates) joinLate() error {
	if u.call.run.has(AfterHookBeforeUpdates) {
		return u.join()
	}
	return nil
}

// lookUp asks for the key.
func (r *run) lookUp(ask func(provider string) (string, error)) (string, error) {
	if r.notes.key != nil {
		return *r.notes.key, nil
	}
	key, err := ask(r.model.Provider)
	if r.has(KeyLookedUpOnce) {
		r.notes.key = &key
	}
	return key, err
}

// firstSteering is where steering is looked for before the first request.
func (r *run) firstSteering() func() ([]*trace.Message, error) {
	if r.has(SteeringBeforePrompts) {
		return nil // there was a look at it already
	}
	return r.config.Steering
}

// steeringAfter is where steering is looked for after a turn.
func (r *run) steeringAfter(t *turn) func() ([]*trace.Message, error) {
	if r.has(LastPollMissing) && !t.unanswered {
		return nil
	}
	return r.config.Steering
}

// writesOn reports whether the model is asked to go on with an answer that was
// cut off: it is not.
func (r *run) writesOn(t *turn) bool {
	return r.has(TruncatedAnswerContinued) && t.message.StopReason == trace.StopLength
}

// tools are those that the model is told of: the context's.
func (r *run) tools() []*Tool {
	n := len(r.context.Messages)
	if r.has(ToolsForgotten) && n > 0 && r.context.Messages[n-1].Role == trace.RoleToolResult {
		return nil
	}
	return r.context.Tools
}

func withoutErrors(results []*trace.Message) []*trace.Message {
	return slices.DeleteFunc(slices.Clone(results), func(m *trace.Message) bool { return m.IsError })
}

// burden puts on a run what it has from before: nothing. The lock is held.
func (a *Agent) burden(active *activeRun) {
	if a.abortDue {
		a.abortDue = false
		active.cancel()
	}
	if a.defects.Has(SecondAbortDropsTool) {
		active.hurried, active.hurry = context.WithCancel(context.Background())
	}
}

// abortLater comes when there is no run to abort: nothing happens.
func (a *Agent) abortLater() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.abortDue = a.defects.Has(AbortKeptForNextRun)
}

// abortAgain comes when a run is aborted a second time: nothing happens.
func (a *Agent) abortAgain(active *activeRun) {
	switch {
	case a.defects.Has(SecondAbortPanics):
		active.crash = errClosedTwice
	case active.hurry != nil:
		active.hurry()
	}
}

// forget comes at the end of a run: nothing happens. The lock is held.
func (a *Agent) forget() {
	if a.defects.Has(QueuesClearedAtEnd) {
		a.steering.clear()
		a.followUps.clear()
	}
}

// reduce takes an event into the state. The lock is held.
func (a *Agent) reduce(ev *trace.Event, pending bool) {
	if a.isLate(ev) {
		return
	}
	if a.defects.Has(PendingChangedInPlace) {
		a.state.pending = a.state.changedInPlace(ev)
	}
	a.state.reduce(ev, pending)
	switch {
	case ev.Type == trace.ToolExecutionEnd && a.defects.Has(PendingClearedByAnyEnd):
		a.state.pending = nil
	case ev.Type == trace.MessageEnd && a.defects.Has(StreamingKeptAfterEnd):
		a.state.streaming = ev.Message
	case ev.Type == trace.TurnEnd && a.defects.Has(ResultsStoredTwice):
		a.state.messages = append(a.state.messages, ev.ToolResults...)
	case ev.Type == trace.AgentEnd && a.defects.Has(IdleDuringAgentEnd):
		a.state.isStreaming = false
	}
}

// changedInPlace are the pending calls, in the list that others may have.
func (s *state) changedInPlace(ev *trace.Event) []string {
	i := slices.Index(s.pending, ev.ToolCallID)
	if ev.Type == trace.ToolExecutionEnd && i >= 0 {
		return slices.Delete(s.pending, i, i+1)
	}
	return s.pending
}

// reduceLate takes into the state what the listeners have been told of: nothing is
// left.
func (a *Agent) reduceLate(ev *trace.Event) {
	if !a.isLate(ev) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.reduce(ev, false)
}

func (a *Agent) isLate(ev *trace.Event) bool {
	return (ev.Type == trace.MessageStart || ev.Type == trace.MessageEnd) && a.defects.Has(MessagesAfterListeners)
}

// neglects reports whether the loop does not wait for the listeners of an event:
// it does.
func (a *Agent) neglects(ev *trace.Event) bool {
	return ev.Type == trace.AgentEnd && a.defects.Has(IdleBeforeListeners) ||
		ev.Type == trace.TurnEnd && a.defects.Has(TurnEndNotAwaited)
}

// tellLate tells the first listener now, and the others when the loop has gone on.
func (a *Agent) tellLate(ctx context.Context, ev *trace.Event) error {
	first := a.listenerAfter(0)
	if first == nil {
		return nil
	}
	a.rt.Go(func() {
		for range 3 * climb {
			yield(a.rt)
		}
		for l := a.listenerAfter(first.number); l != nil; l = a.listenerAfter(l.number) {
			_ = l.listen(ctx, ev)
		}
	})
	return first.listen(ctx, ev)
}
