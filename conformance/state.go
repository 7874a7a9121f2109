package conformance

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

var stateRules = []Rule{
	{
		ID: "STATE-1", Family: FamilyState, Level: Must, Source: "U12", Needs: evidence{needS, needE}, AfterFailure: true, check: state1,
		Sentence: "State is reduced before any listener sees the event.",
		Why:      "A listener that draws from the state would always draw the picture before the last.",
	},
	{
		ID: "STATE-2", Family: FamilyState, Level: Must, Source: "U12", Needs: evidence{needS, needE}, AfterFailure: true, check: state2,
		Sentence: "At start pendingToolCalls has the id; at end it no longer has it.",
		Why:      "Interfaces read it to show which commands are running.",
	},
	{
		ID: "STATE-3", Family: FamilyState, Level: Must, Source: "U12", Needs: evidence{needS, needE}, Edges: []int{2, 5, 11}, check: state3,
		Sentence: "At every event pendingToolCalls is exactly the calls started and not ended.",
		Why:      "A call that stays there keeps the interface from ever showing that the agent is done.",
	},
	{
		ID: "STATE-4", Family: FamilyState, Level: Must, Source: "U12", Needs: evidence{needS, needE}, Edges: onFailures, check: state4,
		Sentence: "streamingMessage is set from message_start to message_end, and unset otherwise.",
		Why:      "The interface shows it below the transcript; a message would be seen twice, or not at all.",
	},
	{
		ID: "STATE-5", Family: FamilyState, Level: Must, Source: "U12", Needs: evidence{needS, needE}, AfterFailure: true, check: state5,
		Sentence: "The transcript grows only by message_end, one message each, in order.",
		Why:      "Whoever follows the events would hold another conversation than the agent does.",
	},
	{
		ID: "STATE-6", Family: FamilyState, Level: Must, Source: "U12, K, R", Needs: evidence{needS, needE}, AfterFailure: true, check: state6,
		Sentence: "errorMessage is cleared as a run begins and set at the turn_end of a message that has a non-empty one.",
		Why:      "An old error that stays makes a good answer look like a failure.",
	},
	{
		ID: "STATE-7", Family: FamilyState, Level: Must, Source: "K", Needs: evidence{needS, needE}, AfterFailure: true, check: state7,
		Sentence: "isStreaming is true from before the first event until the listeners of the last have finished.",
		Why:      "It decides whether what the user types is a new prompt or steering.",
	},
	{
		ID: "STATE-8", Family: FamilyState, Level: Should, Source: "K", Needs: evidence{needK}, check: state8,
		Sentence: "A pendingToolCalls set handed out earlier is not changed in place.",
		Why:      "Interfaces that compare by identity would miss the change.",
	},
}

func (h *history) findStates() {
	previous := none
	for _, i := range h.events {
		if h.entries[i].State == nil {
			continue
		}
		if previous != none && h.places[previous].run != h.places[i].run {
			previous = none
		}
		h.stated = append(h.stated, stated{i, previous})
		previous = i
	}
}

// state is that of an event that comes with one.
func (h *history) state(i int) *trace.State { return h.entries[i].State }

func state1(h *history, j *judge) {
	for _, at := range h.stated {
		m := h.event(at.entry).Message
		if m == nil {
			continue
		}
		switch h.places[at.entry].event {
		case messageStart:
			j.expect(h.state(at.entry).Streaming == m.Role, at.previous, at.entry, "the state is not reduced before the event is seen: the message is not streaming")
		case messageEnd:
			j.expect(hasTag(h.state(at.entry).Last, m), at.previous, at.entry, "the state is not reduced before the event is seen: the message is not the last of the transcript")
		default:
		}
	}
}

func state2(h *history, j *judge) {
	for _, at := range h.stated {
		switch h.places[at.entry].event {
		case toolStart:
			j.expect(h.isPending(at.entry), at.previous, at.entry, "a call has started and is not pending")
		case toolEnd:
			j.expect(!h.isPending(at.entry), at.previous, at.entry, "a call has ended and is still pending")
		default:
		}
	}
}

// isPending reports whether the call of an event is pending in its state.
func (h *history) isPending(i int) bool {
	return slices.Contains(h.state(i).Pending, h.event(i).ToolCallID)
}

func state3(h *history, j *judge) {
	if h.hasDuplicates() {
		return
	}
	var room [8]string
	open := room[:0]
	for _, at := range h.stated {
		if at.previous == none {
			open = open[:0]
		}
		id := h.event(at.entry).ToolCallID
		switch h.places[at.entry].event {
		case toolStart:
			open = append(open, id)
		case toolEnd:
			if k := slices.Index(open, id); k >= 0 {
				open = slices.Delete(open, k, k+1)
			}
		default:
		}
		j.expect(sameSet(open, h.state(at.entry).Pending), at.previous, at.entry, "pendingToolCalls is not the calls that have started and not ended")
	}
}

// hasDuplicates reports whether two calls of a batch share an id (e5).
func (h *history) hasDuplicates() bool {
	for k := range h.turns {
		if h.turns[k].duplicates {
			return true
		}
	}
	return false
}

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}

func state4(h *history, j *judge) {
	open := none
	for _, at := range h.stated {
		if at.previous == none {
			open = none
		}
		switch h.places[at.entry].event {
		case messageStart:
			open = at.entry
		case messageEnd:
			open = none
		default:
		}
		streaming := h.state(at.entry).Streaming != ""
		j.expect(streaming == (open != none), max(at.previous, open), at.entry, "streamingMessage is not set from message_start to message_end alone")
	}
}

func state5(h *history, j *judge) {
	for _, at := range h.stated {
		if at.previous == none {
			continue
		}
		grown := h.state(at.entry).Messages - h.state(at.previous).Messages
		want := 0
		if h.places[at.entry].event == messageEnd {
			want = 1
		}
		j.expect(grown == want, at.previous, at.entry, "the transcript does not grow by one message at message_end alone")
	}
}

func state6(h *history, j *judge) {
	for _, at := range h.stated {
		switch h.places[at.entry].event {
		case agentStart:
			j.expect(h.state(at.entry).Error == "", at.previous, at.entry, "a run begins with the error of an earlier one")
		case turnEnd:
			if m := h.event(at.entry).Message; m != nil && m.Role == trace.RoleAssistant && m.ErrorMessage != "" {
				j.expect(h.state(at.entry).Error == m.ErrorMessage, at.previous, at.entry, "errorMessage is not that of the turn's message")
			}
		default:
		}
	}
}

func state7(h *history, j *judge) {
	for _, at := range h.stated {
		j.expect(h.state(at.entry).IsStreaming, at.previous, at.entry, "isStreaming is false during a run")
	}
}

func state8(h *history, j *judge) {
	h.expectKept(j, eventType.isTool, "a pendingToolCalls set was changed after it had been handed out")
}
