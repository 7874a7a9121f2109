package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// This is a small agent loop: ask the model, run the tools that it calls, feed the
// results back, and tell listeners what happens. It is here to be judged before your
// own loop is; once that is joined in main.go, delete it. It has no types of its own
// for messages and events, and takes those of pi-conform.

// PI_CONFORM_PLANT=late-update makes the loop pass on progress updates of a tool that
// has returned already, so that you see what a finding looks like.
var lateUpdates = os.Getenv("PI_CONFORM_PLANT") == "late-update"

var errBusy = errors.New("a run is active")

// Tool is what the model may call.
type Tool struct {
	Name       string
	Parameters trace.Value // JSON Schema
	Sequential bool
	Execute    func(ctx context.Context, call *trace.Block, onUpdate func(*trace.Result)) (*trace.Result, error)
}

// Stream is one answer of the model as it comes.
type Stream interface {
	Next() (ev *trace.StreamEvent, ok bool, err error)
	Result() (*trace.Message, error)
}

// Change is what a hook makes of a call.
type Change = trace.HookAnswer

// Options are what an [Agent] calls out to. Hooks may be nil.
type Options struct {
	Model          string
	Tools          []*Tool
	Messages       []*trace.Message
	Sequential     bool
	Steering       string // how many queued messages are taken at a time
	FollowUps      string
	Stream         func(ctx context.Context, messages []*trace.Message) (Stream, error)
	BeforeToolCall func(ctx context.Context, c *Call) (*Change, error)
	AfterToolCall  func(ctx context.Context, c *Call) (*Change, error)
	OnPoll         func(queue string, drained []*trace.Message)
}

// Agent keeps the transcript, the queues and the listeners, and has at most one run
// at a time. What its methods use is guarded by mu, for a moment at a time; the
// tasks of a run take turns.
type Agent struct {
	Options
	turns turns

	mu        sync.Mutex
	state     trace.State
	messages  []*trace.Message
	steering  queue
	followUps queue
	listeners []*subscription
	last      int // number of the last subscription
	active    *run
}

type subscription struct {
	number int
	hear   func(context.Context, *trace.Event) error
}

// NewAgent makes an idle agent.
func NewAgent(o Options) *Agent {
	a := &Agent{Options: o, messages: slices.Clone(o.Messages)}
	a.steering.all, a.followUps.all = o.Steering == "all", o.FollowUps == "all"
	return a
}

// Prompt runs the loop on messages and waits until it has ended.
func (a *Agent) Prompt(messages []*trace.Message) error {
	return a.run(func() ([]*trace.Message, bool, error) { return messages, false, nil })
}

// Continue goes on from the transcript as it is, or from what is queued.
func (a *Agent) Continue() error {
	return a.run(func() (prompts []*trace.Message, steered bool, err error) {
		switch {
		case len(a.messages) == 0:
			return nil, false, errors.New("there is nothing to continue from")
		case a.messages[len(a.messages)-1].Role != trace.RoleAssistant:
			return nil, false, nil
		}
		if prompts = a.steering.drain(); len(prompts) > 0 {
			return prompts, true, nil
		}
		if prompts = a.followUps.drain(); len(prompts) > 0 {
			return prompts, false, nil
		}
		return nil, false, errors.New("the last message is the assistant's, and nothing is queued")
	})
}

// Steer queues a message for the next turn.
func (a *Agent) Steer(m *trace.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steering.put(m)
}

// FollowUp queues a message for when the agent would stop.
func (a *Agent) FollowUp(m *trace.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followUps.put(m)
}

// ClearQueues forgets what is queued.
func (a *Agent) ClearQueues() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steering.waiting, a.followUps.waiting = nil, nil
}

// Abort fires the signal of the active run.
func (a *Agent) Abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		a.active.cancel()
	}
}

// Reset clears transcript and queues.
func (a *Agent) Reset() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		return errBusy
	}
	a.messages, a.state = nil, trace.State{}
	a.steering.waiting, a.followUps.waiting = nil, nil
	return nil
}

// WaitForIdle waits until no run is active.
func (a *Agent) WaitForIdle() {
	a.mu.Lock()
	active := a.active
	a.mu.Unlock()
	if active != nil {
		<-active.ended
	}
}

// State is the state now.
func (a *Agent) State() trace.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state
	s.Messages = len(a.messages)
	if s.Messages > 0 {
		s.Last = a.messages[s.Messages-1].Tag()
	}
	return s
}

// Subscribe adds a listener after the others. It is called while no other task of
// the loop goes on; if it has to wait, it does so in Away.
func (a *Agent) Subscribe(hear func(context.Context, *trace.Event) error) (unsubscribe func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	s := &subscription{number: a.last, hear: hear}
	a.listeners = append(a.listeners, s)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.listeners = slices.DeleteFunc(a.listeners, func(l *subscription) bool { return l == s })
	}
}

// Away lets other tasks go on while wait waits.
func (a *Agent) Away(wait func()) {
	a.turns.leave()
	wait()
	<-a.turns.ask()
}

func (a *Agent) run(begin func() (prompts []*trace.Message, steered bool, err error)) error {
	r, err := a.activate(begin)
	if err != nil {
		return err
	}
	<-a.turns.ask()
	if err = r.main(); err != nil {
		err = r.fail(err)
	}
	a.deactivate()
	a.turns.leave()
	close(r.ended)
	return err
}

func (a *Agent) activate(begin func() ([]*trace.Message, bool, error)) (*run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		return nil, errBusy
	}
	prompts, steered, err := begin()
	if err != nil {
		return nil, err
	}
	r := &run{agent: a, prompts: prompts, steered: steered, added: slices.Clone(prompts), ended: make(chan struct{})}
	r.context = slices.Concat(a.messages, prompts)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	a.active = r
	a.state = trace.State{IsStreaming: true}
	return r, nil
}

func (a *Agent) deactivate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active.cancel()
	a.active = nil
	a.state = trace.State{Error: a.state.Error}
}

// reduce is what an event does to the state; it comes before any listener is told.
func (a *Agent) reduce(ev *trace.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.state
	switch ev.Type {
	case trace.MessageStart, trace.MessageUpdate:
		s.Streaming = ev.Message.Role
	case trace.MessageEnd:
		s.Streaming = ""
		a.messages = append(a.messages, ev.Message)
	case trace.ToolExecutionStart:
		s.Pending = append(slices.Clone(s.Pending), ev.ToolCallID)
	case trace.ToolExecutionEnd:
		s.Pending = slices.DeleteFunc(slices.Clone(s.Pending), func(id string) bool { return id == ev.ToolCallID })
	case trace.TurnEnd:
		if ev.Message.ErrorMessage != "" {
			s.Error = ev.Message.ErrorMessage
		}
	}
}

// listenerAfter is the first listener with a higher number: so those that come
// during a delivery are reached by it, and those that go are not.
func (a *Agent) listenerAfter(number int) *subscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.listeners, func(s *subscription) bool { return s.number > number })
	if i < 0 {
		return nil
	}
	return a.listeners[i]
}

// run is one run, from agent_start to agent_end.
type run struct {
	agent   *Agent
	ctx     context.Context
	cancel  context.CancelFunc
	prompts []*trace.Message
	steered bool             // the prompts come from the steering queue
	context []*trace.Message // what the next request is made of
	added   []*trace.Message // what agent_end tells
	over    bool
	ended   chan struct{}
}

func (r *run) aborted() bool { return r.ctx.Err() != nil }

func (r *run) main() error {
	if err := r.emit(&trace.Event{Type: trace.AgentStart}, &trace.Event{Type: trace.TurnStart}); err != nil {
		return err
	}
	if err := r.emitMessages(r.prompts); err != nil {
		return err
	}
	if err := r.turns(); err != nil {
		return err
	}
	err := r.emit(&trace.Event{Type: trace.AgentEnd, Messages: slices.Clip(r.added)})
	r.over = err == nil
	return err
}

// fail ends a run that broke with a message that says why.
func (r *run) fail(broken error) error {
	m := &trace.Message{
		Role: trace.RoleAssistant, Content: trace.TextContent(""), API: "scripted", Provider: "scripted", Model: r.agent.Model,
		StopReason: trace.StopError, ErrorMessage: broken.Error(), Timestamp: time.Now().UnixMilli(),
		Usage: trace.Value(`{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
			`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`),
	}
	if r.aborted() {
		m.StopReason = trace.StopAborted
	}
	err := r.emitMessages([]*trace.Message{m})
	if err == nil {
		err = r.emit(
			&trace.Event{Type: trace.TurnEnd, Message: m, ToolResults: []*trace.Message{}},
			&trace.Event{Type: trace.AgentEnd, Messages: []*trace.Message{m}},
		)
	}
	r.over = true
	return err
}

func (r *run) turns() error {
	var queued []*trace.Message
	if !r.steered {
		queued = r.poll("steering")
	}
	for first := true; ; first = false {
		if !first {
			if err := r.emit(&trace.Event{Type: trace.TurnStart}); err != nil {
				return err
			}
		}
		if err := r.emitMessages(queued); err != nil {
			return err
		}
		r.add(queued...)
		message, unanswered, err := r.turn()
		if err != nil || failed(message) {
			return err
		}
		queued = r.poll("steering")
		if unanswered || len(queued) > 0 {
			continue
		}
		if queued = r.poll("followUp"); len(queued) == 0 {
			return nil
		}
	}
}

// turn is one answer of the model, and what its tool calls come to.
func (r *run) turn() (message *trace.Message, unanswered bool, err error) {
	if message, err = r.request(); err != nil {
		return nil, false, err
	}
	r.add(message)
	results := []*trace.Message{}
	if calls := r.callsOf(message); len(calls) > 0 && !failed(message) {
		if calls, err = r.batch(message, calls); err != nil {
			return nil, false, err
		}
		for _, c := range calls {
			results = append(results, c.message)
			unanswered = unanswered || message.StopReason == trace.StopLength || !isTrue(c.Result.Terminate)
		}
		r.add(results...)
	}
	return message, unanswered, r.emit(&trace.Event{Type: trace.TurnEnd, Message: message, ToolResults: results})
}

// request passes the model's stream on. The next event is read when everybody has
// dealt with the last.
func (r *run) request() (*trace.Message, error) {
	var known []*trace.Message
	for _, m := range r.context {
		if m.Role == trace.RoleUser || m.Role == trace.RoleAssistant || m.Role == trace.RoleToolResult {
			known = append(known, m)
		}
	}
	stream, err := away(r.agent, func() (Stream, error) { return r.agent.Stream(r.ctx, known) })
	if err != nil {
		return nil, err
	}
	begun, err := r.pass(stream)
	if err != nil {
		return nil, err
	}
	message, err := stream.Result()
	if err != nil {
		return nil, err
	}
	if !begun {
		if err := r.emit(&trace.Event{Type: trace.MessageStart, Message: message}); err != nil {
			return nil, err
		}
	}
	return message, r.emit(&trace.Event{Type: trace.MessageEnd, Message: message})
}

func (r *run) pass(stream Stream) (begun bool, err error) {
	for {
		ev, err := away(r.agent, func() (*trace.StreamEvent, error) {
			ev, _, err := stream.Next()
			return ev, err
		})
		switch {
		case err != nil:
			return begun, err
		case ev == nil || ev.Type == trace.StreamDone || ev.Type == trace.StreamError:
			return begun, nil
		case ev.Type == trace.StreamStart:
			begun = true
			err = r.emit(&trace.Event{Type: trace.MessageStart, Message: ev.Partial})
		case begun && ev.IsDelta():
			err = r.emit(&trace.Event{Type: trace.MessageUpdate, Message: ev.Partial, StreamEvent: ev})
		}
		if err != nil {
			return begun, err
		}
	}
}

// batch answers calls; it gives those that were begun.
func (r *run) batch(message *trace.Message, calls []*Call) ([]*Call, error) {
	sequential := slices.ContainsFunc(calls, func(c *Call) bool { return c.tool != nil && c.tool.Sequential })
	switch {
	case message.StopReason == trace.StopLength:
		return calls, r.cutOff(calls)
	case sequential || r.agent.Sequential:
		return r.oneByOne(calls)
	}
	return r.together(calls)
}

// cutOff answers calls whose arguments may be incomplete, though they parse: none
// can be trusted.
func (r *run) cutOff(calls []*Call) error {
	for _, c := range calls {
		if err := c.emitStart(); err != nil {
			return err
		}
		c.fail(fmt.Sprintf("%s was not executed: the answer was cut off, so issue the call again", c.Block.Name))
		if err := errors.Join(c.emitEnd(), c.emitResult()); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) oneByOne(calls []*Call) ([]*Call, error) {
	for i, c := range calls {
		if err := c.emitStart(); err != nil {
			return nil, err
		}
		c.prepare()
		if err := c.execute(); err != nil {
			return nil, err
		}
		if err := c.emitEnd(); err != nil {
			return nil, err
		}
		if err := c.emitResult(); err != nil {
			return nil, err
		}
		if r.aborted() {
			return calls[:i+1], nil
		}
	}
	return calls, nil
}

// together prepares in order, executes together, and gives results in order.
func (r *run) together(calls []*Call) ([]*Call, error) {
	for i, c := range calls {
		if err := c.emitStart(); err != nil {
			return nil, err
		}
		c.prepare()
		if c.done {
			if err := c.emitEnd(); err != nil {
				return nil, err
			}
		}
		if r.aborted() {
			calls = calls[:i+1]
			break
		}
	}
	var tasks []*task
	for _, c := range calls {
		if !c.done {
			tasks = append(tasks, r.agent.spawn(c.executeAndEnd))
		}
	}
	if err := r.agent.join(tasks); err != nil {
		return nil, err
	}
	for _, c := range calls {
		if err := c.emitResult(); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

func (r *run) emit(events ...*trace.Event) error {
	for _, ev := range events {
		if r.over {
			return nil
		}
		r.agent.reduce(ev)
		for l := r.agent.listenerAfter(0); l != nil; l = r.agent.listenerAfter(l.number) {
			if err := l.hear(r.ctx, ev); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) emitMessages(messages []*trace.Message) error {
	for _, m := range messages {
		err := r.emit(&trace.Event{Type: trace.MessageStart, Message: m}, &trace.Event{Type: trace.MessageEnd, Message: m})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) add(messages ...*trace.Message) {
	r.context = append(r.context, messages...)
	r.added = append(r.added, messages...)
}

func (r *run) poll(name string) []*trace.Message {
	a := r.agent
	a.mu.Lock()
	q := &a.followUps
	if name == "steering" {
		q = &a.steering
	}
	drained := q.drain()
	a.mu.Unlock()
	a.OnPoll(name, drained)
	return drained
}

func failed(m *trace.Message) bool {
	return m.StopReason == trace.StopError || m.StopReason == trace.StopAborted
}

func isTrue(b *bool) bool { return b != nil && *b }

// Call is one tool call, from its start to its result message.
type Call struct {
	Assistant *trace.Message
	Block     *trace.Block
	Context   func() []*trace.Message
	Result    *trace.Result
	IsError   bool

	run     *run
	tool    *Tool
	done    bool // there is a result
	message *trace.Message
	closed  bool // to updates
	updates []*task
}

func (r *run) callsOf(m *trace.Message) []*Call {
	var calls []*Call
	for _, block := range m.ToolCalls() {
		c := &Call{Assistant: m, Block: block, Context: func() []*trace.Message { return r.context }, run: r}
		if i := slices.IndexFunc(r.agent.Tools, func(t *Tool) bool { return t.Name == block.Name }); i >= 0 {
			c.tool = r.agent.Tools[i]
		}
		calls = append(calls, c)
	}
	return calls
}

// prepare finds out whether the call is to be executed. Whatever goes wrong is its
// result.
func (c *Call) prepare() {
	if c.tool == nil {
		c.fail("there is no tool " + c.Block.Name)
		return
	}
	if fault := invalid(c.tool.Parameters, c.Block.Arguments); fault != "" {
		c.fail(fault)
		return
	}
	answer, err := c.hook(c.run.agent.BeforeToolCall)
	switch {
	case err != nil:
		c.fail(err.Error())
	case c.run.aborted():
		c.fail("the call was aborted")
	case answer.Block && answer.Reason == "":
		c.fail("the call was blocked")
	case answer.Block:
		c.fail(answer.Reason)
	}
	if answer.Block && isTrue(answer.Terminate) && !c.run.aborted() {
		c.Result.Terminate = answer.Terminate
	}
}

func (c *Call) hook(hook func(context.Context, *Call) (*Change, error)) (*Change, error) {
	if hook == nil {
		return &Change{}, nil
	}
	answer, err := away(c.run.agent, func() (*Change, error) { return hook(c.run.ctx, c) })
	if err != nil {
		return &Change{}, err
	}
	return answer, nil
}

// execute runs a call that was prepared. Its error is a listener's.
func (c *Call) execute() error {
	if c.done {
		return nil
	}
	result, err := away(c.run.agent, func() (*trace.Result, error) { return c.tool.Execute(c.run.ctx, c.Block, c.update) })
	c.closed = !lateUpdates
	c.settle(result, false)
	if err != nil {
		c.fail(err.Error())
	}
	if err := c.run.agent.join(c.updates); err != nil {
		return err
	}
	change, err := c.hook(c.run.agent.AfterToolCall)
	if err != nil {
		c.fail(err.Error())
		return nil
	}
	c.change(change)
	return nil
}

func (c *Call) executeAndEnd() error {
	if err := c.execute(); err != nil {
		return err
	}
	return c.emitEnd()
}

// update passes progress on. A tool may keep this function: what it says after it has
// returned is dropped.
func (c *Call) update(partial *trace.Result) {
	c.run.agent.spawn(func() error {
		if c.closed {
			return nil
		}
		delivery := &task{done: make(chan struct{})}
		defer close(delivery.done)
		c.updates = append(c.updates, delivery)
		delivery.err = c.run.emit(c.event(trace.ToolExecutionUpdate, func(ev *trace.Event) { ev.PartialResult = partial }))
		return nil
	})
}

func (c *Call) settle(result *trace.Result, isError bool) {
	c.Result, c.IsError, c.done = result, isError, true
}

func (c *Call) fail(text string) {
	c.settle(&trace.Result{Content: trace.TextContent(text), Details: trace.Value("{}")}, true)
}

// change puts each member that the hook gave in the place of the whole of what there
// was.
func (c *Call) change(with *Change) {
	changed := *c.Result
	if with.Content != nil {
		changed.Content = *with.Content
	}
	if given(with.Details) {
		changed.Details = with.Details
	}
	if given(with.Usage) {
		changed.Usage = with.Usage
	}
	if with.Terminate != nil {
		changed.Terminate = with.Terminate
	}
	if with.IsError != nil {
		c.IsError = *with.IsError
	}
	c.Result = &changed
}

func given(v trace.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

// event is one about this call.
func (c *Call) event(kind string, fill func(*trace.Event)) *trace.Event {
	ev := &trace.Event{Type: kind, ToolCallID: c.Block.ID, ToolName: c.Block.Name}
	if kind != trace.ToolExecutionEnd {
		ev.Args = c.Block.Arguments
	}
	fill(ev)
	return ev
}

func (c *Call) emitStart() error {
	return c.run.emit(c.event(trace.ToolExecutionStart, func(*trace.Event) {}))
}

func (c *Call) emitEnd() error {
	isError := c.IsError
	return c.run.emit(c.event(trace.ToolExecutionEnd, func(ev *trace.Event) { ev.Result, ev.IsError = c.Result, &isError }))
}

func (c *Call) emitResult() error {
	c.message = &trace.Message{
		Role: trace.RoleToolResult, ToolCallID: c.Block.ID, ToolName: c.Block.Name, Content: c.Result.Content,
		Details: c.Result.Details, Usage: c.Result.Usage, IsError: c.IsError, Timestamp: time.Now().UnixMilli(),
	}
	if c.message.Content.IsZero() {
		c.message.Content.Blocks = []trace.Block{}
	}
	return c.run.emitMessages([]*trace.Message{c.message})
}

// queue holds messages for later.
type queue struct {
	all     bool
	waiting []*trace.Message
}

func (q *queue) put(m *trace.Message) { q.waiting = append(q.waiting, m) }

func (q *queue) drain() []*trace.Message {
	n := len(q.waiting)
	if !q.all {
		n = min(n, 1)
	}
	drained := slices.Clone(q.waiting[:n])
	q.waiting = q.waiting[n:]
	return drained
}

// turns lets one task of the loop go on at a time, in the order in which they ask:
// so events reach the listeners in the order in which they happen.
type turns struct {
	mu    sync.Mutex
	busy  bool
	queue []chan struct{}
}

// ask gives a channel that is closed when it is the turn of whoever asked.
func (t *turns) ask() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := make(chan struct{})
	if t.busy {
		t.queue = append(t.queue, turn)
	} else {
		t.busy = true
		close(turn)
	}
	return turn
}

func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = len(t.queue) > 0
	if t.busy {
		close(t.queue[0])
		t.queue = t.queue[1:]
	}
}

// task is something that goes on at the same time.
type task struct {
	done chan struct{}
	err  error
}

func (a *Agent) spawn(f func() error) *task {
	t := &task{done: make(chan struct{})}
	turn := a.turns.ask()
	go func() {
		<-turn
		t.err = f()
		close(t.done)
		a.turns.leave()
	}()
	return t
}

// join waits for all tasks, also if one fails, and then fails with the first.
func (a *Agent) join(tasks []*task) (err error) {
	for _, t := range tasks {
		a.Away(func() { <-t.done })
		if err == nil {
			err = t.err
		}
	}
	return err
}

// away calls out: other tasks go on meanwhile.
func away[T any](a *Agent, f func() (T, error)) (answer T, err error) {
	a.Away(func() { answer, err = f() })
	return answer, err
}

// invalid says what is wrong with arguments: as much of JSON Schema as a toy needs.
func invalid(schema, arguments trace.Value) string {
	var s struct {
		Required   []string
		Properties map[string]struct{ Type string }
	}
	var args map[string]any
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return ""
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return err.Error()
	}
	for _, name := range s.Required {
		if _, ok := args[name]; !ok {
			return fmt.Sprintf("the argument %s is missing", name)
		}
	}
	for name, member := range s.Properties {
		value, ok := args[name]
		if kind := fmt.Sprintf("%T", value); ok && member.Type != "" && !strings.HasPrefix(kind, goTypes[member.Type]) {
			return fmt.Sprintf("the argument %s has to be a %s", name, member.Type)
		}
	}
	return ""
}

var goTypes = map[string]string{"number": "float64", "string": "string", "boolean": "bool", "object": "map", "array": "[]"}
