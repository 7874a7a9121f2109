// Package html writes a report, or a single trace, as one page that needs
// nothing but a browser: no server, no network, and no trust in what the subject
// printed, which is all escaped and which the page's own policy would not let
// run.
package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness/trace"
)

var (
	//go:embed page/page.tmpl
	pageText string
	//go:embed page/style.css
	style string
	//go:embed page/script.js
	script string

	page = template.Must(template.New("page").Parse(pageText))
)

// Write writes the page of a report.
func Write(w io.Writer, r *report.Report) error {
	return page.Execute(w, newView(r))
}

// WriteTrace writes the page of one trace, and of another one beside it unless
// that is nil. The marked entries are those of the first.
func WriteTrace(w io.Writer, title string, t, beside *trace.Trace, marked []int) error {
	v := frame(title)
	f := findingView{ID: "trace", Case: title, Alone: true, Entries: marked}
	f.Data = v.store(t, beside)
	v.Single = &f
	return page.Execute(w, v)
}

// view is what the template is given.
type view struct {
	Title  string
	CSS    template.CSS
	JS     template.JS
	Policy string

	Report   *report.Report
	Verdict  string // class: good, bad, or unclear
	Families []family
	Counts   []count
	Findings []findingView
	Unclear  []report.Unclear
	Results  []report.Result // that are not applicable, or were not run
	Single   *findingView    // of a page about one trace

	Data []traceData // behind the findings, by number
	left int         // bytes that may still be spent on traces
}

type family struct {
	Name  string
	Rules []ruleView
}

type ruleView struct {
	report.Rule

	Mark     string
	Class    string
	About    string
	Sentence string
	Why      string
	Target   string // id of what it links to; empty if there is nothing to show
}

type count struct {
	Class, Mark, Label string
	N                  int
}

type findingView struct {
	report.Finding

	ID       string
	Sentence string
	Case     string
	Entries  []int
	Lines    []string
	First    bool // of its rule
	Alone    bool // there is no finding around the trace
	Data     int  // number of the traces; -1 if they were too long
}

func frame(title string) *view {
	return &view{Title: title, CSS: template.CSS(style), JS: template.JS(script), Policy: policy(), left: mostData}
}

// policy lets the page's own style and script be used and nothing else, by
// their digests.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		digest(script), digest(style))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func newView(r *report.Report) *view {
	v := frame("pi-conform: " + r.Subject.String())
	v.Report = r
	v.Verdict = verdict(r)
	v.addFindings()
	v.addRules()
	v.Unclear = r.Unclear
	for _, result := range r.Results {
		if result.Status == report.StatusNotApplicable || result.Status == report.StatusNotRun {
			v.Results = append(v.Results, result)
		}
	}
	return v
}

func verdict(r *report.Report) string {
	switch {
	case len(r.Broken(conformance.Must)) > 0:
		return "bad"
	case r.Partial, r.Shard != nil, !r.Exercised(), len(r.Unexpected()) > 0, len(r.Stale) > 0:
		return "unclear"
	}
	return "good"
}

func (v *view) addFindings() {
	seen := map[string]bool{}
	known := map[*trace.Trace]int{}
	for _, f := range worstFirst(v.Report.Findings) {
		id := f.Rule + ":" + f.Case
		fv := findingView{
			Finding: f, ID: strings.Join(strings.Fields(id), "_"), Case: f.Case, Entries: f.Entries,
			Lines: f.ClashLines(), First: !seen[f.Rule], Data: -1,
		}
		fv.Sentence, _ = report.Sentence(f.Rule)
		seen[f.Rule] = true
		if f.Trace != nil {
			n, have := known[f.Trace]
			if !have {
				n = v.store(f.Trace, f.Reference)
				known[f.Trace] = n
			}
			fv.Data = n
		}
		v.Findings = append(v.Findings, fv)
	}
}

// worstFirst puts broken MUST rules before those of the other levels, and what
// was expected at the end.
func worstFirst(findings []report.Finding) []report.Finding {
	rank := func(f report.Finding) int {
		if f.Expected != "" {
			return 3
		}
		return slices.Index([]conformance.Level{conformance.Must, conformance.Should, conformance.Robust}, f.Level)
	}
	return slices.SortedStableFunc(slices.Values(findings), func(a, b report.Finding) int { return rank(a) - rank(b) })
}

// looks are how each status is shown: never by colour alone.
var looks = map[conformance.Status]struct{ class, mark, label string }{
	conformance.StatusPass:          {"pass", "✓", "passed"},
	conformance.StatusFail:          {"fail", "✗", "failed"},
	conformance.StatusNotExercised:  {"unseen", "○", "not exercised"},
	conformance.StatusNotApplicable: {"na", "–", "not applicable"},
}

func (v *view) addRules() {
	counts := v.Report.Counts()
	for _, status := range [...]conformance.Status{
		conformance.StatusPass, conformance.StatusFail, conformance.StatusNotExercised, conformance.StatusNotApplicable,
	} {
		look := looks[status]
		v.Counts = append(v.Counts, count{look.class, look.mark, look.label, counts[status]})
	}
	for _, rule := range v.Report.Rules {
		name, _, _ := strings.Cut(rule.ID, "-")
		if n := len(v.Families); n == 0 || v.Families[n-1].Name != name {
			v.Families = append(v.Families, family{Name: name})
		}
		last := &v.Families[len(v.Families)-1]
		last.Rules = append(last.Rules, v.ruleView(rule))
	}
}

func (v *view) ruleView(rule report.Rule) ruleView {
	look := looks[rule.Status]
	rv := ruleView{Rule: rule, Mark: look.mark, Class: look.class, About: look.label}
	if rule.Status == conformance.StatusFail && rule.Level != conformance.Must {
		rv.Class = "warn"
		rv.About = "broken, but only " + string(rule.Level)
	}
	if rule.Reason != "" {
		rv.About += " (" + rule.Reason + ")"
	}
	rv.Sentence, rv.Why = report.Sentence(rule.ID)
	for i := range v.Findings {
		if v.Findings[i].Rule == rule.ID {
			rv.Target = v.Findings[i].ID
			break
		}
	}
	return rv
}
