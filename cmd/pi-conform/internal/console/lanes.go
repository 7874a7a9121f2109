package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/pi-conform/pi-conform/conformance/report/lanes"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// laneWidth is how many characters a line of a drawn trace may have.
const laneWidth = 80

// hues are the colours of the lanes: those of a terminal, which its user chose.
var hues = map[lanes.Kind]string{
	lanes.User: "5", lanes.Loop: "4", lanes.Model: "3", lanes.Tool: "2", lanes.Hook: "13", lanes.Listener: "6", lanes.View: "8",
}

// Lanes draws a trace in lanes, one for each of those who act: a dot where
// something happens, an arrow where it goes from one to another.
//
//	   user
//	   │ loop
//	   │ │ model
//	1  ●─▶ │  > prompt/0 "go"
//	   │ ● │  agent_start
func (c *Console) Lanes(t *trace.Trace, marked ...int) {
	l := lanes.Of(t)
	c.laneHeads(l)
	spans := laneSpans(l)
	for i := range l.Rows {
		c.laneRow(l, i, spans, slices.Contains(marked, l.Rows[i].Entry))
	}
}

// laneHeads names the lanes, like steps of stairs: names are wider than lanes.
func (c *Console) laneHeads(l *lanes.Layout) {
	for i, lane := range l.Lanes {
		c.Printf("%s%s%s\n", strings.Repeat(" ", 8), c.bars(l, i), c.inHue(lane.Kind, clip(lane.Name, laneWidth-8-2*i)))
	}
}

func (c *Console) bars(l *lanes.Layout, n int) string {
	var b strings.Builder
	for _, lane := range l.Lanes[:n] {
		b.WriteString(c.inHue(lane.Kind, "│") + " ")
	}
	return b.String()
}

func (c *Console) inHue(kind lanes.Kind, text string) string {
	return c.renderer.NewStyle().Inline(true).Foreground(lipgloss.Color(hues[kind])).Render(text)
}

// laneSpan are the first and the last row of a lane.
type laneSpan struct{ first, last int }

func laneSpans(l *lanes.Layout) []laneSpan {
	spans := make([]laneSpan, len(l.Lanes))
	for i := range spans {
		spans[i] = laneSpan{first: len(l.Rows), last: -1}
	}
	for i, row := range l.Rows {
		for _, lane := range [...]int{row.From, row.To} {
			spans[lane].first, spans[lane].last = min(spans[lane].first, i), max(spans[lane].last, i)
		}
	}
	for i := range min(2, len(spans)) { // user and loop are there all the time
		spans[i] = laneSpan{0, len(l.Rows)}
	}
	return spans
}

func (c *Console) laneRow(l *lanes.Layout, at int, spans []laneSpan, marked bool) {
	row := &l.Rows[at]
	number, mark := "    ", "  "
	if row.Kind == string(trace.KindAction) {
		number = fmt.Sprintf("%4d", row.Step)
	}
	if marked {
		mark = c.bad.Render("▶ ")
	}
	text := clip(row.Text, laneWidth-8-2*len(l.Lanes)-1)
	switch {
	case marked:
		text = c.bold.Render(text)
	case row.Kind != string(trace.KindAction):
		text = c.faint.Render(text)
	}
	c.Printf("%s%s  %s %s\n", mark, c.faint.Render(number), c.gutter(l, row, at, spans), text)
}

// gutter draws the lanes beside a row, two characters each.
func (c *Console) gutter(l *lanes.Layout, row *lanes.Row, at int, spans []laneSpan) string {
	left, right := min(row.From, row.To), max(row.From, row.To)
	outside := row.From
	if outside == 1 {
		outside = row.To
	}
	hop := l.Lanes[outside].Kind
	var b strings.Builder
	for i, lane := range l.Lanes {
		switch {
		case i == row.From:
			b.WriteString(c.inHue(hop, "●"))
		case i == row.To && row.To > row.From:
			b.WriteString(c.inHue(hop, "▶"))
		case i == row.To:
			b.WriteString(c.inHue(hop, "◀"))
		case i > left && i < right:
			b.WriteString(c.inHue(hop, "─"))
		case at >= spans[i].first && at <= spans[i].last:
			b.WriteString(c.inHue(lane.Kind, "│"))
		default:
			b.WriteByte(' ')
		}
		if i >= left && i < right {
			b.WriteString(c.inHue(hop, "─"))
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// clip cuts a text to a width on the screen.
func clip(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		w := lipgloss.Width(string(r))
		if used+w > width-1 {
			break
		}
		used += w
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// Aligned draws two traces as one: what both have once, with a mark before what
// only one has. It reports whether they differ.
func (c *Console) Aligned(a, b *trace.Trace) bool {
	pairs := lanes.Align(a, b)
	near := nearDifferences(pairs)
	differ := false
	omitted := 0
	for i, p := range pairs {
		differ = differ || p.Like != lanes.Same
		if !near[i] {
			omitted++
			continue
		}
		if omitted > 0 {
			c.omitted(omitted)
			omitted = 0
		}
		c.pair(a, b, p)
	}
	if omitted > 0 && differ {
		c.omitted(omitted)
	}
	return differ
}

// nearDifferences tells which pairs are shown.
func nearDifferences(pairs []lanes.Pair) []bool {
	near := make([]bool, len(pairs))
	for i, p := range pairs {
		if p.Like == lanes.Same {
			continue
		}
		for j := max(0, i-around-1); j <= min(len(pairs)-1, i+around+1); j++ {
			near[j] = true
		}
	}
	return near
}

func (c *Console) pair(a, b *trace.Trace, p lanes.Pair) {
	switch {
	case p.B < 0:
		c.Printf("%s\n", c.bad.Render("- "+numbered(&a.Entries[p.A])))
	case p.A < 0:
		c.Printf("%s\n", c.good.Render("+ "+numbered(&b.Entries[p.B])))
	case p.Like == lanes.SameLine:
		c.Printf("%s\n", c.warn.Render("≠ "+numbered(&a.Entries[p.A])))
		left, right := trace.Excerpts(&a.Entries[p.A], &b.Entries[p.B])
		c.Printf("         %s\n         %s\n", c.bad.Render("- "+clip(left, laneWidth-11)), c.good.Render("+ "+clip(right, laneWidth-11)))
	default:
		c.Printf("%s\n", c.faint.Render("  "+numbered(&a.Entries[p.A])))
	}
}

// numbered is the line of an entry, with the number of the step that it begins.
func numbered(e *trace.Entry) string {
	number := ""
	if e.Kind == trace.KindAction {
		number = fmt.Sprint(e.Step)
	}
	return fmt.Sprintf("%4s  %s", number, clip(trace.Line(e), laneWidth-8))
}
