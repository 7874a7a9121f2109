package conformance

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

var viewRules = []Rule{
	{
		ID: "VIEW-1", Family: FamilyView, Level: Must, Source: "U10", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, check: view1,
		Sentence: "The reducer is pure and synchronous: the same view and event give the same result, and neither is changed.",
		Why:      "A screen is drawn anew because the view is another one; a view that is changed in place is not drawn, or half of it.",
	},
	{
		ID: "VIEW-2", Family: FamilyView, Level: Must, Source: "U9", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, check: view2,
		Sentence: "Tools are kept by toolCallId: preparing at start with the raw arguments, running at update with the latest text, done or error at end by isError.",
		Why:      "Two calls of one tool are two pieces of work, and the user has to see which of them is still going on.",
	},
	{
		ID: "VIEW-3", Family: FamilyView, Level: Must, Source: "U9", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, check: view3,
		Sentence: "An update or end for an unknown id changes nothing.",
		Why:      "A card that comes up for a call that nobody has started stays on the screen for ever.",
	},
	{
		ID: "VIEW-4", Family: FamilyView, Level: Must, Source: "U9", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, check: view4,
		Sentence: "Each message of the assistant has its own bubble with its turn number; the text at message_end is authoritative.",
		Why:      "What the user reads has to be what the model will be told that it said.",
	},
	{
		ID: "VIEW-5", Family: FamilyView, Level: Must, Source: "U9", Forms: inAny, Needs: evidence{needV, needA}, AfterFailure: true, check: view5,
		Sentence: "The phase is running from agent_start, settling from agent_end, and idle once the prompt has returned.",
		Why:      "A user who may write too early is refused, and one who may not write although all is over is stuck.",
	},
	{
		ID: "VIEW-6", Family: FamilyView, Level: Must, Source: "U13", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, check: view6,
		Sentence: "Result messages and turn_end.toolResults create no card.",
		Why:      "Every tool would be shown twice, once as it ran and once as it was told to the model.",
	},
	{
		ID: "VIEW-7", Family: FamilyView, Level: Must, Source: "U11", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, compare: view7,
		Sentence: "For the first listener and unique ids, the final view is the same for every interleaving of the same outcomes.",
		Why:      "A session that is opened again should look as it did when it was closed, whichever tool was faster that day.",
	},
	{
		ID: "VIEW-8", Family: FamilyView, Level: Must, Source: "U9", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, check: view8,
		Sentence: "The text of a bubble is the text blocks joined by newlines; only text_delta changes an open bubble.",
		Why:      "Thoughts and half a tool call in the middle of an answer cannot be told from what the model says to the user.",
	},
	{
		ID: "VIEW-9", Family: FamilyView, Level: Must, Source: "U9", Forms: inAny, Needs: evidence{needV}, AfterFailure: true, check: view9,
		Sentence: "The turn rises by one at each turn_start, across runs.",
		Why:      "Bubbles of two runs with one turn number are taken for one answer.",
	},
}

// viewState is what every view has.
type viewState struct {
	Phase   string       `json:"phase"`
	Turn    int          `json:"turn"`
	Bubbles []viewBubble `json:"bubbles"`
	Tools   []viewTool   `json:"tools"`
}

type viewBubble struct {
	Turn int    `json:"turn"`
	Text string `json:"text"`
	Open bool   `json:"open"`
}

type viewTool struct {
	ID     string      `json:"id"`
	Name   string      `json:"name"`
	Args   trace.Value `json:"args"`
	Status string      `json:"status"`
	Text   string      `json:"text"`
}

func (s *viewState) tool(id string) *viewTool {
	for i := range s.Tools {
		if s.Tools[i].ID == id {
			return &s.Tools[i]
		}
	}
	return nil
}

func (s *viewState) lastBubble() *viewBubble {
	if len(s.Bubbles) == 0 {
		return &viewBubble{}
	}
	return &s.Bubbles[len(s.Bubbles)-1]
}

// viewStep is one application of the reducer.
type viewStep struct {
	entry  int // of the view
	cause  int // entry of the event, or of the prompt that returned
	ev     *trace.Event
	before *viewState // nil before the first
	after  *viewState
	raw    *trace.View
	was    trace.Value // the view before, as it was shown
}

// viewSteps gives each application of the reducer, in order. What is no view at
// all is an empty one.
func (h *history) viewSteps(yield func(s *viewStep)) {
	before, was := (*viewState)(nil), trace.Value(nil)
	for i := range h.entries {
		v := h.entries[i].View
		if h.entries[i].Kind != trace.KindView || v == nil {
			continue
		}
		s := viewStep{entry: i, cause: h.causeOf(i), ev: v.Input, before: before, after: viewStateOf(v.State), raw: v, was: was}
		if s.ev == nil && s.cause != none {
			s.ev = h.entries[s.cause].Event
		}
		if s.ev == nil {
			continue
		}
		yield(&s)
		if !v.Probe {
			before, was = s.after, v.State
		}
	}
}

// causeOf is the latest entry before a view that is none itself.
func (h *history) causeOf(i int) int {
	for i--; i >= 0; i-- {
		if h.entries[i].Kind != trace.KindView {
			return i
		}
	}
	return none
}

func viewStateOf(v trace.Value) *viewState {
	s := &viewState{}
	_ = json.Unmarshal(v, s) // what is no view keeps no rule that is about something in it
	return s
}

func view1(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		j.expect(s.raw.Again == nil, s.cause, s.entry, "the same view and event give another result")
		j.expect(s.raw.Before == nil, s.cause, s.entry, "the reducer changes the view that it is given")
		j.expect(!s.raw.InputChanged, s.cause, s.entry, "the reducer changes the event that it is given")
	})
}

func view2(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		if s.before == nil || s.raw.Probe {
			return
		}
		switch typeOf(s.ev) {
		case toolStart:
			card := s.after.tool(s.ev.ToolCallID)
			ok := card != nil && card.Status == "preparing" && card.Name == s.ev.ToolName && sameValue(card.Args, s.ev.Args)
			j.expect(ok, s.cause, s.entry, "a call that starts has no card of its own, preparing, with the raw arguments")
		case toolUpdate:
			if s.before.tool(s.ev.ToolCallID) == nil {
				return
			}
			card := s.after.tool(s.ev.ToolCallID)
			ok := card != nil && card.Status == "running" && (s.ev.PartialResult == nil || card.Text == s.ev.PartialResult.Content.PlainText())
			j.expect(ok, s.cause, s.entry, "the card is not running with the text of the update")
		case toolEnd:
			if s.before.tool(s.ev.ToolCallID) == nil {
				return
			}
			want := "done"
			if isTrue(s.ev.IsError) {
				want = "error"
			}
			card := s.after.tool(s.ev.ToolCallID)
			j.expect(card != nil && card.Status == want, s.cause, s.entry, "the card does not say how its call ended")
		default:
			return
		}
		j.expect(s.keepsOthers(), s.cause, s.entry, "the card of another call is changed or gone")
	})
}

// keepsOthers reports whether every card but that of the event's own call is
// there as before.
func (s *viewStep) keepsOthers() bool {
	for i := range s.before.Tools {
		card := &s.before.Tools[i]
		if card.ID == s.ev.ToolCallID {
			continue
		}
		if after := s.after.tool(card.ID); after == nil || !sameCard(card, after) {
			return false
		}
	}
	return true
}

func sameCard(a, b *viewTool) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Status == b.Status && a.Text == b.Text && sameValue(a.Args, b.Args)
}

func sameCards(a, b []viewTool) bool {
	return slices.EqualFunc(a, b, func(x, y viewTool) bool { return sameCard(&x, &y) })
}

func view3(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		kind := typeOf(s.ev)
		if s.before == nil || kind != toolUpdate && kind != toolEnd || s.before.tool(s.ev.ToolCallID) != nil {
			return
		}
		j.expect(sameValue(s.was, s.raw.State), s.cause, s.entry, "an unknown call changes the view")
	})
}

func isAssistants(m *trace.Message) bool { return m != nil && m.Role == trace.RoleAssistant }

func view4(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		if s.before == nil || !isAssistants(s.ev.Message) {
			return
		}
		last := s.after.lastBubble()
		switch typeOf(s.ev) {
		case messageStart:
			if s.before.lastBubble().Open { // a message that was never ended, or starts twice (e4, e15)
				return
			}
			opened := len(s.after.Bubbles) == len(s.before.Bubbles)+1 && last.Turn == s.after.Turn &&
				slices.Equal(s.after.Bubbles[:len(s.before.Bubbles)], s.before.Bubbles)
			j.expect(opened, s.cause, s.entry, "the message has no bubble of its own with its turn")
		case messageEnd:
			j.expect(last.Text == s.ev.Message.Content.PlainText() && !last.Open, s.cause, s.entry, "the bubble does not say what the message says")
			j.expect(len(s.after.Bubbles) == len(s.before.Bubbles), s.cause, s.entry, "the end of a message makes a bubble")
		default:
		}
	})
}

func view5(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		if s.raw.Probe {
			return
		}
		want := ""
		switch {
		case s.ev.Type == trace.AgentStart:
			want = "running"
		case s.ev.Type == trace.AgentEnd:
			want = "settling"
		case s.ev.Type == trace.PromptReturned:
			want = "idle"
		case s.before != nil:
			j.expect(s.after.Phase == s.before.Phase, s.cause, s.entry, "the phase changes though nothing begins or ends")
			return
		default:
			return
		}
		j.expect(s.after.Phase == want, s.cause, s.entry, "the phase is not "+want)
	})
}

func view6(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		ofResult := typeOf(s.ev).isMessage() && s.ev.Message != nil && s.ev.Message.Role == trace.RoleToolResult
		if s.before == nil || !ofResult && typeOf(s.ev) != turnEnd {
			return
		}
		j.expect(sameCards(s.before.Tools, s.after.Tools), s.cause, s.entry, "a result that was told before changes the cards")
		j.expect(slices.Equal(s.before.Bubbles, s.after.Bubbles), s.cause, s.entry, "a result that was told before changes the bubbles")
	})
}

// view7 compares the last views of two recordings of one case, if everything
// came out in the same way.
func view7(base, twin *history, j *judge) {
	a, mine := base.finalView()
	b, _ := twin.finalView()
	if a == nil || b == nil || !sameOutcomes(base, twin) {
		return
	}
	j.expect(sameView(a, b), none, mine, "in another order of the same outcomes the view ends otherwise")
}

func (h *history) finalView() (*viewState, int) {
	var last *viewState
	at := none
	h.viewSteps(func(s *viewStep) {
		if !s.raw.Probe {
			last, at = s.after, s.entry
		}
	})
	return last, at
}

func sameView(a, b *viewState) bool {
	return a.Phase == b.Phase && a.Turn == b.Turn && slices.Equal(a.Bubbles, b.Bubbles) && sameCards(a.Tools, b.Tools)
}

// sameOutcomes reports whether two recordings have the same messages of the
// assistant, and calls with ids of their own that ended alike.
func sameOutcomes(a, b *history) bool {
	if a.outcome != b.outcome || len(a.turns) != len(b.turns) || len(a.calls) != len(b.calls) || !uniqueIDs(a) {
		return false
	}
	for k := range a.turns {
		if !sameTag(a.turns[k].message, b.turns[k].message) {
			return false
		}
	}
	for k := range a.calls {
		if !sameEnd(a, &a.calls[k], b, &b.calls[k]) {
			return false
		}
	}
	return true
}

func uniqueIDs(h *history) bool {
	seen := map[string]bool{}
	for k := range h.calls {
		if id := h.calls[k].block.ID; seen[id] {
			return false
		} else {
			seen[id] = true
		}
	}
	return true
}

func sameEnd(a *history, x *call, b *history, y *call) bool {
	if x.block.ID != y.block.ID || (x.end == never) != (y.end == never) {
		return false
	}
	return x.end == never || sameToolEvent(a.event(x.end), b.event(y.end))
}

func view8(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		if s.before == nil || typeOf(s.ev) != messageUpdate || s.ev.StreamEvent == nil || !s.before.lastBubble().Open {
			return
		}
		if s.ev.StreamEvent.Type != trace.StreamTextDelta {
			j.expect(slices.Equal(s.before.Bubbles, s.after.Bubbles), s.cause, s.entry, "what is no text changes a bubble")
			return
		}
		if s.ev.Message == nil { // a log without the messages so far
			return
		}
		last := s.after.lastBubble()
		j.expect(last.Open && last.Text == s.ev.Message.Content.PlainText(), s.cause, s.entry, "the bubble does not show the text so far")
	})
}

func view9(h *history, j *judge) {
	h.viewSteps(func(s *viewStep) {
		turn := 0
		if s.before != nil {
			turn = s.before.Turn
		}
		if s.ev.Type == trace.TurnStart {
			turn++
		}
		j.expect(s.after.Turn == turn, s.cause, s.entry, "the number of the turn is wrong")
	})
}
