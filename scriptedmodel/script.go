// Package scriptedmodel plays the model of an agent loop from a script: a list
// of assistant turns, each with its text, thinking and tool calls, the way in
// which it is streamed, and how the stream ends.
//
// A [Turn] is what a person writes down. [Turn.Plan] turns it into the stream
// events that a loop reads, every one with the complete partial message so far.
// Who releases the events, and when, is not decided here.
package scriptedmodel

import (
	"github.com/pi-conform/pi-conform/harness/lean"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Turn is one assistant turn of a script.
type Turn struct {
	Thinking string `json:"thinking,omitempty" yaml:"thinking,omitempty"`
	Text     string `json:"text,omitempty" yaml:"text,omitempty"`
	Calls    []Call `json:"calls,omitzero" yaml:"calls,omitempty"`
	// Stop is the stop reason; empty means toolUse if there are calls and stop
	// if there are none.
	Stop  string `json:"stop,omitempty" yaml:"stop,omitempty"`
	Error string `json:"error,omitempty" yaml:"error,omitempty"` // errorMessage of a turn that stops with error
	// Gate makes every stream event an action of its own. Otherwise the whole
	// stream is there as soon as the loop asks.
	Gate bool `json:"gate,omitzero" yaml:"gate,omitempty"`
	// Stream says which events there are before the last one.
	Stream Stream `json:"stream,omitempty" yaml:"stream,omitempty"`
	// End says how the stream ends.
	End End `json:"end,omitempty" yaml:"end,omitempty"`
	// Throw is the message of the error for an End that throws.
	Throw string `json:"throw,omitempty" yaml:"throw,omitempty"`
	// Result, if not empty, is the text of the stream's result where it differs
	// from that of the done event.
	Result string      `json:"result,omitempty" yaml:"result,omitempty"`
	Usage  trace.Value `json:"usage,omitzero" yaml:"usage,omitempty"`
	// Steps, if not nil, is the stream itself, in the place of all else but Gate.
	Steps []Step `json:"-" yaml:"-"`
}

// Call is one tool call of a turn.
type Call struct {
	ID   string      `json:"id" yaml:"id"`
	Name string      `json:"name" yaml:"name"`
	Args trace.Value `json:"args,omitzero" yaml:"args,omitempty"` // {} if absent
}

// Stream says which events a turn's stream has before the one that ends it.
type Stream string

// The ways to stream.
const (
	StreamShort  Stream = ""       // start, then the end
	StreamBare   Stream = "bare"   // the end alone, no start
	StreamDeltas Stream = "deltas" // start, and start, delta and end of each block
	StreamOdd    Stream = "odd"    // a delta before start, an unknown type, then as deltas
	StreamTwice  Stream = "twice"  // a second start (an edge that every release doubles)
)

// End says how a turn's stream ends.
type End string

// The ways to end.
const (
	EndDone    End = ""        // with done, or with error if Stop is error or aborted
	EndSilent  End = "silent"  // without done: it is completed from its result
	EndThrows  End = "throws"  // reading throws, after the events of Stream
	EndRefuses End = "refuses" // the stream function itself throws
	EndStalls  End = "stalls"  // nothing more comes until abort
)

// Step is one thing that a stream gives a loop: an event, its silent end, or an
// error.
type Step struct {
	Event *trace.StreamEvent
	// Final is the stream's result where it is not the message of the event
	// that ends the stream; required for a silent end.
	Final  *trace.Message
	Ends   bool   // the stream ends here without done
	Throw  string // the stream throws this message; only if Throws
	Throws bool
}

// Message is the assistant message that the turn makes.
func (t *Turn) Message() *trace.Message {
	m := t.message(make([]trace.Block, 0, len(t.Calls)+2))
	return &m
}

// message is the message, with its blocks in the empty list that is given.
func (t *Turn) message(blocks []trace.Block) trace.Message {
	return trace.Message{
		Role:         trace.RoleAssistant,
		Content:      trace.Content{Blocks: t.blocks(blocks)},
		API:          "scripted",
		Provider:     "scripted",
		Model:        "scripted-1",
		StopReason:   t.StopReason(),
		ErrorMessage: t.Error,
		Usage:        t.Usage,
	}
}

// StopReason is the stop reason of the turn, with its default.
func (t *Turn) StopReason() string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return trace.StopToolUse
	}
	return trace.StopStop
}

var emptyObject = trace.Value("{}")

func (t *Turn) blocks(blocks []trace.Block) []trace.Block {
	if t.Thinking != "" {
		blocks = append(blocks, trace.Block{Type: trace.BlockThinking, Thinking: t.Thinking})
	}
	if t.Text != "" {
		blocks = append(blocks, trace.Block{Type: trace.BlockText, Text: t.Text})
	}
	for _, c := range t.Calls {
		args := c.Args
		if args == nil {
			args = emptyObject
		}
		blocks = append(blocks, trace.Block{Type: trace.BlockToolCall, ID: c.ID, Name: c.Name, Arguments: args})
	}
	return blocks
}

// Plan is the turn's stream, step by step. A plan that stalls simply has no
// step that ends it.
func (t *Turn) Plan() []Step { return t.PlanIn(&Memory{}) }

// Memory is where plans are made, for those who make very many.
type Memory struct {
	plans  lean.Slab[plan]
	blocks lean.Slab[trace.Block]
}

// Recycle takes back all plans that were made in it.
func (m *Memory) Recycle() {
	m.plans.Recycle()
	m.blocks.Recycle()
}

// PlanIn is [Turn.Plan], made in a memory.
func (t *Turn) PlanIn(m *Memory) []Step {
	if t.Steps != nil {
		return t.Steps
	}
	if t.End == EndRefuses {
		return []Step{{Throws: true, Throw: t.Throw}}
	}
	p := m.plans.New()
	p.final = t.message(m.blocks.List(len(t.Calls) + 2))
	final := &p.final
	steps := t.opening(p)
	switch t.End {
	case EndDone, EndRefuses:
		last := Step{Event: p.ending()}
		if t.Result != "" {
			last.Final = withText(final, t.Result)
		}
		return append(steps, last)
	case EndSilent:
		if t.Result != "" {
			final = withText(final, t.Result)
		}
		return append(steps, Step{Ends: true, Final: final})
	case EndThrows:
		return append(steps, Step{Throws: true, Throw: t.Throw})
	case EndStalls:
		return steps
	}
	return steps
}

// plan is what nearly every plan consists of, in one piece.
type plan struct {
	final, empty trace.Message
	start, end   trace.StreamEvent
	steps        [2]Step
}

func (p *plan) ending() *trace.StreamEvent {
	p.end = trace.StreamEvent{Type: trace.StreamDone, Reason: p.final.StopReason, Message: &p.final}
	if p.final.StopReason == trace.StopError || p.final.StopReason == trace.StopAborted {
		p.end = trace.StreamEvent{Type: trace.StreamError, Reason: p.final.StopReason, Error: &p.final}
	}
	return &p.end
}

// opening are the events before the one that ends the stream.
func (t *Turn) opening(p *plan) []Step {
	if t.Stream == StreamBare {
		return nil
	}
	final, empty := &p.final, &p.empty
	*empty = partial(final, nil)
	p.start = trace.StreamEvent{Type: trace.StreamStart, Partial: empty}
	start := Step{Event: &p.start}
	switch t.Stream {
	case StreamShort, StreamBare:
		return append(p.steps[:0], start)
	case StreamTwice:
		return []Step{start, start}
	case StreamOdd:
		zero := 0
		steps := []Step{
			{Event: &trace.StreamEvent{Type: trace.StreamTextDelta, ContentIndex: &zero, Delta: "early", Partial: empty}},
			start,
			{Event: &trace.StreamEvent{Type: "x_unknown", Partial: empty}},
		}
		return append(steps, deltas(final)...)
	case StreamDeltas:
		return append([]Step{start}, deltas(final)...)
	}
	return []Step{start}
}

// deltas are start, delta and end of every block.
func deltas(final *trace.Message) []Step {
	var steps []Step
	add := func(e trace.StreamEvent) { steps = append(steps, Step{Event: &e}) }
	for i, block := range final.Content.Blocks {
		before := final.Content.Blocks[:i]
		open, full := new(trace.Message), new(trace.Message)
		*open = partial(final, append(before[:i:i], emptied(block)))
		*full = partial(final, final.Content.Blocks[:i+1])
		switch block.Type {
		case trace.BlockText:
			add(trace.StreamEvent{Type: trace.StreamTextStart, ContentIndex: &i, Partial: open})
			add(trace.StreamEvent{Type: trace.StreamTextDelta, ContentIndex: &i, Delta: block.Text, Partial: full})
			add(trace.StreamEvent{Type: trace.StreamTextEnd, ContentIndex: &i, Content: block.Text, Partial: full})
		case trace.BlockThinking:
			add(trace.StreamEvent{Type: trace.StreamThinkingStart, ContentIndex: &i, Partial: open})
			add(trace.StreamEvent{Type: trace.StreamThinkingDelta, ContentIndex: &i, Delta: block.Thinking, Partial: full})
			add(trace.StreamEvent{Type: trace.StreamThinkingEnd, ContentIndex: &i, Content: block.Thinking, Partial: full})
		case trace.BlockToolCall:
			add(trace.StreamEvent{Type: trace.StreamToolCallStart, ContentIndex: &i, Partial: open})
			add(trace.StreamEvent{Type: trace.StreamToolCallDelta, ContentIndex: &i, Delta: string(block.Arguments), Partial: full})
			call := block
			add(trace.StreamEvent{Type: trace.StreamToolCallEnd, ContentIndex: &i, ToolCall: &call, Partial: full})
		}
	}
	return steps
}

func emptied(b trace.Block) trace.Block {
	b.Text, b.Thinking = "", ""
	if b.Type == trace.BlockToolCall {
		b.Arguments = emptyObject
	}
	return b
}

// partial is the message as far as it has come: these blocks, no stop reason
// that means anything yet.
func partial(final *trace.Message, blocks []trace.Block) trace.Message {
	m := *final
	m.StopReason = trace.StopStop
	m.ErrorMessage = ""
	m.Content = trace.Content{Blocks: append([]trace.Block{}, blocks...)}
	return m
}

// withText is the message with its text replaced, or with a text block added if
// it had none.
func withText(m *trace.Message, text string) *trace.Message {
	c := *m
	c.Content.Blocks = append([]trace.Block{}, m.Content.Blocks...)
	for i := range c.Content.Blocks {
		if c.Content.Blocks[i].Type == trace.BlockText {
			c.Content.Blocks[i].Text = text
			return &c
		}
	}
	c.Content.Blocks = append(c.Content.Blocks, trace.Block{Type: trace.BlockText, Text: text})
	return &c
}

// Aborted is the message that ends a request whose signal fired: what had been
// streamed so far, with stop reason aborted.
func Aborted(partial *trace.Message) *trace.Message {
	m := &trace.Message{
		Role: trace.RoleAssistant, Content: trace.Content{Blocks: []trace.Block{}},
		API: "scripted", Provider: "scripted", Model: "scripted-1",
	}
	if partial != nil {
		c := *partial
		m = &c
	}
	m.StopReason = trace.StopAborted
	m.ErrorMessage = "the request was aborted"
	return m
}
