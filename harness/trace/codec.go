package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxLine is the length of the longest line of a trace, in bytes, its line
// feed included.
const MaxLine = 16 << 20

// Values are written as they came: a rule may ask how a subject spelt them.
var writeOptions = json.JoinOptions(json.Deterministic(true), jsontext.PreserveRawStrings(true))

// What the harness writes has no room for unknown members; what the subject
// wrote keeps them in Extra.
var readOptions = json.RejectUnknownMembers(true)

// Writer writes a trace as JSON lines, one entry at a time. It does not buffer.
type Writer struct {
	w    io.Writer
	line int
}

// NewWriter writes the header, and gives a Writer for the entries. An empty
// format is filled in.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	if h.Format == "" {
		h.Format = Format
	}
	if h.Format != Format {
		return nil, fmt.Errorf("trace: cannot write format %q, only %s", h.Format, Format)
	}
	out := &Writer{w: w}
	return out, out.put(&h)
}

// Write writes one entry. An entry that a [Reader] would refuse is an error.
func (w *Writer) Write(e *Entry) error {
	if why := e.fault(); why != "" {
		return fmt.Errorf("trace: cannot write line %d: %s", w.line+1, why)
	}
	return w.put(e)
}

func (w *Writer) put(v any) error {
	w.line++
	line, err := json.Marshal(v, writeOptions)
	if err != nil {
		return fmt.Errorf("trace: cannot write line %d: %w", w.line, err)
	}
	if len(line) >= MaxLine {
		return fmt.Errorf("trace: cannot write line %d: %d bytes are more than a line may have (%d)", w.line, len(line), MaxLine)
	}
	_, err = w.w.Write(append(line, '\n'))
	return err
}

// Write writes a whole trace.
func Write(w io.Writer, t *Trace) error {
	buffer := bufio.NewWriter(w)
	out, err := NewWriter(buffer, t.Header)
	if err != nil {
		return err
	}
	for i := range t.Entries {
		if err := out.Write(&t.Entries[i]); err != nil {
			return err
		}
	}
	return buffer.Flush()
}

// Reader reads a trace from JSON lines, one entry at a time.
type Reader struct {
	Header Header

	lines  *bufio.Reader
	number int   // of the current line, from 1
	start  int64 // offset of the current line
	next   int64 // offset of the next line
	ended  bool  // the end entry was read
}

// NewReader reads the header. What is wrong with the input is a [FormatError].
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{lines: bufio.NewReaderSize(r, 64<<10)}
	line, err := in.line()
	if err == io.EOF {
		in.number = 1
		return nil, in.fault(0, "the input is empty", "nothing was recorded")
	}
	if err != nil {
		return nil, err
	}
	if err := in.format(line); err != nil {
		return nil, err
	}
	if err := in.decode(line, &in.Header); err != nil {
		return nil, err
	}
	return in, nil
}

// format looks at the version before all else, so that a trace of another
// version is not called malformed.
func (r *Reader) format(line []byte) error {
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return r.explain(line, err)
	}
	switch head.Format {
	case Format:
		return nil
	case "":
		return r.fault(0, "the first line is not a header with a format", "the beginning is missing, or this is not a trace")
	}
	return r.fault(0, fmt.Sprintf("format %q, but only %s can be read", head.Format, Format), "written by another version")
}

// Next reads the next entry. After the end entry it gives [io.EOF]; an input
// that stops before is a [FormatError] that wraps [io.ErrUnexpectedEOF].
func (r *Reader) Next() (*Entry, error) {
	line, err := r.line()
	switch {
	case err == io.EOF && r.ended:
		return nil, io.EOF
	case err == io.EOF:
		r.number++
		r.start = r.next
		return nil, r.cut("the trace has no end entry")
	case err != nil:
		return nil, err
	case r.ended:
		return nil, r.fault(0, "a line after the end entry", "two traces in one file")
	}
	var e Entry
	if err := r.decode(line, &e); err != nil {
		return nil, err
	}
	if why := e.fault(); why != "" {
		return nil, r.fault(0, why, "")
	}
	r.ended = e.Kind == KindEnd
	return &e, nil
}

// Decode reads a whole trace. With an error it also gives what stood before
// the place of the error, if that is at least the header.
func Decode(r io.Reader) (*Trace, error) {
	in, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	t := &Trace{Header: in.Header}
	for {
		e, err := in.Next()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		t.Entries = append(t.Entries, *e)
	}
}

// line reads the next line, without its line feed. At the end of the input,
// what has no line feed is a line if it is a whole one, which decode tells.
func (r *Reader) line() ([]byte, error) {
	r.number++
	r.start = r.next
	line, err := r.lines.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = r.longLine(line)
	}
	r.next += int64(len(line))
	if err == io.EOF && len(line) == 0 {
		r.number--
		return nil, io.EOF
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return line, r.look(line)
}

func (r *Reader) longLine(part []byte) ([]byte, error) {
	line := bytes.Clone(part)
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > MaxLine {
			return nil, r.fault(MaxLine, fmt.Sprintf("the line is longer than %d MiB", MaxLine>>20), "something grows without bound, or line feeds are missing")
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// look finds what a JSON parser would explain badly.
func (r *Reader) look(line []byte) error {
	if i := bytes.IndexByte(line, 0); i >= 0 {
		return r.fault(i, "a NUL byte", "this is UTF-16, or the machine stopped while the file was written")
	}
	if bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) {
		return r.fault(0, "a byte order mark", "an editor or shell added it: save as UTF-8 without one")
	}
	text := bytes.TrimLeft(line, " \t\r")
	at := len(line) - len(text)
	switch {
	case len(text) == 0:
		return r.fault(at, "an empty line", "")
	case text[0] == '{':
		return nil
	case text[0] == '[':
		return r.fault(at, "not a JSON object but an array", "a trace is one object a line, not one array")
	}
	return r.fault(at, "not a JSON object", "this looks like a log line: write logs to stderr")
}

func (r *Reader) decode(line []byte, v any) error {
	if err := json.Unmarshal(line, v, readOptions); err != nil {
		return r.explain(line, err)
	}
	return nil
}

// explain turns an error of the JSON package, whose wording may change, into
// one of ours.
func (r *Reader) explain(line []byte, err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return r.explainSyntax(line, syntax)
	}
	meaning, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return r.fault(0, err.Error(), "")
	}
	at := int(meaning.ByteOffset)
	where := within(meaning.JSONPointer)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		why := fmt.Sprintf("unknown member %q%s", meaning.JSONPointer.LastToken(), within(meaning.JSONPointer.Parent()))
		return r.fault(at, why, "a misspelling, or written by a newer version")
	case errors.Is(err, errContentForm):
		return r.fault(at, errContentForm.Error()+where, "")
	case meaning.Err != nil:
		return r.fault(at, fmt.Sprintf("bad %s%s: %v", kindName(meaning.JSONKind), where, meaning.Err), "")
	}
	return r.fault(at, fmt.Sprintf("%s%s has the wrong type", kindName(meaning.JSONKind), where), "")
}

func (r *Reader) explainSyntax(line []byte, err *jsontext.SyntacticError) error {
	at := int(err.ByteOffset)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		why := fmt.Sprintf("duplicate member %q%s", err.JSONPointer.LastToken(), within(err.JSONPointer.Parent()))
		return r.fault(at, why, "JSON put together by hand, not by an encoder")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return r.cutAt(line)
	case strings.Contains(err.Err.Error(), "UTF-8"), strings.Contains(err.Err.Error(), "surrogate"):
		return r.fault(at, "bad UTF-8"+within(err.JSONPointer), "text was cut inside a character, or is in another encoding")
	}
	return r.fault(at, err.Err.Error()+within(err.JSONPointer), "")
}

// cutAt is the error for a line that stops in the middle of its object.
func (r *Reader) cutAt(line []byte) error {
	if _, err := r.lines.Peek(1); err != io.EOF {
		return r.fault(len(line), "the object does not end on its line", "one object a line: do not print it indented")
	}
	err := r.cut("the last line is cut off")
	err.Offset += int64(len(line))
	return err
}

func (r *Reader) cut(why string) *FormatError {
	err := r.fault(0, why, "the recording stopped before its end")
	err.Err = io.ErrUnexpectedEOF
	return err
}

func (r *Reader) fault(at int, why, cause string) *FormatError {
	return &FormatError{Line: r.number, Offset: r.start + int64(at), Why: why, Cause: cause}
}

func within(p jsontext.Pointer) string {
	if p == "" {
		return ""
	}
	return " in " + string(p)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{', '}':
		return "object"
	case '[', ']':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
	}
	return "value"
}

// FormatError says where an input is not a trace, and what may have caused it.
type FormatError struct {
	Line   int    // from 1
	Offset int64  // in bytes from the beginning of the input
	Why    string // what is wrong
	Cause  string // what may have caused it; may be empty
	Err    error  // io.ErrUnexpectedEOF if the input stops too early
}

// Error names the place, the fault and its likely cause.
func (e *FormatError) Error() string {
	text := fmt.Sprintf("trace: line %d, offset %d: %s", e.Line, e.Offset, e.Why)
	if e.Cause != "" {
		text += " (" + e.Cause + ")"
	}
	return text
}

// Unwrap gives Err.
func (e *FormatError) Unwrap() error { return e.Err }

// fault says what an entry of its kind lacks; empty if nothing.
func (e *Entry) fault() string {
	switch e.Kind {
	case KindAction:
		return e.lacks(e.Label == "", "label")
	case KindEvent:
		return e.lacks(e.Event == nil, "event")
	case KindCall, KindRead, KindCancelled, KindSettled:
		return e.lacks(e.Name == "", "name")
	case KindView:
		return e.lacks(e.View == nil, "view")
	case KindRetained, KindEnd:
		return ""
	case "":
		return "an entry without kind"
	}
	return fmt.Sprintf("unknown entry kind %q", e.Kind)
}

func (e *Entry) lacks(missing bool, member string) string {
	if !missing {
		return ""
	}
	return fmt.Sprintf("an entry of kind %s without %s", e.Kind, member)
}
