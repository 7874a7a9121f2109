package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/conformance/dialect/internal/scan"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Name is the name of a dialect.
type Name string

// The dialects.
const (
	Auto      Name = "auto"       // whichever it looks like
	Pi        Name = "pi"         // our own traces
	PiJSON    Name = "pi-json"    // standard output of «pi --mode json»
	PiRPC     Name = "pi-rpc"     // standard output of «pi --mode rpc», perhaps with the commands between
	PiSession Name = "pi-session" // a session file of pi
	ACP       Name = "acp"        // JSON-RPC lines of the Agent Client Protocol
)

// Names are the names of all dialects.
func Names() []string {
	return []string{string(Auto), string(Pi), string(PiJSON), string(PiRPC), string(PiSession), string(ACP)}
}

// Log is a log that is being read.
type Log struct {
	Dialect Name
	// Notes are what a reader should know that is no finding.
	Notes []string

	lines   *lines
	queue   []heldLine // lines that were read to find out the dialect
	current int        // number of the line that was read last
	runs    assembler
	reader  reader
	session sessionReader
	done    bool
	failed  error
}

type heldLine struct {
	number int
	text   []byte
}

// Option changes how a log is read.
type Option func(*Log)

// Following says that the log may grow, so that a run is to be given as soon as
// it is over, although more of it might follow.
func Following() Option { return func(l *Log) { l.runs.eager = true } }

// Open begins to read a log. If the dialect is Auto, it reads as far as it needs
// to find out which it is. The error is [ErrEmpty] or an [InputError] if the log
// is at fault.
func Open(r io.Reader, name Name, options ...Option) (*Log, error) {
	text, err := newLines(r)
	if err != nil {
		return nil, err
	}
	l := &Log{Dialect: name, lines: text}
	for _, option := range options {
		option(l)
	}
	return l, l.detect()
}

// Read is the number of lines that have been read.
func (l *Log) Read() int { return l.current }

// line is the next line that holds anything.
func (l *Log) line() ([]byte, error) {
	if len(l.queue) > 0 {
		next := l.queue[0]
		l.queue = l.queue[1:]
		l.current = next.number
		return next.text, nil
	}
	text, err := l.lines.next()
	if err == nil {
		l.current = l.lines.number
	}
	return text, err
}

// detect reads lines until it is clear what they are.
func (l *Log) detect() error {
	first, err := l.hold()
	if err == io.EOF {
		return ErrEmpty
	}
	if err != nil {
		return err
	}
	looks := guess(first)
	if looks == undecided {
		second, err := l.hold()
		if err != nil && err != io.EOF {
			return err
		}
		if looks = guess(second); err == io.EOF || looks != PiSession {
			looks = PiJSON
		}
	}
	if l.Dialect == Auto {
		l.Dialect = looks
	}
	if looks == unknown {
		return l.unlike(l.queue[0].text)
	}
	if looks != l.Dialect && (!isPi(looks) || !isPi(l.Dialect)) {
		return &InputError{Line: 1, Why: fmt.Sprintf("this is not %s but looks like %s", l.Dialect, looks), Cause: fmt.Sprintf("try --dialect %s", looks)}
	}
	return nil
}

// isPi reports whether the dialect is what pi prints, in either mode.
func isPi(name Name) bool { return name == PiJSON || name == PiRPC }

func (l *Log) hold() ([]byte, error) {
	line, err := l.lines.next()
	if err != nil {
		return nil, err
	}
	held := bytes.Clone(line)
	l.queue = append(l.queue, heldLine{l.lines.number, held})
	return held, nil
}

// unlike says what is wrong with a line that is of no dialect.
func (l *Log) unlike(line []byte) error {
	s := scan.New(line)
	kind := s.Kind()
	s.Skip()
	err := s.End()
	switch {
	case l.Dialect == ACP:
		return nil // a line that is no message breaks a rule there
	case err == nil && kind == '{':
		return &InputError{Line: 1, Why: "JSON, but of no dialect that is known", Cause: "known are " + strings.Join(Names()[1:], ", ")}
	case kind == '{':
		return &InputError{Line: 1, Why: err.Error(), Cause: "JSON is written one object a line"}
	}
	return &InputError{Line: 1, Why: "not a JSON object a line", Cause: "this looks like no log that is known: " + fmt.Sprintf("%.40q", line)}
}

const (
	undecided Name = "undecided"
	unknown   Name = ""
)

var (
	sessionKinds = []string{
		"message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message", "label",
		"session_info", "context_edit",
	}
	commandKinds = []string{"prompt", "steer", "follow_up", "abort", "response", "get_state", "extension_ui_request", "extension_ui_response"}
)

// guess is the dialect that a line looks like.
func guess(line []byte) Name {
	if acp.LooksLike(line) {
		return ACP
	}
	var kind string
	var format, parent bool
	s := scan.New(line)
	if s.Kind() != '{' {
		return unknown
	}
	s.Object(func(name []byte) {
		switch string(name) {
		case "type":
			kind = s.String()
		case "format":
			format = bytes.HasPrefix(s.Bytes(), []byte("pi-conform/trace/"))
		case "parentId":
			parent = true
		}
	})
	switch {
	case s.End() != nil:
		return unknown
	case format:
		return Pi
	case kind == "session":
		return undecided
	case parent && slices.Contains(sessionKinds, kind):
		return PiSession
	case slices.Contains(commandKinds, kind):
		return PiRPC
	case kind != "":
		return PiJSON
	}
	return unknown
}

// Next is the next run of the log, and [io.EOF] after the last. An [InputError]
// says where the log cannot be read any further; what was open then is given
// first.
func (l *Log) Next() (*Run, error) {
	switch {
	case l.failed != nil:
		return nil, l.failed
	case l.done:
		return nil, io.EOF
	}
	run, err := l.next()
	if err == nil {
		return run, nil
	}
	l.done, l.failed = true, err
	if last := l.rest(); last != nil {
		return last, nil
	}
	return nil, err
}

func (l *Log) next() (*Run, error) {
	if l.Dialect == Pi {
		return l.nextTrace()
	}
	if l.Dialect == PiSession {
		return l.nextBranch()
	}
	return l.nextRun()
}

// rest is what is still open when nothing more can be read.
func (l *Log) rest() *Run {
	if l.Dialect == PiSession {
		return l.session.close()
	}
	return l.runs.close()
}

func (l *Log) nextRun() (*Run, error) {
	var rec record
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		run, err := l.take(line, &rec)
		if err != nil || run != nil {
			return run, err
		}
	}
}

// take takes in one line of what pi prints.
func (l *Log) take(line []byte, rec *record) (*Run, error) {
	if isUpdate(line) {
		s := scan.New(line)
		s.Skip()
		if err := s.End(); err != nil {
			return nil, l.malformed(line, err)
		}
		return l.runs.update(l.current), nil
	}
	l.reader.store = l.runs.store()
	if err := l.reader.record(line, rec); err != nil {
		return nil, l.malformed(line, err)
	}
	switch {
	case rec.loop:
		return l.runs.event(l.current, &rec.event), nil
	case rec.kind == "":
		return nil, l.stray(line)
	}
	return l.runs.session(l.current, rec), nil
}

// malformed says what is wrong with a line that is no JSON. The last line of a
// log may be there in part.
func (l *Log) malformed(line []byte, err error) error {
	switch {
	case errors.Is(err, scan.ErrCut) && !l.lines.whole:
		l.Notes = append(l.Notes, fmt.Sprintf("line %d is there in part only: the log was cut off, or is still being written", l.current))
		return io.EOF
	case errors.Is(err, scan.ErrCut):
		return l.fault("the line ends in the middle of a value", "the program was killed while it wrote, or a text holds a raw line feed")
	case errors.Is(err, errNoObject):
		return l.fault("no JSON object: "+fmt.Sprintf("%.40q", line), "another program writes to the same output; keep its messages apart")
	}
	return l.fault(err.Error(), "two programs wrote to it at once, or the line is damaged")
}

func (l *Log) stray(line []byte) error {
	if looks := guess(line); looks != unknown && looks != undecided && !isPi(looks) {
		return l.fault(fmt.Sprintf("this is not %s but looks like %s", l.Dialect, looks), "two logs in one file")
	}
	return l.fault("a record without a type", "")
}

func (l *Log) fault(why, cause string) *InputError {
	return &InputError{Line: l.current, Why: why, Cause: cause}
}

// nextTrace reads one of our own traces.
func (l *Log) nextTrace() (*Run, error) {
	var text bytes.Buffer
	run := &Run{}
	first := 0
	for {
		line, err := l.line()
		if err == io.EOF && first > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		if first == 0 {
			first = l.current
		} else {
			run.Lines = append(run.Lines, l.current)
		}
		text.Write(line)
		text.WriteByte('\n')
		if isEnd(line) {
			break
		}
	}
	t, err := trace.Decode(&text)
	if fault, ok := errors.AsType[*trace.FormatError](err); ok {
		if !errors.Is(err, io.ErrUnexpectedEOF) || t == nil {
			return nil, &InputError{Line: first + fault.Line - 1, Why: fault.Why, Cause: fault.Cause}
		}
		l.Notes = append(l.Notes, fmt.Sprintf("the trace that begins at line %d is cut off", first))
		run.Cut = true
	} else if err != nil {
		return nil, err
	}
	l.runs.count++
	run.Number, run.Trace = l.runs.count, t
	return run, nil
}

// isEnd reports whether a line is the last entry of a trace.
func isEnd(line []byte) bool {
	if len(line) > 4<<10 && !bytes.Contains(line, []byte(`"kind":"end"`)) {
		return false
	}
	end := false
	s := scan.New(line)
	s.Object(func(name []byte) {
		if string(name) == "kind" {
			end = string(s.Bytes()) == string(trace.KindEnd)
		}
	})
	return end
}
