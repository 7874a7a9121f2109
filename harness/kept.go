package harness

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// kept is what a listener could have kept of the events of a run, and of the
// lists that the loop was given, each beside a copy of what it was then.
type kept struct {
	events []keptEvent
	lists  []keptList
}

type keptEvent struct {
	n       int
	message *trace.Message
	was     trace.Message
	pending []string
	were    []string
}

type keptList struct{ list, was []*trace.Message }

// callersList stands in a retained entry for the lists that the loop was given.
const callersList = -1

func (k *kept) event(n int, ev *trace.Event, state *trace.State) {
	e := keptEvent{n: n, message: ev.Message}
	if ev.Message != nil {
		e.was = *ev.Message
		e.was.Content.Blocks = slices.Clone(ev.Message.Content.Blocks)
	}
	if state != nil {
		e.pending, e.were = state.Pending, slices.Clone(state.Pending)
	}
	k.events = append(k.events, e)
}

// asItIs is a copy of a state that holds whatever a loop does to it later.
func (s *Surroundings) asItIs(state *trace.State) *trace.State {
	if state == nil {
		return nil
	}
	now := s.values.states.Of(*state)
	if n := len(state.Pending); n > 0 {
		now.Pending = append(s.values.texts.List(n), state.Pending...)
	}
	return now
}

// list keeps a list of messages that is handed to the loop.
func (k *kept) list(messages []*trace.Message) {
	if messages != nil {
		k.lists = append(k.lists, keptList{messages, slices.Clone(messages)})
	}
}

// changed are the numbers of the events of which something was changed since, and
// forgets the events.
func (k *kept) changed() []int {
	var numbers []int
	for i := range k.lists {
		if !slices.Equal(k.lists[i].list, k.lists[i].was) && !slices.Contains(numbers, callersList) {
			numbers = append(numbers, callersList)
		}
	}
	for i := range k.events {
		e := &k.events[i]
		if !slices.Equal(e.pending, e.were) || e.message != nil && !sameTop(e.message, &e.was) {
			numbers = append(numbers, e.n)
		}
	}
	k.events = k.events[:0]
	return numbers
}

// sameTop reports whether two messages have the same members at their top level,
// and the same blocks.
func sameTop(a, b *trace.Message) bool {
	left, right := *a, *b
	left.Content.Blocks, right.Content.Blocks = nil, nil
	return reflect.DeepEqual(left, right) && slices.EqualFunc(a.Content.Blocks, b.Content.Blocks, sameBlock)
}

func sameBlock(a, b trace.Block) bool {
	if !bytes.Equal(a.Arguments, b.Arguments) || !bytes.Equal(a.Extra, b.Extra) {
		return false
	}
	a.Arguments, a.Extra, b.Arguments, b.Extra = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}
