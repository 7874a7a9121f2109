package harness

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/pi-conform/pi-conform/harness/spelling"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// CaseFile is a case as it is kept in a file: a text archive (txtar) whose
// comment tells the story, with the sections
//
//	-- scenario --    what the surroundings will say, as YAML
//	-- schedule --    labels, one a line; # begins a comment
//	-- findings --    what a mutant is found by: mutant:NAME RULE...
//	-- trace --       the normal form of the reference's trace, to read
//
// Only the first section has to be there.
type CaseFile struct {
	// Name is the file's path without .txtar, below a folder named cases if it
	// lies in one; of an absolute path otherwise the last part.
	Name string
	// Story says what the case shows, and what goes wrong without it. In the
	// file, lines of the comment that begin with «origin:» and «edges:» stand
	// for Origin and for the scenario's tags.
	Story    string
	Origin   string // the public report that the case comes from, if any
	Pinned   bool   // the file names its edition, so the case means nothing in another
	Case     Case
	Findings []ExpectedFindings
	Trace    string // as trace.Text writes it; empty if there is none
}

// ExpectedFindings are the rules that one mutant breaks in the case.
type ExpectedFindings struct {
	Mutant string
	Rules  []string // ids
}

const (
	sectionScenario = "scenario"
	sectionSchedule = "schedule"
	sectionFindings = "findings"
	sectionTrace    = "trace"
	mutantPrefix    = "mutant:"
	originPrefix    = "origin:"
	edgesPrefix     = "edges:"
)

var sections = []string{sectionScenario, sectionSchedule, sectionFindings, sectionTrace}

// ParseCase reads a case. Name is the name of the file, which errors show. What
// is wrong is told all at once, one line a fault, with file and line; each is a
// [CaseError].
func ParseCase(name string, data []byte) (*CaseFile, error) {
	f := &CaseFile{Name: caseName(name)}
	in := &caseReader{file: name}
	if !utf8.Valid(data) {
		in.fault(1, "the file is not UTF-8")
		return nil, in.err()
	}
	archive := txtar.Parse(data)
	f.Case.Scenario = &Scenario{Name: f.Name}
	in.comment(f, string(archive.Comment))
	line := 1 + lines(archive.Comment)
	seen := map[string]bool{}
	for _, section := range archive.Files {
		in.base = line // the marker is the line before the section's first
		if seen[section.Name] {
			in.fault(0, "a second section %q", section.Name)
		}
		seen[section.Name] = true
		in.section(f, section.Name, section.Data)
		line += 1 + lines(section.Data)
	}
	if !seen[sectionScenario] {
		in.base = 0
		in.fault(1, "there is no section -- scenario --")
	}
	if err := in.err(); err != nil {
		return nil, err
	}
	f.Pinned = f.Case.Scenario.Edition != ""
	f.Case.Scenario.Complete()
	return f, nil
}

func caseName(file string) string {
	file = strings.TrimSuffix(file, ".txtar")
	if i := strings.LastIndex("/"+file, "/cases/"); i >= 0 {
		return file[i+len("cases/"):]
	}
	if path.IsAbs(file) {
		return path.Base(file)
	}
	return file
}

func lines(data []byte) int { return strings.Count(string(data), "\n") }

// CaseError says what is wrong with a case file, and where.
type CaseError struct {
	File string
	Line int // from 1
	Why  string
}

// Error gives file:line: why.
func (e *CaseError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why) }

// caseReader collects what is wrong with a file.
type caseReader struct {
	file   string
	base   int    // line of the file before the first of the section at hand
	at     string // key of the value at hand
	faults []*CaseError
}

// fault notes that something is wrong at that line of the section at hand.
func (r *caseReader) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, &CaseError{File: r.file, Line: r.base + line, Why: fmt.Sprintf(format, args...)})
}

// err are the faults in the order of the lines.
func (r *caseReader) err() error {
	slices.SortStableFunc(r.faults, func(a, b *CaseError) int { return a.Line - b.Line })
	errs := make([]error, len(r.faults))
	for i, fault := range r.faults {
		errs[i] = fault
	}
	return errors.Join(errs...)
}

// comment takes the story and what stands in it as lines of their own.
func (r *caseReader) comment(f *CaseFile, comment string) {
	var story []string
	for line := range strings.SplitSeq(comment, "\n") {
		switch {
		case strings.HasPrefix(line, originPrefix):
			f.Origin = strings.TrimSpace(line[len(originPrefix):])
		case strings.HasPrefix(line, edgesPrefix):
			f.Case.Scenario.Tags = strings.Fields(line[len(edgesPrefix):])
		default:
			story = append(story, strings.TrimRight(line, " \t\r"))
		}
	}
	f.Story = strings.TrimSpace(strings.Join(story, "\n"))
}

func (r *caseReader) section(f *CaseFile, name string, data []byte) {
	switch name {
	case sectionScenario:
		r.scenario(f.Case.Scenario, data)
	case sectionSchedule:
		r.eachLine(data, func(n int, line string) {
			if why := labelFault(line); why != "" {
				r.fault(n, "label %q: %s", line, why)
			}
			f.Case.Schedule = append(f.Case.Schedule, line)
		})
	case sectionFindings:
		r.eachLine(data, func(n int, line string) { r.finding(f, n, line) })
	case sectionTrace:
		f.Trace = string(data)
	default:
		r.fault(0, "unknown section %q%s", name, didYouMean(name, sections))
	}
}

// eachLine gives the lines that are not empty, without their comments, and
// their numbers from 1.
func (r *caseReader) eachLine(data []byte, do func(n int, line string)) {
	n := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		n++
		if line = strings.TrimSpace(withoutComment(line)); line != "" {
			do(n, line)
		}
	}
}

// withoutComment cuts the line at a # that begins it or follows a blank.
func withoutComment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}

func (r *caseReader) finding(f *CaseFile, n int, line string) {
	words := strings.Fields(line)
	mutant, ok := strings.CutPrefix(words[0], mutantPrefix)
	switch {
	case !ok || mutant == "":
		r.fault(n, "a finding has to begin with mutant:NAME")
	case len(words) == 1:
		r.fault(n, "mutant %s has no rule that finds it", mutant)
	default:
		f.Findings = append(f.Findings, ExpectedFindings{Mutant: mutant, Rules: words[1:]})
	}
}

// FormatCase writes a case so that [ParseCase] gives the same again. What a file
// has no words for is left out: a planned script, and members of messages and
// results that the contract does not name.
func FormatCase(f *CaseFile) []byte {
	archive := &txtar.Archive{Comment: []byte(formatComment(f))}
	add := func(name, text string) {
		if text != "" {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	scenario := *f.Case.Scenario
	if !f.Pinned {
		scenario.Edition = ""
	}
	add(sectionScenario, formatScenario(&scenario))
	add(sectionSchedule, joinLines(f.Case.Schedule))
	var findings []string
	for _, found := range f.Findings {
		findings = append(findings, mutantPrefix+found.Mutant+" "+strings.Join(found.Rules, " "))
	}
	add(sectionFindings, joinLines(findings))
	add(sectionTrace, f.Trace)
	return txtar.Format(archive)
}

func joinLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func formatComment(f *CaseFile) string {
	var notes []string
	if f.Origin != "" {
		notes = append(notes, originPrefix+" "+f.Origin)
	}
	if len(f.Case.Scenario.Tags) > 0 {
		notes = append(notes, edgesPrefix+" "+strings.Join(f.Case.Scenario.Tags, " "))
	}
	parts := []string{}
	if f.Story != "" {
		parts = append(parts, f.Story+"\n")
	}
	if len(notes) > 0 {
		parts = append(parts, joinLines(notes))
	}
	return strings.Join(parts, "\n")
}

// WithTrace gives the file with another trace and leaves all else in it as it
// was written, comments included.
func WithTrace(data []byte, text string) []byte {
	archive := txtar.Parse(data)
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == sectionTrace })
	if i < 0 {
		i = len(archive.Files)
		archive.Files = append(archive.Files, txtar.File{Name: sectionTrace})
	}
	archive.Files[i].Data = []byte(text)
	return txtar.Format(archive)
}

// hookNames are the hooks that a scenario can answer.
var hookNames = []string{
	trace.HookPrepareArguments, trace.HookBeforeToolCall, trace.HookAfterToolCall,
	trace.HookTransformContext, trace.HookConvertToLlm, trace.HookGetAPIKey,
	trace.HookPrepareNextTurn, trace.HookShouldStopAfterTurn,
	trace.HookFinishTurn, trace.HookPrepareRequest, trace.HookCompact,
}

// callHooks are those of them that belong to a tool call.
var callHooks = hookNames[:3]

var eventTypes = []string{
	trace.AgentStart, trace.TurnStart, trace.MessageStart, trace.MessageUpdate, trace.MessageEnd,
	trace.ToolExecutionStart, trace.ToolExecutionUpdate, trace.ToolExecutionEnd, trace.TurnEnd, trace.AgentEnd,
}

var userKinds = []string{
	string(UserPrompt), string(UserContinue), string(UserSteer), string(UserFollowUp), string(UserAbort),
	string(UserReset), string(UserClearQueue), string(UserWaitForIdle), string(UserSubscribe), string(UserUnsubscribe),
}

// didYouMean suggests the nearest of the words, if one is near enough to be
// what was meant; otherwise it lists them.
func didYouMean(word string, words []string) string {
	best, distance := "", 1+max(1, len(word)/3)
	for _, w := range words {
		if d := spelling.Distance(strings.ToLower(word), strings.ToLower(w)); d < distance {
			best, distance = w, d
		}
	}
	if best == "" {
		return " (known: " + strings.Join(words, ", ") + ")"
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
