// Package view is a user interface's view of a run, and the pure reducer that
// makes it of the loop's events: what is on the screen follows from what has
// happened, and from nothing else.
//
//	view := view.View{Phase: view.Idle}
//	agent.Subscribe(func(_ context.Context, ev *trace.Event) error {
//		screen = view.Reduce(screen, ev)
//		return nil
//	})
//
// A view is never changed: Reduce gives a new one that shares what is the same.
// Besides the loop's events it takes [trace.PromptReturned], which says that the
// prompt's promise has settled: only then is everything over that the run began.
package view

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// View is what there is to be seen.
type View struct {
	Phase   Phase    `json:"phase"`
	Turn    int      `json:"turn"` // number of the latest turn, from 1, across runs
	Bubbles []Bubble `json:"bubbles"`
	Tools   []Tool   `json:"tools"` // cards, in the order in which they were started
}

// Phase says what a session is at.
type Phase string

// The phases.
const (
	Idle     Phase = "idle"
	Running  Phase = "running"
	Settling Phase = "settling" // the run is over, and its listeners are not done
)

// Bubble is one message of the assistant.
type Bubble struct {
	Turn int    `json:"turn"`
	Text string `json:"text"`           // the text blocks, joined by newlines
	Open bool   `json:"open,omitempty"` // it is still being written
}

// Tool is the card of one tool call.
type Tool struct {
	ID     string      `json:"id"`
	Name   string      `json:"name"`
	Args   trace.Value `json:"args,omitzero"` // as the model gave them
	Status Status      `json:"status"`
	Text   string      `json:"text,omitempty"` // the latest that the tool has said
}

// Status is how far a tool call has come.
type Status string

// The statuses.
const (
	Preparing Status = "preparing" // started: checked and perhaps asked about
	Working   Status = "running"   // it has reported progress
	Done      Status = "done"
	Failed    Status = "error"
)

// Reduce gives the view after an event. Neither of the two is changed.
func Reduce(v View, ev *trace.Event) View { return Defects(nil).Reduce(v, ev) }

// Reduce is [Reduce] with the defects.
func (ds Defects) Reduce(v View, ev *trace.Event) View {
	switch ev.Type {
	case trace.AgentStart:
		v.Phase = Running
		if ds.Has(TurnsCountedByRun) {
			v.Turn = 0
		}
	case trace.AgentEnd:
		v.Phase = Settling
		if ds.Has(IdleAtAgentEnd) {
			v.Phase = Idle
		}
	case trace.PromptReturned:
		v.Phase = Idle
	case trace.TurnStart:
		v.Turn++
	case trace.MessageStart, trace.MessageUpdate, trace.MessageEnd:
		return ds.message(v, ev)
	case trace.ToolExecutionStart:
		return ds.started(v, ev)
	case trace.ToolExecutionUpdate:
		return ds.worked(v, ev)
	case trace.ToolExecutionEnd:
		return ds.ended(v, ev)
	}
	return v // turn_end says nothing that was not said before (VIEW-6), and so do types that are not known
}

// message: only the assistant's messages have bubbles here. A result belongs to
// the card of its call, which has been told by then (VIEW-6).
func (ds Defects) message(v View, ev *trace.Event) View {
	m := ev.Message
	if m == nil || m.Role != trace.RoleAssistant {
		if m != nil && m.Role == trace.RoleToolResult && ev.Type == trace.MessageEnd && ds.Has(ResultMakesCard) {
			v.Tools = append(slices.Clip(v.Tools), Tool{ID: m.ToolCallID, Name: m.ToolName, Status: Done, Text: m.Content.PlainText()})
		}
		return v
	}
	switch {
	case ev.Type == trace.MessageStart:
		if ds.Has(TurnsShareBubble) && len(v.Bubbles) > 0 {
			return v
		}
		opened := Bubble{Turn: v.Turn, Text: m.Content.PlainText(), Open: true}
		v.Bubbles = append(slices.Clip(v.Bubbles), opened) // one for each message (VIEW-4)
	case ev.Type == trace.MessageEnd:
		// What was streamed counts no more: the stream's result is the message (VIEW-4).
		return v.withLast(func(b *Bubble) {
			b.Open = false
			if !ds.Has(FinalTextIgnored) {
				b.Text = m.Content.PlainText()
			}
		})
	case ev.StreamEvent != nil && (ev.StreamEvent.Type == trace.StreamTextDelta || ds.Has(ThinkingShown)):
		return v.withLast(func(b *Bubble) { b.Text = ds.written(m, ev.StreamEvent) })
	}
	return v
}

// written is what a bubble shows while its message is written (VIEW-8). The event
// carries the whole message so far, so no deltas need be put together.
func (ds Defects) written(m *trace.Message, ev *trace.StreamEvent) string {
	if ds.Has(ThinkingShown) && ev.Type != trace.StreamTextDelta {
		return m.Content.PlainText() + ev.Delta
	}
	return m.Content.PlainText()
}

// withLast is the view with the last bubble changed.
func (v View) withLast(change func(*Bubble)) View {
	last := len(v.Bubbles) - 1
	if last < 0 {
		return v
	}
	v.Bubbles = slices.Clone(v.Bubbles)
	change(&v.Bubbles[last])
	return v
}

// started makes the card of a call, or makes it anew where an id is used again.
func (ds Defects) started(v View, ev *trace.Event) View {
	card := Tool{ID: ev.ToolCallID, Name: ev.ToolName, Args: ev.Args, Status: Preparing}
	if i := ds.find(v, ev); i >= 0 {
		return v.withTool(i, func(t *Tool) { *t = card })
	}
	v.Tools = append(slices.Clip(v.Tools), card)
	return v
}

// worked and ended change a card that there is: what nobody has started is not
// shown (VIEW-3).
func (ds Defects) worked(v View, ev *trace.Event) View {
	i := ds.find(v, ev)
	if i < 0 && ds.Has(UnknownUpdateMakesCard) {
		v = ds.started(v, ev)
		i = len(v.Tools) - 1
	}
	if i < 0 {
		return v
	}
	change := func(t *Tool) { t.Status, t.Text = Working, textOf(ev.PartialResult) }
	if ds.Has(InputChanged) {
		change(&v.Tools[i])
		return v
	}
	return v.withTool(i, change)
}

func (ds Defects) ended(v View, ev *trace.Event) View {
	i := ds.find(v, ev)
	if i < 0 {
		return v
	}
	v = v.withTool(i, func(t *Tool) {
		t.Status, t.Text = Done, textOf(ev.Result)
		if ev.IsError != nil && *ev.IsError {
			t.Status = Failed
		}
	})
	if ds.Has(ToolsInOrderOfEnd) {
		card := v.Tools[i]
		v.Tools = append(slices.Delete(slices.Clone(v.Tools), i, i+1), card)
	}
	return v
}

// find is the card of a call. Two calls of one tool have two cards (VIEW-2).
func (ds Defects) find(v View, ev *trace.Event) int {
	return slices.IndexFunc(v.Tools, func(t Tool) bool {
		if ds.Has(ToolsKeptByName) {
			return t.Name == ev.ToolName
		}
		return t.ID == ev.ToolCallID
	})
}

func (v View) withTool(i int, change func(*Tool)) View {
	v.Tools = slices.Clone(v.Tools)
	change(&v.Tools[i])
	return v
}

func textOf(r *trace.Result) string {
	if r == nil {
		return ""
	}
	return r.Content.PlainText()
}
