package progress

import (
	"context"
	"sync"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
)

// Plug joins one agent of the reference loop to a registry. Its tools find their
// execution by [From]; the loop's own onUpdate stays what it is.
//
// The call is stored when the loop announces it, before anything is asked about
// it, so that a call which is refused has its pair too. The boundary is the
// return of the tool's body, which in the loop is where finalize begins: the hook
// afterToolCall runs behind it. The result is stored with the loop's end event.
type Plug struct {
	registry *Registry
	agent    string
	card     func(tool string, args trace.Value) *Card

	mu    sync.Mutex
	calls map[string][]*Execution // by id, which a model may use twice
	run   map[*Execution]bool     // whose body was found
}

// NewPlug makes a plug for an agent. Card says how a call is shown; it may be
// nil, or give nil.
func NewPlug(r *Registry, agent string, card func(tool string, args trace.Value) *Card) *Plug {
	return &Plug{registry: r, agent: agent, card: card, calls: map[string][]*Execution{}, run: map[*Execution]bool{}}
}

// Listen is a listener for the agent. It should be the first.
func (p *Plug) Listen(_ context.Context, ev *trace.Event) error {
	switch ev.Type {
	case trace.ToolExecutionStart:
		return p.begin(ev)
	case trace.ToolExecutionEnd:
		if x := p.take(ev.ToolCallID); x != nil {
			x.Close()
			x.Finish(Outcome{Result: ev.Result, IsError: ev.IsError != nil && *ev.IsError})
		}
	}
	return nil
}

func (p *Plug) begin(ev *trace.Event) error {
	call := Call{Agent: p.agent, ID: ev.ToolCallID, Tool: ev.ToolName, Args: ev.Args}
	if p.card != nil {
		call.Card = p.card(ev.ToolName, ev.Args)
	}
	x := p.registry.Prepare(call)
	p.mu.Lock()
	p.calls[ev.ToolCallID] = append(p.calls[ev.ToolCallID], x)
	p.mu.Unlock()
	return x.Announce()
}

// find gives a call's body its execution: of several with one id, the first that
// no other body has.
func (p *Plug) find(id string) *Execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.calls[id] {
		if !p.run[x] {
			p.run[x] = true
			return x
		}
	}
	return nil
}

// take gives the first execution of a call that has not ended.
func (p *Plug) take(id string) *Execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.calls[id]
	if len(list) == 0 {
		return nil
	}
	x := list[0]
	delete(p.run, x)
	if p.calls[id] = list[1:]; len(list) == 1 {
		delete(p.calls, id)
	}
	return x
}

// Wrap is the tool with its execution in the context.
func (p *Plug) Wrap(t *loop.Tool) *loop.Tool {
	wrapped := *t
	wrapped.Execute = func(ctx context.Context, call loop.Execution, onUpdate func(*trace.Result)) (*trace.Result, error) {
		x := p.find(call.ID)
		if x == nil {
			return t.Execute(ctx, call, onUpdate)
		}
		if err := x.Dispatch(); err != nil {
			return nil, err
		}
		defer x.Close()
		return t.Execute(With(ctx, x), call, onUpdate)
	}
	return &wrapped
}
