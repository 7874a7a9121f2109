package protocol

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// MaxLine is the greatest length of a line in bytes, without its line feed.
const MaxLine = 16 << 20

// Line is one line as it was read.
type Line struct {
	Number int    // from 1
	Offset int64  // of its first byte
	Bytes  []byte // without line feed and the carriage return before it; valid until the next line is read
}

// LineReader reads lines that end in a line feed, and in nothing else: U+2028
// and the like are part of a line.
type LineReader struct {
	// Returns counts the lines that ended in a carriage return as well. They are
	// accepted, but whoever wrote them probably did not mean to.
	Returns int

	in     *bufio.Reader
	long   []byte
	number int
	offset int64
}

const cutOff = "the output ends in the middle of a line"

// NewLineReader reads from in.
func NewLineReader(in io.Reader) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, 64<<10)}
}

// Next reads a line. At the end of the input the error is [io.EOF]; a line that
// is too long, or that the end of the input cut off, is a [ProtocolError].
func (r *LineReader) Next() (Line, error) {
	line := Line{Number: r.number + 1, Offset: r.offset}
	text, err := r.read()
	r.number++
	r.offset += int64(len(text))
	switch {
	case len(text) > MaxLine+2:
		return line, &ProtocolError{
			Line: line.Number, Offset: line.Offset, Text: excerpt(text),
			Problem: fmt.Sprintf("a line of more than %d MiB", MaxLine>>20),
			Cause:   "end every message with a line feed",
		}
	case err == io.EOF && len(text) > 0:
		return line, &ProtocolError{
			Line: line.Number, Offset: line.Offset, Text: excerpt(text),
			Problem: cutOff,
			Cause:   "the writer died, or did not end its last message with a line feed",
		}
	case err != nil:
		return line, err
	}
	line.Bytes = text[:len(text)-1]
	if bytes.HasSuffix(line.Bytes, []byte("\r")) {
		r.Returns++
		line.Bytes = line.Bytes[:len(line.Bytes)-1]
	}
	return line, nil
}

// read gives a line with its line feed, or as much of it as is needed to know
// that it is too long.
func (r *LineReader) read() ([]byte, error) {
	text, err := r.in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return text, err
	}
	r.long = append(r.long[:0], text...)
	for err == bufio.ErrBufferFull && len(r.long) <= MaxLine+2 {
		text, err = r.in.ReadSlice('\n')
		r.long = append(r.long, text...)
	}
	return r.long, err
}

// more reports whether a whole line has been read that has not been given out.
func (r *LineReader) more() bool {
	waiting, _ := r.in.Peek(r.in.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}
