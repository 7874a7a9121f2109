package acp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/acp"
)

type wire struct{ lines []string }

func (w *wire) send(line []byte) error {
	w.lines = append(w.lines, string(line))
	return nil
}

func bridged(t *testing.T, every int) (*progress.Registry, *acp.Bridge, *wire) {
	t.Helper()
	r, err := progress.New(progress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	b, err := acp.New(acp.Options{Registry: r, Send: w.send, Every: every})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Open("s", "a"); err != nil {
		t.Fatal(err)
	}
	return r, b, w
}

func TestRefusals(t *testing.T) {
	r, b, _ := bridged(t, 0)
	if _, err := acp.New(acp.Options{Registry: r, Every: -1}); !errors.Is(err, acp.ErrEvery) {
		t.Error(err)
	}
	for _, s := range [][2]string{{"s", "b"}, {"t", "a"}} {
		if err := b.Open(s[0], s[1]); !errors.Is(err, acp.ErrSession) {
			t.Error(s, err)
		}
	}
	b.Close("s")
	if err := b.Open("s", "b"); err != nil {
		t.Error(err)
	}
	b.Dispose()
	if r.Probe().Observers != 0 {
		t.Errorf("%+v", r.Probe())
	}
}

// TestEvery holds that a bridge which lets each third view through still shows the
// last one, and no view twice.
func TestEvery(t *testing.T) {
	for views, want := range map[int]string{1: "1", 2: "1 2", 4: "1 4", 6: "1 4 6"} {
		r, _, w := bridged(t, 3)
		x := r.Prepare(progress.Call{Agent: "a", ID: "c", Tool: "t"})
		if err := x.Dispatch(); err != nil {
			t.Fatal(err)
		}
		for i := range views {
			if ok, err := x.ReportProgress(progress.Text("step " + string(rune('1'+i)))); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		x.Finalize(progress.Outcome{}, nil)
		var shown []string
		for _, line := range w.lines {
			if _, after, ok := strings.Cut(line, "step "); ok {
				shown = append(shown, after[:1])
			}
		}
		if got := strings.Join(shown, " "); got != want {
			t.Errorf("of %d views: %s, want %s", views, got, want)
		}
	}
}

// TestLostResult holds that a call whose result was lost in a crash is closed when
// it is replayed.
func TestLostResult(t *testing.T) {
	_, b, w := bridged(t, 0)
	log := []progress.Durable{
		{Kind: progress.ToolCall, Agent: "a", Call: "c1", Tool: "t"},
		{Kind: progress.ToolCall, Agent: "a", Call: "c2", Tool: "t"},
		{Kind: progress.ToolResult, Agent: "a", Call: "c2", Result: &trace.Result{Content: trace.TextContent("ok")}},
	}
	if err := b.Replay("s", log); err != nil {
		t.Fatal(err)
	}
	if len(w.lines) != 4 || !strings.Contains(w.lines[1], `"failed"`) || !strings.Contains(w.lines[3], `"completed"`) {
		t.Errorf("%q", w.lines)
	}
}

// TestTitle holds that a title is shown on a generic card only, and not for ever.
func TestTitle(t *testing.T) {
	for _, generic := range []bool{true, false} {
		r, _, w := bridged(t, 0)
		x := r.Prepare(progress.Call{Agent: "a", ID: "c", Tool: "t", Card: &progress.Card{Title: "made", Generic: generic}})
		if err := x.Dispatch(); err != nil {
			t.Fatal(err)
		}
		title := "42 %"
		if ok, err := x.ReportProgress(progress.View{Title: &title}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		x.Finalize(progress.Outcome{}, nil)
		if got := strings.Contains(w.lines[1], title); got != generic {
			t.Errorf("generic %t: %s", generic, w.lines[1])
		}
		if !strings.Contains(w.lines[2], `"title":"made"`) {
			t.Error(w.lines[2])
		}
	}
}

// TestEqualIDs holds that two calls of one id at once have one card, which is
// announced once and closed once, live and replayed.
func TestEqualIDs(t *testing.T) {
	var log []progress.Durable
	r, err := progress.New(progress.Options{Durable: func(d progress.Durable) error { log = append(log, d); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	b, err := acp.New(acp.Options{Registry: r, Send: w.send})
	if err == nil {
		err = b.Open("s", "a")
	}
	if err != nil {
		t.Fatal(err)
	}
	var both []*progress.Execution
	for range 2 {
		x := r.Prepare(progress.Call{Agent: "a", ID: "c", Tool: "t"})
		if err := x.Dispatch(); err != nil {
			t.Fatal(err)
		}
		both = append(both, x)
	}
	both[1].Finalize(progress.Failure("first"), nil)
	both[0].Finalize(progress.Outcome{Result: &trace.Result{Content: trace.TextContent("second")}}, nil)
	if err := b.Replay("s", log); err != nil {
		t.Fatal(err)
	}
	if len(w.lines) != 4 || w.lines[0] != w.lines[2] || w.lines[1] != w.lines[3] || !strings.Contains(w.lines[1], "second") {
		t.Errorf("%q", w.lines)
	}
}
