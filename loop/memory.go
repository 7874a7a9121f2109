package loop

import (
	"github.com/pi-conform/pi-conform/harness/lean"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Memory is where what runs need is made. Agents that are used one after the other
// may share one, so that each uses the memory of the one before. It is used by loop
// code alone.
type Memory struct {
	events   lean.Slab[trace.Event]
	messages lean.Slab[trace.Message]
	lists    lean.Slab[*trace.Message]
	calls    lean.Slab[call]
	ids      lean.Slab[string]
}

// Recycle takes back all that was made. The agents before must have come to rest,
// and nobody may look at their events and messages any more.
func (m *Memory) Recycle() {
	m.events.Recycle()
	m.messages.Recycle()
	m.lists.Recycle()
	m.calls.Recycle()
	m.ids.Recycle()
}

// list is an empty list with room for n messages.
func (m *Memory) list(n int) []*trace.Message { return m.lists.List(n) }

// withRoom is a copy with room for as many more messages as a run usually adds.
func withRoom(messages []*trace.Message) []*trace.Message {
	return append(make([]*trace.Message, 0, len(messages)+usual), messages...)
}

// usual is room for so many messages as a run usually adds.
const usual = 8
