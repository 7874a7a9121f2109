package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

const (
	around = 2 // entries that are shown before and after a marked one
	gap    = 3 // as few left-out entries are shown after all
)

// Excerpt draws the marked entries of a trace with what stands around them:
//
//	    7  > tool/c1/return "A"
//	▶        tool_execution_end c1 ok "A"
//	         ⋮ 12 entries
//	   11  > tool/c1/late/0 "x"
//	▶        tool_execution_update c1 "x"
func (c *Console) Excerpt(t *trace.Trace, marked ...int) {
	plain, marked := withoutViews(t, marked)
	c.draw(plain, marked, shownAround(plain, marked))
}

// withoutViews leaves out what a reducer made of the events, unless that is what
// it is about: the views are long and say everything twice.
func withoutViews(t *trace.Trace, marked []int) (*trace.Trace, []int) {
	isView := func(i int) bool { return i >= 0 && i < len(t.Entries) && t.Entries[i].Kind == trace.KindView }
	if slices.ContainsFunc(marked, isView) {
		return t, marked
	}
	plain := &trace.Trace{Header: t.Header}
	var moved []int
	for i := range t.Entries {
		if slices.Contains(marked, i) {
			moved = append(moved, len(plain.Entries))
		}
		if !isView(i) {
			plain.Entries = append(plain.Entries, t.Entries[i])
		}
	}
	return plain, moved
}

// Trace draws a whole trace.
func (c *Console) Trace(t *trace.Trace, marked ...int) {
	c.draw(t, marked, span(0, len(t.Entries)))
}

// stepOf are the bounds of the entries with the same step.
func stepOf(t *trace.Trace, entry int) (from, to int) {
	same := func(i int) bool { return t.Entries[i].Step == t.Entries[entry].Step }
	from, to = entry, entry+1
	for from > 0 && same(from-1) {
		from--
	}
	for to < len(t.Entries) && same(to) {
		to++
	}
	return from, to
}

func span(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// shownAround are the indices of the entries near the marked ones, with the
// action that each of them follows.
func shownAround(t *trace.Trace, marked []int) []int {
	show := map[int]bool{}
	for _, m := range marked {
		if m < 0 || m >= len(t.Entries) {
			continue
		}
		for i := max(0, m-around); i <= min(m+around, len(t.Entries)-1); i++ {
			show[i] = true
		}
		if from, _ := stepOf(t, m); t.Entries[from].Kind == trace.KindAction {
			show[from] = true
		}
	}
	var shown []int
	for i := range t.Entries {
		if show[i] {
			shown = append(shown, i)
		}
	}
	return closeGaps(shown)
}

func closeGaps(shown []int) []int {
	var all []int
	for _, i := range shown {
		if n := len(all); n > 0 && i-all[n-1]-1 <= gap {
			all = append(all, span(all[n-1]+1, i)...)
		}
		all = append(all, i)
	}
	return all
}

func (c *Console) draw(t *trace.Trace, marked, shown []int) {
	lines := entryLines(t)
	for n, i := range shown {
		if n > 0 && i > shown[n-1]+1 {
			c.omitted(i - shown[n-1] - 1)
		}
		text := lines[i]
		switch {
		case slices.Contains(marked, i):
			c.Printf("  %s %s\n", c.bad.Render("▶"), c.bold.Render(text))
		case t.Entries[i].Kind == trace.KindAction:
			c.Printf("    %s\n", text)
		default:
			c.Printf("    %s\n", c.faint.Render(text))
		}
	}
}

func (c *Console) omitted(n int) {
	noun := "entries"
	if n == 1 {
		noun = "entry"
	}
	c.Printf("        %s\n", c.faint.Render("⋮ "+strconv.Itoa(n)+" "+noun))
}

// entryLines are the lines of the trace's text, one an entry: the first line of
// the text is about the trace as a whole.
func entryLines(t *trace.Trace) []string {
	return strings.Split(trace.Text(t), "\n")[1:]
}
