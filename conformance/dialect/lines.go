package dialect

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxLine is the length of the longest line that is read, in bytes.
const MaxLine = 64 << 20

// InputError says where a log cannot be read, and what may have caused it.
type InputError struct {
	Line  int // from 1; 0 if it is about the log as a whole
	Why   string
	Cause string // may be empty
}

func (e *InputError) Error() string {
	text := e.Why
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, e.Why)
	}
	if e.Cause != "" {
		text += " (" + e.Cause + ")"
	}
	return text
}

// ErrEmpty says that a log holds nothing at all.
var ErrEmpty = errors.New("the log is empty")

// lines are the lines of a log that hold anything, without what ends them.
type lines struct {
	from   *bufio.Reader
	number int    // of the line that was read last
	whole  bool   // it ended with a line feed
	held   []byte // a line that was longer than the buffer of the reader
}

// bufferSize is longer than almost every line, so that few are copied.
const bufferSize = 256 << 10

// newLines reads plain text, or text that gzip has packed.
func newLines(r io.Reader) (*lines, error) {
	from := bufio.NewReaderSize(r, bufferSize)
	if magic, _ := from.Peek(2); string(magic) != "\x1f\x8b" {
		return &lines{from: from}, nil
	}
	unpacked, err := gzip.NewReader(from)
	if err != nil {
		return nil, &InputError{Why: "gzip cannot unpack it: " + err.Error()}
	}
	return &lines{from: bufio.NewReaderSize(unpacked, bufferSize)}, nil
}

// next is the next line. It stays as it is until next is called again.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.read()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimRight(line, "\r\n\t "); len(line) > 0 {
			return line, l.look(line)
		}
	}
}

func (l *lines) read() ([]byte, error) {
	line, err := l.from.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = l.long(line)
	}
	if len(line) == 0 && err == io.EOF {
		return nil, io.EOF
	}
	l.number++
	l.whole = err == nil
	switch {
	case err == nil, err == io.EOF:
		return line, nil
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, l.fault("gzip cannot unpack what follows: "+err.Error(), "the file was cut off or damaged")
	}
	return nil, err
}

func (l *lines) long(part []byte) ([]byte, error) {
	l.held = append(l.held[:0], part...)
	for {
		part, err := l.from.ReadSlice('\n')
		if len(l.held)+len(part) > MaxLine {
			l.number++
			return nil, l.fault(fmt.Sprintf("the line is longer than %d MiB", MaxLine>>20), "line feeds are missing, or this is no log of lines")
		}
		l.held = append(l.held, part...)
		if err != bufio.ErrBufferFull {
			return l.held, err
		}
	}
}

// look finds what a reader of JSON would explain badly.
func (l *lines) look(line []byte) error {
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return l.fault("a NUL byte", "this is UTF-16 or no text, or the machine stopped while it was written")
	case bytes.HasPrefix(line, []byte("\xef\xbb\xbf")):
		return l.fault("a byte order mark", "save it as UTF-8 without one")
	case !utf8.Valid(line):
		return l.fault("bad UTF-8", "a text was cut inside a character, or this is another encoding")
	}
	return nil
}

func (l *lines) fault(why, cause string) *InputError {
	return &InputError{Line: l.number, Why: why, Cause: cause}
}
