package dialect

import (
	"github.com/pi-conform/pi-conform/harness/lean"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// store holds what one run is made of, to be used again for a later one.
type store struct {
	entries  []trace.Entry
	lines    []int
	events   lean.Slab[trace.Event]
	messages lean.Slab[trace.Message]
	results  lean.Slab[trace.Result]
	texts    map[string]string
}

func (s *store) reset() {
	s.entries, s.lines = s.entries[:0], s.lines[:0]
	s.events.Recycle()
	s.messages.Recycle()
	s.results.Recycle()
	if len(s.texts) > 1<<12 { // clearing would take as long as for the longest run so far
		s.texts = nil
	}
	clear(s.texts)
}

// text is a text as a string, in short if it is long. The texts of a run stand
// in its log several times each.
func (s *store) text(text []byte) string {
	if len(text) > longText {
		return condense(text)
	}
	if known, ok := s.texts[string(text)]; ok {
		return known
	}
	if s.texts == nil {
		s.texts = map[string]string{}
	}
	made := string(text)
	s.texts[made] = made
	return made
}
