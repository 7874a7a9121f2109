package console

import (
	"fmt"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// LogFindings writes what was found in a log.
func (c *Console) LogFindings(name string, r *dialect.Report) {
	for i := range r.Findings {
		c.LogFinding(name, &r.Findings[i])
	}
	if r.More > 0 {
		c.Printf("and %s\n\n", Count(r.More, "more finding"))
	}
}

// LogFinding writes one finding, as the file and the line at which it became
// evident, and the lines that clash.
func (c *Console) LogFinding(name string, f *dialect.Finding) {
	line := 0
	if n := len(f.Lines); n > 0 {
		line = f.Lines[n-1]
	}
	c.Printf("%s %s %s %s\n", c.Bold(fmt.Sprintf("%s:%d:", name, line)), c.levelled(f.Level, f.Rule), c.Faint(levelWord(f.Level)), f.Message)
	if text := logSentence(f.Rule); text != "" {
		for _, line := range Wrap(text, 90) {
			c.Printf("  %s\n", c.Faint(line))
		}
	}
	for i, n := range f.Lines {
		text := ""
		if i < len(f.Text) {
			text = f.Text[i]
		}
		c.Printf("  %s line %d  %s\n", c.Bad("▶"), n, text)
	}
	c.Printf("\n")
}

func logSentence(id string) string {
	for _, r := range acp.Rules() {
		if r.ID == id {
			return r.Sentence
		}
	}
	sentence, _ := report.Sentence(id)
	return sentence
}

// LogSummary writes what the rules say about a log as a whole.
func (c *Console) LogSummary(name string, r *dialect.Report, verbose bool) {
	count := map[conformance.Status]int{}
	for _, rule := range r.Rules {
		count[rule.Status]++
		if verbose {
			c.Printf("%-8s %-15s %s\n", rule.Rule, rule.Status, c.Faint(rule.Reason))
		}
	}
	for _, note := range r.Notes {
		c.Printf("%s %s\n", c.Warn("note"), note)
	}
	what := Count(r.Lines, "line")
	if r.Runs > 0 {
		what += ", " + Count(r.Runs, "run")
	}
	c.Printf("%s: %s, %s\n", name, r.Dialect, what)
	if broken := count[conformance.StatusFail]; broken > 0 {
		c.Printf("%s, ", c.Bad(Count(broken, "rule")+" broken"))
	}
	c.Printf("%s kept, %d not exercised, %d not applicable\n", Count(count[conformance.StatusPass], "rule"), count[conformance.StatusNotExercised], count[conformance.StatusNotApplicable])
	if len(r.Kept) > 0 {
		c.Printf("keeps edition %s\n", joinEditions(r))
	}
}

func joinEditions(r *dialect.Report) string {
	var text strings.Builder
	for i, e := range r.Kept {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(string(e))
	}
	return text.String()
}
