package loop

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// What the defects of a call do. Without a defect each of these functions is
// what the first sentence of its comment says.

const textSkipped = "The call was skipped because of a message in the queue."

var errNoContent = errors.New("panic: runtime error: the result has no content")

// prepared comes after the preparation of a call: nothing happens.
func (c *call) prepared() error {
	before := c.run.notes.last
	c.run.notes.note(c)
	switch {
	case c.run.has(FailureHidesReason) && c.done && before.failedBeside(c):
		c.fail(textAfterFailure)
	case c.run.has(UpdateWhenRefused) && c.done:
		return c.emitUpdate(c.result)
	case c.run.has(AfterHookForUnexecuted) && c.done:
		c.askAfter()
	case c.run.has(StartAgainAfterHook) && c.run.config.Hooks.BeforeToolCall != nil:
		return c.emitStart()
	}
	return nil
}

// skipped reports whether queued steering makes the call needless: it does not.
func (c *call) skipped() bool {
	steered := c.run.config.steered
	return c.run.has(SteeringSkipsBatch) && steered != nil && steered()
}

// startArguments are those that the model gave.
func (c *call) startArguments() trace.Value {
	if c.run.has(StartWithPreparedArguments) && c.args != nil {
		return c.args
	}
	return c.block.Arguments
}

// updateArguments are those that the model gave.
func (c *call) updateArguments() trace.Value {
	if c.run.has(UpdateWithPreparedArguments) {
		return c.args
	}
	return c.block.Arguments
}

// executed are the prepared arguments.
func (c *call) executed() trace.Value {
	if c.run.has(RawArgumentsExecuted) {
		return c.block.Arguments
	}
	return c.args
}

// errorDetails are empty.
func (c *call) errorDetails(text string) trace.Value {
	if c.run.has(ErrorsWithDetails) {
		return withMember(nil, "error", quoted(text))
	}
	return emptyObject
}

// answeredID is the id of the call.
func (c *call) answeredID() string {
	if c.run.has(ResultUnderToolName) {
		return c.block.Name
	}
	return c.block.ID
}

// hookContext is the run's context.
func (c *call) hookContext() *Context {
	if !c.run.has(HookSeesStaleContext) {
		return c.run.context
	}
	stale := *c.run.context
	stale.Messages = stale.Messages[:max(0, len(stale.Messages)-1)]
	return &stale
}

// endless reports whether the call gets no end, or has had it: false.
func (c *call) endless() bool {
	switch {
	case c.run.has(ResultsKeyedByTool):
		c.run.notes.keep(c)
	case c.run.has(EndBeforeAfterHook):
		return c.ended
	case c.run.has(SlowUpdateLosesCall):
		return c.lost
	case c.run.has(NoEndForThrowingTool):
		return c.tool != nil && c.isError
	case c.run.has(NoEndForUnknownTool):
		return c.run.tool(c.block.Name) == nil
	}
	return false
}

// told is the result that the model is told: the call's.
func (c *call) told() *trace.Result {
	switch {
	case c.run.has(HookChangeMissingFromMessage) && c.given != nil:
		return c.given
	case c.run.has(ResultsKeyedByTool):
		return c.run.notes.byTool[c.block.Name]
	}
	return c.result
}

// merged is the one object with the members of the other put into it, level by
// level.
func merged(into, from trace.Value) trace.Value {
	if into.Kind() != '{' || from.Kind() != '{' {
		return from
	}
	all := members(into)
	for name, value := range members(from) {
		if have := all[name]; have != nil {
			value = merged(have, value)
		}
		all[name] = value
	}
	return objectOf(all)
}

// await runs the tool and waits for it.
func (c *call) await() (*trace.Result, error) {
	switch {
	case c.run.has(AbortDropsTool):
		return c.awaitUntil(c.run.ctx)
	case c.run.has(SecondAbortDropsTool) && c.run.config.hurried != nil:
		return c.awaitUntil(c.run.config.hurried)
	case c.run.has(EarlyUpdateLost):
		c.run.rt.Go(c.listenLater)
	case c.run.has(RaceOnResults):
		return ask(c.run, func() (*trace.Result, error) {
			c.run.notes.results = append(c.run.notes.results, c.result) // its place, taken outside of loop code
			return c.perform()
		})
	}
	result, err := ask(c.run, func() (*trace.Result, error) { return c.perform() })
	if c.run.has(AbortHangsOnTool) && c.run.aborted() {
		c.run.hang()
	}
	return result, err
}

// awaitUntil waits for the tool only until the context is done.
func (c *call) awaitUntil(hurried context.Context) (result *trace.Result, err error) {
	err = fmt.Errorf("%s", textAborted)
	ctx, cancel := context.WithCancel(hurried)
	defer cancel()
	c.run.rt.Go(func() {
		r, e := ask(c.run, c.perform)
		if ctx.Err() == nil {
			result, err = r, e
			cancel()
		}
	})
	Await(c.run.rt, func() { _ = c.run.rt.Sleep(ctx, math.MaxInt64) })
	return result, err
}

// hang waits for something that does not come.
func (r *run) hang() { Await(r.rt, r.leak().Join) }

// leak leaves a task behind: one that waits for itself.
func (r *run) leak() (itself Task) {
	itself = r.rt.Go(func() {
		yield(r.rt)
		Await(r.rt, func() { itself.Join() })
	})
	return itself
}
