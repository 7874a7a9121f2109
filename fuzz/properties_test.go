package fuzz_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
)

// The properties of the four things that the project is for. Each draws the
// scenario and one seed for the order before the case is run; nothing is drawn
// inside of tools, so that rapid can shrink.

// drawn lets rapid make the choices of the generator.
type drawn struct{ t *rapid.T }

func (d drawn) Choose(label string, n int) int { return rapid.IntRange(0, n-1).Draw(d.t, label) }

// property says what a drawn scenario needs to be about the property's theme.
type property struct {
	name   string
	size   fuzz.Size
	theme  func(t *rapid.T, sc *harness.Scenario)
	breaks []loop.Defect // mutants that it finds
}

func themed(change func(*fuzz.Size)) fuzz.Size {
	size := fuzz.Usual()
	size.Turns, size.Prompts = 1, 1
	change(&size)
	return size
}

var properties = []property{
	{
		name: "results of parallel tools are in source order, whatever the order of completion",
		size: themed(func(s *fuzz.Size) { s.Length, s.User = false, false }),
		theme: func(_ *rapid.T, sc *harness.Scenario) {
			sc.Config.ToolExecution = ""
			gateCalls(sc)
		},
		breaks: []loop.Defect{
			loop.ResultsInCompletionOrder, loop.EndsInSourceOrder, loop.ResultEndTwice, loop.StartAfterPreparation,
			loop.PendingAfterListeners, loop.IdleBeforeListeners,
		},
	},
	{
		name: "after an abort nothing new is executed, and what runs is answered",
		size: themed(func(s *fuzz.Size) { s.Length = false }),
		theme: func(_ *rapid.T, sc *harness.Scenario) {
			gateCalls(sc)
			sc.User = append(sc.User, harness.UserAction{Kind: harness.UserAbort})
		},
		breaks: []loop.Defect{loop.AbortIgnoredBeforeExecute, loop.AbortLeavesBatchRunning},
	},
	{
		name: "calls of a message that was cut off are never executed",
		size: themed(func(s *fuzz.Size) { s.Turns = 2 }),
		theme: func(t *rapid.T, sc *harness.Scenario) {
			sc.Model[rapid.IntRange(0, len(sc.Model)-1).Draw(t, "cut off")].Stop = trace.StopLength
		},
		breaks: []loop.Defect{loop.TruncatedExecuted},
	},
	{
		name: "updates come before the end of their call, and late ones not at all",
		size: themed(func(s *fuzz.Size) { s.Length = false }),
		theme: func(_ *rapid.T, sc *harness.Scenario) {
			gateCalls(sc)
			for id, script := range sc.Calls {
				script.Late = []*trace.Result{{Content: trace.TextContent("too late")}}
				script.Updates = append(script.Updates, &trace.Result{Content: trace.TextContent("in time")})
				sc.Calls[id] = script
			}
		},
		breaks: []loop.Defect{loop.LateUpdateAccepted, loop.UpdateNotAwaited},
	},
}

func gateCalls(sc *harness.Scenario) {
	for id, script := range sc.Calls {
		script.Gate = true
		sc.Calls[id] = script
	}
}

// holds is the property for one subject.
func (p *property) holds(d harness.Driver) func(*rapid.T) {
	return func(t *rapid.T) {
		g := NewWithT(t)
		e := rapid.SampledFrom(edition.Known()).Draw(t, "edition")
		sc := fuzz.Scenario(drawn{t}, e, p.size)
		p.theme(t, sc)
		seed := rapid.Uint64().Draw(t, "order")
		rec, err := harness.Run(context.Background(), d, sc, harness.NewRandom(seed), harness.Limits{Steps: 2000})
		g.Expect(err).NotTo(HaveOccurred())
		if f := broken(rec, e); f != nil {
			failAt(t, f.Rule, fmt.Sprintf("%s: %s\n%s", f.Rule, f.Message, trace.Text(rec.Trace)))
		}
		end := rec.Trace.Entries[len(rec.Trace.Entries)-1]
		g.Expect(end.Outcome).To(Equal(trace.OutcomeComplete), end.Message)
	}
}

func TestProperties(t *testing.T) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) { rapid.Check(t, p.holds(reference.New())) })
		for _, defect := range p.breaks {
			t.Run("finds "+string(defect), func(t *testing.T) {
				setFlag(t, "rapid.checks", "1500")
				setFlag(t, "rapid.seed", "1")
				setFlag(t, "rapid.shrinktime", "2s")
				quiet := check(p.holds(reference.New(defect)))
				g := NewWithT(t)
				g.Expect(quiet.failed).To(BeTrue(), "1500 checks found nothing")
				// rapid says that a property is flaky if a failure does not come again.
				g.Expect(quiet.text()).NotTo(ContainSubstring("flaky"))
			})
		}
	}
}

// TestEveryRuleFailsInAPlaceOfItsOwn: rapid takes two failures for the same if
// they come from the same place, and shrinks one into the other.
func TestEveryRuleFailsInAPlaceOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	places := map[string]string{}
	for _, rule := range rules {
		failing := &place{}
		failAt(failing, rule.ID, "it broke")
		g.Expect(places).NotTo(HaveKey(failing.line), "%s and %s fail in one place: make failAt anew", rule.ID, places[failing.line])
		places[failing.line] = rule.ID
	}
}

// place notes from which line it was told to fail.
type place struct{ line string }

func (p *place) Fatalf(string, ...any) {
	_, file, line, _ := runtime.Caller(1)
	p.line = fmt.Sprintf("%s:%d", file, line)
}

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(name, before) })
}

// silent is a test that only remembers what it was told.
type silent struct {
	lines   []string
	failed  bool
	skipped bool
}

// check checks a property without failing the test.
func check(property func(*rapid.T)) *silent {
	s := &silent{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(s, property)
	}()
	<-done
	return s
}

func (s *silent) text() string              { return strings.Join(s.lines, "\n") }
func (s *silent) Helper()                   {}
func (s *silent) Name() string              { return "silent" }
func (s *silent) Logf(f string, a ...any)   { s.lines = append(s.lines, fmt.Sprintf(f, a...)) }
func (s *silent) Log(a ...any)              { s.lines = append(s.lines, fmt.Sprint(a...)) }
func (s *silent) Skipf(string, ...any)      { s.SkipNow() }
func (s *silent) Skip(...any)               { s.SkipNow() }
func (s *silent) SkipNow()                  { s.skipped = true; runtime.Goexit() }
func (s *silent) Errorf(f string, a ...any) { s.Logf(f, a...); s.Fail() }
func (s *silent) Error(a ...any)            { s.Log(a...); s.Fail() }
func (s *silent) Fatalf(f string, a ...any) { s.Logf(f, a...); s.FailNow() }
func (s *silent) Fatal(a ...any)            { s.Log(a...); s.FailNow() }
func (s *silent) FailNow()                  { s.Fail(); runtime.Goexit() }
func (s *silent) Fail()                     { s.failed = true }
func (s *silent) Failed() bool              { return s.failed }
