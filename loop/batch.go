package loop

import (
	"github.com/pi-conform/pi-conform/harness/trace"
)

// batch answers the calls of one message. It gives their result messages in
// source order (PAR-4), and whether all of them ask to end the tool cycle.
func (r *run) batch(message *trace.Message, calls []*trace.Block) (results []*trace.Message, terminate bool, err error) {
	switch {
	case message.StopReason == trace.StopLength && r.has(OnlyLastCallTruncated):
		return r.truncateLast(message, calls)
	case message.StopReason == trace.StopLength && !r.has(TruncatedExecuted):
		results, err = r.truncated(message, calls)
		return results, false, err
	case r.oneByOne(calls):
		return r.sequential(message, calls)
	}
	return r.parallel(message, calls)
}

// oneByOne: the setting, or one tool that has to run alone, makes the whole
// batch run one by one (PAR-7).
func (r *run) oneByOne(calls []*trace.Block) bool {
	if r.config.ToolExecution == Sequential && !r.has(SequentialSettingIgnored) || r.has(ParallelOneByOne) {
		return true
	}
	for _, c := range calls {
		if tool := r.tool(c.Name); tool != nil && tool.ExecutionMode == Sequential {
			return !r.has(SequentialToolIgnored)
		}
		if r.has(OnlyFirstModeLookedAt) {
			break
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
func (r *run) truncated(message *trace.Message, calls []*trace.Block) (results []*trace.Message, err error) {
	results = make([]*trace.Message, 0, len(calls))
	for _, block := range calls {
		c := &call{run: r, message: message, block: block}
		if err := c.emitStart(); err != nil {
			return nil, err
		}
		if r.has(TruncatedHooked) {
			c.prepare()
		}
		c.fail(c.truncation())
		c.isError = !r.has(TruncatedNotErrors)
		if r.has(TruncatedUnanswered) {
			if err := c.emitEnd(); err != nil {
				return nil, err
			}
			continue
		}
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
		c := &call{run: r, message: message, block: block, alone: true}
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
		if r.abortEndsBatch(SequentialAbortUnanswered) {
			break
		}
	}
	return results, r.allTerminate(calls), nil
}

// parallel prepares one call after the other in source order (PAR-1), runs
// those together that may run (PAR-2), and when all have ended gives their
// results in source order (PAR-4, PAR-5).
func (r *run) parallel(message *trace.Message, blocks []*trace.Block) (results []*trace.Message, terminate bool, err error) {
	n := len(blocks)
	b := executions{of: r, calls: make([]*call, 0, n), completed: make([]*call, 0, n), tasks: make([]Task, 0, n)}
	calls := r.memory.calls.List(n)[:n]
	for i, block := range r.inOrder(blocks) {
		c := &calls[i]
		c.run, c.message, c.block = r, message, block
		b.calls = append(b.calls, c)
		if err := c.begin(); err != nil {
			return nil, false, err
		}
		if err := c.endIfFailed(); err != nil {
			return nil, false, err
		}
		if r.abortEndsBatch(ParallelAbortUnanswered) {
			break
		}
		if r.has(BeginsBeforeAllPrepared) {
			b.start(c)
		}
	}
	if err := b.run(); err != nil {
		return nil, false, err
	}
	results = r.memory.list(n)
	for _, c := range b.answered() {
		result, err := c.emitResult()
		if err != nil {
			return nil, false, err
		}
		results = append(results, result)
	}
	return results, r.allTerminate(b.calls), nil
}

// executions are the calls of a batch that run together.
type executions struct {
	of        *run
	calls     []*call // in source order
	tasks     []Task
	completed []*call // in order of completion
}

// run executes the prepared calls and waits for all of them.
func (b *executions) run() error {
	if !b.of.has(BeginsBeforeAllPrepared) {
		for _, c := range b.calls {
			b.start(c)
		}
	}
	for _, task := range b.tasks {
		if b.abandoned() {
			break
		}
		Await(b.of.rt, task.Join)
	}
	for _, c := range b.calls {
		if c.broken {
			return errOver
		}
	}
	return b.emitLateEnds()
}

// start executes a prepared call, as a task of its own that ends with the call's
// end: so ends come in the order of completion (PAR-3).
func (b *executions) start(c *call) {
	if c.done {
		b.completed = append(b.completed, c)
		return
	}
	b.tasks = append(b.tasks, b.of.rt.Go(func() {
		if err := c.executeAndEnd(); err != nil {
			c.broken = true
			b.of.breakDown(err)
		}
		b.completed = append(b.completed, c)
	}))
}

// climb is how many turns of its event loop JavaScript takes to carry a
// rejection from a listener of one call up to the run.
const climb = 11

// breakDown ends the run because of what happened to one of several calls. While
// the error climbs, the other calls may still speak (edge 2).
func (r *run) breakDown(err error) {
	for range climb {
		yield(r.rt)
	}
	r.end(err)
}

// abortEndsBatch: up to edition 1.5 no call is begun after an abort (ABRT-6).
// From 1.6 each is begun and gets an error result (ABRT-5), unless the loop has
// the defect of leaving them unanswered.
func (r *run) abortEndsBatch(unanswered Defect) bool {
	return (r.is.abortEndsBatch || r.has(unanswered)) && r.aborted() && !r.has(AbortLeavesBatchRunning)
}

// allTerminate: the tool cycle ends early only if every result says so (TURN-7).
func (r *run) allTerminate(calls []*call) bool {
	for _, c := range calls {
		if says := r.terminates(c); says == r.has(TerminateIfAny) {
			return says
		}
	}
	return len(calls) > 0 && !r.has(TerminateIfAny)
}

// terminates: whether the call's result asks for the end of the tool cycle.
func (r *run) terminates(c *call) bool {
	if r.has(ErrorTerminates) && c.isError {
		return true
	}
	return c.result != nil && c.result.Terminate != nil && *c.result.Terminate && !r.has(TerminateIgnored)
}
