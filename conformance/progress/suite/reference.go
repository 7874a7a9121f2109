package suite

import (
	"context"

	"github.com/go-json-experiment/json"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/acp"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
)

// defects are those of a mutant, each for its package.
type defects struct {
	registry progress.Defects
	bridge   acp.Defects
	workflow workflow.Defects
}

// Reference is the reference of the progress channel.
func Reference() Subject { return referenceWith(defects{}) }

func referenceWith(ds defects) Subject {
	throttled := func(r Registry, send func([]byte) error, every int) (Bridge, error) {
		b, err := acp.New(acp.Options{Registry: r.(*registry).Registry, Send: send, Every: every, Defects: ds.bridge})
		return bridge{b}, err
	}
	return Subject{
		Coroutines: true,
		New: func(s Surroundings) (Registry, error) {
			r, err := progress.New(progress.Options{
				Durable: func(d progress.Durable) error { return s.Store(storedOf(d)) },
				Log:     s.Log, Defects: ds.registry, Await: s.Await, Pause: s.Pause,
			})
			return &registry{r, ds}, err
		},
		Bridge:    func(r Registry, send func([]byte) error) (Bridge, error) { return throttled(r, send, 0) },
		Throttled: throttled,
		Producer: func(r Registry, e Engine) (Producer, error) {
			own := r.(*registry)
			return producer{workflow.NewProducer(e, own.Policy(), ds.workflow)}, nil
		},
	}
}

func storedOf(d progress.Durable) Stored {
	text, err := json.Marshal(d, json.Deterministic(true))
	if err != nil {
		text = trace.Value("null")
	}
	return Stored{Kind: d.Kind, Agent: d.Agent, Call: d.Call, IsError: d.IsError, Entry: text}
}

type registry struct {
	*progress.Registry
	defects defects
}

// ParseView reads the JSON form of a view.
func (r *registry) ParseView(text []byte) (any, error) { return r.defects.registry.ParseView(text) }

// Prepare begins an execution.
func (r *registry) Prepare(c Call) Execution {
	call := progress.Call{Agent: c.Agent, ID: c.ID, Tool: c.Tool, Args: c.Args, Card: cardOf(c.Card)}
	if c.Parent != nil {
		call.Parent = c.Parent.(execution).Execution
	}
	return execution{r.Registry.Prepare(call)}
}

func cardOf(c *rules.Card) *progress.Card {
	if c == nil {
		return nil
	}
	return &progress.Card{Title: c.Title, Kind: c.Kind, Locations: c.Locations, Fixed: c.Fixed, Generic: c.Generic}
}

// Observe registers an observer.
func (r *registry) Observe(agent string, o func(Observation) error) (stop func()) {
	observer := func(seen progress.Observation) error { return o(Observation{Identity(seen.Identity), seen.View}) }
	if agent == "" {
		return r.Registry.Observe(observer)
	}
	return r.ObserveAgent(agent, observer)
}

// ObserveResults registers an observer of results.
func (r *registry) ObserveResults(o func(Identity, Outcome) error) (stop func()) {
	return r.Registry.ObserveResults(func(id progress.Identity, out progress.Outcome) error { return o(Identity(id), outcomeOf(out)) })
}

// Held counts what the registry holds.
func (r *registry) Held() (executions, observers int) {
	p := r.Probe()
	return p.Executions, p.Observers
}

type execution struct{ *progress.Execution }

// Identity is whose execution it is.
func (x execution) Identity() Identity { return Identity(x.Execution.Identity()) }

// ReportProgress reports a view.
func (x execution) ReportProgress(view any) (bool, error) {
	return x.Execution.ReportProgress(view.(progress.View))
}

// Finalize ends the execution.
func (x execution) Finalize(o Outcome, hook func(Outcome) Outcome) Outcome {
	var inner progress.Hook
	if hook != nil {
		inner = func(o progress.Outcome) progress.Outcome { return hook(outcomeOf(o)).reference() }
	}
	return outcomeOf(x.Execution.Finalize(o.reference(), inner))
}

func (o Outcome) reference() progress.Outcome {
	return progress.Outcome{Result: &trace.Result{Content: trace.TextContent(o.Text)}, IsError: o.IsError}
}

func outcomeOf(o progress.Outcome) Outcome {
	out := Outcome{IsError: o.IsError}
	if o.Result != nil {
		out.Text = o.Result.Content.PlainText()
	}
	return out
}

type bridge struct{ *acp.Bridge }

// Replay shows a log.
func (b bridge) Replay(session string, log []Stored) error {
	var entries []progress.Durable
	for _, s := range log {
		var d progress.Durable
		if err := json.Unmarshal(s.Entry, &d); err != nil {
			return err
		}
		entries = append(entries, d)
	}
	return b.Bridge.Replay(session, entries)
}

type producer struct{ *workflow.Producer }

// Run runs a workflow.
func (p producer) Run(ctx context.Context, x Execution, job Job) (string, error) {
	result, err := p.Producer.Run(ctx, x.(execution).Execution, job)
	if err != nil {
		return "", err
	}
	return result.Content.PlainText(), nil
}

// Held counts what the producer holds.
func (p producer) Held() workflow.Probe { return p.Probe() }
