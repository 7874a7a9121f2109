package console

import (
	"fmt"
	"strings"

	"github.com/pi-conform/pi-conform/conformance/report"
)

// stale writes which expected failures did not happen, and how to be rid of
// them. The lines of one file are told together.
func (c *Console) stale(r *report.Report) {
	if len(r.Stale) == 0 {
		return
	}
	for _, s := range r.Stale[:min(fewStale, len(r.Stale))] {
		c.Printf("  %s %s:%d: %s is expected to fail, and did not\n", c.Warn("stale"), s.File, s.Line, strings.TrimSpace(s.Match+" "+s.Rule))
	}
	if rest := r.Stale[min(fewStale, len(r.Stale)):]; len(rest) > 0 {
		var lines []string
		for _, s := range rest {
			lines = append(lines, fmt.Sprint(s.Line))
		}
		c.wrapped("and so are those of the lines ", strings.Join(lines, ", "))
	}
	c.Printf("  remove them: %s\n", c.Bold("pi-conform baseline prune "+r.Stale[0].File+" REPORT.json"))
}

// fewStale is how many stale entries are told in full.
const fewStale = 8

// Diff writes what changed from one report to another.
func (c *Console) Diff(d *report.Diff) {
	c.Printf("from  %s\nto    %s\n", side(&d.Before), side(&d.After))
	if len(d.Rules) > 0 {
		c.Printf("\n")
		c.Heading("rules")
		for _, rule := range d.Rules {
			c.Printf("  %-9s %-7s %s → %s\n", rule.ID, rule.Level, rule.Before, rule.After)
		}
	}
	c.changed("newly failing", d.Failing, c.Bad)
	c.changed("newly passing", d.Passing, c.Good)
	if len(d.Unclear) > 0 {
		c.Printf("\n")
		c.Heading("newly without a verdict")
		for _, result := range d.Unclear {
			c.Printf("  %s %s: %s\n", c.Warn(result.Case), result.Status, result.Message)
		}
	}
	c.named("cases that are new", d.Added)
	c.named("cases that are gone", d.Removed)
	if len(d.Rules)+len(d.Failing)+len(d.Passing)+len(d.Unclear)+len(d.Added)+len(d.Removed) == 0 {
		c.Printf("nothing changed\n")
	}
}

func side(s *report.Side) string {
	text := fmt.Sprintf("%s, edition %s", s.Subject.String(), s.Edition)
	if s.Partial {
		text += " (partial)"
	}
	return text
}

func (c *Console) changed(heading string, findings []report.Finding, paint func(string) string) {
	if len(findings) == 0 {
		return
	}
	c.Printf("\n")
	c.Heading(fmt.Sprintf("%s (%d)", heading, len(findings)))
	for _, f := range findings {
		c.Printf("  %s %s: %s\n", paint(fmt.Sprintf("%-9s", f.Rule)), f.Case, f.Message)
	}
}

func (c *Console) named(heading string, cases []string) {
	if len(cases) > 0 {
		c.Printf("\n%s: %s\n", heading, few(cases, 12))
	}
}
