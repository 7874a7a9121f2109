package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// run is one run of the bare loop: what it works with, and where its events go.
type run struct {
	ctx     context.Context // the abort signal; loop code only ever asks ctx.Err
	rt      Runtime
	is      behaviour
	config  *Config
	model   Model
	level   string           // empty means none
	context *Context         // what the next request is made of
	added   []*trace.Message // what this run has added so far (RUN-3)
	sink    func(*trace.Event) error
	settled func(err error) // called once, when the run has ended
	over    bool
	memory  *Memory
	notes   notes        // what only defects remember
	told    declarations // editions with system messages: what the transcript declares
}

func newRun(ctx context.Context, rt Runtime, c *Context, config *Config, sink func(*trace.Event) error, settled func(error)) *run {
	r := &run{
		ctx: ctx, rt: rt, is: behaviourOf(config.Edition), config: config,
		model: config.Model, level: levelOf(config.Level),
		context: c, sink: sink, settled: settled, memory: config.Memory,
	}
	if r.memory == nil {
		r.memory = &Memory{}
	}
	r.added = r.memory.list(usual)
	return r
}

// event is a new event of that type.
func (r *run) event(kind string) *trace.Event {
	ev := r.memory.events.New()
	ev.Type = kind
	return ev
}

// about is a new event of that type that is about a message.
func (r *run) about(m *trace.Message, kind string) *trace.Event {
	ev := r.event(kind)
	ev.Message = m
	return ev
}

func levelOf(name string) string {
	if name == "off" {
		return ""
	}
	return name
}

func (r *run) has(d Defect) bool { return r.config.Defects.Has(d) }
func (r *run) aborted() bool     { return r.ctx.Err() != nil }

// start runs the whole run as a task. Prompts are nil if the run continues from
// the transcript as it is.
func (r *run) start(prompts []*trace.Message) {
	r.rt.Post(func() { r.end(r.main(prompts)) })
}

// end settles the run, with the error that broke it or nil. Only the first end
// counts: when one of several parallel calls breaks the run, that happens at
// once, while the run's own task still waits for the others (edge 2). What they
// bring later finds the run over.
func (r *run) end(err error) {
	if r.over {
		return
	}
	r.over = true
	if r.has(LeakAfterAbort) && r.aborted() {
		r.leak()
	}
	r.settled(err)
}

// errOver unwinds the task of a run that has been ended by one of its calls.
var errOver = errors.New("the run is over")

// main emits agent_start and the first turn_start (RUN-1). Prompts are events
// (MSG-8); what was in the transcript before is not (RUN-11).
func (r *run) main(prompts []*trace.Message) error {
	if prompts != nil {
		prompts = r.declareTools(prompts)
	}
	r.add(prompts...)
	if err := r.emitAll(r.opening(prompts)...); err != nil {
		return err
	}
	if r.has(SteeringBeforePrompts) {
		if err := r.steerNow(); err != nil {
			return err
		}
	}
	for _, m := range r.toldFirst(prompts) {
		if err := r.emitMessage(m); err != nil {
			return err
		}
	}
	if err := r.turns(); err != nil {
		return err
	}
	return r.close()
}

// close emits agent_end (RUN-2).
func (r *run) close() error {
	if r.has(AbortAgentEndMissing) && r.aborted() {
		return nil
	}
	aborted := r.aborted()
	err := r.emitEnd()
	if r.has(SecondEndingAfterAbort) && !aborted && r.aborted() {
		return r.emitEnd()
	}
	return err
}

func (r *run) emitEnd() error {
	ev := r.event(trace.AgentEnd)
	ev.Messages = r.toldLast()
	return r.emit(ev)
}

// add appends to the context and to what the run has added.
func (r *run) add(messages ...*trace.Message) {
	r.context.Messages = append(r.context.Messages, messages...)
	r.added = append(r.added, messages...)
}

// emit hands over one event and waits until it has been dealt with (LIS-6).
func (r *run) emit(ev *trace.Event) (err error) {
	defer recovered(&err)
	return r.sink(ev)
}

func (r *run) emitAll(events ...*trace.Event) error {
	for _, ev := range events {
		if err := r.emit(ev); err != nil {
			return err
		}
	}
	return nil
}

// emitMessage gives a message that is complete from the start its two events
// (MSG-1).
func (r *run) emitMessage(m *trace.Message) error {
	return r.emitAll(r.about(m, trace.MessageStart), r.about(m, trace.MessageEnd))
}

// ask calls a hook, a tool or the model. Other tasks go on meanwhile, and a
// panic is the error of whoever panicked.
func ask[T any](r *run, f func() (T, error)) (answer T, err error) {
	r.rt.Leave()
	answer, err = attempt(f)
	r.rt.Enter()
	return answer, err
}

func attempt[T any](f func() (T, error)) (answer T, err error) {
	defer recovered(&err)
	return f()
}

// guard calls code that is not the loop's and turns a panic into its error.
func guard(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered, deferred, makes an error of a panic.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = panicked(p)
	}
}

func panicked(p any) error {
	if err, ok := p.(error); ok {
		return err
	}
	return fmt.Errorf("panic: %v", p)
}

// messageOf is the text of an error, for those who only get to see that.
func messageOf(err error) string { return strings.ToValidUTF8(err.Error(), "\uFFFD") }
