package harness

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pi-conform/pi-conform/harness/lean"
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

	mu      lean.Lock
	out     *[]trace.Entry // what was noted: own, or a recording
	own     []trace.Entry
	spare   []trace.Entry // takes turns with own
	names   names
	open    []*pending // in the order in which they began
	tools   []*toolCall
	turn    int // script turns used
	events  int
	closing bool
	kept    kept
	sleeps  []time.Time // when each sleeper wakes
	values  values
	waiting waiting
	recycle bool
	results map[string]*trace.Result // of tools that say nothing of their own, by call id

	// Racy says that tasks run at once, so that of the calls of one message any could
	// be the first to call a tool or a hook, and of tools that are answered at once any
	// the first to return. They then wait until the subject is at rest and go on one by
	// one, in source order, by [Surroundings.LetOneOn].
	Racy     bool
	ids      []string // of the calls of the latest message
	arrivals []*arrival
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
	room     [2]*trace.Answer // for todo
	gate     Gate             // it waits there for more; nil while it is busy
	returned bool
}

// values are what a recording holds many of.
type values struct {
	payloads lean.Slab[trace.Payload]
	answers  lean.Slab[trace.Answer]
	states   lean.Slab[trace.State]
	texts    lean.Slab[string]
	model    scriptedmodel.Memory
	streamed lean.Slab[trace.StreamEvent]
	loops    Memory // what a loop keeps, or nil
}

// Memory is what a loop uses again from one case to the next.
type Memory interface {
	// Recycle takes back all that the loop made in it.
	Recycle()
}

func (v *values) recycle() {
	v.payloads.Recycle()
	v.answers.Recycle()
	v.states.Recycle()
	v.texts.Recycle()
	v.model.Recycle()
	v.streamed.Recycle()
	if v.loops != nil {
		v.loops.Recycle()
	}
}

// waiting is what callbacks need until the case is over.
type waiting struct {
	pending lean.Slab[pending]
	tools   lean.Slab[toolCall]
	streams lean.Slab[Stream]
}

func (w *waiting) recycle() {
	w.pending.Recycle()
	w.tools.Recycle()
	w.streams.Recycle()
}

// NewSurroundings gives the surroundings of one case. Gates are made by newGate.
func NewSurroundings(sc *Scenario, newGate func() Gate) *Surroundings {
	s := &Surroundings{Scenario: sc, newGate: newGate}
	s.out = &s.own
	return s
}

// Reuse makes them the surroundings of another case, of which nothing has begun,
// and saves making new ones. Nothing of the last case may still run.
func (s *Surroundings) Reuse(sc *Scenario) {
	s.Scenario, s.loop = sc, nil
	s.RecordInto(nil)
	s.names.begin()
	s.waiting.recycle()
	if s.recycle {
		s.values.recycle()
	}
	s.open, s.tools, s.arrivals = s.open[:0], s.tools[:0], s.arrivals[:0]
	s.ids, s.sleeps = nil, nil
	s.turn, s.events, s.closing = 0, 0, false
	s.kept = kept{}
}

// Recycle lets the next case use what the last one recorded, unless [Surroundings.Keep]
// is called in between.
func (s *Surroundings) Recycle() { s.recycle = true }

// Keep lets what was recorded be as it is.
func (s *Surroundings) Keep() { s.values = values{} }

// Memory is what a loop has kept from the case before, or if there was none, what
// it begins with. It is recycled with what else is recorded.
func (s *Surroundings) Memory(begin func() Memory) Memory {
	if s.values.loops == nil || !s.recycle {
		s.values.loops = begin()
	}
	return s.values.loops
}

// Texts gives an empty list with room for n texts, for what a callback is given.
func (s *Surroundings) Texts(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values.texts.List(n)
}

// RecordInto lets everything be noted in a recording from now on, in the place of
// being passed on by Drain or Noted; nil ends that.
func (s *Surroundings) RecordInto(entries *[]trace.Entry) {
	s.own, s.spare = s.own[:0], s.spare[:0]
	s.out = entries
	if entries == nil {
		s.out = &s.own
	}
}

// Alone says that one goroutine does everything, so that nothing need be locked.
func (s *Surroundings) Alone() { s.mu.Alone() }

// Attach tells the surroundings which loop they surround.
func (s *Surroundings) Attach(l Loop) { s.loop = l }

// errClosing is what every callback is answered once the case is over.
var errClosing = errors.New("the case is over")

// note gives the next entry, to be filled in at once.
func (s *Surroundings) note(kind trace.Kind, name string) *trace.Entry {
	out := slices.Grow(*s.out, 1)
	out = out[:len(out)+1]
	*s.out = out
	e := &out[len(out)-1]
	*e = trace.Entry{Kind: kind, Name: name}
	return e
}

// called notes a call; it is called with the lock held.
func (s *Surroundings) called(name string, payload *trace.Payload) *trace.Entry {
	e := s.note(trace.KindCall, name)
	e.Payload = s.values.payloads.Of(*payload)
	return e
}

// Event notes an event as the first listener sees it, with the state as it is now,
// whatever a loop may do to the list in it later. State is nil where the loop has
// none.
func (s *Surroundings) Event(ev *trace.Event, state *trace.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteCalls(ev)
	if s.Scenario.Keep {
		s.kept.event(s.events, ev, state)
	}
	e := s.note(trace.KindEvent, "")
	e.N, e.Event, e.State = s.events, ev, s.asItIs(state)
	s.events++
}

// Settled notes that a user action has settled.
func (s *Surroundings) Settled(name string, outcome trace.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	e := s.note(trace.KindSettled, name)
	e.Outcome = outcome
	if err != nil {
		e.Message = err.Error()
	}
	s.orderSettled()
	if s.Scenario.Keep && isRun(name) && outcome != trace.OutcomeRefused {
		s.compareKept()
	}
}

// orderSettled puts those who wait for idle before the run that they waited for,
// where both settle together: tasks that run at once say so in any order. Other forms
// are idle only after the prompt has returned.
func (s *Surroundings) orderSettled() {
	out := *s.out
	last := len(out) - 1
	if !s.Racy || s.Scenario.Form != trace.FormAgent || isRun(out[last].Name) {
		return
	}
	for i := last; i > 0 && (out[i-1].Kind == trace.KindRetained || settledAfter(&out[i-1], &out[i])); i-- {
		out[i-1], out[i] = out[i], out[i-1]
	}
}

// settledAfter reports whether what settled at a belongs after what did at b.
func settledAfter(a, b *trace.Entry) bool {
	return a.Kind == trace.KindSettled && (isRun(a.Name) || a.Name > b.Name)
}

// compareKept notes what a run has changed of what others hold.
func (s *Surroundings) compareKept() {
	if changed := s.kept.changed(); len(changed) > 0 {
		s.note(trace.KindRetained, "").Changed = changed
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
	e := s.note(trace.KindCall, s.names.numbered("hook/", hook))
	e.Auto, e.Payload, e.Answer = true, &noPayload, s.values.answers.New()
	e.Answer.Messages = drained
}

// noPayload is what a poll of a queue is given.
var noPayload trace.Payload

// wait notes a gated call and waits for its answer.
func (s *Surroundings) wait(ctx context.Context, name string, payload *trace.Payload) *trace.Answer {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return closed()
	}
	aborted := ctx != nil && ctx.Err() != nil
	p := s.waiting.pending.Of(pending{name: name, ctx: ctx, cancelled: aborted, gate: s.newGate()})
	s.called(name, payload).Aborted = aborted
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
	e := s.called(name, payload)
	e.Auto, e.Answer, e.Aborted = true, a, aborted
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
func (s *Surroundings) Drain(out func(*trace.Entry)) {
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
			s.note(trace.KindCancelled, p.name)
		}
	}
}

// Noted passes on what has been noted since it was last called.
func (s *Surroundings) Noted(out func(*trace.Entry)) {
	s.mu.Lock()
	entries := s.own
	s.own, s.spare = s.spare[:0], entries
	s.mu.Unlock()
	for i := range entries {
		out(&entries[i])
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
