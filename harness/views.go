package harness

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Reducer is a user interface's reducer in a form in which it can be watched. A
// view may be any Go value; only Show says what is in it.
type Reducer interface {
	// Start is the view before anything has happened.
	Start() any
	// Reduce gives the view after an event of the loop, or after
	// [trace.PromptReturned]. It must not change either of the two.
	Reduce(view any, ev *trace.Event) (any, error)
	// Show is the view as JSON: {phase, turn, bubbles: [{turn, text, open}],
	// tools: [{id, name, args, status, text}]}, where phase is running, settling
	// or idle, and status preparing, running, done or error. Other members may be
	// there.
	Show(view any) (trace.Value, error)
}

// ReducerOf makes a Reducer of a start and two functions.
func ReducerOf[V any](start V, reduce func(V, *trace.Event) V, show func(V) (trace.Value, error)) Reducer {
	return reducerOf[V]{start, reduce, show}
}

type reducerOf[V any] struct {
	start  V
	reduce func(V, *trace.Event) V
	show   func(V) (trace.Value, error)
}

func (r reducerOf[V]) Start() any { return r.start }
func (r reducerOf[V]) Reduce(view any, ev *trace.Event) (any, error) {
	return r.reduce(view.(V), ev), nil
}
func (r reducerOf[V]) Show(view any) (trace.Value, error) { return r.show(view.(V)) }

// RecordViews gives a trace with what the reducer makes of its events: after each
// event, and after each prompt that has returned, an entry of kind view. Nothing
// of it depends on what made the trace.
func RecordViews(t *trace.Trace, r Reducer) (*trace.Trace, error) {
	out := &trace.Trace{Header: t.Header}
	out.Header.Evidence = withViews(t.Header.Evidence)
	w := newViewer(r)
	for _, e := range t.Entries {
		out.Entries = append(out.Entries, e)
		if err := w.watch(&e, func(seen *trace.Entry) {
			seen.Step, seen.Time = e.Step, e.Time
			out.Entries = append(out.Entries, *seen)
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func withViews(evidence []trace.Evidence) []trace.Evidence {
	if slices.Contains(evidence, trace.EvidenceViews) {
		return evidence
	}
	return append(slices.Clone(evidence), trace.EvidenceViews)
}

// viewer watches a reducer at work.
type viewer struct {
	reducer Reducer
	view    any
	shown   trace.Value
	err     error // of its start
}

func newViewer(r Reducer) *viewer {
	w := &viewer{reducer: r, view: r.Start()}
	w.shown, w.err = r.Show(w.view)
	return w
}

// watch lets the reducer see an entry, and passes on what it made of it.
func (w *viewer) watch(e *trace.Entry, out func(*trace.Entry)) error {
	if w.err != nil {
		return w.err
	}
	switch {
	case e.Kind == trace.KindEvent && e.Event != nil:
		return w.step(e, nil, out)
	case e.Kind == trace.KindSettled && isRun(e.Name) && e.Outcome != trace.OutcomeRefused:
		returned := &trace.Event{Type: trace.PromptReturned}
		if err := w.step(e, returned, out); err != nil {
			return err
		}
		return w.probe(out)
	}
	return nil
}

func (w *viewer) step(e *trace.Entry, input *trace.Event, out func(*trace.Entry)) error {
	ev := e.Event
	if input != nil {
		ev = input
	}
	view, seen, err := w.reduce(ev)
	if err != nil {
		return err
	}
	seen.Input = input
	w.view, w.shown = view, seen.State
	out(&trace.Entry{Kind: trace.KindView, Name: e.Name, N: e.N, View: seen})
	return nil
}

// probes are what no loop says: an update and an end of a call that nobody has
// heard of.
var probes = func() []*trace.Event {
	said := &trace.Result{Content: trace.TextContent("who is that?")}
	failed := false
	return []*trace.Event{
		{Type: trace.ToolExecutionUpdate, ToolCallID: "unheard-of", ToolName: "unheard-of", PartialResult: said},
		{Type: trace.ToolExecutionEnd, ToolCallID: "unheard-of", ToolName: "unheard-of", Result: said, IsError: &failed},
	}
}()

// probe shows the reducer what it has to ignore. What it makes of that is not
// kept.
func (w *viewer) probe(out func(*trace.Entry)) error {
	for _, ev := range probes {
		_, seen, err := w.reduce(ev)
		if err != nil {
			return err
		}
		seen.Input, seen.Probe = ev, true
		out(&trace.Entry{Kind: trace.KindView, View: seen})
	}
	return nil
}

// reduce applies the reducer twice and looks whether it is pure.
func (w *viewer) reduce(ev *trace.Event) (view any, seen *trace.View, err error) {
	given, err := json.Marshal(ev, json.Deterministic(true))
	if err != nil {
		return nil, nil, err
	}
	view, state, after, err := w.apply(given)
	if err != nil {
		return nil, nil, err
	}
	seen = &trace.View{State: state, InputChanged: !bytes.Equal(given, after)}
	if before, err := w.reducer.Show(w.view); err != nil || !sameJSON(before, w.shown) {
		seen.Before = before
	}
	_, again, _, err := w.apply(given)
	if err != nil {
		return nil, nil, err
	}
	if !sameJSON(again, state) {
		seen.Again = again
	}
	return view, seen, nil
}

// sameJSON compares two values whatever the order of their members.
func sameJSON(a, b trace.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := a.Clone(), b.Clone()
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

// apply gives the reducer an event of its own: what it does to that must not be
// done to the trace. After is what became of the event.
func (w *viewer) apply(event trace.Value) (view any, state, after trace.Value, err error) {
	ev := &trace.Event{}
	if err = json.Unmarshal(event, ev); err != nil {
		return nil, nil, nil, err
	}
	if view, err = w.reducer.Reduce(w.view, ev); err != nil {
		return nil, nil, nil, err
	}
	if after, err = json.Marshal(ev, json.Deterministic(true)); err != nil {
		return nil, nil, nil, err
	}
	state, err = w.reducer.Show(view)
	return view, state, after, err
}

// WithViews gives a driver whose recordings hold what the reducer makes of the
// subject's events. A reducer that fails breaks off the case.
func WithViews(d Driver, r Reducer) Driver {
	return &viewedDriver{Driver: d, reducer: r}
}

type viewedDriver struct {
	Driver
	reducer Reducer
}

// Info is the subject's, with evidence of views.
func (d *viewedDriver) Info() SubjectInfo {
	info := d.Driver.Info()
	info.Evidence = withViews(info.Evidence)
	return info
}

// Open begins a case, with a view of its own.
func (d *viewedDriver) Open(ctx context.Context, sc *Scenario) (Session, error) {
	s, err := d.Driver.Open(ctx, sc)
	if err != nil {
		return nil, err
	}
	return &viewedSession{Session: s, viewer: newViewer(d.reducer)}, nil
}

type viewedSession struct {
	Session
	viewer *viewer
}

// Settle passes on what the subject did, and after each event the view.
func (s *viewedSession) Settle(out func(*trace.Entry)) error {
	var broken error
	err := s.Session.Settle(func(e *trace.Entry) {
		out(e)
		if broken == nil {
			broken = s.viewer.watch(e, out)
		}
	})
	if err == nil && broken != nil {
		return &SubjectError{Outcome: trace.OutcomeCrashed, Message: "the reducer failed: " + broken.Error(), Exit: -1}
	}
	return err
}

// NextWake is the subject's.
func (s *viewedSession) NextWake() (time.Duration, bool) {
	if sleeper, ok := s.Session.(Sleeper); ok {
		return sleeper.NextWake()
	}
	return 0, false
}
