package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Few bound what is shown of one kind; the rest is counted.
const (
	fewCases   = 3
	fewUnclear = 5
)

// Findings writes what was found: the broken MUST rules in full, then those of
// the other levels, in full only if verbose.
func (c *Console) Findings(r *report.Report, verbose bool) {
	for _, level := range [...]conformance.Level{conformance.Must, conformance.Should, conformance.Robust} {
		groups := byRule(r.Broken(level))
		if len(groups) > 0 && level == conformance.Robust {
			c.Printf("%s\n\n", c.Faint("Not failures, only what a careful implementation does better than every release of the original:"))
		}
		for _, group := range groups {
			if level == conformance.Must || verbose {
				c.rule(group)
			} else {
				c.ruleInShort(group)
			}
		}
	}
	c.unclear(r.Unexpected(), verbose)
}

// byRule are the findings of each rule, in the order in which the rules come.
func byRule(findings []report.Finding) [][]report.Finding {
	var groups [][]report.Finding
	for _, f := range findings {
		i := slices.IndexFunc(groups, func(g []report.Finding) bool { return g[0].Rule == f.Rule })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

// rule writes the findings of one rule: the first in full, a few more by their
// replay commands.
func (c *Console) rule(group []report.Finding) {
	group = simplestFirst(group)
	c.ruleHead(&group[0])
	c.Finding(&group[0])
	more := group[1:]
	for _, f := range more[:min(fewCases-1, len(more))] {
		c.Printf("  also in %s: %s\n    %s\n", f.Case, f.Message, c.Bold(f.Replay))
	}
	if rest := len(more) - (fewCases - 1); rest > 0 {
		c.Printf("  and in %s: %s\n", Count(rest, "more case"), names(more[fewCases-1:]))
	}
	c.Printf("\n")
}

// simplestFirst puts those first that are easiest to follow: a case's own
// schedule before drawn ones, short ones before long ones.
func simplestFirst(group []report.Finding) []report.Finding {
	return slices.SortedStableFunc(slices.Values(group), func(a, b report.Finding) int {
		if (a.Seed == nil) != (b.Seed == nil) {
			if a.Seed == nil {
				return -1
			}
			return 1
		}
		return len(a.Schedule) - len(b.Schedule)
	})
}

func (c *Console) ruleHead(f *report.Finding) {
	c.Printf("%s %s\n", c.levelled(f.Level, f.Rule), c.Faint(levelWord(f.Level)))
	sentence, _ := report.Sentence(f.Rule)
	for _, line := range Wrap(sentence, 90) {
		c.Printf("  %s\n", c.Bold(line))
	}
}

func levelWord(l conformance.Level) string {
	if l == conformance.Robust {
		return string(l)
	}
	return strings.ToUpper(string(l))
}

func (c *Console) levelled(l conformance.Level, text string) string {
	if l == conformance.Must {
		return c.Bad(text)
	}
	return c.Warn(text)
}

// Finding writes one finding: what is wrong, the entries that clash, what the
// reference does at the same place, and how to see it again.
func (c *Console) Finding(f *report.Finding) {
	c.Printf("  %s: %s\n", where(f), f.Message)
	if f.StateLeak {
		c.Printf("  %s\n", c.Warn("state-leak: it passes alone in a fresh process; something that an earlier case left behind brings it about"))
	}
	if f.Trace != nil {
		c.Printf("\n")
		c.Excerpt(f.Trace, f.Entries...)
		c.reference(f)
		c.Printf("\n")
	}
	c.Printf("  replay: %s\n", c.Bold(f.Replay))
}

func where(f *report.Finding) string {
	text := "case " + f.Case
	if f.Seed != nil {
		text += fmt.Sprintf(", schedule drawn by seed %d", *f.Seed)
	}
	if f.Count > 1 {
		text += fmt.Sprintf(" (also in %s of this case)", Count(f.Count-1, "other schedule"))
	}
	return text
}

func (c *Console) ruleInShort(group []report.Finding) {
	first := &simplestFirst(group)[0]
	c.ruleHead(first)
	c.Printf("  %s: %s", where(first), first.Message)
	if len(group) > 1 {
		c.Printf(" (and in %s)", Count(len(group)-1, "more case"))
	}
	c.Printf("\n  replay: %s\n\n", c.Bold(first.Replay))
}

func names(findings []report.Finding) string {
	var cases []string
	for _, f := range findings {
		cases = append(cases, f.Case)
	}
	return few(cases, 6)
}

// few are the first of the names, and how many more there are.
func few(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// unclear writes which schedules gave no verdict.
func (c *Console) unclear(unclear []report.Unclear, verbose bool) {
	most := fewUnclear
	if verbose {
		most = len(unclear)
	}
	for _, u := range unclear[:min(most, len(unclear))] {
		c.Printf("%s  %s: %s\n", c.Warn("inconclusive"), u.Case, firstLine(u.Message, u.Outcome))
	}
	if rest := len(unclear) - most; rest > 0 {
		c.Printf("%s  %s (-v lists them)\n", c.Warn("inconclusive"), Count(rest, "more schedule"))
	}
	if len(unclear) > 0 {
		c.Printf("\n")
	}
}

func firstLine(message string, outcome trace.Outcome) string {
	first, _, _ := strings.Cut(message, "\n")
	if first == "" {
		return string(outcome)
	}
	return string(outcome) + ": " + first
}
