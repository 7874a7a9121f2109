package lanes

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Bounds of what viewers of Mermaid draw.
const (
	mostMessages  = 300
	mostCharacter = 90
)

// WriteMermaid writes a trace as a Mermaid sequence diagram, for issues and
// pull requests. Marked entries are set off.
func WriteMermaid(w io.Writer, t *trace.Trace, marked ...int) error {
	l := Of(t)
	var b strings.Builder
	b.WriteString("sequenceDiagram\n")
	for i, lane := range l.Lanes {
		fmt.Fprintf(&b, "  participant p%d as %s\n", i, mermaid(lane.Name))
	}
	for _, row := range l.Rows[:min(mostMessages, len(l.Rows))] {
		writeMessage(&b, &row, slices.Contains(marked, row.Entry))
	}
	if rest := len(l.Rows) - mostMessages; rest > 0 {
		fmt.Fprintf(&b, "  Note over p1: %d entries more\n", rest)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeMessage(b *strings.Builder, row *Row, marked bool) {
	text := mermaid(strings.TrimPrefix(row.Text, "> "))
	if marked {
		b.WriteString("  rect rgb(255, 200, 200)\n")
	}
	switch {
	case row.From == row.To:
		fmt.Fprintf(b, "  Note over p%d: %s\n", row.From, text)
	case row.Kind == string(trace.KindAction):
		fmt.Fprintf(b, "  p%d->>p%d: %d #8226; %s\n", row.From, row.To, row.Step, text)
	default:
		fmt.Fprintf(b, "  p%d-->>p%d: %s\n", row.From, row.To, text)
	}
	if marked {
		b.WriteString("  end\n")
	}
}

// mermaid is a text that means nothing to Mermaid: what is neither letter, digit
// nor harmless is an entity.
func mermaid(text string) string {
	if utf8.RuneCountInString(text) > mostCharacter {
		text = string([]rune(text)[:mostCharacter]) + "…"
	}
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 && strings.ContainsRune(";#<>\"'`%{}[]()&\\|\n\r\t:", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "#8203;"
	}
	return b.String()
}
