package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
)

func begun(t testing.TB, r *progress.Registry) *progress.Execution {
	t.Helper()
	x := r.Prepare(progress.Call{Agent: "a", ID: "c1", Tool: "workflow"})
	if err := x.Dispatch(); err != nil {
		t.Fatal(err)
	}
	return x
}

func watched(t testing.TB) (*progress.Registry, *[]string) {
	t.Helper()
	r, err := progress.New(progress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	r.Observe(func(o progress.Observation) error {
		seen = append(seen, o.View.Content[0].Text)
		return nil
	})
	return r, &seen
}

// TestImmediate holds that a workflow which is over before Start returns is shown
// once.
func TestImmediate(t *testing.T) {
	r, seen := watched(t)
	engine := workflow.NewImmediate([]workflow.Event{
		{Kind: workflow.Start},
		{Kind: workflow.Phase, Phase: "build"},
		{Run: "other", Kind: workflow.Log, Log: "not ours"},
		{Kind: workflow.AgentStart, Seq: 1, Label: "one"},
		{Kind: workflow.AgentEnd, Seq: 1, Outcome: workflow.Failed},
		{Kind: workflow.End, Stop: "finished"},
	}, workflow.Result{Text: "ok"})
	p := workflow.NewProducer(engine, r.Policy(), nil)
	result, err := p.Run(context.Background(), begun(t, r), workflow.Job{})
	if err != nil || result.Content.PlainText() != "ok" {
		t.Fatal(result, err)
	}
	want := "phase: build\nactive: \n0 active, 0 completed, 1 failed, 0 cancelled\nended: finished"
	if len(*seen) != 1 || (*seen)[0] != want {
		t.Errorf("%q", *seen)
	}
	if engine.Listeners() != 0 || p.Probe() != (workflow.Probe{}) {
		t.Errorf("%d listeners, %+v", engine.Listeners(), p.Probe())
	}
}

// TestEarlyEnd holds that the policy decides whether a run is shown that is over
// before it is known whose it is.
func TestEarlyEnd(t *testing.T) {
	for policy, want := range map[progress.EarlyEnd]int{progress.EndKept: 1, progress.EndDropped: 0} {
		r, seen := watched(t)
		engine := workflow.NewImmediate([]workflow.Event{{Kind: workflow.Start}, {Kind: workflow.End, Stop: "finished"}}, workflow.Result{})
		p := workflow.NewProducer(engine, progress.Policy{EarlyEnd: policy}, nil)
		if _, err := p.Run(context.Background(), begun(t, r), workflow.Job{}); err != nil || len(*seen) != want {
			t.Errorf("%d: %d views, %v", policy, len(*seen), err)
		}
	}
}

// TestCancelled holds that a cancelled workflow leaves nothing behind (FLOW-8).
func TestCancelled(t *testing.T) {
	r, _ := watched(t)
	engine := workflow.NewScripted(map[string]workflow.Script{"s": {Steps: []workflow.Step{{At: time.Hour, Event: workflow.Event{Kind: workflow.End}}}}}, nil)
	p := workflow.NewProducer(engine, r.Policy(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Run(ctx, begun(t, r), workflow.Job{Script: "s"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if engine.Listeners() != 0 || p.Probe() != (workflow.Probe{}) {
		t.Errorf("%d listeners, %+v", engine.Listeners(), p.Probe())
	}
}

// TestManyActive holds that the view stays within its bound however many
// children are active.
func TestManyActive(t *testing.T) {
	var events []workflow.Event
	for i := range 10_000 {
		events = append(events, workflow.Event{Kind: workflow.AgentStart, Seq: i, Label: strings.Repeat("x", 2000)})
	}
	r, seen := watched(t)
	p := workflow.NewProducer(workflow.NewImmediate(events, workflow.Result{}), r.Policy(), nil)
	if _, err := p.Run(context.Background(), begun(t, r), workflow.Job{}); err != nil {
		t.Fatal(err)
	}
	if len(*seen) != 1 || !strings.Contains((*seen)[0], "10000 active") {
		t.Errorf("%d views", len(*seen))
	}
}

// endless is an engine that makes its events as they are wanted.
type endless struct {
	logs, children int
	listen         func(*workflow.Event)
	each           func()
}

func (e *endless) Listen(l func(*workflow.Event)) (stop func()) {
	e.listen = l
	return func() { e.listen = nil }
}

func (e *endless) Start(context.Context, workflow.Job) (string, error) { return "r", nil }

const together = 8 // children at a time

func (e *endless) Wait(context.Context, string) (workflow.Result, error) {
	emit := func(ev workflow.Event) {
		ev.Run = "r"
		e.listen(&ev)
		e.each()
	}
	for i := range e.logs {
		emit(workflow.Event{Kind: workflow.Log, Log: fmt.Sprintf("line %d", i)})
	}
	for i := range e.children {
		emit(workflow.Event{Kind: workflow.AgentStart, Seq: i, Label: fmt.Sprintf("child %d", i)})
		if i >= together {
			emit(workflow.Event{Kind: workflow.AgentEnd, Seq: i - together, Outcome: workflow.Completed})
		}
	}
	emit(workflow.Event{Kind: workflow.End})
	return workflow.Result{}, nil
}

// most runs a workflow of that size and gives the most that its producer has kept
// at any time.
func most(t testing.TB, logs, children int) int {
	r, err := progress.New(progress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	engine := &endless{logs: logs, children: children}
	p := workflow.NewProducer(engine, r.Policy(), nil)
	engine.each = func() { kept = max(kept, p.Probe().Retained) }
	if _, err := p.Run(context.Background(), begun(t, r), workflow.Job{}); err != nil {
		t.Fatal(err)
	}
	return kept
}

// TestBounded holds that 100,000 lines and 10,000 children leave as much behind as
// 100 do (FLOW-6).
func TestBounded(t *testing.T) {
	few, many := most(t, 100, 100), most(t, 100_000, 10_000)
	if few != many || many > together+1 {
		t.Errorf("%d things are kept of a small workflow, %d of a large one", few, many)
	}
}

// BenchmarkMemory tells how much the heap has grown at the end of a workflow,
// while its capture is still open.
func BenchmarkMemory(b *testing.B) {
	for _, size := range []struct{ logs, children int }{{100, 100}, {100_000, 10_000}} {
		b.Run(fmt.Sprintf("%dlogs-%dchildren", size.logs, size.children), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(growth(b, size.logs, size.children)), "heap-bytes")
			}
		})
	}
}

func growth(b *testing.B, logs, children int) int64 {
	r, err := progress.New(progress.Options{})
	if err != nil {
		b.Fatal(err)
	}
	before := heap()
	var after int64
	engine := &endless{logs: logs, children: children, each: func() {}}
	left := logs + 2*children - together // all events but the last
	engine.each = func() {
		if left--; left == 0 {
			after = heap()
		}
	}
	p := workflow.NewProducer(engine, r.Policy(), nil)
	if _, err := p.Run(context.Background(), begun(b, r), workflow.Job{}); err != nil {
		b.Fatal(err)
	}
	return after - before
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestClock holds that a scripted engine emits nothing before its time.
func TestClock(t *testing.T) {
	engine := workflow.NewScripted(map[string]workflow.Script{"s": {Steps: []workflow.Step{
		{Event: workflow.Event{Kind: workflow.Start}}, {At: time.Second, Event: workflow.Event{Kind: workflow.End}},
	}}}, nil)
	var kinds []workflow.Kind
	engine.Listen(func(ev *workflow.Event) { kinds = append(kinds, ev.Kind) })
	run, err := engine.Start(context.Background(), workflow.Job{Script: "s"})
	if err != nil || len(kinds) != 1 {
		t.Fatal(kinds, err)
	}
	engine.Advance(999 * time.Millisecond)
	if len(kinds) != 1 {
		t.Error(kinds)
	}
	engine.Advance(time.Millisecond)
	if _, err := engine.Wait(context.Background(), run); err != nil || len(kinds) != 2 {
		t.Error(kinds, err)
	}
}

// TestOnePlayer holds that the events of a run come in their order when the clock
// moves while they are being emitted.
func TestOnePlayer(t *testing.T) {
	engine := workflow.NewScripted(map[string]workflow.Script{"w": {Steps: []workflow.Step{
		{Event: workflow.Event{Kind: workflow.Start}},
		{Event: workflow.Event{Kind: workflow.Phase, Phase: "reading"}},
		{At: time.Second, Event: workflow.Event{Kind: workflow.End}},
	}}}, nil)
	var seen []workflow.Kind
	engine.Listen(func(ev *workflow.Event) {
		if ev.Kind == workflow.Start {
			engine.Advance(time.Second)
		}
		seen = append(seen, ev.Kind)
	})
	id, err := engine.Start(t.Context(), workflow.Job{Script: "w"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []workflow.Kind{workflow.Start, workflow.Phase, workflow.End}; !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
	if _, err := engine.Wait(t.Context(), id); err != nil {
		t.Error(err)
	}
}
