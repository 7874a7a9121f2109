package lanes

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Pair are two entries that stand side by side; -1 if there is none on that
// side.
type Pair struct {
	A, B int
	// Like is how much alike they are.
	Like Likeness
}

// Likeness says how much two entries are alike.
type Likeness int

// From nothing in common to the same in all.
const (
	Alone    Likeness = iota // there is an entry on one side only
	SameLine                 // they read the same, but differ in what is not shown
	Same
)

// Align puts two traces side by side: step beside step, and within each those
// entries beside each other that read the same. What a reducer made of the events
// is left out if only one of them tells it: that is no difference between loops.
func Align(a, b *trace.Trace) []Pair {
	views := hasViews(a) && hasViews(b)
	left, right := stepsOf(a, views), stepsOf(b, views)
	var pairs []Pair
	for _, p := range common(len(left), len(right), func(i, j int) bool { return left[i].label == right[j].label }) {
		var from, beside step
		if p.i >= 0 {
			from = left[p.i]
		}
		if p.j >= 0 {
			beside = right[p.j]
		}
		pairs = append(pairs, alignStep(a, b, from, beside)...)
	}
	return pairs
}

func alignStep(a, b *trace.Trace, left, right step) []Pair {
	var pairs []Pair
	same := func(i, j int) bool { return left.lines[i] == right.lines[j] }
	for _, p := range common(len(left.lines), len(right.lines), same) {
		pair := Pair{A: -1, B: -1}
		if p.i >= 0 {
			pair.A = left.entries[p.i]
		}
		if p.j >= 0 {
			pair.B = right.entries[p.j]
		}
		if p.i >= 0 && p.j >= 0 {
			pair.Like = likeness(&a.Entries[pair.A], &b.Entries[pair.B])
		}
		pairs = append(pairs, pair)
	}
	return pairs
}

func likeness(a, b *trace.Entry) Likeness {
	left, errA := json.Marshal(unnumbered(a), json.Deterministic(true))
	right, errB := json.Marshal(unnumbered(b), json.Deterministic(true))
	if errA == nil && errB == nil && bytes.Equal(left, right) {
		return Same
	}
	return SameLine
}

// unnumbered is an entry without what merely counts: one event more or less
// changes it from there on.
func unnumbered(e *trace.Entry) *trace.Entry {
	plain := *e
	plain.Step, plain.Time, plain.N = 0, 0, 0
	if e.Payload != nil && e.Payload.Event != nil {
		payload := *e.Payload
		payload.Event = nil
		plain.Payload = &payload
	}
	return &plain
}

func hasViews(t *trace.Trace) bool {
	return slices.ContainsFunc(t.Entries, func(e trace.Entry) bool { return e.Kind == trace.KindView })
}

// step is what happened between one action and the next.
type step struct {
	label   string
	entries []int
	lines   []string
}

func stepsOf(t *trace.Trace, views bool) []step {
	var steps []step
	number := 0
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Kind == trace.KindView && !views {
			continue
		}
		if len(steps) == 0 || number != e.Step {
			number = e.Step
			steps = append(steps, step{label: e.Label})
		}
		last := &steps[len(steps)-1]
		last.entries = append(last.entries, i)
		last.lines = append(last.lines, trace.Line(e))
	}
	return steps
}

// pairing is a place in each of two lists; -1 for none.
type pairing struct{ i, j int }

// mostCells bounds the work of finding what two lists have in common.
const mostCells = 1 << 22

// common pairs up a longest common subsequence of two lists of those lengths,
// and keeps everything else in order between.
func common(n, m int, same func(i, j int) bool) []pairing {
	var pairs []pairing
	i := 0
	for i < min(n, m) && same(i, i) { // most of it, nearly always
		pairs = append(pairs, pairing{i, i})
		i++
	}
	if (n-i)*(m-i) > mostCells {
		return append(pairs, apart(i, n, m)...)
	}
	return append(pairs, pairUp(i, n, m, same)...)
}

// pairUp pairs up what comes after the first same entries of both lists.
func pairUp(first, n, m int, same func(i, j int) bool) []pairing {
	length := longest(first, n, m, same)
	width := m - first + 1
	at := func(i, j int) int { return length[(i-first)*width+j-first] }
	var pairs []pairing
	for i, j := first, first; i < n || j < m; {
		switch {
		case i < n && j < m && same(i, j):
			pairs = append(pairs, pairing{i, j})
			i, j = i+1, j+1
		case j == m || i < n && at(i+1, j) >= at(i, j+1):
			pairs = append(pairs, pairing{i, -1})
			i++
		default:
			pairs = append(pairs, pairing{-1, j})
			j++
		}
	}
	return pairs
}

// longest gives, for every place in both lists, how much what follows has in
// common.
func longest(first, n, m int, same func(i, j int) bool) []int {
	width := m - first + 1
	length := make([]int, (n-first+1)*width)
	for i := n - 1; i >= first; i-- {
		for j := m - 1; j >= first; j-- {
			here := (i-first)*width + j - first
			if same(i, j) {
				length[here] = length[here+width+1] + 1
			} else {
				length[here] = max(length[here+width], length[here+1])
			}
		}
	}
	return length
}

// apart pairs nothing up.
func apart(first, n, m int) []pairing {
	var pairs []pairing
	for i := first; i < n; i++ {
		pairs = append(pairs, pairing{i, -1})
	}
	for j := first; j < m; j++ {
		pairs = append(pairs, pairing{-1, j})
	}
	return pairs
}
