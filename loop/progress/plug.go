package progress

import (
	"context"
	"slices"
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

	mu       sync.Mutex
	calls    map[string][]*plugged // that have not ended, by id, which a model may use twice
	returned int                   // bodies so far
}

// plugged is a call of the loop with its execution.
type plugged struct {
	*Execution
	begun    bool          // the tool's body has it
	returned int           // which of all bodies it was that returned, from 1; 0 if it has not
	result   *trace.Result // that the body returned
}

// NewPlug makes a plug for an agent. Card says how a call is shown; it may be
// nil, or give nil.
func NewPlug(r *Registry, agent string, card func(tool string, args trace.Value) *Card) *Plug {
	return &Plug{registry: r, agent: agent, card: card, calls: map[string][]*plugged{}}
}

// Listen is a listener for the agent. It should be the first.
func (p *Plug) Listen(_ context.Context, ev *trace.Event) error {
	switch ev.Type {
	case trace.ToolExecutionStart:
		return p.begin(ev)
	case trace.ToolExecutionEnd:
		if x := p.take(ev); x != nil {
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
	p.calls[ev.ToolCallID] = append(p.calls[ev.ToolCallID], &plugged{Execution: x})
	p.mu.Unlock()
	return x.Announce()
}

// find gives a call's body its execution: of several with one id, the first that
// no other body has.
func (p *Plug) find(id string) *plugged {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.calls[id] {
		if !x.begun {
			x.begun = true
			return x
		}
	}
	return nil
}

// leave notes that a body has returned.
func (p *Plug) leave(x *plugged, result *trace.Result) {
	x.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.returned++
	x.returned, x.result = p.returned, result
}

// take gives the execution of the call whose end is told. Of several with one id it
// is the one whose body returned that result; if a hook has made another one, or the
// body failed, the one whose body returned first; and if none has, the call was
// refused, which is told before another call is announced: the newest.
func (p *Plug) take(ev *trace.Event) *Execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.calls[ev.ToolCallID]
	if len(list) == 0 {
		return nil
	}
	i := slices.IndexFunc(list, func(x *plugged) bool { return x.result != nil && x.result == ev.Result })
	if i < 0 {
		i = firstReturned(list)
	}
	if i < 0 {
		i = len(list) - 1
	}
	x := list[i]
	if p.calls[ev.ToolCallID] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(p.calls, ev.ToolCallID)
	}
	return x.Execution
}

func firstReturned(list []*plugged) int {
	first := -1
	for i, x := range list {
		if x.returned > 0 && (first < 0 || x.returned < list[first].returned) {
			first = i
		}
	}
	return first
}

// Wrap is the tool with its execution in the context.
func (p *Plug) Wrap(t *loop.Tool) *loop.Tool {
	wrapped := *t
	wrapped.Execute = func(ctx context.Context, call loop.Execution, onUpdate func(*trace.Result)) (result *trace.Result, err error) {
		x := p.find(call.ID)
		if x == nil {
			return t.Execute(ctx, call, onUpdate)
		}
		if err := x.Dispatch(); err != nil {
			return nil, err
		}
		defer func() { p.leave(x, result) }()
		return t.Execute(With(ctx, x.Execution), call, onUpdate)
	}
	return &wrapped
}
