package protocol

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// memory knows what lines come to that were read before. Cases of one scenario
// say the same over and over, and looking a line up costs a twentieth of reading
// it. A line is remembered without what differs from case to case: the number of
// what it answers or the name of its session, and timestamps. What it comes to is
// shared by all lines that are alike, as nobody changes what was decoded.
type memory struct {
	known map[string]*remembered
	bytes int // of the keys

	key     []byte // of the line that is looked at
	stamps  []int64
	session string // of the line before
}

// remembered is what a line comes to. A line that cannot be told again has no
// reply.
type remembered struct {
	reply  *Reply // the timestamps of its messages are numbers of stamps, from 1
	stamps int    // how many there are
}

const (
	maxMemory     = 8 << 20  // bytes of keys; what they come to takes some times that
	maxRemembered = 32 << 10 // bytes of a line
)

// arrival is a message from the subject.
type arrival struct {
	*Reply // what it says; other messages may say the same, and share it

	// What is its own, which takes the place of what the Reply has.
	Re      int64
	Session string
	Event   *trace.Event
	line    int
	offset  int64
}

// decode reads and checks a message from a subject, as [DecodeReply] does.
func (m *memory) decode(line Line) (arrival, error) {
	head, ok := m.split(line.Bytes)
	known := (*remembered)(nil)
	if ok {
		known = m.known[string(m.key)]
	}
	if known == nil || known.reply == nil {
		r, err := DecodeReply(line)
		if err != nil {
			return arrival{}, err
		}
		if ok && known == nil {
			m.remember(r)
		}
		return arrival{r, r.Re, r.Session, r.Event, r.line, r.offset}, nil
	}
	event := known.reply.Event
	if known.stamps > 0 {
		event = stamps(m.stamps).event(event)
	}
	return arrival{known.reply, head.re, m.name(head.session), event, line.Number, line.Offset}, nil
}

// name is the session's name. One follows another of the same session mostly.
func (m *memory) name(session []byte) string {
	if string(session) != m.session {
		m.session = string(session)
	}
	return m.session
}

// remember notes what the line comes to that was split last.
func (m *memory) remember(r *Reply) {
	if m.bytes += len(m.key); m.bytes > maxMemory || m.known == nil {
		m.known, m.bytes = map[string]*remembered{}, len(m.key)
	}
	known := &remembered{reply: r, stamps: len(m.stamps)}
	if known.stamps > 0 {
		alike, err := DecodeReply(Line{Bytes: m.key})
		if known.reply = alike; err != nil || !isNumbered(alike.Event, known.stamps) {
			known.reply = nil
		}
	}
	m.known[string(m.key)] = known
}

// head is what differs in lines that are otherwise alike.
type head struct {
	re      int64
	session []byte
}

const (
	headType    = `{"type":"`
	headRe      = `,"re":`
	headSession = `,"session":"`
	stampName   = `"timestamp":`
)

// split cuts the head out of a line. The key becomes what all lines have that are
// like this one: the same message with another head and with numbers in place of
// timestamps. A line that is not laid out as adapters do it is not split.
func (m *memory) split(text []byte) (h head, ok bool) {
	if len(text) > maxRemembered || !bytes.HasPrefix(text, []byte(headType)) {
		return h, false
	}
	end := bytes.IndexByte(text[len(headType):], '"') + len(headType) + 1
	m.key = append(m.key[:0], text[:end]...)
	rest := text[end:]
	if after, found := bytes.CutPrefix(rest, []byte(headRe)); found {
		n := digits(after)
		h.re, rest = number(after[:n]), after[n:]
		m.key = append(m.key, headRe+"1"...)
		ok = h.re > 0
	} else if after, found := bytes.CutPrefix(rest, []byte(headSession)); found {
		n := max(0, bytes.IndexByte(after, '"'))
		h.session, rest = after[:n], after[n:]
		m.key = append(m.key, headSession+"s"...)
		ok = n > 0 && isPlain(h.session)
	}
	m.cutStamps(rest)
	return h, ok
}

// cutStamps appends the text to the key with numbers from 1 in place of its
// timestamps. A quote that follows a comma or a brace and stands before «timestamp»
// and a quote begins a name: if it ended a string, the text would be no JSON.
func (m *memory) cutStamps(text []byte) {
	m.stamps = m.stamps[:0]
	for {
		i := bytes.Index(text, []byte(stampName))
		if i < 0 {
			break
		}
		after := text[i+len(stampName):]
		n := digits(after)
		if i > 0 && (text[i-1] == ',' || text[i-1] == '{') && n > 0 && n < len(after) && (after[n] == ',' || after[n] == '}') {
			m.stamps = append(m.stamps, number(after[:n]))
			m.key = append(m.key, text[:i+len(stampName)]...)
			m.key = strconv.AppendInt(m.key, int64(len(m.stamps)), 10)
		} else {
			n = 0
			m.key = append(m.key, text[:i+len(stampName)]...)
		}
		text = after[n:]
	}
	m.key = append(m.key, text...)
}

// digits is how many digits of a whole number the text begins with, 0 if it begins
// with none that JSON and an int64 allow.
func digits(text []byte) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if n > 18 || n > 1 && text[0] == '0' {
		return 0
	}
	return n
}

func number(digits []byte) int64 {
	n := int64(0)
	for _, d := range digits {
		n = 10*n + int64(d-'0')
	}
	return n
}

func isPlain(text []byte) bool {
	for _, b := range text {
		if b < ' ' || b > '~' || b == '\\' {
			return false
		}
	}
	return true
}

// stamps are the timestamps of a line, in the order in which they stand there.
type stamps []int64

// event is the event with the stamps in place of their numbers.
func (s stamps) event(e *trace.Event) *trace.Event {
	stamped := *e
	stamped.Message = s.message(e.Message)
	stamped.ToolResults = s.messages(e.ToolResults)
	stamped.Messages = s.messages(e.Messages)
	if e.StreamEvent != nil {
		stream := *e.StreamEvent
		stream.Partial, stream.Message, stream.Error = s.message(stream.Partial), s.message(stream.Message), s.message(stream.Error)
		stamped.StreamEvent = &stream
	}
	return &stamped
}

func (s stamps) messages(list []*trace.Message) []*trace.Message {
	if len(list) == 0 {
		return list
	}
	stamped := make([]*trace.Message, len(list))
	for i, m := range list {
		stamped[i] = s.message(m)
	}
	return stamped
}

func (s stamps) message(m *trace.Message) *trace.Message {
	if m == nil || m.Timestamp == 0 {
		return m
	}
	stamped := *m
	stamped.Timestamp = s[m.Timestamp-1]
	return &stamped
}

// isNumbered reports whether the timestamps of the messages in which
// [stamps.event] looks are the numbers from 1 to n.
func isNumbered(e *trace.Event, n int) bool {
	if e == nil {
		return false
	}
	messages := slices.Concat([]*trace.Message{e.Message}, e.ToolResults, e.Messages)
	if e.StreamEvent != nil {
		messages = append(messages, e.StreamEvent.Partial, e.StreamEvent.Message, e.StreamEvent.Error)
	}
	var numbers []int64
	for _, m := range messages {
		if m != nil && m.Timestamp != 0 {
			numbers = append(numbers, m.Timestamp)
		}
	}
	slices.Sort(numbers)
	for i, number := range numbers {
		if number != int64(i)+1 {
			return false
		}
	}
	return len(numbers) == n
}
