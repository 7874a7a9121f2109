package chanloop

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// call is one tool call of a run.
type call struct {
	run  *run
	pub  Call
	tool *Tool

	result  *trace.Result // once there is one
	isError bool
	settled chan struct{} // closed when the tool has returned
}

func (r *run) callsOf(m *trace.Message) []*call {
	var calls []*call
	for _, block := range m.ToolCalls() {
		c := &call{run: r, pub: Call{Assistant: m, Block: block, History: slices.Clip(r.history)}, settled: make(chan struct{})}
		if i := slices.IndexFunc(r.o.Tools, func(t Tool) bool { return t.Name == block.Name }); i >= 0 {
			c.tool = &r.o.Tools[i]
		}
		calls = append(calls, c)
	}
	return calls
}

// batch answers the calls of a message: together, or one by one if the loop or one
// of the tools wants it so. Again is false if all results ask for the end.
func (r *run) batch(m *trace.Message, calls []*call) (results []*trace.Message, again bool, err error) {
	cutOff := m.StopReason == trace.StopLength
	groups := [][]*call{calls}
	if r.o.Sequential || cutOff || slices.ContainsFunc(calls, func(c *call) bool { return c.tool != nil && c.tool.Sequential }) {
		groups = nil
		for i := range calls {
			groups = append(groups, calls[i:i+1])
		}
	}
	for _, group := range groups {
		if group, err = r.together(group, cutOff); err != nil {
			return nil, false, err
		}
		for _, c := range group {
			answer := c.message()
			if err := r.tellMessages(answer); err != nil {
				return nil, false, err
			}
			results = append(results, answer)
			again = again || cutOff || c.result.Terminate == nil || !*c.result.Terminate
		}
		if r.aborted() && !cutOff {
			break
		}
	}
	return results, again, nil
}

// report is what the goroutine of a call has to tell that of the run.
type report struct {
	call    *call
	partial *trace.Result // a progress update
	ended   bool          // the call has its result; if neither, its tool has returned
}

// together prepares calls in order and then lets each run in a goroutine of its own.
// It gives those that were begun.
func (r *run) together(calls []*call, cutOff bool) ([]*call, error) {
	reports, over := make(chan report), make(chan struct{})
	defer close(over)
	for i, c := range calls {
		if err := r.tell(&trace.Event{
			Type: trace.ToolExecutionStart, ToolCallID: c.pub.Block.ID, ToolName: c.pub.Block.Name, Args: c.pub.Block.Arguments,
		}); err != nil {
			return nil, err
		}
		if c.prepare(cutOff); c.result != nil {
			if err := r.tell(c.end()); err != nil {
				return nil, err
			}
		}
		if r.aborted() && !cutOff {
			calls = calls[:i+1]
			break
		}
	}
	working := 0
	for _, c := range calls {
		if c.result == nil {
			working++
			go c.work(reports, over)
		}
	}
	for working > 0 {
		select {
		case rep := <-reports:
			if rep.ended {
				working--
			}
			if err := r.hearOf(rep); err != nil {
				return nil, err
			}
		case <-r.never():
			<-reports
		}
	}
	return calls, nil
}

// never is a channel of which nothing comes, unless that is planted.
func (r *run) never() <-chan struct{} {
	if r.o.Plant == Deadlock {
		return r.ctx.Done()
	}
	return nil
}

func (r *run) hearOf(rep report) error {
	block := rep.call.pub.Block
	switch {
	case rep.partial != nil:
		return r.tell(&trace.Event{
			Type: trace.ToolExecutionUpdate, ToolCallID: block.ID, ToolName: block.Name, Args: block.Arguments, PartialResult: rep.partial,
		})
	case rep.ended:
		return r.tell(rep.call.end())
	}
	return nil
}

// prepare finds out whether the call may run. Whatever speaks against it is its
// result.
func (c *call) prepare(cutOff bool) {
	name := c.pub.Block.Name
	switch {
	case cutOff:
		c.fail(fmt.Sprintf("The call of %s was not executed, as the answer was cut off. Issue it again.", name))
	case c.tool == nil:
		c.fail("There is no tool " + name + ".")
	default:
		if err := c.invalid(); err != nil {
			c.fail(err.Error())
			return
		}
		c.askBefore()
	}
}

func (c *call) askBefore() {
	answer := &trace.HookAnswer{}
	var err error
	if before := c.run.o.BeforeToolCall; before != nil {
		answer, err = before(c.run.ctx, c.pub)
	}
	switch {
	case err != nil:
		c.fail(err.Error())
	case c.run.aborted():
		c.fail("The call was aborted.")
	case answer.Block:
		reason := answer.Reason
		if reason == "" {
			reason = "The call was blocked."
		}
		c.fail(reason)
		if answer.Terminate != nil && *answer.Terminate {
			c.result.Terminate = answer.Terminate
		}
	}
}

// work runs the tool and has the result looked over. It is the call's goroutine.
func (c *call) work(reports chan<- report, over <-chan struct{}) {
	if c.run.o.Plant == DataRace {
		c.run.begun++
	}
	if c.run.o.Plant == Leak {
		go func() { <-make(chan struct{}) }()
	}
	send := func(rep report) (sent bool) {
		select {
		case reports <- rep:
			return true
		case <-over:
			return false
		}
	}
	c.execute(func(partial *trace.Result) { c.update(partial, reports, over) })
	// When the next report is taken, everybody has been told of the updates.
	if c.run.o.AfterToolCall != nil {
		if !send(report{call: c}) {
			return
		}
		c.askAfter()
	}
	send(report{call: c, ended: true})
}

// update passes progress on. A tool that goes on to speak after it has returned is
// not heard.
func (c *call) update(partial *trace.Result, reports chan<- report, over <-chan struct{}) {
	if c.run.o.Plant != SelectRace {
		select {
		case <-c.settled:
			return
		default:
		}
	}
	select {
	case reports <- report{call: c, partial: partial}:
	case <-c.settled:
	case <-over:
	}
}

// execute runs the tool for as long as it may take.
func (c *call) execute(onUpdate func(*trace.Result)) {
	type outcome struct {
		result *trace.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := c.tool.Execute(c.run.ctx, c.pub, onUpdate)
		close(c.settled)
		done <- outcome{result, err}
	}()
	timer := time.NewTimer(c.run.o.ToolTimeout)
	defer timer.Stop()
	select {
	case o := <-done:
		if c.result = o.result; o.err != nil {
			c.fail(o.err.Error())
		}
	case <-timer.C:
		c.fail(fmt.Sprintf("The tool took longer than %v.", c.run.o.ToolTimeout))
	}
	if c.isError && c.run.o.Plant == Panic {
		panic("planted: a tool call failed")
	}
}

func (c *call) askAfter() {
	answer, err := c.run.o.AfterToolCall(c.run.ctx, c.pub, c.result, c.isError)
	if err != nil {
		c.fail(err.Error())
		return
	}
	changed := *c.result
	if answer.Content != nil {
		changed.Content = *answer.Content
	}
	if given(answer.Details) {
		changed.Details = answer.Details
	}
	if given(answer.Usage) {
		changed.Usage = answer.Usage
	}
	if answer.Terminate != nil {
		changed.Terminate = answer.Terminate
	}
	if answer.IsError != nil {
		c.isError = *answer.IsError
	}
	c.result = &changed
}

func given(v trace.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

func (c *call) fail(text string) {
	c.result, c.isError = &trace.Result{Content: trace.TextContent(text), Details: trace.Value("{}")}, true
}

func (c *call) end() *trace.Event {
	isError := c.isError
	return &trace.Event{
		Type: trace.ToolExecutionEnd, ToolCallID: c.pub.Block.ID, ToolName: c.pub.Block.Name, Result: c.result, IsError: &isError,
	}
}

func (c *call) message() *trace.Message {
	m := &trace.Message{
		Role: trace.RoleToolResult, ToolCallID: c.pub.Block.ID, ToolName: c.pub.Block.Name, Content: c.result.Content,
		Details: c.result.Details, Usage: c.result.Usage, IsError: c.isError, Timestamp: time.Now().UnixMilli(),
	}
	if m.Content.IsZero() {
		m.Content.Blocks = []trace.Block{}
	}
	return m
}

// invalid says what is wrong with the arguments.
func (c *call) invalid() error {
	if c.tool.Parameters == nil {
		return nil
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.tool.Parameters))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("tool.json", schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile("tool.json")
	if err != nil {
		return err
	}
	args, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.pub.Block.Arguments))
	if err != nil {
		return errors.New("the arguments are no JSON")
	}
	return compiled.Validate(args)
}
