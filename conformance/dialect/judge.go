package dialect

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/conformance/dialect/internal/scan"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Options say how a log is judged.
type Options struct {
	// Rules to judge by; nil means all. A log of the protocol ACP has its own.
	Rules []conformance.Rule
	// Edition to judge by. If it is empty, something is a finding only if it
	// breaks every known edition; but one of our own traces is judged by the
	// edition that it names.
	Edition edition.Edition
	Profile acp.Profile // for a log of ACP; Spec if empty
	// Requests are the tags of the messages that each request showed to the model,
	// where somebody recorded them besides the log of a program.
	Requests [][]string
	// Found is told each finding as soon as it is known; nil means that nobody
	// wants to know.
	Found func(Finding)
}

// Finding is one place where a log breaks a rule.
type Finding struct {
	Rule    string
	Level   conformance.Level
	Message string
	Run     int      // number of the run, from 1; 0 in a log of ACP
	Lines   []int    // that clash, in rising order; the last is where it became evident
	Text    []string // of each of the lines, in short
}

// Report is what the rules say about a log.
type Report struct {
	Dialect  Name
	Lines    int
	Runs     int
	Cut      int // runs of which the log does not show how they ended
	Rules    []conformance.RuleResult
	Findings []Finding
	More     int // findings that were counted and not kept
	Notes    []string
	// Kept are the editions in which the log breaks no MUST rule.
	Kept []edition.Edition
}

// Broken reports whether a MUST rule is broken.
func (r *Report) Broken() bool {
	return slices.ContainsFunc(r.Rules, func(rule conformance.RuleResult) bool {
		return rule.Status == conformance.StatusFail && rule.Level == conformance.Must
	})
}

// Exercised reports whether any rule had an occasion to be kept or broken.
func (r *Report) Exercised() bool {
	return slices.ContainsFunc(r.Rules, func(rule conformance.RuleResult) bool { return rule.Exercised > 0 })
}

// most is how many findings are kept.
const most = 1000

func (r *Report) found(f Finding, o *Options) {
	if o.Found != nil {
		o.Found(f)
	}
	if len(r.Findings) >= most {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

// Judge reads a log to its end and judges it. An error says where it could not
// be read any further; the report is about what stands before.
func Judge(l *Log, o Options) (*Report, error) {
	if o.Profile == "" {
		o.Profile = acp.Spec
	}
	if o.Rules == nil {
		o.Rules = conformance.Catalogue()
	}
	if l.Dialect == ACP {
		return judgeMessages(l, &o)
	}
	j := &judge{log: l, options: &o, report: &Report{Dialect: l.Dialect}, shown: shown{requests: o.Requests}}
	err := j.judge()
	j.conclude()
	return j.report, err
}

// judgeMessages judges a log of ACP.
func judgeMessages(l *Log, o *Options) (*Report, error) {
	report := &Report{Dialect: ACP}
	j := acp.New(o.Profile)
	told := 0
	tell := func(line []byte) {
		for ; told < len(j.Findings); told++ {
			f := j.Findings[told]
			found := Finding{Rule: f.Rule, Level: f.Level, Message: f.Message, Lines: f.Lines, Text: make([]string, len(f.Lines))}
			if last := len(f.Lines) - 1; last >= 0 && f.Lines[last] == l.current {
				found.Text[last] = acp.Describe(line)
			}
			report.found(found, o)
		}
	}
	var failed error
	for {
		line, err := l.line()
		if err != nil {
			failed = err
			break
		}
		if l.partial(line) {
			l.Notes = append(l.Notes, fmt.Sprintf("line %d is there in part only", l.current))
			break
		}
		j.Line(l.current, line)
		tell(line)
	}
	j.End()
	report.Rules, report.Lines = j.Results(), l.current
	report.Notes = slices.Concat(l.Notes, j.Notes)
	if failed == io.EOF {
		failed = nil
	}
	return report, failed
}

// partial reports whether a line is the last one of the log, and not whole.
func (l *Log) partial(line []byte) bool {
	if l.lines.whole || len(l.queue) > 0 {
		return false
	}
	s := scan.New(line)
	s.Skip()
	return errors.Is(s.End(), scan.ErrCut)
}

// judge judges the runs of a log one after the other.
type judge struct {
	log     *Log
	options *Options
	report  *Report
	views   []*view
	shown   shown
}

// view is how one edition sees the log.
type view struct {
	edition edition.Edition    // empty for the one that each trace names
	rules   []conformance.Rule // that can be applied to the latest run
	results map[string]*conformance.RuleResult
	broken  bool
	verdict conformance.Verdict // of the latest run
}

func (j *judge) judge() error {
	j.open()
	for {
		run, err := j.log.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		j.run(run)
	}
}

func (j *judge) open() {
	editions := edition.Known()
	switch {
	case j.options.Edition != "":
		editions = []edition.Edition{j.options.Edition}
	case j.log.Dialect == Pi:
		editions = []edition.Edition{""}
	}
	for _, e := range editions {
		v := &view{edition: e, results: map[string]*conformance.RuleResult{}}
		for _, r := range j.options.Rules {
			v.results[r.ID] = &conformance.RuleResult{Rule: r.ID, Level: r.LevelIn(e), Status: conformance.StatusNotExercised}
		}
		j.views = append(j.views, v)
	}
}

func (j *judge) run(run *Run) {
	j.report.Runs++
	if run.Cut {
		j.report.Cut++
	}
	for _, v := range j.views {
		v.check(run.Trace, j.options.Rules, j.log.Dialect)
	}
	for _, f := range j.common() {
		j.report.found(locate(run, f), j.options)
	}
	j.judgeRequests(run)
}

// common are the findings of the latest run that every edition has, at the
// weakest level that any of them gives it.
func (j *judge) common() []conformance.Finding {
	findings := j.views[0].verdict.Findings
	var all []conformance.Finding
	for _, f := range findings {
		everywhere := true
		for _, v := range j.views[1:] {
			i := slices.IndexFunc(v.verdict.Findings, func(g conformance.Finding) bool {
				return g.Rule == f.Rule && slices.Equal(g.Entries, f.Entries)
			})
			everywhere = everywhere && i >= 0
			if i >= 0 && weaker(v.verdict.Findings[i].Level, f.Level) {
				f.Level = v.verdict.Findings[i].Level
			}
		}
		if everywhere {
			all = append(all, f)
			for _, v := range j.views {
				v.results[f.Rule].Status = conformance.StatusFail
			}
		}
	}
	return all
}

func weaker(a, b conformance.Level) bool {
	order := []conformance.Level{conformance.Robust, conformance.Should, conformance.Must}
	return slices.Index(order, a) < slices.Index(order, b)
}

// check judges a run. Rules that cannot be applied are asked for only once, where
// all runs of the log are alike.
func (v *view) check(t *trace.Trace, rules []conformance.Rule, name Name) {
	e := v.edition
	if e == "" {
		e = edition.Edition(t.Header.Edition)
		if e == "" {
			e = edition.Default
		}
	}
	if name == Pi || v.rules == nil {
		v.choose(t, rules, e, name)
	}
	v.verdict = conformance.Check(t, v.rules, conformance.InEdition(e))
	for i := range v.verdict.Rules {
		v.add(&v.verdict.Rules[i])
	}
	v.broken = v.broken || v.verdict.Outcome == conformance.Fail
}

// choose sorts out the rules that cannot be applied to traces like t.
func (v *view) choose(t *trace.Trace, rules []conformance.Rule, e edition.Edition, name Name) {
	empty := &trace.Trace{Header: t.Header}
	verdict := conformance.Check(empty, rules, conformance.InEdition(e))
	v.rules = []conformance.Rule{}
	for i := range rules {
		result := verdict.Rules[i]
		if why := hidden(rules[i].ID, name); why != "" && result.Status != conformance.StatusNotApplicable {
			result.Status, result.Reason = conformance.StatusNotApplicable, why
		}
		if result.Status != conformance.StatusNotApplicable {
			v.rules = append(v.rules, rules[i])
			continue
		}
		result.Reason = explain(result.Reason, name)
		v.add(&result)
	}
}

// hidden says why a dialect shows less than a rule needs, where the kinds of
// evidence do not tell; empty if it does not.
func hidden(id string, name Name) string {
	switch {
	case name == PiSession && !sessionRules[id]:
		return "evidence: a session file shows messages and their order, no events"
	case name != Pi && (id == "TURN-10" || id == "LEN-5"):
		return fmt.Sprintf("evidence: a %s log does not show whether a hook or an extension decided to go on", name)
	}
	return ""
}

var shows = map[trace.Evidence]string{
	trace.EvidenceState: "the agent's state", trace.EvidenceListeners: "the calls of listeners", trace.EvidenceCallbacks: "what the loop called out for",
	trace.EvidenceRequests: "what the model was shown", trace.EvidenceActions: "when something was done from outside", trace.EvidenceKept: "what listeners kept",
	trace.EvidenceViews: "views", trace.EvidenceTwin: "a twin run", trace.EvidencePolls: "polls of the queues", trace.EvidenceReads: "reads of the model stream",
}

// explain says in words what a log of a dialect does not show.
func explain(reason string, name Name) string {
	if missing, ok := strings.CutPrefix(reason, "evidence: the trace has no "); ok && name != Pi {
		return fmt.Sprintf("evidence: a %s log does not show %s", name, shows[trace.Evidence(missing)])
	}
	return reason
}

// add takes in what a run says about a rule.
func (v *view) add(r *conformance.RuleResult) {
	have := v.results[r.Rule]
	have.Level = r.Level
	have.Exercised += r.Exercised
	switch {
	case have.Status == conformance.StatusFail:
	case r.Status == conformance.StatusPass, r.Status == conformance.StatusFail: // whether it fails is for all editions to say
		have.Status, have.Reason = conformance.StatusPass, ""
	case r.Status == conformance.StatusNotApplicable && have.Status == conformance.StatusNotExercised:
		have.Status, have.Reason = r.Status, r.Reason
	}
}

// locate says to which lines a finding points. An entry that comes from no line
// stands for the next one that does.
func locate(run *Run, f conformance.Finding) Finding {
	found := Finding{Rule: f.Rule, Level: f.Level, Message: f.Message, Run: run.Number}
	for _, i := range f.Entries {
		line := 0
		for k := i; k < len(run.Lines) && line == 0; k++ {
			line = run.Lines[k]
		}
		for k := min(i, len(run.Lines)-1); k >= 0 && line == 0; k-- {
			line = run.Lines[k]
		}
		if slices.Contains(found.Lines, line) {
			continue
		}
		found.Lines = append(found.Lines, line)
		found.Text = append(found.Text, textOf(run.Trace, i))
	}
	return found
}

// textOf is one entry of a trace in words.
func textOf(t *trace.Trace, i int) string {
	one := &trace.Trace{Header: t.Header, Entries: t.Entries[i : i+1]}
	_, text, _ := strings.Cut(trace.Text(one), "\n")
	return strings.TrimSpace(text)
}

func (j *judge) conclude() {
	r := j.report
	r.Lines, r.Notes = j.log.Read(), j.log.Notes
	if r.Cut > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("of %d of the %d runs the log does not show the end", r.Cut, r.Runs))
	}
	for _, v := range j.views {
		if !v.broken && v.edition != "" && r.Runs > 0 {
			r.Kept = append(r.Kept, v.edition)
		}
	}
	for i := range j.options.Rules {
		r.Rules = append(r.Rules, j.merged(j.options.Rules[i].ID))
	}
}

// merged is what all editions together say about a rule.
func (j *judge) merged(id string) conformance.RuleResult {
	result := *j.views[0].results[id]
	for _, v := range j.views[1:] {
		other := v.results[id]
		if weaker(other.Level, result.Level) {
			result.Level = other.Level
		}
		result.Exercised = max(result.Exercised, other.Exercised)
		if other.Status == conformance.StatusPass && result.Status != conformance.StatusFail || result.Status == conformance.StatusNotApplicable {
			result.Status, result.Reason = other.Status, other.Reason
		}
	}
	return result
}
