// Package console writes for people: findings, traces and summaries, with colour
// where a terminal shows it.
package console

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/mattn/go-isatty"
	"github.com/muesli/termenv"
)

// Console writes to one place.
type Console struct {
	out      io.Writer
	terminal bool
	renderer *lipgloss.Renderer

	bold, faint, good, bad, warn lipgloss.Style
}

// New gives a console on out. It uses colour only if out is a terminal and
// NO_COLOR is not set.
func New(out io.Writer) *Console {
	renderer := lipgloss.NewRenderer(out)
	terminal := isTerminal(out)
	if !terminal || os.Getenv("NO_COLOR") != "" {
		renderer.SetColorProfile(termenv.Ascii)
	}
	style := func() lipgloss.Style { return renderer.NewStyle().Inline(true) }
	return &Console{
		out: out, terminal: terminal, renderer: renderer,
		bold:  style().Bold(true),
		faint: style().Faint(true),
		good:  style().Foreground(lipgloss.Color("2")),
		bad:   style().Foreground(lipgloss.Color("1")).Bold(true),
		warn:  style().Foreground(lipgloss.Color("3")),
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// Printf writes as fmt.Printf does.
func (c *Console) Printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// Heading writes a line that names what follows.
func (c *Console) Heading(text string) { c.Printf("%s\n", c.bold.Render(text)) }

// Good, Bad, Warn, Faint and Bold are the text in a colour that says how things
// stand.
func (c *Console) Good(text string) string  { return c.good.Render(text) }
func (c *Console) Bad(text string) string   { return c.bad.Render(text) }
func (c *Console) Warn(text string) string  { return c.warn.Render(text) }
func (c *Console) Faint(text string) string { return c.faint.Render(text) }
func (c *Console) Bold(text string) string  { return c.bold.Render(text) }

// Table writes rows in columns that are as wide as their widest cell. The last
// column is as it is.
func (c *Console) Table(head []string, rows [][]string) {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	if strings.Join(head, "") != "" {
		c.Printf("%s\n", c.bold.Render(line(head, widths)))
	}
	for _, row := range rows {
		c.Printf("%s\n", line(row, widths))
	}
}

func line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(cell)
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(cell)+2))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Wrap breaks a text into lines of at most width characters, between words.
func Wrap(text string, width int) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case current == "":
			current = word
		case lipgloss.Width(current)+1+lipgloss.Width(word) <= width:
			current += " " + word
		default:
			lines = append(lines, current)
			current = word
		}
	}
	if current != "" {
		lines = append(lines, current)
	}
	return lines
}

// Paragraph writes a text below and beside a label.
func (c *Console) Paragraph(label, text string) {
	const indent, width = 10, 78
	for i, text := range Wrap(text, width-indent) {
		name := ""
		if i == 0 {
			name = label
		}
		c.Printf("%s%s%s\n", c.faint.Render(name), strings.Repeat(" ", max(1, indent-lipgloss.Width(name))), text)
	}
}

// Count is a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
