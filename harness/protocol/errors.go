package protocol

import (
	"fmt"
	"strings"
)

// ProtocolError says that a peer wrote what the protocol does not allow.
type ProtocolError struct {
	Line    int      // number of the line, from 1; 0 if no line is to blame
	Offset  int64    // of the offending byte, from the start of all output
	Problem string   // what is wrong
	Cause   string   // what probably made it so, and the cure; may be empty
	Text    string   // the beginning of the line
	Stderr  []string // the last lines of the subject's standard error
}

func (e *ProtocolError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d, byte %d: ", e.Line, e.Offset)
	}
	b.WriteString(e.Problem)
	if e.Cause != "" {
		fmt.Fprintf(&b, " (%s)", e.Cause)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ": %q", e.Text)
	}
	return b.String()
}

// ReplyError says that the subject answered with an error.
type ReplyError struct {
	To      string // what it answers, such as "open of s1" or "tool/c1/return"
	Code    string
	Message string
	Stack   string
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("the subject answered %s with an error: %s (%s)", e.To, e.Message, e.Code)
}

// StartError says that a subject could not be started.
type StartError struct {
	Command string
	Final   bool // trying again is no use, and every later try gives the same error
	Err     error
	Stderr  []string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("cannot start %s: %v", e.Command, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

const excerptBytes = 120

// excerpt is the beginning of a line, for an error message.
func excerpt(line []byte) string {
	if len(line) <= excerptBytes {
		return string(line)
	}
	return strings.ToValidUTF8(string(line[:excerptBytes]), "") + "…"
}
