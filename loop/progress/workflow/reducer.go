package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/loop/progress"
)

// state is the fold of a run's events. It holds what is active and numbers of the
// rest, so it does not grow with what has been (FLOW-6).
type state struct {
	defects Defects

	began  bool // anything worth showing has happened
	phase  string
	log    string // the latest line
	active []child
	count  map[Outcome]int
	starts int
	ended  bool
	stop   string
	error  string

	logs []string // all lines; only defects ask for them
}

type child struct {
	seq   int
	label string
}

// maxText bounds what is kept of one text, in bytes.
const maxText = 1 << 10

// clipped is a text that fits, cut at a rune.
func clipped(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// take folds an event in. It reports whether the event is meaningful: what
// changes nothing is not shown (FLOW-7).
func (s *state) take(ev *Event) bool {
	if s.ended {
		return false
	}
	changed := s.fold(ev)
	s.began = s.began || changed
	return changed
}

func (s *state) fold(ev *Event) bool {
	switch ev.Kind {
	case Start:
	case Phase:
		s.phase = clipped(ev.Phase)
	case Log:
		s.log = clipped(ev.Log)
		if s.defects.Has(EveryLogKept) {
			s.logs = append(s.logs, s.log)
		}
	case AgentStart:
		return s.begin(ev)
	case AgentEnd:
		return s.settle(ev)
	case End:
		s.ended, s.stop, s.error = true, clipped(ev.Stop), clipped(ev.Error)
	default:
		return false
	}
	return true
}

func (s *state) find(seq int) int {
	return slices.IndexFunc(s.active, func(c child) bool { return c.seq == seq })
}

// begin: a child that is active already is not begun again.
func (s *state) begin(ev *Event) bool {
	if s.find(ev.Seq) >= 0 {
		return false
	}
	c := child{ev.Seq, clipped(ev.Label)}
	if s.defects.Has(LatestChildFirst) {
		s.active = append([]child{c}, s.active...)
	} else {
		s.active = append(s.active, c)
	}
	s.starts++
	return true
}

// settle: an end without its start changes nothing.
func (s *state) settle(ev *Event) bool {
	if s.count == nil {
		s.count = map[Outcome]int{}
	}
	i := s.find(ev.Seq)
	if i < 0 && s.defects.Has(UnpairedEndCounted) {
		s.count[ev.Outcome]++
		return true
	}
	if i < 0 {
		return false
	}
	s.active = slices.Delete(s.active, i, i+1)
	s.count[ev.Outcome]++
	return true
}

// maxLabels is how many active children are named.
const maxLabels = 32

// view shows the state.
func (s *state) view() progress.View {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s.phase != "" {
		add("phase: %s", s.phase)
	}
	if s.log != "" {
		add("log: %s", s.log)
	}
	add("active: %s", s.labels())
	add("%d active, %d completed, %d failed, %d cancelled", len(s.active), s.count[Completed], s.count[Failed], s.count[Cancelled])
	if s.ended {
		add("ended: %s", strings.TrimSuffix(s.stop+": "+s.error, ": "))
	}
	return progress.Text(strings.Join(lines, "\n"))
}

func (s *state) labels() string {
	var labels []string
	for _, c := range s.active[:min(len(s.active), maxLabels)] {
		labels = append(labels, c.label)
	}
	if more := len(s.active) - maxLabels; more > 0 {
		labels = append(labels, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(labels, ", ")
}

// retained is how many things the state keeps.
func (s *state) retained() int { return len(s.active) + len(s.logs) }
