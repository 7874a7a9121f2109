package protocol

import (
	"context"
	"fmt"
	"slices"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Reducer is the reducer of a subject that has declared one, in a form in which
// it can be watched. It starts the subject if it does not run.
func (p *Process) Reducer(ctx context.Context) (harness.Reducer, error) {
	if _, err := p.running(ctx); err != nil {
		return nil, err
	}
	if !slices.Contains(p.Info().Capabilities, CapReducer) {
		return nil, fmt.Errorf("the subject %s has no reducer", p.Info().Name)
	}
	return &reducer{p, ctx}, nil
}

// reducer lets the subject reduce. Its views are the subject's, as JSON.
type reducer struct {
	process *Process
	ctx     context.Context
}

// remoteView is a view in another process. If the reducer there changes the one
// that it is given, so is this.
type remoteView struct{ state trace.Value }

// Start is no view yet: the subject knows how it begins.
func (r *reducer) Start() any { return &remoteView{} }

// Show is the view as it came.
func (r *reducer) Show(view any) (trace.Value, error) {
	if state := view.(*remoteView).state; state != nil {
		return state, nil
	}
	return trace.Value("null"), nil
}

// Reduce asks the subject.
func (r *reducer) Reduce(view any, ev *trace.Event) (any, error) {
	c, err := r.process.running(r.ctx)
	if err != nil {
		return nil, err
	}
	given := view.(*remoteView)
	what := subject{what: "reduce of ", of: ev.Type}
	request := &Request{Type: TypeReduce, View: given.state, Event: ev}
	reply, err := c.converse(r.ctx, newInbox(), asked{request, what}, r.process.opts.scaled(replyLimit))
	switch {
	case err != nil:
		return nil, err
	case reply.Type == TypeError:
		return nil, &ReplyError{To: what.String(), Code: reply.Code, Message: reply.Message, Stack: reply.Stack}
	case reply.Type != TypeReduced:
		err := reply.violation(fmt.Sprintf("%s was answered with %s", what, reply.Type), "answer it with reduced or error")
		c.fail(err)
		return nil, c.reason()
	}
	if reply.Before != nil {
		given.state = reply.Before
	}
	if reply.EventAfter != nil {
		*ev = *reply.EventAfter
	}
	return &remoteView{reply.View}, nil
}
