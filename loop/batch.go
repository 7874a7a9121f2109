package loop

import (
	"fmt"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// batch answers the calls of one message. It gives their result messages in
// source order (PAR-4), and whether all of them ask to end the tool cycle.
func (r *run) batch(message *trace.Message, calls []*trace.Block) (results []*trace.Message, terminate bool, err error) {
	switch {
	case message.StopReason == trace.StopLength && !r.has(TruncatedExecuted):
		results, err = r.truncated(calls)
		return results, false, err
	case r.config.ToolExecution == Sequential || r.anySequential(calls):
		return r.sequential(message, calls)
	}
	return r.parallel(message, calls)
}

// anySequential: one tool that has to run alone makes the whole batch run one
// by one (PAR-7).
func (r *run) anySequential(calls []*trace.Block) bool {
	for _, c := range calls {
		if tool := r.tool(c.Name); tool != nil && tool.ExecutionMode == Sequential {
			return true
		}
	}
	return false
}

func (r *run) tool(name string) *Tool {
	for _, tool := range r.context.Tools {
		if tool.Name == name {
			return tool
		}
	}
	return nil
}

// truncated answers the calls of a message that was cut off by the token limit.
// Arguments that were cut off may still parse and validate, so no call of the
// message can be trusted and none is executed (LEN-1, LEN-2).
func (r *run) truncated(calls []*trace.Block) (results []*trace.Message, err error) {
	for _, block := range calls {
		c := &call{run: r, block: block}
		if err := c.emitStart(); err != nil {
			return nil, err
		}
		c.fail(fmt.Sprintf("The call of %q was not executed: the answer was cut off by the output limit, "+
			"so its arguments may be incomplete. Please issue it again, in full.", block.Name))
		result, err := c.emitEndAndResult()
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// sequential runs one call at a time, from its start to its result message.
func (r *run) sequential(message *trace.Message, blocks []*trace.Block) (results []*trace.Message, terminate bool, err error) {
	var calls []*call
	for _, block := range blocks {
		c := &call{run: r, message: message, block: block}
		calls = append(calls, c)
		if err := c.begin(); err != nil {
			return nil, false, err
		}
		if err := c.execute(); err != nil {
			return nil, false, err
		}
		result, err := c.emitEndAndResult()
		if err != nil {
			return nil, false, err
		}
		results = append(results, result)
		if r.abortEndsBatch() {
			break
		}
	}
	return results, allTerminate(calls), nil
}

// parallel prepares one call after the other in source order (PAR-1), runs
// those together that may run (PAR-2), and when all have ended gives their
// results in source order (PAR-4, PAR-5).
func (r *run) parallel(message *trace.Message, blocks []*trace.Block) (results []*trace.Message, terminate bool, err error) {
	var calls []*call
	for _, block := range blocks {
		c := &call{run: r, message: message, block: block}
		calls = append(calls, c)
		if err := c.begin(); err != nil {
			return nil, false, err
		}
		if err := c.endIfFailed(); err != nil {
			return nil, false, err
		}
		if r.abortEndsBatch() {
			break
		}
	}
	completed, err := r.together(calls)
	if err != nil {
		return nil, false, err
	}
	if r.has(ResultsInCompletionOrder) {
		calls = completed
	}
	for _, c := range calls {
		result, err := c.emitResult()
		if err != nil {
			return nil, false, err
		}
		results = append(results, result)
	}
	return results, allTerminate(calls), nil
}

// together executes the prepared calls, each as a task of its own that ends with
// the call's end: so ends come in the order of completion (PAR-3). It waits for
// all of them and gives the calls in that order.
func (r *run) together(calls []*call) (completed []*call, err error) {
	var joins []func()
	for _, c := range calls {
		if c.done {
			completed = append(completed, c)
			continue
		}
		joins = append(joins, r.rt.Go(func() {
			if err := c.executeAndEnd(); err != nil {
				c.broken = true
				r.breakDown(err)
			}
			completed = append(completed, c)
		}))
	}
	for _, join := range joins {
		r.rt.Await(join)
	}
	for _, c := range calls {
		if c.broken {
			return nil, errOver
		}
	}
	if r.has(EndsInSourceOrder) {
		err = emitEnds(calls)
	}
	return completed, err
}

// climb is how many turns of its event loop JavaScript takes to carry a
// rejection from a listener of one call up to the run.
const climb = 11

// breakDown ends the run because of what happened to one of several calls. While
// the error climbs, the other calls may still speak (edge 2).
func (r *run) breakDown(err error) {
	for range climb {
		r.rt.Await(nothing)
	}
	r.end(err)
}

func emitEnds(calls []*call) error {
	for _, c := range calls {
		if c.tool == nil {
			continue
		}
		if err := c.emitEnd(); err != nil {
			return err
		}
	}
	return nil
}

// abortEndsBatch: up to edition 1.5 no call is begun after an abort (ABRT-6).
// From 1.6 each is begun and gets an error result (ABRT-5).
func (r *run) abortEndsBatch() bool {
	return r.is.abortEndsBatch && r.aborted() && !r.has(AbortLeavesBatchRunning)
}

// allTerminate: the tool cycle ends early only if every result says so (TURN-7).
func allTerminate(calls []*call) bool {
	for _, c := range calls {
		if c.result.Terminate == nil || !*c.result.Terminate {
			return false
		}
	}
	return len(calls) > 0
}
