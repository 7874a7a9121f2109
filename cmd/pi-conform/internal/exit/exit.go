// Package exit says how the program ends: which error means which exit code.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// Code is an exit code.
type Code int

// The exit codes.
const (
	OK          Code = 0
	Broken      Code = 1
	Usage       Code = 2
	Subject     Code = 3
	Stale       Code = 4
	Nothing     Code = 5
	Fault       Code = 70
	Interrupted Code = 130
)

// Meaning is an exit code and what it says.
type Meaning struct {
	Code Code
	Text string
}

// Meanings are all exit codes, in rising order.
func Meanings() []Meaning {
	return []Meaning{
		{OK, "all as expected, and at least one rule was exercised"},
		{Broken, "a MUST rule was broken"},
		{Usage, "wrong usage or configuration, unreadable input, or a pattern that matches nothing"},
		{Subject, "the subject could not be started, did not speak the protocol, or died or hung in a case"},
		{Stale, "only stale expected failures"},
		{Nothing, "nothing was measured"},
		{Fault, "a fault of pi-conform itself"},
		{Interrupted, "interrupted; what was done so far is reported"},
	}
}

// Error is an error that says how the program ends. Without Err all has been
// said already.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usagef is an error of whoever wrote the command line.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// With gives the error a code, unless it is nil.
func With(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// Silently ends the program with that code and no further word.
func Silently(code Code) error {
	if code == OK {
		return nil
	}
	return &Error{Code: code}
}

// CodeOf is the exit code of an error. One that nobody foresaw is a fault of
// the program.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case isSubjects(err):
		return Subject
	case is[*harness.CaseError](err), is[*fs.PathError](err):
		return Usage
	}
	return Fault
}

func isSubjects(err error) bool {
	return is[*protocol.StartError](err) || is[*protocol.ProtocolError](err) || is[*protocol.ReplyError](err) ||
		is[*harness.SubjectError](err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Stderr are the last lines that the subject wrote to its standard error, if
// the error tells them.
func Stderr(err error) []string {
	if e, ok := errors.AsType[*protocol.StartError](err); ok && len(e.Stderr) > 0 {
		return e.Stderr
	}
	if e, ok := errors.AsType[*protocol.ProtocolError](err); ok && len(e.Stderr) > 0 {
		return e.Stderr
	}
	if e, ok := errors.AsType[*harness.SubjectError](err); ok {
		return e.Stderr
	}
	return nil
}
