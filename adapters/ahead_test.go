package adapters_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/loop"
)

// dying is the reference, but the process ends when the user aborts.
type dying struct{ harness.Driver }

// Open begins a case.
func (d dying) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	s, err := d.Driver.Open(ctx, sc)
	return dyingSession{s}, err
}

type dyingSession struct{ harness.Session }

// Do hands over one action.
func (s dyingSession) Do(a *harness.Action) error {
	if a.User == harness.UserAbort {
		os.Exit(3)
	}
	return s.Session.Do(a)
}

// stepwise hides that a driver can be given whole cases.
type stepwise struct{ harness.Driver }

// TestAhead: to hand over cases before the ones before them are read changes nothing
// in what is found, not even in a subject that dies over some of them.
func TestAhead(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"results-in-completion-order", "dying"} {
		t.Run(what, func(t *testing.T) {
			served := protocol.NewProcess(protocol.Command{Argv: []string{self}, Env: []string{serveVariable + "=" + what}}, protocol.Options{})
			t.Cleanup(func() { served.Close() })
			ahead, alone := explored(t, served, 1), explored(t, stepwise{served}, 1)
			if !slices.Equal(ahead, alone) {
				t.Errorf("ahead:\n%q\none after the other:\n%q", ahead, alone)
			}
			if several := explored(t, served, 3); !slices.Equal(ahead, several) {
				t.Errorf("one job:\n%q\nthree:\n%q", ahead, several)
			}
			if len(ahead) < 2 {
				t.Error("nothing is found")
			}
		})
	}
}

// session is the name of one in a message: it counts all that were run.
var session = regexp.MustCompile(` \(s\d+\)`)

// explored says what comes of exploring a subject.
func explored(t *testing.T, d harness.Driver, jobs int) []string {
	t.Helper()
	result, err := fuzz.Explore(t.Context(), d, fuzz.Options{
		Runs: 160, Seed: 1, Jobs: jobs, Oracle: reference.New(), ShrinkRuns: 20,
		Policy: harness.PolicySpec{Kind: harness.PolicyAuto},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := []string{fmt.Sprint(result.Runs, " runs of ", result.Shapes, " kinds")}
	for _, f := range result.Findings {
		message := session.ReplaceAllString(f.Message, "")
		said = append(said, fmt.Sprintf("%s %d times, first by %v: %s", f.Kind, f.Count, f.Original.Schedule, message))
	}
	return said
}

// servedAs is what the test binary serves by that name; else it is a defect.
func servedAs(name string) harness.Driver {
	switch name {
	case "reference":
		return reference.New()
	case "dying":
		return dying{reference.New()}
	}
	return reference.New(loop.Defect(name))
}
