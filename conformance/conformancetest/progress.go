package conformancetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/conformance/progress"
	channel "github.com/pi-conform/pi-conform/conformance/progress/suite"
	"github.com/pi-conform/pi-conform/harness/edition"
)

// RunProgress tests a channel of progress: a registry of one's own, and the bridge to
// the Agent Client Protocol and the producer of a workflow's progress that belong to
// it, if there are any. It makes the calls of two sessions report from their bodies, timers, other
// goroutines, hooks and observers while they end in every way, under schedules that
// are drawn, in bubbles of [testing/synctest]: half of them in turn, half at once,
// where the race detector sees most.
//
// Each rule of PROG, BRIDGE and FLOW is a subtest. What cannot be judged, as the
// subject lacks it, is skipped and says so. What is found is saved and run first from
// then on. Of the options [Seeds], [Seed], [Found] and [ExpectFail] count.
func RunProgress(t *testing.T, subject channel.Subject, options ...Option) {
	t.Helper()
	r := &channelRunner{t: t, subject: subject, config: configured(edition.Default, options)}
	for rule := range r.expected {
		if _, ok := progress.Lookup(rule); !ok {
			t.Fatalf("ExpectFail: there is no rule %s about progress", rule)
		}
	}
	var err error
	if r.lacks, err = subject.Lacks(); err != nil {
		t.Fatal(err)
	}
	if token := os.Getenv(replayVariable); token != "" {
		r.replay(token)
		return
	}
	r.saved()
	r.explore()
	r.tell()
}

// channelRunner is one test of one channel of progress.
type channelRunner struct {
	config
	t         *testing.T
	subject   channel.Subject
	lacks     map[string]string // why a rule is not applicable
	exercised map[string]int
	found     map[string][]channelFinding // by rule, or «ends»
	runs      int
}

// channelFinding is something that is wrong.
type channelFinding struct {
	Rule    string           `json:"rule"`
	Message string           `json:"message"`
	Run     channelRun       `json:"run"`
	Replay  string           `json:"replay"`
	Excerpt []jsontext.Value `json:"excerpt,omitzero"` // the entry at which it became evident, and those before it
}

// channelRun is one run: calls or a workflow, how tasks take turns, and the seed.
type channelRun struct {
	Part string `json:"part"`
	How  string `json:"how"`
	Seed uint64 `json:"seed"`
}

const (
	partCalls, partWorkflow = "calls", "workflow"
	ends                    = "ends"
)

func (c channelRun) token() string {
	return fmt.Sprintf("%s@%s@%d", c.Part, strings.ReplaceAll(c.How, " ", "-"), c.Seed)
}

func parseChannelRun(token string) (channelRun, error) {
	words := strings.Split(token, "@")
	if len(words) != 3 {
		return channelRun{}, fmt.Errorf("%q is no run of a channel of progress", token)
	}
	seed, err := strconv.ParseUint(words[2], 10, 64)
	return channelRun{words[0], strings.ReplaceAll(words[1], "-", " "), seed}, err
}

// record plays a run.
func (r *channelRunner) record(c channelRun) (*progress.Record, error) {
	how := channel.InTurn
	if c.How == channel.AtOnce.String() {
		how = channel.AtOnce
	}
	if c.Part == partWorkflow {
		return r.subject.Flow(c.Seed, how)
	}
	return r.subject.Calls(c.Seed, how)
}

// try plays a run, judges it, and gives what is wrong.
func (r *channelRunner) try(c channelRun) []channelFinding {
	record, err := r.record(c)
	r.runs++
	if err != nil {
		return []channelFinding{{Rule: ends, Message: err.Error(), Run: c, Replay: r.command(c)}}
	}
	v := progress.Check(record, channel.Applicable(r.lacks))
	for rule, n := range v.Exercised {
		r.exercised[rule] += n
	}
	var found []channelFinding
	for i := range v.Findings {
		f := &v.Findings[i]
		found = append(found, channelFinding{f.Rule, f.Message, c, r.command(c), channelExcerpt(record, f)})
	}
	return found
}

func (r *channelRunner) command(c channelRun) string {
	return fmt.Sprintf("%s=%s go test -run '%s' -v .", replayVariable, c.token(), exactly(r.t.Name()))
}

// leading are how many entries are shown before the one that breaks a rule.
const leading = 6

func channelExcerpt(record *progress.Record, f *progress.Finding) []jsontext.Value {
	var lines []jsontext.Value
	for _, e := range record.Entries[max(0, f.Entry-leading) : f.Entry+1] {
		if text, err := json.Marshal(e, json.Deterministic(true)); err == nil {
			lines = append(lines, text)
		}
	}
	return lines
}

// add notes findings. The first of a rule is saved.
func (r *channelRunner) add(found []channelFinding, save bool) {
	for _, f := range found {
		if save && r.found[f.Rule] == nil {
			r.save(f)
		}
		r.found[f.Rule] = append(r.found[f.Rule], f)
	}
}

func (r *channelRunner) file(rule string) string {
	return filepath.Join(r.dir, "progress-"+rule+".json")
}

func (r *channelRunner) save(f channelFinding) {
	text, err := json.Marshal(f, json.Deterministic(true), jsontext.WithIndent("  "))
	if err == nil {
		err = os.MkdirAll(r.dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(r.file(f.Rule), append(text, '\n'), 0o644)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// saved runs what was found before.
func (r *channelRunner) saved() {
	r.exercised, r.found = map[string]int{}, map[string][]channelFinding{}
	files, err := filepath.Glob(r.file("*"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range files {
		var f channelFinding
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &f)
		}
		if err != nil {
			r.t.Fatalf("%s: %v", file, err)
		}
		r.add(r.again(f.Run), false)
	}
}

// timesAtOnce is how often a run is tried again whose goroutines race.
const timesAtOnce = 30

// again tries a run until something is wrong.
func (r *channelRunner) again(c channelRun) []channelFinding {
	times := 1
	if c.How == channel.AtOnce.String() {
		times = timesAtOnce
	}
	for range times {
		if found := r.try(c); found != nil {
			return found
		}
	}
	return nil
}

// explore runs what the seeds draw. After a run that hangs there is no other: what
// it left behind would disturb it.
func (r *channelRunner) explore() {
	parts := []string{partCalls}
	if r.subject.Producer != nil {
		parts = append(parts, partWorkflow)
	}
	for seed := range uint64(r.seeds) {
		for _, part := range parts {
			how := channel.InTurn
			if part == partCalls && seed%2 == 1 {
				how = channel.AtOnce
			}
			r.add(r.try(channelRun{part, how.String(), r.seed + seed}), true)
			if r.found[ends] != nil {
				return
			}
		}
	}
}

// replay plays one run and shows all of it.
func (r *channelRunner) replay(token string) {
	r.exercised, r.found = map[string]int{}, map[string][]channelFinding{}
	c, err := parseChannelRun(token)
	if err != nil {
		r.t.Fatal(err)
	}
	record, err := r.record(c)
	if err != nil {
		r.t.Error(err)
	}
	for i, e := range record.Entries {
		text, err := json.Marshal(e, json.Deterministic(true))
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Logf("%4d %s", i, text)
	}
	for _, f := range r.again(c) {
		r.t.Error(r.describe(f))
	}
}

// tell makes subtests of the rules.
func (r *channelRunner) tell() {
	r.t.Logf("%d runs from seed %d", r.runs, r.seed)
	r.tellLacks()
	for _, rule := range progress.Rules() {
		r.t.Run(rule.ID, func(t *testing.T) { r.rule(t, rule.ID) })
	}
	r.t.Run(ends, func(t *testing.T) { r.show(t, r.found[ends]) })
}

// tellLacks says which rules are not applicable, and why.
func (r *channelRunner) tellLacks() {
	byReason := map[string][]string{}
	for _, rule := range progress.Rules() {
		if reason := r.lacks[rule.ID]; reason != "" {
			byReason[reason] = append(byReason[reason], rule.ID)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		r.t.Logf("NOT APPLICABLE, as %s: %s", reason, strings.Join(byReason[reason], " "))
	}
}

// rule is the subtest of one rule.
func (r *channelRunner) rule(t *testing.T, id string) {
	found := r.found[id]
	reason, expected := r.expected[id]
	switch {
	case len(found) > 0 && expected:
		t.Skipf("expected to fail: %s (%d findings, such as: %s)", reason, len(found), found[0].Message)
	case len(found) > 0:
		r.show(t, found)
	case r.lacks[id] != "":
		t.Skipf("not applicable: %s", r.lacks[id])
	case expected && r.exercised[id] > 0:
		t.Errorf("it is kept, and was expected to fail: %s", reason)
	case r.exercised[id] == 0:
		t.Skip("not exercised: no run had an occasion to keep or break it")
	}
}

func (r *channelRunner) show(t *testing.T, found []channelFinding) {
	t.Helper()
	for i, f := range found {
		if i == shownFindings {
			t.Logf("and %d more", len(found)-i)
			return
		}
		t.Error(r.describe(f))
	}
}

// longestLine is how much of an entry is shown.
const longestLine = 200

// describe is a finding for people.
func (r *channelRunner) describe(f channelFinding) string {
	var b strings.Builder
	if rule, ok := progress.Lookup(f.Rule); ok {
		fmt.Fprintf(&b, "%s (%s): %s\n", rule.ID, rule.Level, rule.Sentence)
	}
	fmt.Fprintf(&b, "%s, %s, seed %d: %s\n", f.Run.Part, f.Run.How, f.Run.Seed, f.Message)
	for i, line := range f.Excerpt {
		mark := " "
		if i == len(f.Excerpt)-1 {
			mark = "▶"
		}
		fmt.Fprintf(&b, "  %s %s\n", mark, strings.ToValidUTF8(string(line[:min(len(line), longestLine)]), ""))
	}
	fmt.Fprintf(&b, "replay: %s", f.Replay)
	return b.String()
}
