package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	progresssuite "github.com/pi-conform/pi-conform/conformance/progress/suite"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// listing is one kind of things that can be listed.
type listing struct {
	what string
	list func(p *program, pattern []string, asJSON bool) error
}

var listings = []listing{
	{"rules", (*program).listRules},
	{"cases", (*program).listCases},
	{"subjects", (*program).listSubjects},
	{"mutants", (*program).listMutants},
	{"editions", (*program).listEditions},
}

func (p *program) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list rules|cases|subjects|mutants|editions [PATTERN]",
		Short: "what there is",
		Example: `  pi-conform list rules UPD
  pi-conform list cases 'par/**'
  pi-conform list mutants --json
  pi-conform list editions 0.84.3..1.6        what differs between the two`,
		Args:      arguments(1, 2, false),
		ValidArgs: []string{"rules", "cases", "subjects", "mutants", "editions"},
		RunE: func(_ *cobra.Command, args []string) error {
			return p.list(args[0], args[1:], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func (p *program) list(what string, pattern []string, asJSON bool) error {
	var known []string
	for _, l := range listings {
		if l.what == what {
			return l.list(p, pattern, asJSON)
		}
		known = append(known, l.what)
	}
	return oneOf("list", what, known...)
}

// listed filters things by name and writes them, as JSON or as rows of a table.
func listed[T any](p *program, what string, things []T, name func(T) string, pattern []string, asJSON bool, row func(T) []string) error {
	things, err := pick.Filter(what, things, name, pattern, nil)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if asJSON {
		return p.writeJSON(things)
	}
	var rows [][]string
	for _, thing := range things {
		rows = append(rows, row(thing))
	}
	if len(rows) > 0 {
		p.out.Table(make([]string, len(rows[0])), rows)
	}
	return nil
}

// ruleInfo is a rule as data.
type ruleInfo struct {
	ID       string             `json:"id"`
	Family   conformance.Family `json:"family"`
	Level    conformance.Level  `json:"level"`
	Sentence string             `json:"sentence"`
	Why      string             `json:"why"`
	Source   string             `json:"source"`
	Editions string             `json:"editions"`
	From     edition.Edition    `json:"from,omitempty"`
	Until    edition.Edition    `json:"until,omitempty"`
	MustFrom edition.Edition    `json:"mustFrom,omitempty"`
	Forms    []trace.Form       `json:"forms,omitzero"`
	Evidence []trace.Evidence   `json:"evidence"`
	Edges    []int              `json:"edges,omitzero"`
	Twin     bool               `json:"twin,omitzero"`
	Mutants  []string           `json:"mutants"`
}

func infoOf(r conformance.Rule) ruleInfo {
	info := ruleInfo{
		ID: r.ID, Family: r.Family, Level: r.Level, Sentence: r.Sentence, Why: r.Why, Source: r.Source,
		Editions: editionsOf(&r), From: r.From, Until: r.Until, MustFrom: r.MustFrom,
		Forms: r.Forms, Evidence: r.Needs, Edges: r.Edges, Twin: r.NeedsTwin(), Mutants: []string{},
	}
	for _, m := range subjects.MutantsOf(r.ID) {
		info.Mutants = append(info.Mutants, m.Name)
	}
	return info
}

// editionsOf says in which editions a rule holds.
func editionsOf(r *conformance.Rule) string {
	var parts []string
	if r.From != "" {
		parts = append(parts, "from "+string(r.From))
	}
	if r.Until != "" {
		parts = append(parts, "before "+string(r.Until))
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "all"
	}
	if r.MustFrom != "" {
		text += "; robust before " + string(r.MustFrom)
	}
	return text
}

func (p *program) listRules(pattern []string, asJSON bool) error {
	channel := progressRules(pattern)
	rules, err := conformance.Select(pattern...)
	if err != nil && len(channel) == 0 {
		return exit.With(exit.Usage, err)
	}
	var infos []ruleInfo
	for _, r := range rules {
		infos = append(infos, infoOf(r))
	}
	for _, r := range channel {
		infos = append(infos, progressInfo(r))
	}
	return listed(p, "rule", infos, func(r ruleInfo) string { return r.ID }, nil, asJSON, func(r ruleInfo) []string {
		return []string{r.ID, string(r.Level), r.Sentence}
	})
}

type caseInfo struct {
	Name     string   `json:"name"`
	Story    string   `json:"story"`
	Origin   string   `json:"origin,omitempty"`
	Edition  string   `json:"edition,omitempty"`
	Edges    []string `json:"edges,omitzero"`
	Schedule []string `json:"schedule,omitzero"`
}

func (p *program) listCases(pattern []string, asJSON bool) error {
	cases, err := suite.Cases()
	if err != nil {
		return err
	}
	var infos []caseInfo
	for _, c := range cases {
		infos = append(infos, aboutCase(c))
	}
	return listed(p, "case", infos, func(c caseInfo) string { return c.Name }, pattern, asJSON, func(c caseInfo) []string {
		first, _, _ := strings.Cut(c.Story, "\n")
		return []string{c.Name, first}
	})
}

func aboutCase(c *harness.CaseFile) caseInfo {
	return caseInfo{
		Name: c.Name, Story: c.Story, Origin: c.Origin, Edition: pinnedTo(c),
		Edges: c.Case.Scenario.Tags, Schedule: c.Case.Schedule,
	}
}

func (p *program) listSubjects(pattern []string, asJSON bool) error {
	name := func(k subjects.Kind) string { return k.Name }
	own, err := subjects.Configured()
	if err != nil {
		return err
	}
	return listed(p, "subject", append(own, subjects.Kinds()...), name, pattern, asJSON, func(k subjects.Kind) []string {
		return []string{k.Name, k.About}
	})
}

type mutantInfo struct {
	Name       string `json:"name"`
	Rule       string `json:"rule"`
	Story      string `json:"story"`
	Equivalent string `json:"equivalent,omitempty"`
	Progress   bool   `json:"progress,omitzero"` // of the progress channel: selftest runs it, it is no subject
}

func (p *program) listMutants(pattern []string, asJSON bool) error {
	var infos []mutantInfo
	for _, m := range subjects.Mutants() {
		infos = append(infos, mutantInfo{Name: m.Name, Rule: m.Rule, Story: m.Story, Equivalent: m.Equivalent})
	}
	for _, m := range progresssuite.Mutants() {
		infos = append(infos, mutantInfo{Name: m.Name, Rule: m.Rule, Story: m.Story, Progress: true})
	}
	return listed(p, "mutant", infos, func(m mutantInfo) string { return m.Name }, pattern, asJSON, func(m mutantInfo) []string {
		name := "mutant:" + m.Name
		if m.Progress {
			name = m.Name
		}
		return []string{name, m.Rule, m.Story}
	})
}

type editionInfo struct {
	Name    edition.Edition `json:"name"`
	Default bool            `json:"default,omitzero"`
	Rules   int             `json:"rules"` // that hold in it
}

func (p *program) listEditions(pattern []string, asJSON bool) error {
	if len(pattern) > 0 && strings.Contains(pattern[0], "..") {
		return p.listBetween(pattern[0], asJSON)
	}
	var infos []editionInfo
	for _, e := range edition.Known() {
		infos = append(infos, editionInfo{e, e == edition.Default, rulesIn(e)})
	}
	name := func(e editionInfo) string { return string(e.Name) }
	return listed(p, "edition", infos, name, pattern, asJSON, func(e editionInfo) []string {
		note := ""
		if e.Default {
			note = "the default"
		}
		return []string{string(e.Name), console.Count(e.Rules, "rule"), note}
	})
}

// rulesIn is how many rules hold in the edition.
func rulesIn(e edition.Edition) int {
	n := 0
	for _, r := range conformance.Catalogue() {
		if holds(&r, e) {
			n++
		}
	}
	return n
}
