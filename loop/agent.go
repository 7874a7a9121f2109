package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/lean"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Options are what an [Agent] is made of. Only Stream is required.
type Options struct {
	Runtime       Runtime         // Goroutines if nil
	Edition       edition.Edition // the default one if empty
	SystemPrompt  string
	Model         Model
	Level         string // thinking level; empty or "off" means none
	Tools         []*Tool
	Messages      []*trace.Message // the transcript to begin with
	Stream        StreamFunc
	Hooks         Hooks
	ToolExecution string // Parallel if empty
	SteeringMode  string // OneAtATime if empty
	FollowUpMode  string // OneAtATime if empty
	APIKey        string // used if Hooks.GetAPIKey gives none; the npm agent has no such setting
	// Polled, if not nil, sees what each look of the loop at a queue has drained.
	// Queue is trace.HookPollSteering or trace.HookPollFollowUp. It is loop code.
	// What Continue takes from a queue to begin a run is no such look.
	Polled  func(queue string, drained []*trace.Message)
	Memory  *Memory // a new one if nil
	Defects Defects
}

// Agent runs the loop on a transcript of its own. It keeps the state of the run,
// the queues of messages for later, and the listeners.
//
// Its methods may be called from anywhere, also from listeners, hooks and tools.
// Those that wait ([Agent.PromptText], [Agent.PromptMessages], [Agent.Continue],
// [Agent.WaitForIdle]) must not be called from loop code; the methods that begin
// with Begin do the same without waiting.
type Agent struct {
	rt      Runtime
	is      behaviour
	stream  StreamFunc
	hooks   Hooks
	polled  func(string, []*trace.Message)
	apiKey  string
	mode    string // of tool execution
	edition edition.Edition
	memory  *Memory
	defects Defects

	// The lock is held for a few instructions at a time, never while waiting or
	// calling out.
	mu        lean.Lock
	state     state
	steering  queue
	followUps queue
	listeners listeners
	active    *activeRun

	abortDue bool // the next run is going to be aborted; only a defect does that
}

// activeRun is what there is as long as a run is active (RUN-4).
type activeRun struct {
	ctx     context.Context
	cancel  context.CancelFunc
	waiters []func() // who waits for idle

	// What only defects ask for.
	failed  bool            // it broke outside the protocol
	crash   error           // nothing can be told any more, because of this
	hurried context.Context // done once the run has been aborted twice
	hurry   func()
}

// The reasons to refuse.
var (
	ErrBusy       = errors.New("the agent is busy with a run: steer it, queue a follow-up, or wait until it is idle")
	errNoRun      = errors.New("an event outside of any run")
	errPromptPart = errors.New("the system prompt is part of the transcript in this edition: add a system message")
)

// NewAgent makes an agent. It is idle until it is prompted.
func NewAgent(o Options) *Agent {
	a := &Agent{
		rt: o.Runtime, is: behaviourOf(o.Edition), stream: o.Stream, hooks: o.Hooks, polled: o.Polled,
		apiKey: o.APIKey, mode: o.ToolExecution, edition: o.Edition, memory: o.Memory, defects: o.Defects,
		steering: queue{mode: o.SteeringMode}, followUps: queue{mode: o.FollowUpMode},
	}
	if a.rt == nil {
		a.rt = Goroutines()
	}
	if a.memory == nil {
		a.memory = &Memory{}
	}
	if rt, ok := a.rt.(interface{ Alone() bool }); ok && rt.Alone() {
		a.mu.Alone()
	}
	a.state = state{
		memory: a.memory, systemPrompt: o.SystemPrompt, model: o.Model, level: o.Level,
		tools: slices.Clone(o.Tools), messages: withRoom(o.Messages),
	}
	if a.is.systemMessages {
		a.state.openTranscript()
	}
	return a
}

// UserMessage is a prompt of text and images as one message: the text first, the
// images in order (RUN-12).
func UserMessage(at time.Time, text string, images ...trace.Block) *trace.Message {
	content := trace.TextContent(text)
	content.Blocks = append(content.Blocks, images...)
	return &trace.Message{Role: trace.RoleUser, Content: content, Timestamp: at.UnixMilli()}
}

// PromptText prompts with text and images and waits for the run; see
// [Agent.PromptMessages].
func (a *Agent) PromptText(text string, images ...trace.Block) error {
	return a.PromptMessages(UserMessage(a.rt.Now(), text, images...))
}

// PromptMessages runs the loop on the messages, taken as they are, and waits
// until the agent is idle again. It returns ErrBusy if a run is active. A run
// that fails is not an error of the prompt: the transcript ends with what went
// wrong, and so does State().Error. Only if a listener fails while it is told of
// such a failure is that error returned.
func (a *Agent) PromptMessages(messages ...*trace.Message) error {
	return a.wait(func(done func(error)) error { return a.BeginPrompt(messages, done) })
}

// Continue goes on from the transcript as it is and waits like
// [Agent.PromptMessages]. If its last message is the assistant's, queued
// messages become the prompt; without any it is refused.
func (a *Agent) Continue() error { return a.wait(a.BeginContinue) }

// WaitForIdle waits until no run is active and every listener of agent_end is done.
func (a *Agent) WaitForIdle() {
	_ = a.wait(func(done func(error)) error {
		a.BeginWaitForIdle(func() { done(nil) })
		return nil
	})
}

// wait waits until done has been called, or begin has refused.
func (a *Agent) wait(begin func(done func(error)) error) error {
	settled := make(chan error, 1)
	if err := begin(func(err error) { settled <- err }); err != nil {
		return err
	}
	return <-settled
}

// BeginPrompt begins a run on the messages, or refuses with an error. Done, if
// not nil, is called as loop code when the run has ended.
func (a *Agent) BeginPrompt(messages []*trace.Message, done func(error)) error {
	active, err := a.activate(func() error { return nil })
	if err != nil && a.defects.Has(BusyPromptQueued) {
		return a.queueInstead(messages, done)
	}
	if err != nil {
		return err
	}
	prompts := append([]*trace.Message{}, messages...)
	if a.defects.Has(CallersMessagesChanged) {
		stamp(messages, a.rt.Now())
	}
	if a.defects.Has(ImagesDropped) {
		prompts = withoutImages(prompts)
	}
	a.run(active, prompts, false, done)
	return nil
}

// BeginContinue is [Agent.Continue] without waiting.
func (a *Agent) BeginContinue(done func(error)) error {
	var prompts []*trace.Message
	var steered bool
	active, err := a.activate(func() (err error) {
		prompts, steered, err = a.continuation()
		return err
	})
	if err != nil {
		return err
	}
	a.run(active, prompts, steered, done)
	return nil
}

// continuation says what a continuation goes on with: nothing but the transcript
// (RUN-11), or one batch of queued messages, steering first (RUN-10), or an error
// (RUN-9). It is called with the lock held.
func (a *Agent) continuation() (prompts []*trace.Message, steered bool, err error) {
	if a.state.empty() {
		return nil, false, ErrNoMessages
	}
	if err := continuable(a.state.messages); err == nil {
		return nil, false, nil
	}
	if prompts = a.steering.drain(); len(prompts) > 0 {
		return prompts, true, nil
	}
	if prompts = a.followUps.drain(); len(prompts) > 0 {
		return prompts, false, nil
	}
	if a.defects.Has(ContinueAfterAnswer) {
		return nil, false, nil
	}
	return nil, false, ErrLastAssistant
}

// BeginWaitForIdle calls done as loop code as soon as no run is active: at once
// if none is now (RUN-6).
func (a *Agent) BeginWaitForIdle(done func()) {
	a.mu.Lock()
	active := a.active
	if active != nil {
		active.waiters = append(active.waiters, done)
	}
	a.mu.Unlock()
	if active == nil && !a.defects.Has(IdleWaitHangs) {
		a.rt.Post(done)
	}
}

// activate makes a run the active one, unless there is one (RUN-4) or check
// refuses. The error of the last run is forgotten (STATE-6).
func (a *Agent) activate(check func() error) (*activeRun, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil && !a.defects.Has(ConcurrentPromptAccepted) {
		return nil, ErrBusy
	}
	if err := check(); err != nil {
		return nil, err
	}
	active := &activeRun{}
	active.ctx, active.cancel = context.WithCancel(context.Background())
	a.burden(active)
	a.active = active
	failure := a.state.err
	a.state.begin()
	if a.defects.Has(ErrorKeptByNextRun) {
		a.state.err = failure
	}
	return active, nil
}

// run starts the bare loop on a copy of the transcript: what the loop appends to
// its context and what message_end appends here are two lists (STATE-5, CTX-3).
func (a *Agent) run(active *activeRun, prompts []*trace.Message, steered bool, done func(error)) {
	a.mu.Lock()
	c := a.state.context()
	config := &Config{
		Edition: a.edition, Model: a.state.model, Level: a.state.level, Stream: a.stream, Hooks: a.hooks,
		ToolExecution: a.mode, APIKey: a.apiKey, Memory: a.memory, Defects: a.defects, steered: a.steered, hurried: active.hurried,
	}
	a.mu.Unlock()
	config.Steering = a.poll(&a.steering, trace.HookPollSteering, steered && !a.defects.Has(ContinuePollsAtOnce))
	config.FollowUp = a.poll(&a.followUps, trace.HookPollFollowUp, false)
	newRun(active.ctx, a.rt, c, config, a.process, func(err error) {
		if err != nil {
			err = a.fail(active, err)
		}
		a.finish(active)
		if done != nil {
			done(err)
		}
	}).start(prompts)
}

// poll is a look at a queue. The first look at the steering queue is left out if
// the run was begun with steering (RUN-10): one-at-a-time would become two.
func (a *Agent) poll(q *queue, name string, skip bool) func() ([]*trace.Message, error) {
	return func() ([]*trace.Message, error) {
		if skip {
			skip = false
			return nil, nil
		}
		a.mu.Lock()
		drained := q.drain()
		if a.defects.Has(TwoAtATime) {
			drained = append(drained, q.drain()...)
		}
		a.mu.Unlock()
		if a.polled != nil {
			a.polled(name, drained)
		}
		return drained, nil
	}
}

// process takes an event of the loop. State changes before anybody is told of
// the event (STATE-1). Then the listeners are called one after the other
// (LIS-1), with the signal of the run that is active now: a call that was left
// over from a broken run speaks into the next run, or into nothing (edge 14).
func (a *Agent) process(ev *trace.Event) error {
	reduced := !a.defects.Has(PendingAfterListeners)
	a.mu.Lock()
	a.reduce(ev, reduced)
	active := a.active
	a.mu.Unlock()
	switch {
	case active == nil:
		return errNoRun
	case active.crash != nil:
		return active.crash
	}
	if a.neglects(ev) {
		a.rt.Go(func() { _ = a.tell(active.ctx, ev) })
		return nil
	}
	err := a.tell(active.ctx, ev)
	if !reduced {
		a.mu.Lock()
		a.state.reducePending(ev)
		a.mu.Unlock()
	}
	a.reduceLate(ev)
	return err
}

// tell calls the listeners. One that fails keeps the event from the later ones.
func (a *Agent) tell(ctx context.Context, ev *trace.Event) error {
	switch {
	case a.defects.Has(SignalMissingFromListeners):
		ctx = nil
	case a.defects.Has(ListenersAtOnce):
		return a.tellAtOnce(ctx, ev)
	case a.defects.Has(StartToldLate) && ev.Type == trace.ToolExecutionStart:
		return a.tellLate(ctx, ev)
	case a.defects.Has(UnsubscribeSkipsNext):
		return a.tellByIndex(ctx, ev)
	}
	for l := a.listenerAfter(0); l != nil; {
		if err := l.listen(ctx, ev); err != nil {
			return err
		}
		if l = a.listenerAfter(l.number); l != nil {
			yield(a.rt) // other tasks may tell their events in between (LIS-2, edge 13)
		}
	}
	return nil
}

func (a *Agent) listenerAfter(number int) *subscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.listeners.after(number)
}

// fail closes a run that broke outside the protocol with a message that says so
// (RUN-7). What was open stays so (edges 4, 11). A listener that fails here too
// has the last word: the sequence stops, and its error is the prompt's.
func (a *Agent) fail(active *activeRun, err error) error {
	active.failed = true
	if a.defects.Has(FailureUntold) {
		return err
	}
	m := a.failureMessage(active, err)
	for _, ev := range []*trace.Event{
		{Type: trace.MessageStart, Message: m},
		{Type: trace.MessageEnd, Message: m},
		{Type: trace.TurnEnd, Message: m, ToolResults: []*trace.Message{}},
		{Type: trace.AgentEnd, Messages: []*trace.Message{m}}, // (edge 3: perhaps the second)
	} {
		if err := guard(func() error { return a.process(ev) }); err != nil {
			return err
		}
	}
	return nil
}

var emptyUsage = trace.Value(`{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`)

func (a *Agent) failureMessage(active *activeRun, err error) *trace.Message {
	stop := trace.StopError
	if active.ctx.Err() != nil {
		stop = trace.StopAborted
	}
	model := a.Model()
	return &trace.Message{
		Role: trace.RoleAssistant, Content: trace.TextContent(""),
		API: model.API, Provider: model.Provider, Model: model.ID,
		StopReason: stop, ErrorMessage: messageOf(err), Usage: emptyUsage,
		Timestamp: a.rt.Now().UnixMilli(),
	}
}

// finish makes the agent idle (RUN-5, RUN-8) and lets those know who wait for it.
func (a *Agent) finish(active *activeRun) {
	a.mu.Lock()
	if a.active == active {
		a.active = nil
		pending := a.state.pending
		a.state.end()
		a.forget()
		if active.failed && a.defects.Has(PendingKeptAfterFailure) {
			a.state.pending = pending
		}
	}
	waiters := active.waiters
	active.waiters = nil
	a.mu.Unlock()
	for _, done := range waiters {
		done()
	}
}

// Steer queues a message that joins the transcript after the current turn (QUE-1).
func (a *Agent) Steer(m *trace.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steering.put(m)
}

// FollowUp queues a message for when the agent would otherwise stop (QUE-4).
func (a *Agent) FollowUp(m *trace.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followUps.put(m)
}

// ClearQueues forgets all queued messages.
func (a *Agent) ClearQueues() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steering.clear()
	a.followUps.clear()
}

// HasQueued reports whether messages are queued.
func (a *Agent) HasQueued() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.steering.waiting) > 0 || len(a.followUps.waiting) > 0
}

// Abort fires the signal of the active run; without one it does nothing (ABRT-8).
func (a *Agent) Abort() {
	a.mu.Lock()
	active := a.active
	a.mu.Unlock()
	if active == nil {
		a.abortLater()
		return
	}
	if active.ctx.Err() != nil {
		a.abortAgain(active)
	}
	active.cancel()
}

// Reset clears transcript, queues and error. During a run it is refused (RUN-13).
func (a *Agent) Reset() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil && !a.defects.Has(ResetDuringRun) {
		return ErrBusy
	}
	a.state.reset(a.is.systemMessages)
	a.steering.clear()
	a.followUps.clear()
	return nil
}

// Subscribe adds a listener. Subscribing the same one twice counts once (LIS-7).
func (a *Agent) Subscribe(l Listener) (unsubscribe func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.defects.Has(SubscribedTwice) {
		a.listeners.put(l)
	} else {
		a.listeners.add(l)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.listeners.remove(l)
	}
}
