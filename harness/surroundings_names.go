package harness

import (
	"slices"
	"strconv"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// arrival is a call that waits for its turn.
type arrival struct {
	prefix string // of its name, before the id
	id     string
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

// Source says which call is meant where several have one id: its place among
// the calls of its message. It only matters to loops that are [Surroundings.Racy].
type Source int

// nameOf gives a call of the tool call id its name, as soon as it is its turn. It is
// called without the lock, as it may have to wait.
func (s *Surroundings) nameOf(prefix, id string, source Source) string {
	s.mu.Lock()
	if !s.Racy || s.closing {
		defer s.mu.Unlock()
		return s.names.unique(prefix, id)
	}
	return s.arrive(&arrival{prefix: prefix, id: id}, source)
}

// turnOf waits until it is the turn of a call that has begun to go on.
func (s *Surroundings) turnOf(id string, source Source) {
	s.mu.Lock()
	if !s.Racy || s.closing {
		s.mu.Unlock()
		return
	}
	s.arrive(&arrival{begun: true, id: id}, source)
}

// arrive waits until a call is let on; it is called with the lock held, and lets
// go of it.
func (s *Surroundings) arrive(a *arrival, source Source) (name string) {
	a.place, a.source, a.gate = slices.Index(s.ids, a.id), source, s.newGate()
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
		a.name = s.names.unique(a.prefix, a.id)
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

// names gives callbacks their names and remembers, from one case to the next, those
// that it has made.
type names struct {
	made    map[base]*series
	current int // number of the case
}

// base is what a name begins with.
type base struct{ prefix, about, id string }

// series are the names that begin alike.
type series struct {
	names []string
	used  int // how many of them, in that case
	in    int
}

// mostSeries bounds what is remembered.
const mostSeries = 4096

// begin takes up another case.
func (ns *names) begin() {
	ns.current++
	if len(ns.made) > mostSeries {
		clear(ns.made)
	}
}

// unique gives the name, with ~1, ~2, … if it was used before.
func (ns *names) unique(prefix, about string) string {
	return ns.next(base{prefix: prefix, about: about}, func(n int) string {
		if n == 0 {
			return prefix + about
		}
		return prefix + about + "~" + strconv.Itoa(n)
	})
}

// numbered gives the name with how often it was used before.
func (ns *names) numbered(prefix, about string) string {
	return ns.next(base{prefix: prefix, about: about}, func(n int) string { return prefix + about + "/" + strconv.Itoa(n) })
}

// delivered gives the delivery of an event to a listener its name: the type of the
// event, what it is about if anything, and how often there was such a one before.
func (ns *names) delivered(prefix, eventType, about string) string {
	return ns.next(base{prefix: prefix, about: eventType, id: about}, func(n int) string {
		if about != "" {
			about = "/" + about
		}
		return prefix + eventType + about + "/" + strconv.Itoa(n)
	})
}

func (ns *names) next(b base, number func(n int) string) string {
	s := ns.made[b]
	if s == nil {
		if ns.made == nil {
			ns.made = map[base]*series{}
		}
		s = &series{}
		ns.made[b] = s
	}
	if s.in != ns.current {
		s.used, s.in = 0, ns.current
	}
	if s.used == len(s.names) {
		s.names = append(s.names, number(s.used))
	}
	s.used++
	return s.names[s.used-1]
}
