package view

import (
	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Reducer is the reducer in the form in which the harness watches one.
type Reducer struct{ Defects Defects }

// Start is the view before anything has happened.
func (Reducer) Start() any { return View{Phase: Idle} }

// Reduce gives the view after an event.
func (r Reducer) Reduce(view any, ev *trace.Event) (any, error) {
	return r.Defects.Reduce(view.(View), ev), nil
}

// Show is the view as JSON.
func (Reducer) Show(view any) (trace.Value, error) {
	return json.Marshal(view, json.Deterministic(true))
}

// ReduceJSON is [Reduce] for views as JSON; one that is nil is the first.
func ReduceJSON(view trace.Value, ev *trace.Event) (trace.Value, error) {
	v := View{Phase: Idle}
	if view != nil {
		if err := json.Unmarshal(view, &v); err != nil {
			return nil, err
		}
	}
	return Reducer{}.Show(Reduce(v, ev))
}
