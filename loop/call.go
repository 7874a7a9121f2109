package loop

import (
	"errors"
	"fmt"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// call is one tool call on its way from start to result message. Its outcome is
// there once done is set: immediately, if preparation fails, or after execution.
type call struct {
	run     *run
	message *trace.Message // the assistant's
	block   *trace.Block   // as the model gave it
	tool    *Tool          // once the call may be executed
	args    trace.Value    // prepared and validated

	done       bool
	result     *trace.Result
	isError    bool
	durationMs *int64 // of an executed call, where the edition has it
	updates    updates

	broken bool // a listener failed on one of its events

	// What only defects ask for.
	alone   bool            // no other call of the batch runs meanwhile
	ended   bool            // its end is out
	given   *trace.Result   // what the tool gave, before afterToolCall
	early   *trace.Message  // the result message, if it is out before its turn
	lost    bool            // it is given up, and gets neither end nor result
	listens bool            // the updates of its tool are taken in
	backlog []*trace.Result // its updates that are told after its end
}

// The loop's own texts.
const (
	textAborted = "The call was aborted before it was executed."
	textBlocked = "The call was blocked."
)

var (
	yes, no     = true, false
	emptyObject = trace.Value("{}")
)

// begin announces the call and prepares it. The start comes first, so that a
// user interface shows the call while a hook thinks about it (TOOL-4).
func (c *call) begin() error {
	if c.run.has(StartAfterPreparation) || c.run.has(StartWithPreparedArguments) {
		c.prepare()
		return c.emitStart()
	}
	if err := c.emitStart(); err != nil {
		return err
	}
	c.prepare()
	return c.prepared()
}

// prepare looks up the tool, prepares and validates the arguments and asks
// beforeToolCall, in that order (TOOL-6). Whatever goes wrong is the call's
// outcome, and the call is not executed (TOOL-7).
func (c *call) prepare() {
	if !c.run.is.abortEndsBatch && c.refused() {
		c.fail(textAborted) // no hook, no look-up: just an answer (ABRT-5)
		return
	}
	if c.skipped() {
		c.fail(textSkipped)
		return
	}
	tool := c.run.tool(c.block.Name)
	if tool == nil {
		c.fail(fmt.Sprintf("There is no tool named %q.", c.block.Name))
		return
	}
	err := c.prepareArguments(tool)
	if err == nil {
		err = c.askBefore()
	}
	if err != nil {
		c.fail(messageOf(err))
	}
	if c.done {
		return
	}
	if c.run.is.abortEndsBatch && c.refusedAfterHook() {
		c.fail(textAborted) // (ABRT-2)
		return
	}
	c.tool = tool
}

// refused: an aborted run executes no call (ABRT-2, ABRT-3).
func (c *call) refused() bool {
	return c.run.aborted() && !c.run.has(AbortIgnoredBeforeExecute) && !c.run.has(AbortLeavesBatchRunning)
}

func (c *call) refusedAfterHook() bool {
	return c.refused() && !(c.alone && c.run.has(NoAbortCheckAfterHook))
}

func (c *call) prepareArguments(tool *Tool) error {
	c.args = c.block.Arguments
	if tool.PrepareArguments != nil {
		err := guard(func() (err error) {
			c.args, err = tool.PrepareArguments(c.block)
			return err
		})
		if err != nil {
			return err
		}
	}
	if c.run.has(RawArgumentsValidated) {
		return validate(tool, c.block.Arguments)
	}
	return validate(tool, c.args)
}

// askBefore lets the hook block the call (TOOL-8). If the run was aborted
// meanwhile, the hook's answer no longer counts (ABRT-3).
func (c *call) askBefore() error {
	hook := c.run.config.Hooks.BeforeToolCall
	if hook == nil {
		return nil
	}
	answer, err := ask(c.run, func() (*BeforeToolCallResult, error) { return hook(c.run.hookSignal(), c.context()) })
	switch {
	case err != nil:
		return err
	case c.refusedAfterHook():
		c.fail(textAborted)
		c.isError = !c.run.has(AbortedCallNotError)
	case answer != nil && answer.Block && !c.run.has(BlockedCallExecutes):
		c.blockedBy(answer)
	}
	return nil
}

func (c *call) blockedBy(answer *BeforeToolCallResult) {
	reason := answer.Reason
	if reason == "" {
		reason = textBlocked
	}
	c.fail(reason)
	if answer.Terminate || c.run.has(BlockedTerminates) {
		c.result.Terminate = &yes
	}
}

func (c *call) context() BeforeToolCallContext {
	return BeforeToolCallContext{Assistant: c.message, Call: c.block, Args: c.args, Context: c.hookContext()}
}

// execute runs a prepared call and asks afterToolCall. An error that it returns
// is not the tool's but a listener's, and breaks the run.
func (c *call) execute() error {
	if c.done {
		return nil
	}
	begun := c.run.now()
	c.updates.call = c
	result, err := c.await()
	c.measure(begun)
	if broken := c.updates.finish(err); broken != nil {
		return broken
	}
	if err != nil && c.run.has(ToolErrorBreaksRun) {
		return err
	}
	c.take(result, err)
	if c.run.has(EndBeforeAfterHook) {
		if err := c.emitEnd(); err != nil {
			return err
		}
	}
	c.askAfter()
	return c.updates.joinLate()
}

// perform calls the tool.
func (c *call) perform() (*trace.Result, error) {
	execution := Execution{ID: c.block.ID, Args: c.executed(), Call: c.block}
	return c.tool.Execute(c.run.toolSignal(), execution, c.updates.report)
}

// executeAndEnd is what a call in parallel does in its own task.
func (c *call) executeAndEnd() error {
	if !c.run.is.executesPreparedAfterAbort && c.refused() && !c.run.has(NoAbortCheckWhenBegun) {
		c.tool = nil
		c.fail(textAborted) // it was prepared, and then a later call's preparation aborted (ABRT-2)
		return c.emitEnd()
	}
	if err := c.execute(); err != nil {
		return err
	}
	switch {
	case c.run.has(EndsInSourceOrder):
		return nil
	case c.run.has(ResultBeforeBatchOver):
		m, err := c.emitEndAndResult()
		c.early = m
		return err
	}
	return c.emitEnd()
}

// endIfFailed emits the end of a call that failed in preparation at once,
// before the next call's start (PAR-6).
func (c *call) endIfFailed() error {
	if !c.done || c.run.has(FailureEndHeldBack) {
		return nil
	}
	return c.emitEnd()
}

func (c *call) measure(begun time.Time) {
	if !c.run.is.durations {
		return
	}
	ms := c.run.now().Sub(begun).Round(time.Millisecond).Milliseconds()
	c.durationMs = &ms
}

var errNoResult = errors.New("the tool returned no result")

// take makes the outcome of what the tool gave (TOOL-11, TOOL-19).
func (c *call) take(result *trace.Result, err error) {
	if err == nil && result == nil && !c.run.is.emptyResultFailsRun {
		err = errNoResult
	}
	if err != nil {
		c.fail(messageOf(err))
		c.isError = !c.run.has(ThrownNotError)
		return
	}
	said := result != nil && result.IsError != nil && *result.IsError
	c.result, c.isError, c.done = result, c.run.is.toolSaysIsError && said && !c.run.has(ToolIsErrorIgnored), true
}

// fail makes an error outcome of the loop's own (TOOL-18).
func (c *call) fail(text string) {
	c.result = &trace.Result{Content: trace.TextContent(text), Details: c.errorDetails(text)}
	c.isError, c.done = true, true
}

// askAfter lets the hook change the outcome of an executed call. If it fails,
// that is the outcome (TOOL-12).
func (c *call) askAfter() {
	hook := c.run.config.Hooks.AfterToolCall
	if hook == nil {
		return
	}
	answer, err := ask(c.run, func() (*AfterToolCallResult, error) {
		return hook(c.run.hookSignal(), AfterToolCallContext{BeforeToolCallContext: c.context(), Result: c.result, IsError: c.isError})
	})
	if err == nil && answer != nil && c.result == nil {
		err = errNoResult // there is nothing to change
	}
	switch {
	case err != nil && c.run.has(AfterHookErrorIgnored):
	case err != nil:
		c.fail(messageOf(err))
	case answer != nil:
		c.change(answer)
	}
}

// change replaces what the hook gave, each as a whole, never merged (TOOL-10).
func (c *call) change(answer *AfterToolCallResult) {
	c.given = c.result
	changed := *c.result
	if answer.Content != nil {
		changed.Content = *answer.Content
		if c.run.is.structuredContent {
			changed.Extra = withoutMember(changed.Extra, "structuredContent")
		}
	}
	if given(answer.Details) {
		changed.Details = answer.Details
		if c.run.has(AfterHookMergesDetails) {
			changed.Details = merged(c.result.Details, answer.Details)
		}
	}
	if given(answer.Usage) {
		changed.Usage = answer.Usage
	}
	if answer.Terminate != nil || c.run.has(AfterHookDropsTerminate) {
		changed.Terminate = answer.Terminate
	}
	if answer.IsError != nil {
		c.isError = *answer.IsError
	}
	c.result = &changed
}

// given: null is as good as absent.
func given(v trace.Value) bool { return v != nil && v.Kind() != 'n' }

// event is a new event of that type about the call.
func (c *call) event(kind string) *trace.Event {
	ev := c.run.event(kind)
	ev.ToolCallID, ev.ToolName = c.block.ID, c.block.Name
	return ev
}

// emitStart gives the arguments as the model gave them, not as they will be
// used: they are all that is known by now (TOOL-5).
func (c *call) emitStart() error {
	if c.run.notes.started {
		return nil
	}
	ev := c.event(trace.ToolExecutionStart)
	ev.Args = c.startArguments()
	return c.run.emit(ev)
}

func (c *call) emitUpdate(partial *trace.Result) error {
	c = c.run.updated(c)
	if c.run.has(ProgressAsMessageUpdate) {
		return c.run.emit(asUpdate(c.message, partial.Content))
	}
	ev := c.event(trace.ToolExecutionUpdate)
	ev.ToolCallID, ev.Args, ev.PartialResult = c.updateID(), c.updateArguments(), partial
	return c.run.emit(ev)
}

func (c *call) emitEnd() error {
	if c.endless() {
		return nil
	}
	c.ended = true
	isError := &no
	if c.isError {
		isError = &yes
	}
	ev := c.event(trace.ToolExecutionEnd)
	ev.Result, ev.IsError, ev.DurationMs = c.result, isError, c.took()
	err := c.run.emit(ev)
	if err == nil {
		err = c.tellBacklog()
	}
	return err
}

// emitResult puts the outcome into the transcript: a card in a user interface
// settles first, history after it (TOOL-9).
func (c *call) emitResult() (*trace.Message, error) {
	if c.early != nil {
		return c.early, nil
	}
	m, err := c.resultMessage()
	if err != nil {
		return nil, err
	}
	if c.run.has(TurnEndBeforeResults) {
		c.run.notes.untold = append(c.run.notes.untold, m)
		return m, nil
	}
	if err := c.run.emitMessage(m); err != nil {
		return nil, err
	}
	if c.run.has(ResultEndTwice) {
		err = c.run.emit(c.run.about(m, trace.MessageEnd))
	}
	return m, err
}

func (c *call) emitEndAndResult() (*trace.Message, error) {
	if err := c.emitEnd(); err != nil {
		return nil, err
	}
	return c.emitResult()
}

// resultMessage is the outcome as the model gets to see it (TOOL-13).
func (c *call) resultMessage() (*trace.Message, error) {
	if c.result == nil {
		return nil, errNoResult // (edge 15)
	}
	result := c.told()
	m := c.run.memory.messages.New()
	*m = trace.Message{
		Role: trace.RoleToolResult, ToolCallID: c.answeredID(), ToolName: c.block.Name,
		Content: result.Content, Details: result.Details, Usage: result.Usage, IsError: c.isError,
		Timestamp: c.run.now().UnixMilli(),
	}
	if m.Content.IsZero() && c.run.has(NoContentBreaksRun) {
		return nil, errNoContent
	}
	if m.Content.IsZero() {
		m.Content.Blocks = []trace.Block{} // no content must not become null in a transcript
	}
	if c.run.is.addedToolNames {
		if names := member(result.Extra, "addedToolNames"); len(names) > 0 && string(names) != "[]" {
			m.Extra = withMember(nil, "addedToolNames", names)
		}
	}
	if c.durationMs != nil {
		m.Extra = withMember(nil, "durationMs", number(*c.durationMs))
	}
	return m, nil
}
