package harness

import (
	"slices"
	"strconv"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// arrival is a call that waits for its turn.
type arrival struct {
	base   string
	begun  bool // and is about to go on; else it waits for its name
	place  int  // of its id among those of its message
	source Source
	gate   Gate
	name   string
}

// compare puts all that begin before any that goes on, each in source order.
func (a *arrival) compare(b *arrival) int {
	switch {
	case a.begun != b.begun && a.begun:
		return 1
	case a.begun != b.begun:
		return -1
	case a.place != b.place:
		return a.place - b.place
	}
	return int(a.source - b.source)
}

type count struct {
	name string
	n    int
}

// Source says which call is meant where several have one id: its place among
// the calls of its message. It only matters to loops that are [Surroundings.Racy].
type Source int

// nameOf gives a call of the tool call id its name, as soon as it is its turn. It is
// called without the lock, as it may have to wait.
func (s *Surroundings) nameOf(base, id string, source Source) string {
	s.mu.Lock()
	if !s.Racy || s.closing {
		defer s.mu.Unlock()
		return s.unique(base)
	}
	return s.arrive(&arrival{base: base}, id, source)
}

// turnOf waits until it is the turn of a call that has begun to go on.
func (s *Surroundings) turnOf(id string, source Source) {
	s.mu.Lock()
	if !s.Racy || s.closing {
		s.mu.Unlock()
		return
	}
	s.arrive(&arrival{begun: true}, id, source)
}

// arrive waits until a call is let on; it is called with the lock held, and lets
// go of it.
func (s *Surroundings) arrive(a *arrival, id string, source Source) (name string) {
	a.place, a.source, a.gate = slices.Index(s.ids, id), source, s.newGate()
	s.arrivals = append(s.arrivals, a)
	s.mu.Unlock()
	a.gate.Wait()
	return a.name
}

// LetOneOn lets the first of the calls that wait for their turn go on, and
// reports whether there was any. The subject has to be at rest.
func (s *Surroundings) LetOneOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrivals) == 0 {
		return false
	}
	first := slices.MinFunc(s.arrivals, (*arrival).compare)
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a *arrival) bool { return a == first })
	s.letOn(first)
	return true
}

func (s *Surroundings) letOn(a *arrival) {
	if !a.begun {
		a.name = s.unique(a.base)
	}
	a.gate.Open()
}

// noteCalls notes the ids of the calls of a message.
func (s *Surroundings) noteCalls(ev *trace.Event) {
	if !s.Racy || ev.Type != trace.MessageEnd || ev.Message.Role != trace.RoleAssistant {
		return
	}
	s.ids = nil
	for _, call := range ev.Message.ToolCalls() {
		s.ids = append(s.ids, call.ID)
	}
}

// unique gives the name, with ~1, ~2, … if it was used before.
func (s *Surroundings) unique(name string) string {
	n := 0
	for _, used := range s.used {
		if used == name {
			n++
		}
	}
	s.used = append(s.used, name)
	if n == 0 {
		return name
	}
	return name + "~" + strconv.Itoa(n)
}

// numbered gives the name with how often it was used before.
func (s *Surroundings) numbered(name string) string {
	for i := range s.counts {
		if s.counts[i].name == name {
			s.counts[i].n++
			return name + "/" + strconv.Itoa(s.counts[i].n)
		}
	}
	s.counts = append(s.counts, count{name: name})
	return name + "/0"
}
