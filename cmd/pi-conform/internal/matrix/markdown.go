package matrix

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

// Markdown is the matrix for people: a table of rules and subjects, and every
// finding of a MUST rule with what is known of it.
func Markdown(m *Matrix) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Each case was run by its own schedule and by %d drawn ones (seed %d), and each subject judged by the newest edition that it claims.\n\n", m.Schedules, m.Seed)
	subjects(&b, m)
	rules(&b, m)
	for i := range m.Subjects {
		findings(&b, m, i)
	}
	return b.String()
}

func subjects(b *strings.Builder, m *Matrix) {
	b.WriteString("## Subjects\n\n| subject | edition | cases | schedules | MUST rules broken | inconclusive | cases left out for lack of |\n|---|---|---|---|---|---|---|\n")
	for _, s := range m.Subjects {
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %s |\n",
			s.Name, s.Edition, s.Cases, s.Schedules, s.Broken, len(s.Inconclusive), strings.Join(s.Lacks, ", "))
	}
}

func rules(b *strings.Builder, m *Matrix) {
	b.WriteString("\n## Rules\n\n✓ passed · **✗ N** broken in N cases · – not applicable · ○ not exercised · ? inconclusive; a rule that is not of level MUST\nin a subject's edition is in brackets there.\n\n| rule |")
	for _, s := range m.Subjects {
		fmt.Fprintf(b, " %s |", s.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(m.Subjects)) + "\n")
	for _, row := range m.Rules {
		fmt.Fprintf(b, "| %s |", row.ID)
		for _, c := range row.Cells {
			fmt.Fprintf(b, " %s |", mark(&c))
		}
		b.WriteString("\n")
	}
}

func mark(c *Cell) string {
	text := ""
	switch c.Status {
	case conformance.StatusPass:
		text = "✓"
	case conformance.StatusFail:
		text = "✗ " + strconv.Itoa(c.Cases)
		if c.Level == conformance.Must {
			text = "**" + text + "**"
		}
	case conformance.StatusNotApplicable:
		return "–"
	case conformance.StatusNotExercised:
		return "○"
	case Inconclusive:
		return "?"
	}
	if c.Level != conformance.Must {
		return "(" + text + ")"
	}
	return text
}

func findings(b *strings.Builder, m *Matrix, i int) {
	s := m.Subjects[i]
	fmt.Fprintf(b, "\n## %s\n\n", s.Name)
	if s.Broken == 0 {
		fmt.Fprintf(b, "No MUST rule of edition %s was broken.\n", s.Edition)
	}
	for _, row := range m.Rules {
		c := row.Cells[i]
		if c.Status != conformance.StatusFail || c.Level != conformance.Must {
			continue
		}
		fmt.Fprintf(b, "- **%s**, in %d: %s.\n", row.ID, c.Cases, c.Message)
		for _, w := range c.Why {
			fmt.Fprintf(b, "  %s%s\n", upper(w.Text), reports(w.Reports))
		}
		fmt.Fprintf(b, "  `%s`\n", c.Replay)
	}
	for _, u := range s.Inconclusive {
		fmt.Fprintf(b, "- inconclusive: %s\n", u)
	}
}

func reports(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
