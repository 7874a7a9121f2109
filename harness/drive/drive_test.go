package drive_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/fixtures"
	"github.com/pi-conform/pi-conform/harness/drive"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/subject"
)

func TestMain(m *testing.M) {
	if mood, ok := os.LookupEnv("FAKE_AGENT"); ok {
		os.Exit(fakeAgent(mood))
	}
	os.Exit(m.Run())
}

func script(t *testing.T, name string) *drive.Script {
	t.Helper()
	text, err := fixtures.FS.ReadFile("drive/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := drive.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judged drives and judges.
func judged(t *testing.T, name string, o drive.Options, rules dialect.Options) (*drive.Recording, *dialect.Report) {
	t.Helper()
	rec, err := drive.Run(context.Background(), script(t, name), o)
	if err != nil {
		if rec != nil {
			t.Logf("%s\n%s", rec.Log, strings.Join(rec.Stderr, "\n"))
		}
		t.Fatal(err)
	}
	log, err := dialect.Open(bytes.NewReader(rec.Log), dialect.Auto)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rec.Requests {
		rules.Requests = append(rules.Requests, rec.Requests[i].Shown())
	}
	rep, err := dialect.Judge(log, rules)
	if err != nil {
		t.Fatalf("%v\n%s", err, rec.Log)
	}
	return rec, rep
}

func normal(t *testing.T, rec *drive.Recording) string {
	t.Helper()
	text, err := dialect.Normal(bytes.NewReader(rec.Log))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestShippedScripts(t *testing.T) {
	names := fixtures.Drives()
	if len(names) < 10 {
		t.Errorf("only %d scripts", len(names))
	}
	for _, name := range names {
		if s := script(t, strings.TrimSuffix(strings.TrimPrefix(name, "drive/"), ".yaml")); s.Story == "" {
			t.Errorf("%s has no story", name)
		}
	}
}

func TestParseFaults(t *testing.T) {
	for text, words := range map[string]string{
		"prompt: go\n": "no turn",
		"model: [{text: x}]\nsteps: [{has: x}]\n":                            "does nothing",
		"model: [{text: x}]\nsteps: [{abort: true, steer: x}]\n":             "more than one thing",
		"model: [{text: x}]\nsteps: [{open: g}]\n":                           "no turn has a gate",
		"model: [{text: x}]\nstep: []\n":                                     "step",
		"model: [{text: x, stop: no}]\n":                                     "unknown stop reason",
		"model: [{text: x, gates: [{name: g, before: call}]}]\n":             "does not have",
		"model: [{text: x, status: 200}]\n":                                  "no error",
		"model: [{text: x}]\nclient: {permission: perhaps}\nprompt: hello\n": "unknown permission",
	} {
		if _, err := drive.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// releases are those of the program pi that are driven.
var releases = []string{"1.6.0", "0.84.3"}

func realPi(t *testing.T, version string) []string {
	t.Helper()
	if os.Getenv("PI_CONFORM_NPM") == "" && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: THE REAL PROGRAM IS NOT DRIVEN. It is installed with npm, which needs a network: set PI_CONFORM_NPM=1")
	}
	argv, err := subject.PiProgram(context.Background(), version, subject.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	return argv
}

// TestRealPi drives the real program, and finds no broken MUST rule.
func TestRealPi(t *testing.T) {
	for _, version := range releases {
		for _, name := range []string{
			"two-calls", "abort-mid-batch", "steer", "truncated-call", "error-then-retry", "steer-then-abort", "duplicate-ids",
			"abort-in-arguments", "stalled-stream", "follow-up",
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				o := drive.Options{Mode: drive.PiRPC, Command: realPi(t, version)}
				rec, rep := judged(t, name, o, dialect.Options{Edition: edition.ForRelease(version)})
				if rep.Broken() || !rep.Exercised() {
					t.Errorf("%+v\n%s", rep.Findings, normal(t, rec))
				}
				if name == "two-calls" || name == "truncated-call" {
					expectRequests(t, rep)
				}
			})
		}
	}
}

// expectRequests expects that what the model was shown was judged too.
func expectRequests(t *testing.T, rep *dialect.Report) {
	t.Helper()
	for _, r := range rep.Rules {
		if r.Rule == "TOOL-15" && r.Status != conformance.StatusPass {
			t.Errorf("%+v", r)
		}
	}
}

// TestRealPiAgain holds that a second drive has the same normal form.
func TestRealPiAgain(t *testing.T) {
	for _, name := range []string{"abort-mid-batch", "steer"} {
		o := drive.Options{Mode: drive.PiRPC, Command: realPi(t, releases[0])}
		first, _ := judged(t, name, o, dialect.Options{})
		again, _ := judged(t, name, o, dialect.Options{})
		if a, b := normal(t, first), normal(t, again); a != b {
			t.Errorf("two normal forms:\n%s\n%s", a, b)
		}
	}
}

// TestRealPiThroughEveryProvider holds that the program does the same whatever
// provider its model has.
func TestRealPiThroughEveryProvider(t *testing.T) {
	for _, version := range releases {
		for _, name := range []string{"two-calls", "truncated-call", "error-then-retry"} {
			t.Run(version+" "+name, func(t *testing.T) {
				var forms []string
				for _, api := range []drive.API{drive.Completions, drive.Messages, drive.Responses} {
					rec, _ := judged(t, name, drive.Options{Mode: drive.PiJSON, Command: realPi(t, version), API: api}, dialect.Options{})
					forms = append(forms, withoutItems(normal(t, rec)))
				}
				if forms[0] != forms[1] {
					t.Errorf("two normal forms:\n%s\n%s", forms[0], forms[1])
				}
				if forms[0] != forms[2] {
					t.Logf("OpenAI responses:\n%s", forms[2])
				}
			})
		}
	}
}

// withoutItems takes off what pi adds to ids of calls for OpenAI responses.
func withoutItems(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for {
			before, after, found := strings.Cut(line, "|answer_")
			if !found {
				break
			}
			end := strings.IndexAny(after, " ]:\"\n")
			line = before + after[end:]
		}
		b.WriteString(line)
	}
	return b.String()
}

func agent(mood string) drive.Options {
	return drive.Options{Mode: drive.ACP, Command: []string{os.Args[0]}, Env: []string{"FAKE_AGENT=" + mood}, Timeout: 20 * time.Second}
}

// TestACP drives a small agent in Go.
func TestACP(t *testing.T) {
	for _, name := range []string{"acp-two-sessions", "acp-cancel", "acp-cancel-in-arguments", "acp-load-after-failure"} {
		t.Run(name, func(t *testing.T) {
			rec, rep := judged(t, name, agent(""), dialect.Options{Profile: acp.Seed})
			if len(rep.Findings) > 0 || !rep.Exercised() || rep.Dialect != dialect.ACP {
				t.Errorf("%+v\n%s", rep.Findings, rec.Log)
			}
			again, _ := judged(t, name, agent(""), dialect.Options{})
			if a, b := normal(t, rec), normal(t, again); a != b {
				t.Errorf("two normal forms:\n%s\n%s", a, b)
			}
		})
	}
}

// TestACPFaults holds that faults of an agent are found.
func TestACPFaults(t *testing.T) {
	for mood, c := range map[string]struct{ script, rule string }{
		"error when cancelled": {"acp-cancel", "ACP-6"},
		"late":                 {"acp-two-sessions", "ACP-7"},
		"open":                 {"acp-cancel", "ACP-4"},
		"shares calls":         {"acp-two-sessions", "ACP-11"},
		"loads progress":       {"acp-load-after-failure", "ACP-12"},
		"chatters":             {"acp-cancel", "ACP-1"},
	} {
		t.Run(mood, func(t *testing.T) {
			rec, rep := judged(t, c.script, agent(mood), dialect.Options{Profile: acp.Seed})
			if !slices.ContainsFunc(rep.Findings, func(f dialect.Finding) bool { return f.Rule == c.rule && f.Level == conformance.Must }) {
				t.Errorf("%+v\n%s", rep.Findings, rec.Log)
			}
		})
	}
}

// TestFailures holds that a drive which cannot be carried through says why.
func TestFailures(t *testing.T) {
	for mood, words := range map[string]string{"dies": "the program ended", "sleeps": "never came"} {
		o := agent(mood)
		o.Timeout = 2 * time.Second
		rec, err := drive.Run(context.Background(), script(t, "acp-cancel"), o)
		fault, ok := errors.AsType[*drive.Error](err)
		if !ok || !strings.Contains(err.Error(), words) || len(rec.Log) == 0 {
			t.Errorf("%s: %v", mood, err)
		}
		if mood == "dies" && (fault == nil || !slices.Contains(fault.Stderr, "something is wrong")) {
			t.Errorf("%+v", fault)
		}
	}
	_, err := drive.Run(context.Background(), script(t, "acp-cancel"), drive.Options{Mode: drive.ACP, Command: []string{"/no/such/program"}})
	if err == nil || !strings.Contains(err.Error(), "could not be started") {
		t.Error(err)
	}
}
