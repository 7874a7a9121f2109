package conformancetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/bubble"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// replayVariable names the one case that is run, and shown in full: a file, a case of
// the suite, or CASE@SEED.
const replayVariable = "PI_CONFORM_REPLAY"

// Run tests the subject. Saved cases come first, then those of the suite, each by its
// own schedule and some that are drawn, then scenarios that nobody wrote. Each rule is
// then a subtest: one for which there was no occasion, or that cannot be applied, is
// skipped and says why. There are two more, of how cases ended and of whether the loop
// does the same each time.
func Run(t *testing.T, subject Subject, options ...Option) {
	t.Helper()
	r := newRunner(t, &subject, options)
	if serve(t, &subject, &r.config) {
		return
	}
	r.open()
	defer r.driver.Close()
	if token := os.Getenv(replayVariable); token != "" {
		r.replay(token)
		return
	}
	r.saved()
	r.suite()
	r.repeat()
	r.explore()
	r.shrink()
	r.tell()
}

// runner is one test of one subject.
type runner struct {
	config
	t       *testing.T
	subject *Subject
	driver  harness.Driver
	oracle  harness.Driver // predicts what a process will wait for
	crashes harness.Driver // for cases that ended the process; nil if there is only this one

	cases    []*harness.CaseFile // of the suite
	old      []*harness.CaseFile // saved
	report   *report.Report
	found    []finding
	explored *fuzz.Result
	steady   int // cases that were replayed
}

// finding is something that is wrong, other than a rule broken by a case of the suite.
type finding struct {
	kind    string // a rule id, or as package fuzz has it
	level   conformance.Level
	message string
	entries []int
	trace   *trace.Trace
	from    string // for people
	saved   bool   // it was found before
	replay  string // token
}

func newRunner(t *testing.T, s *Subject, options []Option) *runner {
	r := &runner{t: t, subject: s, config: configured(s.editions()[0], options)}
	for rule := range r.expected {
		if _, err := conformance.Lookup(rule); err != nil {
			t.Fatalf("ExpectFail: %v", err)
		}
	}
	return r
}

// open makes the drivers.
func (r *runner) open() {
	path := journalPath(r.t, r.subject, r.dir)
	file, err := takeUp(path, r.dir)
	r.fatal(err)
	if file != "" {
		r.t.Logf("the process ended while a case was run, which is now %s", file)
	}
	process, err := child(r.t, r.subject, &r.config)
	if err == nil && !r.inProcess {
		r.driver, r.crashes, r.oracle = process, process, reference.New()
		return
	}
	if err != nil {
		r.t.Logf("the loop runs in this process: %v", err)
	} else {
		r.crashes = process
		r.t.Cleanup(func() { process.Close() })
	}
	here := &bubble.Driver{About: r.subject.info(), Join: r.subject.Join, Patience: r.patience}
	r.driver = &journal{here, path}
}

func (r *runner) context() context.Context { return r.t.Context() }

// wanted are cases that are neither left out nor written for another edition.
func (r *runner) wanted(cases []*harness.CaseFile) []*harness.CaseFile {
	var kept []*harness.CaseFile
	for _, c := range cases {
		other := c.Pinned && c.Case.Scenario.Edition != r.edition
		if !other && !matches(r.skip, c.Name) && (r.only == nil || matches(r.only, c.Name)) {
			kept = append(kept, c)
		}
	}
	return kept
}

func (r *runner) fatal(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// record runs a case once.
func (r *runner) record(d harness.Driver, sc *harness.Scenario, p harness.Policy) (*harness.Recording, error) {
	if r.oracle == nil {
		return harness.Run(r.context(), d, sc, p, harness.Limits{})
	}
	return harness.RunPredicted(r.context(), d, r.oracle, sc, p, harness.Limits{})
}

// scenario is that of a case in the edition that is tested.
func (r *runner) scenario(c *harness.CaseFile) *harness.Scenario {
	sc := *c.Case.Scenario
	sc.Name, sc.Edition = c.Name, r.edition
	return &sc
}

// saved runs the cases that were found before, and judges them.
func (r *runner) saved() {
	cases, err := fuzz.Saved(r.dir)
	r.fatal(err)
	for _, c := range cases {
		if c.Pinned && c.Case.Scenario.Edition != r.edition {
			continue
		}
		file := filepath.Join(r.dir, filepath.Base(c.Name)+".txtar")
		driver := r.driver
		if strings.HasPrefix(filepath.Base(file), crashPrefix) && r.inProcess {
			driver = r.crashes
		}
		if driver == nil {
			r.t.Errorf("%s: the process ended in this case; it is not run again in the process of the test", file)
			continue
		}
		rec, err := r.record(driver, r.scenario(c), harness.NewReplay(c.Case.Schedule))
		if isUnsupported(err) {
			continue
		}
		r.fatal(err)
		r.old = append(r.old, c)
		before := len(r.found)
		r.judge(rec, "saved case "+file, file)
		for i := range r.found[before:] {
			r.found[before+i].saved = true
		}
	}
}

// judge notes what is wrong with a recording.
func (r *runner) judge(rec *harness.Recording, from, token string) {
	for _, f := range conformance.Check(rec.Trace, conformance.Catalogue(), conformance.InEdition(r.edition)).Findings {
		r.found = append(r.found, finding{
			kind: f.Rule, level: f.Level, message: f.Message, entries: f.Entries, trace: rec.Trace, from: from, replay: token,
		})
	}
	last := len(rec.Trace.Entries) - 1
	if end := &rec.Trace.Entries[last]; brokeOff(end.Outcome) {
		r.found = append(r.found, finding{
			kind: string(end.Outcome), message: end.Message, entries: []int{last}, trace: rec.Trace, from: from, replay: token,
		})
	}
}

func brokeOff(o trace.Outcome) bool {
	return o != trace.OutcomeComplete && o != trace.OutcomeDeadlock
}

// suite runs the cases of the suite.
func (r *runner) suite() {
	cases, err := suite.Cases()
	r.fatal(err)
	r.cases = r.wanted(cases)
	if r.only != nil && len(r.cases) == 0 {
		r.t.Fatalf("no case of edition %s matches %s", r.edition, strings.Join(r.only, ", "))
	}
	r.report, err = suite.Run(r.context(), r.driver, r.cases, suite.Options{
		Tool: "conformancetest", Edition: r.edition, Schedules: r.schedules, Seed: r.seed, Oracle: r.oracle, Replay: r.command,
	})
	r.fatal(err)
}

// command is what one types to see a case again.
func (r *runner) command(token string) string {
	return fmt.Sprintf("%s=%s go test -run '%s' -v .", replayVariable, token, exactly(r.t.Name()))
}

// brokeOff reports whether a case of the suite did not come to its end.
func (r *runner) brokeOff(name string) bool {
	return slices.ContainsFunc(r.report.Unclear, func(u report.Unclear) bool { return u.Case == name })
}

func isUnsupported(err error) bool {
	_, ok := errors.AsType[*harness.UnsupportedError](err)
	return ok
}

// repeat replays cases by their own schedules, to see that nothing is left to chance.
func (r *runner) repeat() {
	for _, c := range append(r.old, r.cases...) {
		if r.context().Err() != nil || r.repeats == 0 || r.brokeOff(c.Name) {
			continue
		}
		sc := r.scenario(c)
		rec, err := r.record(r.driver, sc, harness.NewReplay(c.Case.Schedule))
		if isUnsupported(err) {
			continue
		}
		r.fatal(err)
		varies, err := fuzz.Repeat(r.context(), r.driver, sc, rec, r.repeats, harness.Limits{})
		r.fatal(err)
		r.steady++
		if varies != nil {
			r.found = append(r.found, finding{
				kind: fuzz.NotDeterministic, message: fmt.Sprintf("replay %d went another way:\n%s", varies.Replay, varies.Difference),
				from: "case " + c.Name, replay: c.Name,
			})
		}
	}
}

// shrinkRuns bound the making smaller of each thing that is found, and shrinkCrashes
// that of one for which a process is started each time.
const shrinkRuns, shrinkCrashes = 1000, 100

// explore runs scenarios that nobody wrote, and saves what it finds.
func (r *runner) explore() {
	if r.seeds == 0 || r.report.Partial {
		return
	}
	shrink := shrinkRuns
	if r.oracle != nil && len(r.report.Unclear) > 0 {
		shrink = shrinkCrashes
	}
	result, err := fuzz.Explore(r.context(), r.driver, fuzz.Options{
		Edition: r.edition, Seed: r.seed, Runs: r.seeds, Time: r.time, Oracle: r.oracle,
		Subject: r.subject.Name, ShrinkRuns: shrink, Repeat: r.repeats,
	})
	r.fatal(err)
	r.explored = result
	for _, f := range result.Findings {
		r.keep(f)
	}
}

// keep saves the case of a finding and notes it.
func (r *runner) keep(f *fuzz.Finding) {
	file, err := r.save(f)
	r.fatal(err)
	found := finding{
		kind: f.Kind, level: f.Level, message: f.Message, entries: f.Entries,
		from: fmt.Sprintf("%s, saved as %s", f.Origin, file), replay: file,
	}
	if f.Recording != nil {
		found.trace = f.Recording.Trace
	}
	r.found = append(r.found, found)
}

// mostShrunk bounds the rules of which a case of the suite is made smaller.
const mostShrunk = 5

// shrink makes cases of the suite smaller that break a rule, and saves them: one for
// each rule of which there is no smaller case yet.
func (r *runner) shrink() {
	findings := slices.Clone(r.report.Findings)
	slices.SortStableFunc(findings, func(a, b report.Finding) int { return len(a.Schedule) - len(b.Schedule) })
	left := mostShrunk
	for i := range findings {
		f := &findings[i]
		known := slices.ContainsFunc(r.found, func(have finding) bool { return have.kind == f.Rule })
		_, expected := r.expected[f.Rule]
		if known || expected || left == 0 || !r.fails(f.Level) {
			continue
		}
		left--
		r.shrinkCase(f)
	}
}

func (r *runner) shrinkCase(f *report.Finding) {
	i := slices.IndexFunc(r.cases, func(c *harness.CaseFile) bool { return c.Name == f.Case })
	sc := r.scenario(r.cases[i])
	sc.Keep = true
	shrunk, err := fuzz.Shrink(r.context(), r.driver, harness.Case{Scenario: sc, Schedule: f.Schedule}, f.Rule, fuzz.Options{
		Oracle: r.oracle, ShrinkRuns: shrinkRuns,
	})
	r.fatal(err)
	if shrunk != nil {
		shrunk.Origin = "case " + f.Case + ", shrunk"
		r.keep(shrunk)
	}
}

// save writes the case of a finding into the directory of what was found.
func (r *runner) save(f *fuzz.Finding) (string, error) {
	c := f.CaseFile(r.dir, r.subject.Name)
	c.Pinned = true
	file := filepath.Join(r.dir, c.Name+".txtar")
	story, _, _ := strings.Cut(c.Story, "\n\nreplay: ")
	c.Story = story + "\n\nreplay: " + r.command(file)
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, harness.FormatCase(c), 0o644)
}

// replay runs one case and shows all of it.
func (r *runner) replay(token string) {
	c, policy, err := lookUp(token)
	r.fatal(err)
	rec, err := r.record(r.driver, r.scenario(c), policy)
	r.fatal(err)
	r.t.Log("\n" + trace.Text(rec.Trace))
	r.judge(rec, "case "+c.Name, token)
	for i := range r.found {
		f := &r.found[i]
		text := r.describe(f)
		if f.level != "" && !r.fails(f.level) {
			r.t.Log(text)
			continue
		}
		r.t.Error(text)
	}
}

// lookUp gives the case that a token means: a file, a case of the suite, or one with
// the seed of its schedule.
func lookUp(token string) (*harness.CaseFile, harness.Policy, error) {
	if strings.HasSuffix(token, ".txtar") {
		data, err := os.ReadFile(token)
		if err != nil {
			return nil, nil, err
		}
		c, err := harness.ParseCase(token, data)
		if err != nil {
			return nil, nil, err
		}
		return c, harness.NewReplay(c.Case.Schedule), nil
	}
	cases, err := suite.Cases()
	if err != nil {
		return nil, nil, err
	}
	name, drawn, isDrawn := strings.Cut(token, "@")
	i := slices.IndexFunc(cases, func(c *harness.CaseFile) bool { return c.Name == name })
	if i < 0 {
		return nil, nil, fmt.Errorf("there is no case %q", name)
	}
	if !isDrawn {
		return cases[i], harness.NewReplay(cases[i].Case.Schedule), nil
	}
	seed, err := strconv.ParseUint(drawn, 10, 64)
	return cases[i], harness.NewRandom(seed), err
}
