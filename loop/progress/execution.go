package progress

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Execution is one execution of a tool, from prepare to its end.
type Execution struct {
	registry *Registry
	call     Call
	identity Identity

	// The lock is held for a few instructions at a time, never while calling out.
	mu     sync.Mutex
	stage  stage
	rounds map[uint64]int // rounds under way, by goroutine
	idle   chan struct{}  // closed when the last of them is done; nil unless finalize waits
	shut   bool           // nothing is accepted any more, though finalize has not begun

	failure error // an observer's; only defects ask for it
	last    View  // the last view; only defects ask for it
}

// stage is how far an execution has come.
type stage uint8

const (
	prepared  stage = iota
	announced       // the call is stored
	running         // the body was entered
	closed          // the boundary: nothing is accepted any more
	over            // the result is stored
)

// The reasons to refuse a report.
var (
	ErrNotRunning = errors.New("progress is reported before the call was stored")
	ErrReentrant  = errors.New("an observer reports on the execution that it is told of")
	ErrNested     = errors.New("progress of a nested execution is not reported")
)

var errTwice = errors.New("an execution is dispatched twice, or after its end")

// Identity is whose execution it is.
func (x *Execution) Identity() Identity { return x.identity }

// Announce stores the call. An error means that it could not be stored: then the
// tool must not be run.
func (x *Execution) Announce() error {
	if !x.advance(prepared, announced) {
		return errTwice
	}
	if !x.identity.shown(x.registry.defects) {
		return nil
	}
	err := x.registry.store(Durable{
		Kind: ToolCall, Agent: x.identity.Agent, Call: x.identity.Call, Tool: x.call.Tool, Args: x.call.Args, Card: x.call.Card,
	})
	if err != nil {
		x.advance(announced, over)
		x.forget()
	}
	return err
}

// Dispatch says that the tool's body is about to be entered. The call is stored
// by then: here, if it was not before.
func (x *Execution) Dispatch() error {
	if x.at() == prepared {
		if err := x.Announce(); err != nil {
			return err
		}
	}
	if !x.advance(announced, running) {
		return errTwice
	}
	return nil
}

func (x *Execution) at() stage {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stage
}

func (x *Execution) advance(from, to stage) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stage != from {
		return false
	}
	x.stage = to
	return true
}

// ReportProgress shows a view to every observer whose scope matches. Accepted
// means that all of them have been told, each once, with a copy of its own. After
// the boundary nothing is accepted, and that is no error. An error says that the
// view is invalid, or that progress cannot be reported now; the execution goes on
// as if nothing had been reported.
func (x *Execution) ReportProgress(v View) (accepted bool, err error) {
	ds := x.registry.defects
	me := sync.OnceValue(goroutine) // which takes longer than all the rest
	if ok, err := x.open(me); !ok && !(x.registry.policy.InvalidFirst && err == nil) {
		return false, err // the closed check comes first (PROG-12)
	}
	if err := v.check(x.registry.policy.most()); err != nil {
		if ds.Has(InvalidViewCloses) {
			x.advance(running, closed)
		}
		return false, err
	}
	if !ds.Has(ViewNotCopied) {
		v = v.copied() // (PROG-1)
	}
	x.registry.pause()
	observers := x.registry.matching(x.identity.Agent)
	if len(observers) == 0 && x.registry.policy.Unobserved == UnobservedDeclined {
		return false, nil
	}
	if ok, err := x.enter(me, len(observers) > 0); !ok || len(observers) == 0 {
		return ok, err // not ok: the boundary was crossed meanwhile (PROG-5)
	}
	defer x.leave(me())
	x.round(observers, v)
	return true, nil
}

// open reports whether a goroutine may report now.
func (x *Execution) open(me func() uint64) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.accepts(me)
}

// accepts is open, with the lock held.
func (x *Execution) accepts(me func() uint64) (bool, error) {
	ds := x.registry.defects
	inside := len(x.rounds) > 0 && x.rounds[me()] > 0
	switch {
	case (x.stage >= closed || x.shut) && !ds.Has(AcceptedAfterFinalize):
		return false, nil // (PROG-4)
	case x.stage < running && !ds.Has(AcceptedBeforeItsCall):
		return false, ErrNotRunning // (PROG-12)
	case x.identity.Parent != 0 && x.registry.policy.Nested == NestedRefused:
		return false, ErrNested
	case inside && x.registry.policy.Reentrant == ReentrantDeclined:
		return false, nil
	case inside:
		return false, ErrReentrant
	}
	return true, nil
}

// enter begins a round, if there is to be one, unless the boundary was crossed.
// From here on finalize waits (PROG-3).
func (x *Execution) enter(me func() uint64, round bool) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.registry.defects.Has(GateCheckedTooEarly) {
		if ok, err := x.accepts(me); !ok {
			return false, err
		}
	}
	if round {
		x.rounds[me()]++
	}
	return true, nil
}

func (x *Execution) leave(me uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rounds[me]--; x.rounds[me] == 0 {
		delete(x.rounds, me)
	}
	if len(x.rounds) == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// round tells every observer once.
func (x *Execution) round(observers []*subscription, v View) {
	ds := x.registry.defects
	identity := x.identityFor(v)
	if ds.Has(DispatchedTwice) {
		observers = append(observers, observers...)
	}
	if ds.Has(ProgressStored) && x.identity.shown(nil) {
		_ = x.registry.durable(Durable{Kind: "tool/progress", Agent: x.identity.Agent, Call: x.identity.Call, Args: v.JSON()})
	}
	for k, s := range observers {
		own := v
		if !(ds.Has(ViewNotCopied) && k == 0) && !ds.Has(CopySharedByObservers) {
			own = v.copied() // (PROG-2)
		}
		err := recovered(func() error { return s.observe(Observation{Identity: identity, View: own}) })
		if err == nil {
			continue
		}
		x.registry.log("observer of progress", err) // (PROG-6)
		if ds.Has(PanicEndsRound) && strings.HasPrefix(err.Error(), "panic") {
			break
		}
		x.remember(err)
	}
	if ds.Has(ProgressInResult) {
		x.mu.Lock()
		x.last = v
		x.mu.Unlock()
	}
}

func (x *Execution) remember(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failure = err
}

// identityFor is the execution's own identity, whatever a view says.
func (x *Execution) identityFor(v View) Identity {
	identity := x.identity
	if x.registry.defects.Has(IdentityFromView) && v.Title != nil {
		if name, ok := strings.CutPrefix(*v.Title, "@"); ok {
			identity.Agent, identity.Call, _ = strings.Cut(name, "/")
		}
	}
	return identity
}

// Hook may change an outcome before anybody is told of it.
type Hook func(Outcome) Outcome

// Finalize ends the execution: the boundary, the hook if there is one, the
// observers of the result, the durable result. Only the first call does so; the
// others do nothing. It gives what became of it.
func (x *Execution) Finalize(o Outcome, hook Hook) Outcome {
	if !x.Close() {
		return o
	}
	if hook != nil {
		x.registry.guard("hook", func() error { o = hook(o); return nil })
	}
	return x.Finish(o)
}

// Close crosses the boundary: it waits for the rounds under way, and nothing is
// accepted any more. It reports whether this call was the first. An observer that
// calls it does not wait for its own round.
func (x *Execution) Close() bool {
	x.mu.Lock()
	first := x.stage < closed
	if first {
		x.stage = closed
	}
	wait := x.others() && !x.registry.defects.Has(FinalizeDoesNotWait)
	if wait && x.idle == nil {
		x.idle = make(chan struct{})
	}
	idle := x.idle
	x.mu.Unlock()
	if wait {
		x.registry.await(idle)
	}
	return first
}

// others reports whether rounds are under way on which the caller may wait: none
// of them is its own.
func (x *Execution) others() bool { return len(x.rounds) > 0 && x.rounds[goroutine()] == 0 }

// Finish tells observers of the result and stores it. The boundary is behind it.
func (x *Execution) Finish(o Outcome) Outcome {
	if !x.advance(closed, over) {
		return o
	}
	o = x.spoiled(o)
	for _, s := range snapshot(x.registry, &x.registry.results) {
		x.registry.guard("observer of results", func() error { return s.observe(x.identity, o) })
	}
	if x.identity.shown(x.registry.defects) {
		x.registry.guard("durable log", func() error {
			return x.registry.store(Durable{Kind: ToolResult, Agent: x.identity.Agent, Call: x.identity.Call, Result: o.Result, IsError: o.IsError})
		})
	}
	x.forget()
	return o
}

// spoiled is an outcome as some defects leave it.
func (x *Execution) spoiled(o Outcome) Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch ds := x.registry.defects; {
	case ds.Has(ObserverErrorFailsTool) && x.failure != nil:
		return Failure(x.failure.Error())
	case ds.Has(ProgressInResult) && x.last.Content != nil:
		return Outcome{Result: &trace.Result{Content: trace.TextContent(x.last.Content[0].Text)}, IsError: o.IsError}
	}
	return o
}

func (x *Execution) forget() {
	x.registry.mu.Lock()
	defer x.registry.mu.Unlock()
	delete(x.registry.executions, x.identity.Token)
}

// Body is what a tool does.
type Body func(ctx context.Context, x *Execution) (*trace.Result, error)

// Run is an execution from its preparation to its end. The context that the body
// gets leads back to the execution; see [From].
func (r *Registry) Run(ctx context.Context, c Call, body Body, hook Hook) (Outcome, error) {
	x := r.Prepare(c)
	if err := x.Dispatch(); err != nil {
		return Outcome{}, err
	}
	return x.Finalize(x.enterBody(ctx, body), hook), nil
}

// enterBody runs the tool's body. Whatever it does is an outcome.
func (x *Execution) enterBody(ctx context.Context, body Body) Outcome {
	var result *trace.Result
	err := recovered(func() (err error) {
		result, err = body(With(ctx, x), x)
		return err
	})
	x.returned()
	if err != nil {
		return Failure(err.Error())
	}
	if result == nil {
		result = &trace.Result{Content: trace.Content{Blocks: []trace.Block{}}}
	}
	return Outcome{Result: result}
}

// returned says that the body is over, which is the boundary by some policies.
func (x *Execution) returned() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shut = x.registry.policy.Boundary == AtReturn
}

type key struct{}

// With is a context in which the execution runs.
func With(ctx context.Context, x *Execution) context.Context { return context.WithValue(ctx, key{}, x) }

// From is the execution that a context belongs to, or nil.
func From(ctx context.Context) *Execution {
	x, _ := ctx.Value(key{}).(*Execution)
	return x
}
