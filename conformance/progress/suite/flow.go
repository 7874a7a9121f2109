package suite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
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
	flowClosed   // the session that shows it is closed
	flowDisposed // the session is over: what runs is ended, and the bridge taken down
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
	schedule
	plan     flowPlan
	engine   *workflow.Scripted
	registry Registry
	producer Producer
	bridge   Bridge
	behind   func() // takes away the listener behind the producer's
	call     Execution

	mu      sync.Mutex
	entries []rules.Entry
	marked  bool // the boundary stands in the record
	over    bool
}

func (s *flowStage) add(e rules.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
}

func (s *flowStage) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

func newFlowStage(p flowPlan, sc schedule) *flowStage {
	s := &flowStage{schedule: sc, plan: p, behind: func() {}}
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

// probe counts what is held, so far as it can be counted.
func (s *flowStage) probe() {
	held := &rules.Probe{Listeners: s.engine.Listeners()}
	if r, ok := s.registry.(Prober); ok {
		held.Executions, held.Observers = r.Held()
	}
	if r, ok := s.producer.(ProducerProber); ok {
		p := r.Held()
		held.Captures, held.Candidates, held.Active, held.Retained = p.Captures, p.Candidates, p.Active, p.Retained
	}
	s.add(rules.Entry{Kind: rules.Probed, Probe: held})
}

// playFlow plays a workflow as a tool.
func playFlow(subject Subject, p flowPlan, sc schedule) ([]rules.Entry, error) {
	s := newFlowStage(p, sc)
	if err := s.open(subject); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	s.spawn(func() { s.tool(ctx) })
	s.spawn(s.clock)
	if happens := s.happening(func() { cancel(errStopped) }); happens != nil {
		turns := rand.New(rand.NewPCG(p.seed, 5)).IntN(8)
		s.spawn(func() {
			for range turns {
				s.yield()
			}
			s.add(rules.Entry{Kind: rules.Happened, By: p.fate.String()})
			happens()
		})
	}
	err := s.run()
	s.behind()
	if s.bridge != nil && p.fate != flowDisposed {
		s.bridge.Dispose()
	}
	s.probe()
	return s.entries, closed(s.registry, err)
}

// open makes everything.
func (s *flowStage) open(subject Subject) (err error) {
	s.registry, err = subject.New(Surroundings{
		Store: func(Stored) error { return nil }, Log: func(string, error) {}, Await: s.await,
		Pause: func() {}, // a producer may hold a lock while it reports
	})
	if err != nil {
		return err
	}
	if s.producer, err = subject.Producer(s.registry, s); err != nil {
		return err
	}
	s.registry.Observe("", s.observed)
	if r, ok := s.registry.(ResultObservable); ok {
		r.ObserveResults(func(id Identity, _ Outcome) error { s.mark(id); return nil })
	}
	s.probe()
	if subject.Bridge == nil {
		return nil
	}
	if s.bridge, err = subject.Bridge(s.registry, func([]byte) error { return nil }); err != nil {
		return err
	}
	return s.bridge.Open(sessionOf("a"), "a")
}

// String is the fate in a word.
func (f flowFate) String() string {
	return [...]string{"ends", "fails", "refused", "cancelled", "worker dies", "session closed", "disposed"}[f]
}

// happening is what happens in the middle of the workflow; nil if nothing does.
func (s *flowStage) happening(cancel func()) func() {
	switch s.plan.fate {
	case flowCancelled:
		return cancel
	case flowWorkerDies:
		return func() { s.settle("the worker is gone"); cancel() }
	case flowClosed:
		return func() {
			if s.bridge != nil {
				s.bridge.Close(sessionOf("a"))
			}
		}
	case flowDisposed:
		return func() {
			s.settle("the session is over")
			cancel()
			if s.bridge != nil {
				s.bridge.Dispose()
			}
		}
	case flowEnds, flowFails, flowRefused, flowFates:
	}
	return nil
}

// settle ends the tool from outside.
func (s *flowStage) settle(why string) {
	if r, ok := s.registry.(Settler); ok {
		r.Settle("a", why)
		return
	}
	s.mu.Lock()
	x := s.call
	s.mu.Unlock()
	if x != nil {
		x.Finalize(Outcome{why, true}, func(o Outcome) Outcome { s.mark(x.Identity()); return o })
	}
}

var errStopped = errors.New("the user has stopped it")

func (s *flowStage) mark(id Identity) {
	s.mu.Lock()
	before := s.marked
	s.marked = true
	s.mu.Unlock()
	if !before {
		s.add(rules.Entry{Kind: rules.Boundary, Agent: id.Agent, Call: id.Call, Token: id.Token, Parent: id.Parent})
	}
}

func (s *flowStage) observed(o Observation) error {
	s.add(rules.Entry{
		Kind: rules.Report, Agent: o.Agent, Call: o.Call, Token: o.Token, Parent: o.Parent, By: "producer", View: show(o.View),
	})
	return nil
}

func (s *flowStage) tool(ctx context.Context) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
	}()
	x := s.registry.Prepare(Call{Agent: "a", ID: "c1", Tool: "workflow", Args: trace.Value(`{}`), Card: cards[0]})
	s.mu.Lock()
	s.call = x
	s.mu.Unlock()
	if x.Dispatch() != nil {
		return
	}
	text, err := s.producer.Run(ctx, x, workflow.Job{Script: ours})
	o := Outcome{Text: text}
	if err != nil {
		o = Outcome{err.Error(), true}
	}
	id := x.Identity()
	o = x.Finalize(o, func(o Outcome) Outcome { s.mark(id); return o })
	e := rules.Entry{Kind: rules.Outcome, Agent: id.Agent, Call: id.Call, Token: id.Token, Parent: id.Parent}
	if o.IsError {
		e.Error = o.Text
	}
	s.add(e)
}

func (s *flowStage) clock() {
	for range s.plan.ticks + 2 {
		s.yield()
		s.engine.Advance(time.Second)
		s.probe()
	}
	for !s.isOver() {
		s.yield()
		s.engine.Advance(time.Second)
	}
}

// playBare plays the same workflow without the producer.
func playBare(p flowPlan) ([]rules.Entry, error) {
	s := newFlowStage(p, newCoroutines(p.seed))
	s.spawn(func() {
		defer func() { s.over = true }()
		if run, err := s.engine.Start(context.Background(), workflow.Job{Script: ours}); err == nil {
			_, _ = s.Wait(context.Background(), run)
		}
	})
	s.spawn(func() {
		for !s.isOver() {
			s.yield()
			s.engine.Advance(time.Second)
		}
	})
	err := s.run()
	return s.entries, err
}
