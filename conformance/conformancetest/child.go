package conformancetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/bubble"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// childVariable makes a test binary serve a subject: it names the test and the
// subject.
const childVariable = "PI_CONFORM_CHILD"

func childName(t *testing.T, s *Subject) string { return t.Name() + " " + s.Name }

// serve serves the subject and ends the process, if this process was started for it.
// Of one that was started for another subject it reports that.
func serve(t *testing.T, s *Subject, c *config) (elsewhere bool) {
	want := os.Getenv(childVariable)
	if want != childName(t, s) {
		return want != ""
	}
	out := os.Stdout
	os.Stdout = os.Stderr // what the loop prints is no message
	d := &bubble.Driver{About: s.info(), Join: s.Join, Patience: c.patience}
	if err := protocol.Serve(os.Stdin, out, d, protocol.ServeOptions{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0) // whatever a loop has left behind
	return true
}

// child is a driver for the subject in a process of its own: this test binary,
// started once more, for this test alone. The error says why there can be none.
func child(t *testing.T, s *Subject, c *config) (harness.Driver, error) {
	if testing.CoverMode() != "" {
		return nil, errors.New("coverage is counted in this process alone")
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{binary, "-test.run=" + exactly(t.Name()), "-test.timeout=0", "-test.count=1"}
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.") {
			argv = append(argv, arg)
		}
	}
	command := protocol.Command{Argv: argv, Env: []string{
		childVariable + "=" + childName(t, s),
		// The race detector would let the process go on; the schedule would be lost.
		"GORACE=halt_on_error=1 " + os.Getenv("GORACE"),
		"GOTRACEBACK=single",
	}}
	scale := float64(c.patience) / float64(usualPatience) * processScale
	return &witness{protocol.NewProcess(command, protocol.Options{TimeoutScale: scale})}, nil
}

// processScale makes the time limits for a process longer than the patience with a
// loop in it, so that the loop is told of and not the process.
const processScale = 4

// exactly is the pattern of go test -run for one test or subtest.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// witness is a process whose end is told by what it wrote last: the race, or the
// panic. One that ends does not keep other cases from being run.
type witness struct{ *protocol.Process }

// Open begins a case.
func (w *witness) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	session, err := w.Process.Open(ctx, sc)
	if _, unable := errors.AsType[*protocol.StartError](err); unable || ctx.Err() != nil || errors.Is(err, harness.ErrElsewhere) {
		return nil, err
	}
	if err != nil {
		return broken{told(err)}, nil
	}
	return witnessed{session}, nil
}

// Play hands over a whole case at once.
func (w *witness) Play(ctx context.Context, sc *harness.Prepared, actions []*harness.Action, expect [][]string) (harness.Playing, error) {
	playing, err := w.Process.Play(ctx, sc, actions, expect)
	if err != nil {
		return nil, told(err)
	}
	return witnessedPlaying{playing}, nil
}

type witnessedPlaying struct{ harness.Playing }

// Read waits for the end of the case.
func (w witnessedPlaying) Read(out func(*trace.Entry)) (time.Duration, error) {
	wake, err := w.Playing.Read(out)
	return wake, told(err)
}

type witnessed struct{ harness.Session }

// Do hands over one action.
func (s witnessed) Do(a *harness.Action) error { return told(s.Session.Do(a)) }

// Settle lets the subject come to rest.
func (s witnessed) Settle(out func(*trace.Entry)) error { return told(s.Session.Settle(out)) }

// Close ends the case.
func (s witnessed) Close() error { return told(s.Session.Close()) }

// NextWake is the subject's.
func (s witnessed) NextWake() (d time.Duration, ok bool) { return harness.NextWake(s.Session) }

// broken is a case that could not be begun.
type broken struct{ err error }

// Do fails.
func (s broken) Do(*harness.Action) error { return s.err }

// Settle fails.
func (s broken) Settle(func(*trace.Entry)) error { return s.err }

// Close does nothing.
func (s broken) Close() error { return nil }

// told is the error of a case with what the process wrote last.
func told(err error) error {
	if harness.Blameless(err) {
		return err
	}
	fault, ok := errors.AsType[*harness.SubjectError](err)
	if !ok {
		return &harness.SubjectError{Outcome: trace.OutcomeCrashed, Message: err.Error(), Exit: -1}
	}
	if words := lastWords(fault.Stderr); len(words) > 0 {
		copied := *fault
		copied.Message = strings.Join(words, "\n")
		return &copied
	}
	return fault
}

const shownWords = 24 // lines

// varying is what differs between two dumps of one thing.
var varying = regexp.MustCompile(`\([^()]*\b0x[^()]*\)$|\((\.\.\.)?\)$| \+0x[0-9a-f]+| at 0x[0-9a-f]+|(in )?goroutine \d+|, synctest bubble \d+`)

// lastWords are the lines of a race or a panic, without what differs each time.
func lastWords(stderr []string) []string {
	i := slices.IndexFunc(stderr, func(line string) bool {
		return strings.HasPrefix(line, "WARNING: DATA RACE") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	})
	if i < 0 {
		return nil
	}
	var words []string
	for _, line := range stderr[i:min(len(stderr), i+shownWords)] {
		if line = strings.TrimRight(varying.ReplaceAllString(line, ""), " "); line != "" && !strings.HasPrefix(line, "=====") {
			words = append(words, line)
		}
	}
	return words
}
