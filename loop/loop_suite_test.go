package loop_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

func TestLoop(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "loop")
}

// script is a model that answers with its turns, one after the other, and then
// with a plain stop. It keeps what it was asked.
type script struct {
	mu    sync.Mutex
	turns []scriptedmodel.Turn
	asked []*loop.Request
}

func (s *script) stream(ctx context.Context, r *loop.Request) (loop.Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	if ctx.Err() != nil {
		aborted := scriptedmodel.Aborted(nil)
		return &played{steps: []scriptedmodel.Step{{Event: &trace.StreamEvent{Type: trace.StreamError, Error: aborted}}}}, nil
	}
	turn := scriptedmodel.Turn{Text: "done"}
	if len(s.turns) > 0 {
		turn, s.turns = s.turns[0], s.turns[1:]
	}
	if turn.End == scriptedmodel.EndRefuses {
		return nil, errors.New(turn.Throw)
	}
	return &played{steps: turn.Plan()}, nil
}

// sees is what the model saw in its request number i.
func (s *script) sees(i int) []string { return trace.Tags(s.asked[i].Messages) }

type played struct {
	steps []scriptedmodel.Step
	final *trace.Message
}

func (p *played) Next() (*trace.StreamEvent, bool, error) {
	step := p.steps[0]
	p.steps = p.steps[1:]
	switch {
	case step.Throws:
		return nil, false, errors.New(step.Throw)
	case step.Ends:
		p.final = step.Final
		return nil, false, nil
	}
	switch step.Event.Type {
	case trace.StreamDone:
		p.final = step.Event.Message
	case trace.StreamError:
		p.final = step.Event.Error
	}
	if step.Final != nil {
		p.final = step.Final
	}
	return step.Event, true, nil
}

func (p *played) Result() (*trace.Message, error) { return p.final, nil }

// calling is a turn that calls tools, each given as id:name.
func calling(calls ...string) scriptedmodel.Turn {
	var t scriptedmodel.Turn
	for _, c := range calls {
		id, name, _ := strings.Cut(c, ":")
		t.Calls = append(t.Calls, scriptedmodel.Call{ID: id, Name: name})
	}
	return t
}

func text(s string) *trace.Result { return &trace.Result{Content: trace.TextContent(s)} }

func user(s string) *trace.Message {
	return &trace.Message{Role: trace.RoleUser, Content: trace.TextContent(s)}
}

// executing is a tool that does what f does.
func executing(name string, f func(ctx context.Context, id string, onUpdate func(*trace.Result)) (*trace.Result, error)) *loop.Tool {
	return &loop.Tool{Name: name, Execute: func(ctx context.Context, c loop.Execution, onUpdate func(*trace.Result)) (*trace.Result, error) {
		return f(ctx, c.ID, onUpdate)
	}}
}

// echo is a tool that returns r<id> at once.
func echo(name string) *loop.Tool {
	return executing(name, func(_ context.Context, id string, _ func(*trace.Result)) (*trace.Result, error) {
		return text("r" + id), nil
	})
}

// log keeps the events as short lines.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) listen(_ context.Context, ev *trace.Event) error {
	l.add(line(ev))
	return nil
}

func (l *log) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, s)
}

// all are the lines, without those that begin with one of the words.
func (l *log) all(without ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept []string
	for _, s := range l.lines {
		if !startsWithAny(s, without) {
			kept = append(kept, s)
		}
	}
	return kept
}

func startsWithAny(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

var short = strings.NewReplacer("tool_execution_", "", "message_", "m_")

func line(ev *trace.Event) string {
	var s strings.Builder
	s.WriteString(short.Replace(ev.Type))
	switch {
	case ev.ToolCallID != "":
		s.WriteString(" " + ev.ToolCallID)
		if ev.PartialResult != nil {
			s.WriteString(" " + ev.PartialResult.Content.PlainText())
		}
		if ev.IsError != nil && *ev.IsError {
			s.WriteString(" error")
		}
	case ev.Type == trace.TurnEnd:
		for _, r := range ev.ToolResults {
			s.WriteString(" " + r.ToolCallID)
		}
	case ev.Message != nil:
		s.WriteString(" " + ev.Message.Tag())
	}
	return s.String()
}

func agentWith(s *script, o loop.Options) (*loop.Agent, *log) {
	o.Stream = s.stream
	a := loop.NewAgent(o)
	l := &log{}
	a.Subscribe(l.listen)
	return a, l
}
