package subjects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// patient is a process of which one case that went wrong does not keep the
// others from being run: what breaks the protocol in a case ends that case, as
// a crash does. Only a subject that cannot be started any more ends the run.
type patient struct {
	*protocol.Process
	log func(line string)
}

// Open begins a case.
func (p *patient) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	session, err := p.Process.Open(ctx, sc)
	switch {
	case err == nil:
		return &patientSession{session, p}, nil
	case ctx.Err() != nil, isStart(err), errors.Is(err, harness.ErrElsewhere):
		return nil, err
	}
	return failedSession{p.endCase(err)}, nil
}

// Play hands over a whole case at once.
func (p *patient) Play(ctx context.Context, sc *harness.Prepared, actions []*harness.Action, expect [][]string) (harness.Playing, error) {
	playing, err := p.Process.Play(ctx, sc, actions, expect)
	if err != nil {
		return nil, p.endCase(err)
	}
	return patientPlaying{playing, p}, nil
}

type patientPlaying struct {
	harness.Playing
	subject *patient
}

// Read waits for the end of the case.
func (w patientPlaying) Read(out func(*trace.Entry)) (time.Duration, error) {
	wake, err := w.Playing.Read(out)
	return wake, w.subject.endCase(err)
}

// endCase is the error as one that ends the case alone. What the subject wrote
// last to its standard error is noted.
func (p *patient) endCase(err error) error {
	err = asCrash(err)
	if fault, ok := errors.AsType[*harness.SubjectError](err); ok {
		p.logStderr(fault.Stderr)
	}
	return err
}

const stderrShown = 8 // lines

// logStderr notes what a subject wrote last, but for the dump of its stacks that
// a runtime makes when it is told to quit.
func (p *patient) logStderr(lines []string) {
	said, dump := lines, 0
	if i := slices.IndexFunc(lines, beginsDump); i >= 0 {
		said, dump = lines[:i], len(lines)-i
	}
	for _, line := range said[max(0, len(said)-stderrShown):] {
		p.log("stderr: " + line)
	}
	if dump > 0 {
		p.log(fmt.Sprintf("stderr: (and a dump of its stacks, %d lines)", dump))
	}
}

func beginsDump(line string) bool {
	return strings.HasPrefix(line, "SIGQUIT") || strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "Full thread dump")
}

// asCrash is the error as one that ends the case alone.
func asCrash(err error) error {
	if harness.Blameless(err) {
		return err
	}
	if _, ok := errors.AsType[*harness.SubjectError](err); ok {
		return err
	}
	fault := &harness.SubjectError{Outcome: trace.OutcomeCrashed, Message: err.Error(), Exit: -1}
	if broken, ok := errors.AsType[*protocol.ProtocolError](err); ok {
		fault.Message = "it broke the protocol: " + fault.Message
		fault.Stderr = broken.Stderr
	}
	return fault
}

type patientSession struct {
	harness.Session
	subject *patient
}

// Do hands over one action.
func (s *patientSession) Do(a *harness.Action) error { return s.subject.endCase(s.Session.Do(a)) }

// Settle lets the subject come to rest.
func (s *patientSession) Settle(out func(*trace.Entry)) error {
	return s.subject.endCase(s.Session.Settle(out))
}

// Close drops the case. What the subject does after its last word is no part of
// the case.
func (s *patientSession) Close() error { return s.subject.endCase(s.Session.Close()) }

// NextWake is the subject's.
func (s *patientSession) NextWake() (d time.Duration, ok bool) { return harness.NextWake(s.Session) }

// failedSession is a case that could not be opened.
type failedSession struct{ err error }

// Do fails.
func (s failedSession) Do(*harness.Action) error { return s.err }

// Settle fails.
func (s failedSession) Settle(func(*trace.Entry)) error { return s.err }

// Close does nothing.
func (s failedSession) Close() error { return nil }
