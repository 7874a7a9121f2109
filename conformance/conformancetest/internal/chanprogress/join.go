package chanprogress

import (
	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/conformance/progress/suite"
)

// Subject is the registry in the form in which it is tested. It has neither a
// bridge nor a producer.
func Subject(plant Plant) suite.Subject {
	return suite.Subject{New: func(s suite.Surroundings) (suite.Registry, error) {
		store := func(e Entry) error {
			text, err := json.Marshal(e, json.Deterministic(true))
			if err != nil {
				return err
			}
			return s.Store(suite.Stored{Kind: e.Kind, Agent: e.Agent, Call: e.Call, IsError: e.IsError, Entry: text})
		}
		return joined{New(store, s.Log, plant)}, nil
	}}
}

type joined struct{ *Registry }

// ParseView reads a view.
func (j joined) ParseView(text []byte) (any, error) { return j.Parse(text) }

// Prepare makes an execution.
func (j joined) Prepare(c suite.Call) suite.Execution {
	parent := uint64(0)
	if c.Parent != nil {
		parent = c.Parent.Identity().Token
	}
	return execution{j.Registry.Prepare(c.Agent, c.ID, c.Tool, parent)}
}

// Observe registers an observer.
func (j joined) Observe(agent string, o func(suite.Observation) error) (stop func()) {
	return j.Watch(agent, func(e Event) error {
		id := suite.Identity{Agent: e.Agent, Call: e.Call, Token: e.Token, Parent: e.Parent}
		return o(suite.Observation{Identity: id, View: e.View})
	})
}

type execution struct{ *Execution }

// Identity is whose it is.
func (x execution) Identity() suite.Identity {
	return suite.Identity{Agent: x.Agent, Call: x.Call, Token: x.Token, Parent: x.Parent}
}

// Dispatch begins it.
func (x execution) Dispatch() error { return x.Begin() }

// ReportProgress reports.
func (x execution) ReportProgress(view any) (bool, error) { return x.Report(view.(*View)) }

// Finalize ends it.
func (x execution) Finalize(o suite.Outcome, hook func(suite.Outcome) suite.Outcome) suite.Outcome {
	own := func(text string, isError bool) (string, bool) {
		o := hook(suite.Outcome{Text: text, IsError: isError})
		return o.Text, o.IsError
	}
	if hook == nil {
		own = nil
	}
	text, isError := x.End(o.Text, o.IsError, own)
	return suite.Outcome{Text: text, IsError: isError}
}
