package main

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// progressFamilies are the families of rules about progress, which are judged on
// records of their own.
func progressFamilies() []string {
	var names []string
	for _, r := range progress.Rules() {
		if !slices.Contains(names, string(r.Family)) {
			names = append(names, string(r.Family))
		}
	}
	return names
}

// ofProgress sorts families into those of the loop and those of progress.
func ofProgress(families []conformance.Family) (loop, channel []conformance.Family) {
	known := progressFamilies()
	for _, f := range families {
		if slices.Contains(known, string(f)) {
			channel = append(channel, f)
		} else {
			loop = append(loop, f)
		}
	}
	return loop, channel
}

// selftestSeeds are how many seeds the progress channel is run under.
const selftestSeeds = 60

func measureProgress(ctx context.Context, families []conformance.Family) (*suite.Score, error) {
	return suite.Measure(ctx, families, selftestSeeds)
}

func (p *program) printProgress(s *suite.Score) {
	p.out.Printf("reference of the progress channel: %s\n\n", console.Count(s.Seeds, "seed"))
	var rows [][]string
	for _, m := range s.Mutants {
		fate := p.out.Bad("survives")
		if m.Killed {
			fate = "seed " + strconv.FormatUint(m.Seed, 10)
		}
		rows = append(rows, []string{m.Name, m.Rule, strconv.Itoa(m.Seeds), fate})
	}
	p.out.Table([]string{"mutant", "rule", "seeds", "killed in"}, rows)
	p.out.Printf("\n")
	rows = nil
	for _, r := range s.Rules {
		rows = append(rows, []string{r.ID, strconv.Itoa(r.Exercised), strconv.Itoa(r.Kills)})
	}
	p.out.Table([]string{"rule", "exercised", "kills"}, rows)
	p.out.Printf("\n")
	p.printVerdict(s.Short, s.Killed, len(s.Mutants))
}

// progressRules are the rules about progress that a pattern chooses; all without
// a pattern.
func progressRules(pattern []string) []progress.Rule {
	return slices.DeleteFunc(progress.Rules(), func(r progress.Rule) bool {
		return len(pattern) > 0 && !strings.EqualFold(pattern[0], string(r.Family)) && !matchesID(pattern[0], r.ID)
	})
}

func progressInfo(r progress.Rule) ruleInfo {
	info := ruleInfo{
		ID: r.ID, Family: r.Family, Level: r.Level, Sentence: r.Sentence, Why: r.Why, Source: r.Source,
		Editions: "none: it is about progress", Evidence: []trace.Evidence{}, Mutants: []string{},
	}
	for _, m := range suite.Mutants() {
		if m.Rule == r.ID {
			info.Mutants = append(info.Mutants, m.Name)
		}
	}
	return info
}

// explainProgress explains a rule about progress.
func (p *program) explainProgress(r progress.Rule) error {
	p.out.Heading(r.ID)
	p.out.Paragraph("", r.Sentence)
	p.out.Printf("\n")
	p.out.Paragraph("why", r.Why)
	p.out.Paragraph("level", string(r.Level))
	p.out.Paragraph("editions", "none: the rule is about progress, not about the loop")
	p.out.Paragraph("source", sourceText(r.Source))
	p.out.Paragraph("mutants", strings.Join(progressInfo(r).Mutants, ", "))
	p.out.Printf("\n")
	keeping, breaking, err := suite.Examples(r)
	if err != nil {
		return err
	}
	p.out.Heading("a record that keeps it")
	p.out.Printf("  of %d entries, on which it is exercised %s\n\n", len(keeping.Entries),
		console.Count(progress.Check(keeping, []progress.Rule{r}).Exercised[r.ID], "time"))
	p.out.Heading("a record that breaks it")
	return p.drawBreak(breaking, progress.Check(breaking, []progress.Rule{r}).First(), before)
}

// before is how many entries are shown before the one that breaks a rule.
const before = 6

// drawBreak draws the entry of a finding and so many before it.
func (p *program) drawBreak(record *progress.Record, f *progress.Finding, leading int) error {
	p.out.Printf("  %s\n", f.Message)
	for i := max(0, f.Entry-leading); i <= f.Entry; i++ {
		text, err := lineOf(record.Entries[i])
		if err != nil {
			return err
		}
		mark := " "
		if i == f.Entry {
			mark = ">"
		}
		p.out.Printf("  %s %4d %s\n", mark, i, text)
	}
	return nil
}

// lineOf is an entry as one line, cut where it is long.
func lineOf(e progress.Entry) (string, error) {
	text, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	const most = 160
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…", nil
	}
	return string(text), nil
}

// matchesID reports whether a pattern matches the id of a rule.
func matchesID(pattern, id string) bool {
	ok, err := path.Match(strings.ToUpper(pattern), id)
	return err == nil && ok
}
