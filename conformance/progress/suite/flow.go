package suite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
)

// flowFate is what becomes of a workflow's tool.
type flowFate uint8

const (
	flowEnds flowFate = iota
	flowFails
	flowRefused // Start fails
	flowCancelled
	flowWorkerDies
	flowFates
)

const (
	ours  = "ours"
	other = "other"
)

// flowPlan is a workflow and what becomes of its tool.
type flowPlan struct {
	seed   uint64
	fate   flowFate
	script workflow.Script
	ticks  int
}

func drawFlow(seed uint64) flowPlan {
	rng := rand.New(rand.NewPCG(seed, 3))
	p := flowPlan{seed: seed, fate: flowFate(rng.IntN(int(flowFates) + 2)), ticks: 6}
	if p.fate >= flowFates {
		p.fate = flowEnds
	}
	events := drawEvents(rng)
	inside := rng.IntN(len(events) + 1) // any prefix is emitted inside Start
	for i, ev := range events {
		step := workflow.Step{Event: ev}
		if i >= inside {
			step.At = time.Duration(1+(i-inside)*p.ticks/len(events)) * time.Second
		}
		p.script.Steps = append(p.script.Steps, step)
		if rng.IntN(4) == 0 {
			p.script.Steps = append(p.script.Steps, workflow.Step{At: step.At, Event: foreignEvent(rng, i)})
		}
	}
	p.script.Text = "done"
	switch {
	case p.fate == flowFails:
		p.script.Error = "a child failed"
	case p.fate == flowRefused:
		p.script.Fails = "there is no such workflow"
	}
	return p
}

func foreignEvent(rng *rand.Rand, i int) workflow.Event {
	if rng.IntN(2) == 0 {
		return workflow.Event{Run: other, Kind: workflow.Log, Log: fmt.Sprintf("foreign line %d", i)}
	}
	return workflow.Event{Run: other, Kind: workflow.AgentStart, Seq: 100 + i, Label: fmt.Sprintf("foreign child %d", i)}
}

// drawEvents are the events of a run, from start to end.
func drawEvents(rng *rand.Rand) []workflow.Event {
	events := []workflow.Event{{Kind: workflow.Start}}
	var active []int
	next := 1
	for k := range 5 + rng.IntN(30) {
		switch choice := rng.IntN(6); {
		case choice == 0:
			events = append(events, workflow.Event{Kind: workflow.Phase, Phase: fmt.Sprintf("phase %d", k)})
		case choice <= 2:
			events = append(events, workflow.Event{Kind: workflow.Log, Log: fmt.Sprintf("line %d", k)})
		case choice == 3:
			events = append(events, workflow.Event{Kind: workflow.AgentStart, Seq: next, Label: fmt.Sprintf("child %d", next), Child: fmt.Sprintf("id%d", next)})
			active = append(active, next)
			next++
		case choice == 4 && len(active) > 0:
			i := rng.IntN(len(active))
			events = append(events, workflow.Event{Kind: workflow.AgentEnd, Seq: active[i], Outcome: outcomes[rng.IntN(len(outcomes))]})
			active = append(active[:i], active[i+1:]...)
		default:
			events = append(events, workflow.Event{Kind: workflow.AgentEnd, Seq: 900 + k, Outcome: workflow.Completed}) // of a child that nobody began
		}
	}
	return append(events, workflow.Event{Kind: workflow.End, Stop: "finished", Started: next - 1})
}

var outcomes = []workflow.Outcome{workflow.Completed, workflow.Failed, workflow.Cancelled}

// flowStage is where a workflow is played.
type flowStage struct {
	*schedule
	plan     flowPlan
	engine   *workflow.Scripted
	registry *progress.Registry
	producer *workflow.Producer
	entries  []rules.Entry
	behind   func() // takes away the listener behind the producer's
	marked   bool   // the boundary stands in the record
	over     bool
}

func (s *flowStage) add(e rules.Entry) { s.entries = append(s.entries, e) }

func newFlowStage(p flowPlan) *flowStage {
	s := &flowStage{schedule: newSchedule(p.seed), plan: p, behind: func() {}}
	s.engine = workflow.NewScripted(map[string]workflow.Script{ours: p.script}, s.waitFor)
	s.engine.Listen(func(ev *workflow.Event) { s.add(rules.Entry{Kind: rules.Emitted, Event: eventOf(ev)}) })
	return s
}

func (s *flowStage) waitFor(ctx context.Context, done <-chan struct{}) error {
	s.wait(func() bool { return isClosed(done) || ctx.Err() != nil })
	if isClosed(done) {
		return nil
	}
	return ctx.Err()
}

func eventOf(ev *workflow.Event) *rules.Event {
	return &rules.Event{
		Run: ev.Run, Kind: string(ev.Kind), Phase: ev.Phase, Log: ev.Log, Seq: ev.Seq, Label: ev.Label, Child: ev.Child,
		Outcome: string(ev.Outcome), Stop: ev.Stop, Error: ev.Error, Started: ev.Started,
	}
}

// Listen, Start and Wait let the stage stand in for its engine, and tell of it.
func (s *flowStage) Listen(l func(*workflow.Event)) (stop func()) {
	s.add(rules.Entry{Kind: rules.Listening})
	end := s.engine.Listen(l)
	s.behind()
	s.behind = s.engine.Listen(func(ev *workflow.Event) { s.add(rules.Entry{Kind: rules.Heard, Event: eventOf(ev)}) })
	return func() {
		s.add(rules.Entry{Kind: rules.Unlistening})
		end()
	}
}

// Start begins the run.
func (s *flowStage) Start(ctx context.Context, job workflow.Job) (string, error) {
	s.add(rules.Entry{Kind: rules.Entered})
	run, err := s.engine.Start(ctx, job)
	if err != nil {
		s.add(rules.Entry{Kind: rules.NotStarted, Error: err.Error()})
		return "", err
	}
	s.add(rules.Entry{Kind: rules.Started, Run: run})
	return run, nil
}

// Wait waits for the run.
func (s *flowStage) Wait(ctx context.Context, run string) (workflow.Result, error) {
	result, err := s.engine.Wait(ctx, run)
	if err == nil {
		s.add(rules.Entry{Kind: rules.RunResult, Run: run, Value: trace.Value(fmt.Sprintf("%q", result.Text)), Error: result.Error})
	}
	return result, err
}

func (s *flowStage) probe() {
	r, p := s.registry.Probe(), s.producer.Probe()
	s.add(rules.Entry{Kind: rules.Probed, Probe: &rules.Probe{
		Executions: r.Executions, Observers: r.Observers, Captures: p.Captures, Candidates: p.Candidates,
		Listeners: s.engine.Listeners(), Active: p.Active, Retained: p.Retained,
	}})
}

// playFlow plays a workflow as a tool.
func playFlow(p flowPlan, ds workflow.Defects) ([]rules.Entry, error) {
	s := newFlowStage(p)
	var err error
	s.registry, err = progress.New(progress.Options{Await: s.await})
	if err != nil {
		return nil, err
	}
	s.producer = workflow.NewProducer(s, s.registry.Policy(), ds)
	s.registry.Observe(s.observed)
	s.registry.ObserveResults(func(id progress.Identity, _ progress.Outcome) error { s.mark(id); return nil })
	s.probe()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	s.spawn(func() { s.tool(ctx) })
	s.spawn(s.clock)
	switch {
	case p.fate == flowCancelled:
		s.spawn(func() { s.later(func() { cancel(errStopped) }) })
	case p.fate == flowWorkerDies:
		s.spawn(func() {
			s.later(func() {
				s.registry.Settle("a", "the worker is gone")
				cancel(errStopped)
			})
		})
	}
	err = s.run()
	s.behind()
	s.probe()
	return s.entries, err
}

var errStopped = errors.New("the user has stopped it")

func (s *flowStage) later(f func()) {
	for range s.rng.IntN(8) {
		s.yield()
	}
	f()
}

func (s *flowStage) mark(id progress.Identity) {
	if !s.marked {
		s.marked = true
		s.add(identified(rules.Boundary, id))
	}
}

func (s *flowStage) observed(o progress.Observation) error {
	e := identified(rules.Report, o.Identity)
	e.By, e.View = "producer", o.View.JSON()
	s.add(e)
	return nil
}

func (s *flowStage) tool(ctx context.Context) {
	defer func() { s.over = true }()
	x := s.registry.Prepare(progress.Call{Agent: "a", ID: "c1", Tool: "workflow"})
	if x.Dispatch() != nil {
		return
	}
	result, err := s.producer.Run(ctx, x, workflow.Job{Script: ours})
	o := progress.Outcome{Result: result}
	if err != nil {
		o = progress.Failure(err.Error())
	}
	x.Finalize(o, func(o progress.Outcome) progress.Outcome { s.mark(x.Identity()); return o })
	e := identified(rules.Outcome, x.Identity())
	if o.IsError {
		e.Error = o.Result.Content.PlainText()
	}
	s.add(e)
}

func (s *flowStage) clock() {
	for range s.plan.ticks + 2 {
		s.yield()
		s.engine.Advance(time.Second)
		s.probe()
	}
	for !s.over {
		s.yield()
		s.engine.Advance(time.Second)
	}
}

// playBare plays the same workflow without the producer.
func playBare(p flowPlan) ([]rules.Entry, error) {
	s := newFlowStage(p)
	s.spawn(func() {
		defer func() { s.over = true }()
		if run, err := s.engine.Start(context.Background(), workflow.Job{Script: ours}); err == nil {
			_, _ = s.Wait(context.Background(), run)
		}
	})
	s.spawn(func() {
		for !s.over {
			s.yield()
			s.engine.Advance(time.Second)
		}
	})
	err := s.run()
	return s.entries, err
}
