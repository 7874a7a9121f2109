// Package scan walks JSON text in memory, once and without making values of
// what nobody asks for.
package scan

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// deepest is how deep values may lie in one another.
const deepest = 1000

// ErrCut says that the text ends inside a value.
var ErrCut = errors.New("the text ends in the middle of a value")

// Scanner stands before, in or behind one value. After the first error it does
// nothing more.
type Scanner struct {
	text  []byte
	at    int
	depth int
	err   error
}

// New is a scanner of a text. The text has to stay as it is until the scanner is
// done.
func New(text []byte) *Scanner { return &Scanner{text: text} }

// End is the error of the scanner; it is one too if anything follows the value.
func (s *Scanner) End() error {
	s.space()
	if s.err == nil && s.at < len(s.text) {
		s.fail("%q follows the value", s.text[s.at])
	}
	return s.err
}

// At is the offset in bytes at which the scanner stands.
func (s *Scanner) At() int { return s.at }

// Kind is the first character of the next value, 0 if there is none.
func (s *Scanner) Kind() byte {
	s.space()
	if s.err != nil {
		return 0
	}
	if s.at >= len(s.text) {
		s.err = ErrCut
		return 0
	}
	return s.text[s.at]
}

// Object walks an object. For each member it stands before the value when it
// calls member, which may read it; a value that it does not read is passed over.
// A value of another kind is passed over as a whole.
func (s *Scanner) Object(member func(name []byte)) {
	if !s.enter('{') {
		return
	}
	for first := true; !s.leaves('}', first); first = false {
		if s.Kind() != '"' {
			s.fail("a member has no name")
			return
		}
		name := s.Bytes()
		if s.Kind() != ':' {
			s.fail("a member has no value")
			return
		}
		s.at++
		s.value(func() { member(name) })
	}
}

// Array walks an array as [Scanner.Object] walks an object.
func (s *Scanner) Array(element func()) {
	if !s.enter('[') {
		return
	}
	for first := true; !s.leaves(']', first); first = false {
		s.value(element)
	}
}

func (s *Scanner) enter(kind byte) bool {
	if s.Kind() != kind {
		s.Skip()
		return false
	}
	s.at++
	if s.depth++; s.depth > deepest {
		s.fail("values lie more than %d deep", deepest)
	}
	return s.err == nil
}

// leaves goes to the next member or element; it reports whether there is none.
func (s *Scanner) leaves(end byte, first bool) bool {
	kind := s.Kind()
	switch {
	case s.err != nil:
		return true
	case kind == end:
		s.at++
		s.depth--
		return true
	case first:
		return false
	case kind != ',':
		s.fail("%q where a comma or %q is due", kind, end)
		return true
	}
	s.at++
	if s.Kind() == end {
		s.fail("%q after a comma", end)
	}
	return s.err != nil
}

func (s *Scanner) value(read func()) {
	s.Kind()
	before := s.at
	read()
	if s.at == before {
		s.Skip()
	}
}

// Raw is the text of the next value. It is part of the scanned text.
func (s *Scanner) Raw() []byte {
	s.space()
	from := s.at
	s.Skip()
	if s.err != nil {
		return nil
	}
	return s.text[from:s.at]
}

// String is the next value if it is a string; of any other it is empty.
func (s *Scanner) String() string { return string(s.Bytes()) }

// Bytes is [Scanner.String] as bytes that may be part of the scanned text.
func (s *Scanner) Bytes() []byte {
	if s.Kind() != '"' {
		s.Skip()
		return nil
	}
	from := s.at + 1
	escaped := s.skipString()
	if s.err != nil {
		return nil
	}
	raw := s.text[from : s.at-1]
	if !escaped {
		return raw
	}
	return s.unescape(raw)
}

// Bool is the next value if it is true; of any other it is false.
func (s *Scanner) Bool() bool { return string(s.Raw()) == "true" }

// Skip passes over the next value.
func (s *Scanner) Skip() {
	switch kind := s.Kind(); kind {
	case 0:
	case '"':
		s.skipString()
	case '{':
		s.skipObject()
	case '[':
		s.skipArray()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.number(kind)
	}
}

func (s *Scanner) skipObject() {
	if !s.enter('{') {
		return
	}
	for first := true; !s.leaves('}', first); first = false {
		if s.Kind() != '"' {
			s.fail("a member has no name")
			return
		}
		s.skipString()
		if s.Kind() != ':' {
			s.fail("a member has no value")
			return
		}
		s.at++
		s.Skip()
	}
}

func (s *Scanner) skipArray() {
	if !s.enter('[') {
		return
	}
	for first := true; !s.leaves(']', first); first = false {
		s.Skip()
	}
}

// near is how far a string is searched byte by byte; most are shorter.
const near = 24

// skipString passes over a string and reports whether it holds an escape.
func (s *Scanner) skipString() (escaped bool) {
	at := s.at + 1
	for {
		at = s.plain(at)
		if at >= len(s.text) {
			s.at, s.err = len(s.text), ErrCut
			return escaped
		}
		switch c := s.text[at]; c {
		case '"':
			s.at = at + 1
			return escaped
		case '\\':
			escaped = true
			at += 2
		default:
			s.at = at
			s.fail("the control character %#x in a string", c)
			return escaped
		}
	}
}

// plain is the next place of a quote, a backslash or a control character.
func (s *Scanner) plain(at int) int {
	text := s.text
	for end := min(at+near, len(text)); at < end; at++ {
		if special[text[at]] {
			return at
		}
	}
	if at >= len(text) {
		return at
	}
	end := bytes.IndexByte(text[at:], '"')
	if end < 0 {
		end = len(text) - at
	}
	for _, c := range text[at : at+end] {
		if special[c] {
			break
		}
		at++
	}
	return at
}

var special = func() (table [256]bool) {
	for c := range byte(0x20) {
		table[c] = true
	}
	table['"'], table['\\'] = true, true
	return table
}()

func (s *Scanner) literal(word string) {
	rest := s.text[s.at:]
	if len(rest) < len(word) && string(rest) == word[:len(rest)] {
		s.err = ErrCut
		return
	}
	if !bytes.HasPrefix(rest, []byte(word)) {
		s.fail("no value begins with %.8q", rest)
		return
	}
	s.at += len(word)
}

func (s *Scanner) number(first byte) {
	if first != '-' && (first < '0' || first > '9') {
		s.fail("no value begins with %q", first)
		return
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c >= '0' && c <= '9', c == '.', c == 'e', c == 'E', c == '+', c == '-':
		default:
			return
		}
	}
}

func (s *Scanner) space() {
	for s.at < len(s.text) && s.text[s.at] <= ' ' {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *Scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *Scanner) unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			return append(out, raw...)
		}
		out = append(out, raw[:plain]...)
		var used int
		out, used = s.escape(out, raw[plain:])
		raw = raw[plain+used:]
	}
	return out
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape adds what an escape at the beginning of raw stands for, and says how
// long the escape is.
func (s *Scanner) escape(out, raw []byte) ([]byte, int) {
	if len(raw) < 2 {
		s.fail("a string ends in the middle of an escape")
		return out, len(raw)
	}
	if c, ok := escapes[raw[1]]; ok {
		return append(out, c), 2
	}
	first, ok := unicodeEscape(raw)
	if !ok {
		s.fail("the escape %.6q", raw)
		return out, len(raw)
	}
	if utf16.IsSurrogate(first) {
		if second, ok := unicodeEscape(raw[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
				return utf8.AppendRune(out, r), 12
			}
		}
	}
	return utf8.AppendRune(out, first), 6
}

func unicodeEscape(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
