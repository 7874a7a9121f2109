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

// states gives each event that has a state, with the one before it in the same
// run.
func (h *history) states(yield func(i, previous int, ev *trace.Event, s *trace.State)) {
	previous := none
	for _, i := range h.events {
		s := h.entries[i].State
		if s == nil {
			continue
		}
		if previous != none && h.places[previous].run != h.places[i].run {
			previous = none
		}
		yield(i, previous, h.event(i), s)
		previous = i
	}
}

func state1(h *history, j *judge) {
	h.states(func(i, previous int, ev *trace.Event, s *trace.State) {
		if ev.Message == nil {
			return
		}
		switch h.places[i].event {
		case messageStart:
			j.expect(s.Streaming == ev.Message.Role, previous, i, "the state is not reduced before the event is seen: the message is not streaming")
		case messageEnd:
			j.expect(hasTag(s.Last, ev.Message), previous, i, "the state is not reduced before the event is seen: the message is not the last of the transcript")
		default:
		}
	})
}

func state2(h *history, j *judge) {
	h.states(func(i, previous int, ev *trace.Event, s *trace.State) {
		switch h.places[i].event {
		case toolStart:
			j.expect(slices.Contains(s.Pending, ev.ToolCallID), previous, i, "a call has started and is not pending")
		case toolEnd:
			j.expect(!slices.Contains(s.Pending, ev.ToolCallID), previous, i, "a call has ended and is still pending")
		default:
		}
	})
}

func state3(h *history, j *judge) {
	var open []string
	last := int32(none)
	duplicates := h.hasDuplicates()
	h.states(func(i, previous int, ev *trace.Event, s *trace.State) {
		if h.places[i].run != last {
			open, last = open[:0], h.places[i].run
		}
		switch h.places[i].event {
		case toolStart:
			open = append(open, ev.ToolCallID)
		case toolEnd:
			if k := slices.Index(open, ev.ToolCallID); k >= 0 {
				open = slices.Delete(open, k, k+1)
			}
		default:
		}
		if !duplicates {
			j.expect(sameSet(open, s.Pending), previous, i, "pendingToolCalls is not the calls that have started and not ended")
		}
	})
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
	open, last := none, int32(none)
	h.states(func(i, previous int, ev *trace.Event, s *trace.State) {
		if h.places[i].run != last {
			open, last = none, h.places[i].run
		}
		switch h.places[i].event {
		case messageStart:
			open = i
		case messageEnd:
			open = none
		default:
		}
		j.expect((s.Streaming != "") == (open != none), max(previous, open), i, "streamingMessage is not set from message_start to message_end alone")
	})
}

func state5(h *history, j *judge) {
	h.states(func(i, previous int, ev *trace.Event, s *trace.State) {
		if previous == none {
			return
		}
		grown := s.Messages - h.entries[previous].State.Messages
		want := 0
		if h.places[i].event == messageEnd {
			want = 1
		}
		j.expect(grown == want, previous, i, "the transcript does not grow by one message at message_end alone")
	})
}

func state6(h *history, j *judge) {
	h.states(func(i, previous int, ev *trace.Event, s *trace.State) {
		switch h.places[i].event {
		case agentStart:
			j.expect(s.Error == "", previous, i, "a run begins with the error of an earlier one")
		case turnEnd:
			if m := ev.Message; m != nil && m.Role == trace.RoleAssistant && m.ErrorMessage != "" {
				j.expect(s.Error == m.ErrorMessage, previous, i, "errorMessage is not that of the turn's message")
			}
		default:
		}
	})
}

func state7(h *history, j *judge) {
	h.states(func(i, previous int, _ *trace.Event, s *trace.State) {
		j.expect(s.IsStreaming, previous, i, "isStreaming is false during a run")
	})
}

func state8(h *history, j *judge) {
	h.expectKept(j, eventType.isTool, "a pendingToolCalls set was changed after it had been handed out")
}
