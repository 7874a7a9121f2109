package progress_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

func registry(t *testing.T, o progress.Options) *progress.Registry {
	t.Helper()
	r, err := progress.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func begun(t *testing.T, r *progress.Registry, c progress.Call) *progress.Execution {
	t.Helper()
	x := r.Prepare(c)
	if err := x.Dispatch(); err != nil {
		t.Fatal(err)
	}
	return x
}

func expect(t *testing.T, x *progress.Execution, v progress.View, accepted bool, reason error) {
	t.Helper()
	ok, err := x.ReportProgress(v)
	if ok != accepted || !errors.Is(err, reason) {
		t.Errorf("accepted %t, %v; want %t, %v", ok, err, accepted, reason)
	}
}

var call = progress.Call{Agent: "a", ID: "c1", Tool: "t"}

func TestAnswers(t *testing.T) {
	r := registry(t, progress.Options{})
	x := r.Prepare(call)
	expect(t, x, progress.Text("early"), false, progress.ErrNotRunning)
	if err := x.Dispatch(); err != nil {
		t.Fatal(err)
	}
	expect(t, x, progress.Text("nobody watches"), true, nil)
	expect(t, x, progress.View{}, false, progress.ErrEmptyView)
	expect(t, x, progress.Text(strings.Repeat("x", progress.DefaultMaxViewBytes)), false, progress.ErrTooLarge)
	expect(t, x, progress.View{Content: []progress.Block{{Type: "diff"}}}, false, progress.ErrBlock)
	expect(t, x, progress.Text("still there"), true, nil)
	x.Finalize(progress.Outcome{}, nil)
	expect(t, x, progress.View{}, false, nil)
	if p := r.Probe(); p.Executions != 0 {
		t.Errorf("%+v", p)
	}
}

func TestPolicy(t *testing.T) {
	with := func(p progress.Policy) *progress.Registry { return registry(t, progress.Options{Policy: p}) }
	expect(t, begun(t, with(progress.Policy{Unobserved: progress.UnobservedDeclined}), call), progress.Text("x"), false, nil)
	expect(t, begun(t, with(progress.Policy{MaxViewBytes: 10}), call), progress.Text("x"), false, progress.ErrTooLarge)
	r := with(progress.Policy{Nested: progress.NestedRefused, InvalidFirst: true})
	x := begun(t, r, call)
	expect(t, begun(t, r, progress.Call{Agent: "a", ID: "c2", Parent: x}), progress.Text("x"), false, progress.ErrNested)
	x.Close()
	expect(t, x, progress.View{}, false, progress.ErrEmptyView)
	if _, err := progress.New(progress.Options{Policy: progress.Policy{MaxViewBytes: -1}}); err == nil {
		t.Error("a negative bound is taken")
	}
}

// TestObserverReports holds that an observer which reports on the execution that
// it is told of, or ends it, does not wait for itself.
func TestObserverReports(t *testing.T) {
	r := registry(t, progress.Options{})
	x := begun(t, r, call)
	told := 0
	r.Observe(func(progress.Observation) error {
		told++
		expect(t, x, progress.Text("again"), false, progress.ErrReentrant)
		x.Finalize(progress.Outcome{}, nil)
		return nil
	})
	expect(t, x, progress.Text("once"), true, nil)
	expect(t, x, progress.Text("late"), false, nil)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestParseView(t *testing.T) {
	if _, err := progress.ParseView([]byte(`{"title":"x","content":[{"type":"text","text":"y"}]}`)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{`{"kind":"edit"}`, `{"status":"failed"}`, `{"content":[{"type":"text","path":"/x"}]}`} {
		if _, err := progress.ParseView([]byte(text)); err == nil {
			t.Errorf("%s is taken for a view", text)
		}
	}
}

// TestBoundaryRace lets goroutines report while the execution ends (PROG-3,
// PROG-4, PROG-5). It is worth most with the race detector.
func TestBoundaryRace(t *testing.T) {
	for range 300 {
		r := registry(t, progress.Options{})
		var closed atomic.Bool
		var told, accepted atomic.Int64
		r.Observe(func(o progress.Observation) error {
			if closed.Load() {
				t.Error("told after the boundary")
			}
			told.Add(1)
			o.View.Content[0].Text = "changed"
			return nil
		})
		x := begun(t, r, call)
		var reporters sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			reporters.Go(func() {
				v := progress.Text("step")
				<-begin
				for range 20 {
					late := closed.Load()
					ok, err := x.ReportProgress(v)
					if err != nil || ok && late {
						t.Errorf("accepted %t after the boundary: %t, %v", ok, late, err)
					}
					if ok {
						accepted.Add(1)
					}
				}
			})
		}
		close(begin)
		x.Finalize(progress.Outcome{}, func(o progress.Outcome) progress.Outcome {
			closed.Store(true)
			return o
		})
		reporters.Wait()
		if told.Load() != accepted.Load() {
			t.Errorf("%d rounds, %d accepted", told.Load(), accepted.Load())
		}
	}
}

// TestSlowObserver holds that finalize waits for a round that has begun, and that a
// report which comes while it waits is not accepted (PROG-3, PROG-5).
func TestSlowObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, progress.Options{})
		r.Observe(func(progress.Observation) error {
			time.Sleep(time.Second)
			return nil
		})
		x := begun(t, r, call)
		begin := time.Now()
		go expect(t, x, progress.Text("in time"), true, nil)
		time.AfterFunc(500*time.Millisecond, func() { expect(t, x, progress.Text("while it waits"), false, nil) })
		time.AfterFunc(2*time.Second, func() { expect(t, x, progress.Text("late"), false, nil) })
		time.Sleep(200 * time.Millisecond)
		x.Finalize(progress.Outcome{}, func(o progress.Outcome) progress.Outcome {
			if waited := time.Since(begin); waited != time.Second {
				t.Errorf("finalize began after %s", waited)
			}
			return o
		})
		time.Sleep(3 * time.Second)
	})
}

// TestObserversComeAndGo registers and removes observers while a tool reports, for
// the race detector.
func TestObserversComeAndGo(t *testing.T) {
	r := registry(t, progress.Options{})
	x := begun(t, r, call)
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for range 200 {
				r.ObserveAgent("a", func(o progress.Observation) error { o.View.Content[0].Text = ""; return nil })()
				r.Probe()
			}
		})
	}
	for range 200 {
		expect(t, x, progress.Text("step"), true, nil)
	}
	others.Wait()
	r.Settle("a", "over")
	if p := r.Probe(); p != (progress.Probe{}) {
		t.Errorf("%+v", p)
	}
}

// stream plays turns one after the other.
type stream struct{ steps []scriptedmodel.Step }

func (s *stream) Next() (*trace.StreamEvent, bool, error) {
	if len(s.steps) == 0 {
		return nil, false, nil
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step.Event, true, nil
}

func (s *stream) Result() (*trace.Message, error) { return nil, errors.New("no result") }

func playing(turns ...scriptedmodel.Turn) loop.StreamFunc {
	return func(context.Context, *loop.Request) (loop.Stream, error) {
		turn := turns[0]
		turns = turns[1:]
		return &finished{stream{turn.Plan()}, turn.Message()}, nil
	}
}

type finished struct {
	stream
	final *trace.Message
}

func (f *finished) Result() (*trace.Message, error) { return f.final, nil }

// TestPlug holds that a tool of the reference loop finds its execution, that each
// call has its pair in the log, also one that is refused, and that the loop's own
// updates go on.
func TestPlug(t *testing.T) {
	var log []string
	r := registry(t, progress.Options{Durable: func(d progress.Durable) error {
		log = append(log, d.Kind+" "+d.Call)
		return nil
	}})
	var views, updates int
	r.ObserveAgent("a", func(progress.Observation) error { views++; return nil })
	plug := progress.NewPlug(r, "a", nil)
	tool := plug.Wrap(&loop.Tool{Name: "t", Execute: func(ctx context.Context, _ loop.Execution, onUpdate func(*trace.Result)) (*trace.Result, error) {
		expect(t, progress.From(ctx), progress.Text("half"), true, nil)
		onUpdate(&trace.Result{Content: trace.TextContent("half")})
		return &trace.Result{Content: trace.TextContent("done")}, nil
	}})
	calls := []scriptedmodel.Call{{ID: "c1", Name: "t"}, {ID: "c2", Name: "missing"}}
	agent := loop.NewAgent(loop.Options{
		Stream: playing(scriptedmodel.Turn{Calls: calls}, scriptedmodel.Turn{Text: "ok"}), Tools: []*loop.Tool{tool}, ToolExecution: loop.Sequential,
	})
	agent.Subscribe(plug.Listen)
	agent.Subscribe(func(_ context.Context, ev *trace.Event) error {
		if ev.Type == trace.ToolExecutionUpdate {
			updates++
		}
		return nil
	})
	if err := agent.PromptText("go"); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(log, ", "), "tool/call c1, tool/result c1, tool/call c2, tool/result c2"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if views != 1 || updates != 1 || r.Probe().Executions != 0 {
		t.Errorf("%d views, %d updates, %+v", views, updates, r.Probe())
	}
}

// TestPlugEqualIDs holds that two calls of one id, as a model may make them, are two
// executions, and that neither is left behind.
func TestPlugEqualIDs(t *testing.T) {
	r := registry(t, progress.Options{})
	var mu sync.Mutex // two executions may report at the same time
	tokens := map[uint64]bool{}
	r.Observe(func(o progress.Observation) error {
		mu.Lock()
		defer mu.Unlock()
		tokens[o.Token] = true
		return nil
	})
	plug := progress.NewPlug(r, "a", nil)
	tool := plug.Wrap(&loop.Tool{Name: "t", Execute: func(ctx context.Context, _ loop.Execution, _ func(*trace.Result)) (*trace.Result, error) {
		expect(t, progress.From(ctx), progress.Text("half"), true, nil)
		return &trace.Result{Content: trace.TextContent("done")}, nil
	}})
	calls := []scriptedmodel.Call{{ID: "c1", Name: "t"}, {ID: "c1", Name: "t"}}
	for _, mode := range []string{loop.Sequential, loop.Parallel} {
		clear(tokens)
		agent := loop.NewAgent(loop.Options{
			Stream: playing(scriptedmodel.Turn{Calls: calls}, scriptedmodel.Turn{Text: "ok"}), Tools: []*loop.Tool{tool}, ToolExecution: mode,
		})
		agent.Subscribe(plug.Listen)
		if err := agent.PromptText("go"); err != nil {
			t.Fatal(err)
		}
		if len(tokens) != 2 || r.Probe().Executions != 0 {
			t.Errorf("%s: %d executions have reported, %+v", mode, len(tokens), r.Probe())
		}
	}
}

// TestPlugEqualIDsEndAsTheyAre holds that of two calls with one id each ends with its
// own result, when one is refused, and when the second returns first.
func TestPlugEqualIDsEndAsTheyAre(t *testing.T) {
	type ended struct {
		token  uint64
		result string
	}
	for _, c := range []struct {
		name    string
		refused string // arguments of the call that is
		want    []ended
	}{
		{"the second is refused", "2", []ended{{2, "no"}, {1, "done 1"}}},
		{"the first is refused", "1", []ended{{1, "no"}, {2, "done 2"}}},
		{"the second returns first", "", []ended{{2, "done 2"}, {1, "done 1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := registry(t, progress.Options{})
			var got []ended
			r.ObserveResults(func(id progress.Identity, o progress.Outcome) error {
				got = append(got, ended{id.Token, o.Result.Content.PlainText()})
				return nil
			})
			plug := progress.NewPlug(r, "a", nil)
			second := make(chan struct{})
			tool := plug.Wrap(&loop.Tool{Name: "t", Execute: func(_ context.Context, call loop.Execution, _ func(*trace.Result)) (*trace.Result, error) {
				if c.refused == "" && string(call.Args) == "1" {
					<-second
				}
				return &trace.Result{Content: trace.TextContent("done " + string(call.Args))}, nil
			}})
			agent := loop.NewAgent(loop.Options{
				Stream: playing(scriptedmodel.Turn{Calls: []scriptedmodel.Call{
					{ID: "c1", Name: "t", Args: trace.Value("1")}, {ID: "c1", Name: "t", Args: trace.Value("2")},
				}}, scriptedmodel.Turn{Text: "ok"}),
				Tools: []*loop.Tool{tool}, ToolExecution: loop.Parallel,
				Hooks: loop.Hooks{BeforeToolCall: func(_ context.Context, call loop.BeforeToolCallContext) (*loop.BeforeToolCallResult, error) {
					return &loop.BeforeToolCallResult{Block: string(call.Args) == c.refused, Reason: "no"}, nil
				}},
			})
			agent.Subscribe(plug.Listen)
			agent.Subscribe(func(_ context.Context, ev *trace.Event) error {
				if ev.Type == trace.ToolExecutionEnd && ev.Result.Content.PlainText() == "done 2" && c.refused == "" {
					close(second)
				}
				return nil
			})
			if err := agent.PromptText("go"); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
