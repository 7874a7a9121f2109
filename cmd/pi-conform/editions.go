package main

import (
	"regexp"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/edition"
)

// between is what lies between two editions or releases.
type between struct {
	From    edition.Edition `json:"from"`
	To      edition.Edition `json:"to"`
	Changes []changeInfo    `json:"changes"`
	Rules   []boundRule     `json:"rules"` // that do not hold in both, or not at one level
}

type changeInfo struct {
	Since   edition.Edition `json:"since"`
	About   string          `json:"about"`
	Was     string          `json:"was"`
	Is      string          `json:"is"`
	Rules   []string        `json:"rules"`
	Reports []string        `json:"reports,omitzero"`
}

// boundRule is a rule with what it is in each of two editions: its level, or
// empty where it does not hold.
type boundRule struct {
	ID   string            `json:"id"`
	From conformance.Level `json:"from,omitempty"`
	To   conformance.Level `json:"to,omitempty"`
}

var versionForm = regexp.MustCompile(`^\d+(\.\d+){1,2}$`)

// parseBetween reads OLDER..NEWER.
func parseBetween(text string) (from, to edition.Edition, err error) {
	older, newer, _ := strings.Cut(text, "..")
	for _, version := range []string{older, newer} {
		if !versionForm.MatchString(version) {
			return "", "", exit.Usagef("%q names no two editions: write OLDER..NEWER, such as 0.84.3..1.6", text)
		}
	}
	from, to = edition.Edition(older), edition.Edition(newer)
	if from.AtLeast(to) {
		return "", "", exit.Usagef("%q: the older edition has to stand first", text)
	}
	return from, to, nil
}

func differences(from, to edition.Edition) between {
	b := between{From: from, To: to, Changes: []changeInfo{}, Rules: []boundRule{}}
	for _, c := range edition.Between(from, to) {
		b.Changes = append(b.Changes, changeInfo{c.Since, c.About, c.Was, c.Is, c.Rules, c.Reports})
	}
	for _, r := range conformance.Catalogue() {
		if bound := (boundRule{r.ID, levelIn(&r, from), levelIn(&r, to)}); bound.From != bound.To {
			b.Rules = append(b.Rules, bound)
		}
	}
	return b
}

// levelIn is the level of a rule in an edition, or empty if it does not hold there.
func levelIn(r *conformance.Rule, e edition.Edition) conformance.Level {
	if !holds(r, e) {
		return ""
	}
	return r.LevelIn(e)
}

// holds reports whether a rule holds in an edition.
func holds(r *conformance.Rule, e edition.Edition) bool {
	return (r.From == "" || e.AtLeast(r.From)) && (r.Until == "" || !e.AtLeast(r.Until))
}

// listBetween says what differs between two editions, oldest change first.
func (p *program) listBetween(text string, asJSON bool) error {
	from, to, err := parseBetween(text)
	if err != nil {
		return err
	}
	b := differences(from, to)
	if asJSON {
		return p.writeJSON(b)
	}
	p.out.Printf("From %s to %s: %s.\n", b.From, b.To, console.Count(len(b.Changes), "change"))
	for _, c := range b.Changes {
		p.out.Printf("\n")
		p.out.Heading(string(c.Since) + "  " + c.About)
		p.out.Paragraph("before", c.Was)
		p.out.Paragraph("since", c.Is)
		p.out.Paragraph("rules", strings.Join(c.Rules, " "))
		if len(c.Reports) > 0 {
			p.out.Paragraph("reports", strings.Join(c.Reports, ", "))
		}
	}
	p.printBounds(&b)
	return nil
}

func (p *program) printBounds(b *between) {
	if len(b.Rules) == 0 {
		return
	}
	p.out.Printf("\n")
	var rows [][]string
	for _, r := range b.Rules {
		rows = append(rows, []string{r.ID, orNone(r.From), orNone(r.To)})
	}
	p.out.Table([]string{"rule", string(b.From), string(b.To)}, rows)
}

func orNone(l conformance.Level) string {
	if l == "" {
		return "–"
	}
	return string(l)
}
