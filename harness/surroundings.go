package harness

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// Loop is a loop in process, joined to its [Surroundings].
type Loop interface {
	// User begins a user action. It must not wait for it. A prompt, continue,
	// waitForIdle and reset are reported by [Surroundings.Settled] under their
	// name once they have settled; name is empty for an abort that comes from a
	// callback.
	User(name string, kind UserKind, a *trace.Answer)
}

// Adapter makes a loop for a scenario. It registers a first listener that calls
// [Surroundings.Event], and then the scenario's listeners that are not late.
type Adapter func(s *Surroundings) (Loop, error)

// Gate is a place where a callback waits.
type Gate interface {
	Wait()
	Open()
}

// Surroundings are what a loop in process is surrounded by: its model, tools,
// hooks and listeners. They do what an adapter library does in another
// language: make the names, answer at once what is not gated, hold back what
// is, and note everything.
//
// The methods that wait do so on a [Gate]; whether that is a coroutine or a
// goroutine is the driver's business. They may be called by several goroutines.
type Surroundings struct {
	Scenario *Scenario

	newGate func() Gate
	loop    Loop

	mu      sync.Mutex
	out     []trace.Entry
	spare   []trace.Entry // takes turns with out
	used    []string      // names of tool and hook calls so far, for ~1, ~2, …
	counts  []count       // how often a numbered name was used
	open    []*pending    // in the order in which they began
	tools   []*toolCall
	turn    int // script turns used
	events  int
	closing bool
	kept    kept
	sleeps  []time.Time // when each sleeper wakes

	// Racy says that tasks run at once, so that of the calls of one message any could
	// be the first to call a tool or a hook, and of tools that are answered at once any
	// the first to return. They then wait until the subject is at rest and go on one by
	// one, in source order, by [Surroundings.LetOneOn].
	Racy     bool
	ids      []string // of the calls of the latest message
	arrivals []*arrival
}

// arrival is a call that waits for its turn.
type arrival struct {
	base   string
	begun  bool // and is about to go on; else it waits for its name
	place  int  // of its id among those of its message
	source Source
	gate   Gate
	name   string
}

// compare puts all that begin before any that goes on, each in source order.
func (a *arrival) compare(b *arrival) int {
	switch {
	case a.begun != b.begun && a.begun:
		return 1
	case a.begun != b.begun:
		return -1
	case a.place != b.place:
		return a.place - b.place
	}
	return int(a.source - b.source)
}

type count struct {
	name string
	n    int
}

// pending is a callback that waits for an answer.
type pending struct {
	name      string
	ctx       context.Context // its signal, or nil
	cancelled bool
	gate      Gate
	answer    *trace.Answer // once the gate is open
	stream    *Stream       // of a model request
	tool      *toolCall     // of an execution; it has a gate of its own
}

// toolCall is one execution of a tool. What it is to do comes to it as answers,
// and where goroutines run it, it does so itself: a loop may let a tool wait until
// an update was passed on.
type toolCall struct {
	name     string
	onUpdate func(*trace.Result)
	todo     []*trace.Answer
	gate     Gate // it waits there for more; nil while it is busy
	returned bool
}

// NewSurroundings gives the surroundings of one case. Gates are made by newGate.
func NewSurroundings(sc *Scenario, newGate func() Gate) *Surroundings {
	return &Surroundings{Scenario: sc, newGate: newGate}
}

// Reuse makes them the surroundings of another case, of which nothing has begun,
// and saves making new ones. Nothing of the last case may still run.
func (s *Surroundings) Reuse(sc *Scenario) {
	s.Scenario, s.loop = sc, nil
	s.out, s.spare, s.used, s.counts = s.out[:0], s.spare[:0], s.used[:0], s.counts[:0]
	s.open, s.tools, s.arrivals = s.open[:0], s.tools[:0], s.arrivals[:0]
	s.ids, s.sleeps = nil, nil
	s.turn, s.events, s.closing = 0, 0, false
	s.kept = kept{}
}

// Attach tells the surroundings which loop they surround.
func (s *Surroundings) Attach(l Loop) { s.loop = l }

// errClosing is what every callback is answered once the case is over.
var errClosing = errors.New("the case is over")

func (s *Surroundings) note(e trace.Entry) { s.out = append(s.out, e) }

// Source says which call is meant where several have one id: its place among
// the calls of its message. It only matters to loops that are [Surroundings.Racy].
type Source int

// nameOf gives a call of the tool call id its name, as soon as it is its turn. It is
// called without the lock, as it may have to wait.
func (s *Surroundings) nameOf(base, id string, source Source) string {
	s.mu.Lock()
	if !s.Racy || s.closing {
		defer s.mu.Unlock()
		return s.unique(base)
	}
	return s.arrive(&arrival{base: base}, id, source)
}

// turnOf waits until it is the turn of a call that has begun to go on.
func (s *Surroundings) turnOf(id string, source Source) {
	s.mu.Lock()
	if !s.Racy || s.closing {
		s.mu.Unlock()
		return
	}
	s.arrive(&arrival{begun: true}, id, source)
}

// arrive waits until a call is let on; it is called with the lock held, and lets
// go of it.
func (s *Surroundings) arrive(a *arrival, id string, source Source) (name string) {
	a.place, a.source, a.gate = slices.Index(s.ids, id), source, s.newGate()
	s.arrivals = append(s.arrivals, a)
	s.mu.Unlock()
	a.gate.Wait()
	return a.name
}

// LetOneOn lets the first of the calls that wait for their turn go on, and
// reports whether there was any. The subject has to be at rest.
func (s *Surroundings) LetOneOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrivals) == 0 {
		return false
	}
	first := slices.MinFunc(s.arrivals, (*arrival).compare)
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a *arrival) bool { return a == first })
	s.letOn(first)
	return true
}

func (s *Surroundings) letOn(a *arrival) {
	if !a.begun {
		a.name = s.unique(a.base)
	}
	a.gate.Open()
}

// noteCalls notes the ids of the calls of a message.
func (s *Surroundings) noteCalls(ev *trace.Event) {
	if !s.Racy || ev.Type != trace.MessageEnd || ev.Message.Role != trace.RoleAssistant {
		return
	}
	s.ids = nil
	for _, call := range ev.Message.ToolCalls() {
		s.ids = append(s.ids, call.ID)
	}
}

// unique gives the name, with ~1, ~2, … if it was used before.
func (s *Surroundings) unique(name string) string {
	n := 0
	for _, used := range s.used {
		if used == name {
			n++
		}
	}
	s.used = append(s.used, name)
	if n == 0 {
		return name
	}
	return name + "~" + strconv.Itoa(n)
}

// numbered gives the name with how often it was used before.
func (s *Surroundings) numbered(name string) string {
	for i := range s.counts {
		if s.counts[i].name == name {
			s.counts[i].n++
			return name + "/" + strconv.Itoa(s.counts[i].n)
		}
	}
	s.counts = append(s.counts, count{name: name})
	return name + "/0"
}

// wait notes a gated call and waits for its answer.
func (s *Surroundings) wait(ctx context.Context, p *pending, payload *trace.Payload) *trace.Answer {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return closed()
	}
	aborted := ctx != nil && ctx.Err() != nil
	p.ctx, p.cancelled, p.gate = ctx, aborted, s.newGate()
	s.note(trace.Entry{Kind: trace.KindCall, Name: p.name, Payload: payload, Aborted: aborted})
	s.open = append(s.open, p)
	s.mu.Unlock()
	p.gate.Wait()
	return p.answer
}

func closed() *trace.Answer {
	message := errClosing.Error()
	return &trace.Answer{Throw: &message}
}

// answered notes a call that is answered at once.
func (s *Surroundings) answered(ctx context.Context, name string, payload *trace.Payload, a *trace.Answer) {
	aborted := ctx != nil && ctx.Err() != nil
	s.mu.Lock()
	s.note(trace.Entry{Kind: trace.KindCall, Name: name, Payload: payload, Auto: true, Answer: a, Aborted: aborted})
	s.mu.Unlock()
	if a.Abort {
		s.loop.User("", UserAbort, nil)
	}
}

func thrown(a *trace.Answer) error {
	if a.Throw == nil {
		return nil
	}
	return errors.New(*a.Throw)
}

// Event notes an event as the first listener sees it. State is nil where the
// loop has none.
func (s *Surroundings) Event(ev *trace.Event, state *trace.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteCalls(ev)
	s.note(trace.Entry{Kind: trace.KindEvent, N: s.events, Event: ev, State: state})
	if s.Scenario.Keep {
		s.kept.event(s.events, ev, state)
	}
	s.events++
}

// Settled notes that a user action has settled.
func (s *Surroundings) Settled(name string, outcome trace.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	e := trace.Entry{Kind: trace.KindSettled, Name: name, Outcome: outcome}
	if err != nil {
		e.Message = err.Error()
	}
	s.note(e)
	s.orderSettled()
	if s.Scenario.Keep && isRun(name) && outcome != trace.OutcomeRefused {
		s.compareKept()
	}
}

// orderSettled puts those who wait for idle before the run that they waited for,
// where both settle together: tasks that run at once say so in any order. A session
// is idle only after its prompt has returned.
func (s *Surroundings) orderSettled() {
	last := len(s.out) - 1
	if !s.Racy || s.Scenario.Form == trace.FormSession || isRun(s.out[last].Name) {
		return
	}
	for i := last; i > 0 && (s.out[i-1].Kind == trace.KindRetained || s.settledAfter(i-1, i)); i-- {
		s.out[i-1], s.out[i] = s.out[i], s.out[i-1]
	}
}

// settledAfter reports whether what settled at i belongs after what did at j.
func (s *Surroundings) settledAfter(i, j int) bool {
	a, b := &s.out[i], &s.out[j]
	return a.Kind == trace.KindSettled && (isRun(a.Name) || a.Name > b.Name)
}

// compareKept notes what a run has changed of what others hold.
func (s *Surroundings) compareKept() {
	if changed := s.kept.changed(); len(changed) > 0 {
		s.note(trace.Entry{Kind: trace.KindRetained, Changed: changed})
	}
}

// Polled notes that a queue was polled and what it gave.
func (s *Surroundings) Polled(hook string, drained []*trace.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	if drained == nil {
		drained = []*trace.Message{} // polled and empty, not unknown
	}
	s.note(trace.Entry{
		Kind: trace.KindCall, Name: s.numbered("hook/" + hook), Auto: true,
		Payload: &trace.Payload{}, Answer: &trace.Answer{Messages: drained},
	})
}

// Hook is a call of the hook of that name that belongs to no tool call.
func (s *Surroundings) Hook(ctx context.Context, hook string, payload *trace.Payload) (*trace.HookAnswer, error) {
	s.mu.Lock()
	name := s.numbered("hook/" + hook)
	s.mu.Unlock()
	return s.hook(ctx, hook, name, payload)
}

// CallHook is a call of the hook of that name that belongs to the tool call of
// the payload.
func (s *Surroundings) CallHook(ctx context.Context, hook string, payload *trace.Payload, source Source) (*trace.HookAnswer, error) {
	id := payload.ToolCallID
	return s.hook(ctx, hook, s.nameOf("hook/"+hook+"/"+id, id, source), payload)
}

func (s *Surroundings) hook(ctx context.Context, hook, name string, payload *trace.Payload) (*trace.HookAnswer, error) {
	answer := s.hookAnswer(ctx, hook, name, payload)
	if answer.Hook == nil {
		return &trace.HookAnswer{}, thrown(answer)
	}
	return answer.Hook, thrown(answer)
}

func (s *Surroundings) hookAnswer(ctx context.Context, hook, name string, payload *trace.Payload) *trace.Answer {
	if s.Scenario.Hooks[hook].Gate || s.Scenario.Config.Hooks[hook] == trace.ModeGate {
		return s.wait(ctx, &pending{name: name}, payload)
	}
	reply := s.Scenario.hookReply(hook, strings.TrimPrefix(name, "hook/"+hook+"/"))
	a := &trace.Answer{Throw: reply.Throw, Abort: reply.Abort}
	if reply.Throw == nil {
		a.Hook = &reply.Value
	}
	s.answered(ctx, name, payload, a)
	return a
}

// Execute is one execution of a tool.
func (s *Surroundings) Execute(ctx context.Context, payload *trace.Payload, source Source, onUpdate func(*trace.Result)) (*trace.Result, error) {
	name := s.nameOf("tool/"+payload.ToolCallID, payload.ToolCallID, source)
	s.mu.Lock()
	script := s.Scenario.toolScript(name[len("tool/"):])
	call := &toolCall{name: name, onUpdate: onUpdate, returned: !script.Gate}
	s.tools = append(s.tools, call)
	s.mu.Unlock()
	if script.Gate {
		return s.executeGated(ctx, call, script, payload, source)
	}
	answer := &trace.Answer{Sync: script.Sync, Result: script.Return, Throw: script.Throw, Abort: script.Abort}
	if script.Throw != nil {
		answer.Result = nil
	}
	s.answered(ctx, name, payload, answer)
	for _, update := range script.Sync {
		onUpdate(update)
	}
	s.turnOf(payload.ToolCallID, source)
	return answer.Result, thrown(answer)
}

// executeGated notes the call, makes the updates that come before execute first
// yields, and then waits: in that order, as the gate is there from the start.
func (s *Surroundings) executeGated(ctx context.Context, call *toolCall, script ToolScript, payload *trace.Payload, source Source) (*trace.Result, error) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil, errClosing
	}
	p := &pending{name: call.name, ctx: ctx, tool: call}
	p.cancelled = ctx != nil && ctx.Err() != nil
	e := trace.Entry{Kind: trace.KindCall, Name: call.name, Payload: payload, Aborted: p.cancelled}
	if len(script.Sync) > 0 {
		e.Answer = &trace.Answer{Sync: script.Sync}
	}
	s.note(e)
	s.open = append(s.open, p)
	call.gate = s.newGate()
	s.mu.Unlock()
	for _, update := range script.Sync {
		call.onUpdate(update)
	}
	for first := true; ; first = false {
		if !first && s.busy(call) {
			s.turnOf(payload.ToolCallID, source) // it was held up, perhaps with others
		}
		a := s.toDo(call)
		if a.Partial == nil {
			return a.Result, thrown(a)
		}
		call.onUpdate(a.Partial)
	}
}

// busy reports whether a tool has something to do already.
func (s *Surroundings) busy(call *toolCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(call.todo) > 0
}

// toDo waits for the next thing that a tool is to do.
func (s *Surroundings) toDo(call *toolCall) *trace.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(call.todo) == 0 {
		if call.gate == nil {
			call.gate = s.newGate()
		}
		gate := call.gate
		s.mu.Unlock()
		gate.Wait()
		s.mu.Lock()
	}
	a := call.todo[0]
	call.todo = call.todo[1:]
	call.returned = a.Partial == nil
	return a
}

// tell gives a tool something to do; it is called with the lock held.
func (call *toolCall) tell(a *trace.Answer) {
	call.todo = append(call.todo, a)
	if call.gate != nil {
		call.gate.Open()
		call.gate = nil
	}
}

// Deliver is the delivery of an event to the scenario's listener number i.
// About is what the event is about: a tool call id, a message's role, or
// nothing.
func (s *Surroundings) Deliver(ctx context.Context, i int, ev *trace.Event, n int, wait func(func())) error {
	about := "listener/" + strconv.Itoa(i) + "/" + ev.Type
	if subject := subjectOf(ev); subject != "" {
		about += "/" + subject
	}
	signal := ctx != nil
	payload := &trace.Payload{Event: &n, Signal: &signal}
	s.mu.Lock()
	name := s.numbered(about)
	s.mu.Unlock()
	_, delivery, _ := strings.Cut(name[len("listener/"):], "/")
	gate, throw, throws := listenerAt(&s.Scenario.Config.Listeners[i], delivery)
	if gate {
		var answer *trace.Answer
		wait(func() { answer = s.wait(ctx, &pending{name: name}, payload) })
		return thrown(answer)
	}
	answer := &trace.Answer{}
	if throws {
		answer.Throw = &throw
	}
	s.answered(ctx, name, payload, answer)
	return thrown(answer)
}

func subjectOf(ev *trace.Event) string {
	if ev.ToolCallID != "" {
		return ev.ToolCallID
	}
	if ev.Message != nil && strings.HasPrefix(ev.Type, "message_") {
		return ev.Message.Role
	}
	return ""
}

// Stream is the stream of one model request.
type Stream struct {
	s      *Surroundings
	call   *pending
	isAuto bool
	auto   []scriptedmodel.Step // what an automatic stream has left
	queue  []*trace.Answer      // delivered and not read
	reads  int
	final  *trace.Message
	gate   Gate // of a reader that waits
	ended  bool
}

// Model is a request to the model. It returns as soon as the stream is there,
// or the stream function's error.
func (s *Surroundings) Model(ctx context.Context, payload *trace.Payload) (*Stream, error) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil, errClosing
	}
	st := &Stream{s: s}
	name := s.numbered("model")
	aborted := ctx != nil && ctx.Err() != nil
	if !aborted {
		gated := s.turn < len(s.Scenario.Model) && s.Scenario.Model[s.turn].Gate
		if !gated {
			return st, s.modelAuto(ctx, name, payload, st)
		}
		s.turn++
	}
	st.call = &pending{name: name, ctx: ctx, cancelled: aborted, stream: st}
	s.note(trace.Entry{Kind: trace.KindCall, Name: name, Payload: payload, Aborted: aborted})
	s.open = append(s.open, st.call)
	st.gate = s.newGate()
	gate := st.gate
	s.mu.Unlock()
	gate.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := st.queue[0]; first.Throw != nil {
		return nil, thrown(first)
	}
	return st, nil
}

// modelAuto answers the request by the script; it is called with the lock held.
func (s *Surroundings) modelAuto(_ context.Context, name string, payload *trace.Payload, st *Stream) error {
	steps := s.Scenario.modelPlan(s.turn)
	s.turn++
	st.isAuto, st.auto = true, steps
	st.call = &pending{name: name}
	answer := &trace.Answer{}
	for _, step := range steps {
		switch {
		case step.Throws:
			answer.Throw = &step.Throw
		case step.Ends:
			answer.Ends, answer.Final = true, step.Final
		default:
			answer.Events = append(answer.Events, *step.Event)
			if step.Final != nil {
				answer.Final = step.Final
			}
		}
	}
	s.note(trace.Entry{Kind: trace.KindCall, Name: name, Payload: payload, Auto: true, Answer: answer})
	s.mu.Unlock()
	if len(steps) == 1 && steps[0].Throws {
		return errors.New(steps[0].Throw)
	}
	return nil
}

// Next gives the next event of the stream; ok is false if the stream has ended
// without one.
func (st *Stream) Next() (ev *trace.StreamEvent, ok bool, err error) {
	s := st.s
	s.mu.Lock()
	if !s.closing {
		s.note(trace.Entry{Kind: trace.KindRead, Name: st.call.name, N: st.reads})
	}
	st.reads++
	if st.isAuto {
		defer s.mu.Unlock()
		return st.nextAuto()
	}
	for len(st.queue) == 0 && !st.ended {
		st.gate = s.newGate()
		gate := st.gate
		s.mu.Unlock()
		gate.Wait()
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if st.ended {
		return nil, false, nil
	}
	a := st.queue[0]
	st.queue = st.queue[1:]
	return st.take(a)
}

func (st *Stream) take(a *trace.Answer) (*trace.StreamEvent, bool, error) {
	if a.Throw != nil {
		st.queue = append(st.queue, a) // a stream that has thrown throws again
		return nil, false, thrown(a)
	}
	if a.Final != nil {
		st.final = a.Final
	}
	if a.Ends {
		st.ended = true
		return nil, false, nil
	}
	st.finish(a.Event)
	return a.Event, true, nil
}

func (st *Stream) nextAuto() (*trace.StreamEvent, bool, error) {
	if len(st.auto) == 0 {
		return nil, false, nil
	}
	step := st.auto[0]
	if step.Throws {
		return nil, false, errors.New(step.Throw)
	}
	st.auto = st.auto[1:]
	if step.Final != nil {
		st.final = step.Final
	}
	if step.Ends {
		return nil, false, nil
	}
	st.finish(step.Event)
	return step.Event, true, nil
}

func (st *Stream) finish(ev *trace.StreamEvent) {
	switch ev.Type {
	case trace.StreamDone:
		st.end(ev.Message)
	case trace.StreamError:
		st.end(ev.Error)
	}
}

// end notes that nothing follows and, unless the script said otherwise, what
// the stream comes to.
func (st *Stream) end(m *trace.Message) {
	st.ended = true
	if st.final == nil {
		st.final = m
	}
}

// Result is the message that the stream comes to. It is there once the stream
// has ended.
func (st *Stream) Result() (*trace.Message, error) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.final == nil {
		return nil, errors.New("the stream has no result yet")
	}
	return st.final, nil
}

// Do does one action. It is called by the driver, outside the loop's tasks.
func (s *Surroundings) Do(a *Action) error {
	if a.Kind == ActionUser {
		s.loop.User(a.Name, a.User, s.handedOut(a.Answer))
		return nil
	}
	if a.Answer.Partial != nil {
		return s.update(a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.open, func(p *pending) bool { return p.name == a.Name })
	if i < 0 {
		return errors.New("no callback " + a.Name + " waits")
	}
	p := s.open[i]
	if p.stream != nil {
		s.deliver(p, i, a.Answer)
		return nil
	}
	s.open = slices.Delete(s.open, i, i+1)
	p.give(a.Answer)
	return nil
}

// give answers a callback that is no stream; it is called with the lock held.
func (p *pending) give(a *trace.Answer) {
	if p.tool != nil {
		p.tool.tell(a)
		return
	}
	p.answer = a
	p.gate.Open()
}

// handedOut is what a user action carries, with a list of messages that may be
// changed without changing the scenario; it is kept if anything is.
func (s *Surroundings) handedOut(a *trace.Answer) *trace.Answer {
	if a == nil || a.Messages == nil {
		return a
	}
	own := *a
	own.Messages = slices.Clone(a.Messages)
	if s.Scenario.Keep {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept.list(own.Messages)
	}
	return &own
}

func (s *Surroundings) update(a *Action) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.tools, func(t *toolCall) bool { return t.name == a.Name })
	if i < 0 {
		s.mu.Unlock()
		return errors.New("no tool " + a.Name + " was executed")
	}
	call := s.tools[i]
	if s.Racy && !call.returned {
		// One that comes while the tool waits to return, as the loop holds back an
		// update that it made before, is left out: it would be in time.
		if !slices.ContainsFunc(call.todo, func(a *trace.Answer) bool { return a.Partial == nil }) {
			call.tell(a.Answer)
		}
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	if s.Racy {
		go call.onUpdate(a.Answer.Partial)
		return nil
	}
	call.onUpdate(a.Answer.Partial)
	return nil
}

// deliver hands one answer to a model stream, with the lock held.
func (s *Surroundings) deliver(p *pending, i int, a *trace.Answer) {
	st := p.stream
	st.queue = append(st.queue, a)
	if a.Throw != nil || a.Ends || a.Event.Type == trace.StreamDone || a.Event.Type == trace.StreamError {
		s.open = slices.Delete(s.open, i, i+1)
	}
	if st.gate != nil {
		gate := st.gate
		st.gate = nil
		gate.Open()
	}
}

// Asleep notes that a task of the loop sleeps until then. The function that it
// returns notes that it has woken. Drivers that own the clock know without it.
func (s *Surroundings) Asleep(until time.Time) (awake func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sleeps = append(s.sleeps, until)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.IndexFunc(s.sleeps, until.Equal); i >= 0 {
			s.sleeps = slices.Delete(s.sleeps, i, i+1)
		}
	}
}

// NextWake is when the first of those sleepers wakes; ok is false if there is
// none.
func (s *Surroundings) NextWake() (until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sleeps) == 0 {
		return until, false
	}
	return slices.MinFunc(s.sleeps, time.Time.Compare), true
}

// Drain passes on what has happened since it was last called, the signals of
// open callbacks that have fired included.
func (s *Surroundings) Drain(out func(trace.Entry)) {
	s.LookAtSignals()
	s.Noted(out)
}

// LookAtSignals notes which signals of open callbacks have fired. In a bubble it has
// to be called inside.
func (s *Surroundings) LookAtSignals() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.open {
		if p.ctx != nil && !p.cancelled && p.ctx.Err() != nil {
			p.cancelled = true
			s.note(trace.Entry{Kind: trace.KindCancelled, Name: p.name})
		}
	}
}

// Noted passes on what has been noted since it was last called.
func (s *Surroundings) Noted(out func(trace.Entry)) {
	s.mu.Lock()
	entries := s.out
	s.out, s.spare = s.spare[:0], entries
	s.mu.Unlock()
	for i := range entries {
		out(entries[i])
	}
}

// Release answers everything that still waits, now and from now on, with an
// error, so that the loop comes to an end. It is to be called until it reports
// that nothing waited.
func (s *Surroundings) Release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	waited := len(s.open)+len(s.arrivals) > 0
	for _, a := range s.arrivals {
		s.letOn(a)
	}
	s.arrivals = nil
	for _, p := range s.open {
		if p.stream == nil {
			p.give(closed())
			continue
		}
		p.stream.queue = append(p.stream.queue, closed())
		if p.stream.gate != nil {
			p.stream.gate.Open()
			p.stream.gate = nil
		}
	}
	s.open = s.open[:0]
	return waited
}
