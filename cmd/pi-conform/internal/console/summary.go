package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// Summary writes what came of a whole run.
func (c *Console) Summary(r *report.Report, verbose bool) {
	c.Printf("%s, edition %s: %s, %s\n",
		c.Bold(subject(&r.Subject)), r.Edition, Count(r.Cases, "case"), Count(r.Schedules, "schedule"))
	c.Printf("  rules: %s\n", strings.Join(c.counts(r), " · "))
	if verbose {
		c.ruleNames(r)
	} else {
		c.neverExercised(r)
	}
	c.stale(r)
	for _, note := range r.Notes {
		c.Printf("  %s\n", note)
	}
	c.Printf("  %s\n", c.conclusion(r))
}

func subject(s *report.Subject) string {
	if s.Version == "" {
		return s.Name
	}
	return s.Name + " " + s.Version
}

// counts are how many rules have each status; those that are broken by level.
func (c *Console) counts(r *report.Report) []string {
	count := r.Counts()
	counts := []string{c.Good(fmt.Sprintf("%d passed", count[conformance.StatusPass]))}
	for _, level := range [...]conformance.Level{conformance.Must, conformance.Should, conformance.Robust} {
		if n := len(byRule(r.Broken(level))); n > 0 || level == conformance.Must {
			counts = append(counts, c.broken(n, level))
		}
	}
	return append(counts,
		fmt.Sprintf("%d not exercised", count[conformance.StatusNotExercised]),
		fmt.Sprintf("%d not applicable", count[conformance.StatusNotApplicable]))
}

func (c *Console) broken(n int, level conformance.Level) string {
	if level == conformance.Must {
		text := fmt.Sprintf("%d failed", n)
		if n == 0 {
			return text
		}
		return c.Bad(text)
	}
	return c.Warn(fmt.Sprintf("%d %s broken", n, levelWord(level)))
}

// neverExercised names the rules of which the run says nothing although it could
// have.
func (c *Console) neverExercised(r *report.Report) {
	if ids := withStatus(r, conformance.StatusNotExercised); len(ids) > 0 {
		c.Printf("  not exercised: %s\n", few(ids, 12))
	}
}

func withStatus(r *report.Report, status conformance.Status) []string {
	var ids []string
	for _, rule := range r.Rules {
		if rule.Status == status {
			ids = append(ids, rule.ID)
		}
	}
	return ids
}

// ruleNames names the rules of each status, and why one is not applicable.
func (c *Console) ruleNames(r *report.Report) {
	for _, status := range [...]conformance.Status{
		conformance.StatusPass, conformance.StatusFail, conformance.StatusNotExercised,
	} {
		if ids := withStatus(r, status); len(ids) > 0 {
			c.wrapped(string(status)+": ", strings.Join(ids, " "))
		}
	}
	var reasons []string
	ids := map[string][]string{}
	for _, rule := range r.Rules {
		if rule.Status != conformance.StatusNotApplicable {
			continue
		}
		if !slices.Contains(reasons, rule.Reason) {
			reasons = append(reasons, rule.Reason)
		}
		ids[rule.Reason] = append(ids[rule.Reason], rule.ID)
	}
	for _, reason := range reasons {
		c.wrapped("not applicable ("+reason+"): ", strings.Join(ids[reason], " "))
	}
}

func (c *Console) wrapped(label, text string) {
	for i, text := range Wrap(label+text, 76) {
		c.Printf("  %s%s\n", map[bool]string{true: "  ", false: ""}[i > 0], text)
	}
}

func (c *Console) conclusion(r *report.Report) string {
	verdict, rest, _ := strings.Cut(r.Conclusion(), ": ")
	paint := c.Warn
	switch {
	case len(r.Broken(conformance.Must)) > 0:
		paint = c.Bad
	case verdict == "conforms":
		paint = c.Good
	}
	text := paint(verdict)
	if rest != "" {
		text += ": " + rest
	}
	if notes := remarks(r); notes != "" {
		text += " (" + notes + ")"
	}
	return text
}

// remarks say what has to be known besides the conclusion.
func remarks(r *report.Report) string {
	var notes []string
	if n := len(r.Unexpected()); n > 0 {
		notes = append(notes, Count(n, "schedule")+" inconclusive")
	}
	if n := r.ExpectedFailures(); n > 0 && !strings.HasPrefix(r.Conclusion(), "as expected") {
		notes = append(notes, Count(n, "expected failure"))
	}
	if r.Partial {
		notes = append(notes, "partial: not all cases were run")
	}
	if r.Shard != nil {
		notes = append(notes, fmt.Sprintf("shard %d of %d", r.Shard.Index, r.Shard.Count))
	}
	return strings.Join(notes, "; ")
}
