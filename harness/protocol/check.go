package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// DecodeReply reads and checks a message from a subject. An error is a
// [ProtocolError].
func DecodeReply(line Line) (*Reply, error) {
	r := &Reply{line: line.Number, offset: line.Offset}
	if err := decode(line, FromSubject, r); err != nil {
		return nil, err
	}
	if !slices.Contains(replyTypes, r.Type) {
		return nil, unknownType(line, r.Type, replyTypes)
	}
	if what := r.fault(); what != "" {
		return nil, faulty(line, FromSubject, r.Type, what)
	}
	return r, nil
}

// DecodeRequest reads and checks a message to a subject. Together with an error,
// a [ProtocolError], comes as much of the message as could be read. That the
// type is not known is no error here.
func DecodeRequest(line Line) (*Request, error) {
	r := &Request{}
	if err := decode(line, ToSubject, r); err != nil {
		return r, err
	}
	if what := r.fault(); what != "" {
		return r, faulty(line, ToSubject, r.Type, what)
	}
	return r, nil
}

var requestTypes = []string{
	TypeHello, TypeOpen, TypeUser, TypeAnswer, TypeSync, TypeClock, TypeReduce, TypeProgress, TypeClose, TypeBye,
}

var replyTypes = []string{
	TypeHelloOK, TypeOK, TypeError, TypeSynced, TypeReduced, TypeLog, TypeProgress,
	string(trace.KindEvent), string(trace.KindCall), string(trace.KindRead),
	string(trace.KindCancelled), string(trace.KindSettled), string(trace.KindRetained),
}

func decode(line Line, d Direction, into any) error {
	if problem, cause := notAnObject(line.Bytes); problem != "" {
		return &ProtocolError{
			Line: line.Number, Offset: line.Offset, Text: excerpt(line.Bytes), Problem: problem, Cause: cause,
		}
	}
	err := json.Unmarshal(line.Bytes, into)
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return syntaxError(line, syntax)
	}
	what := strings.TrimPrefix(err.Error(), "json: ")
	return faulty(line, d, typeOf(line.Bytes), what)
}

// notAnObject says what a line is that does not even begin as an object.
func notAnObject(text []byte) (problem, cause string) {
	trimmed := bytes.TrimLeft(text, " \t")
	switch {
	case len(trimmed) == 0:
		return "an empty line", "every line is one message"
	case trimmed[0] == '{':
		return "", ""
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return "not a JSON object", "it begins with a byte order mark: write UTF-8 without one"
	case bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) || bytes.IndexByte(text, 0) >= 0:
		return "not a JSON object", "this looks like UTF-16: write UTF-8"
	case bytes.HasPrefix(text, []byte("Content-Length:")):
		return "not a JSON object", "this looks like the framing of a language server: write the objects alone, one a line"
	case trimmed[0] == '[' && jsontext.Value(trimmed).IsValid():
		return "an array, not an object", "write each message on a line of its own"
	case (trimmed[0] == '}' || trimmed[0] == ']' || trimmed[0] == '"') && len(text) > 1 && text[0] == ' ',
		len(trimmed) <= 2 && (trimmed[0] == '}' || trimmed[0] == ']'):
		return "not a JSON object", "this looks like indented JSON: write each message on one line"
	}
	return "not a JSON object", "this looks like a log line: write logs to stderr"
}

func syntaxError(line Line, err *jsontext.SyntacticError) error {
	e := &ProtocolError{
		Line: line.Number, Offset: line.Offset + err.ByteOffset, Text: excerpt(line.Bytes),
		Problem: strings.TrimPrefix(err.Error(), "jsontext: "),
	}
	rest := line.Bytes[min(int(err.ByteOffset), len(line.Bytes)):]
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Cause = "a member may stand only once in an object"
	case !utf8.Valid(line.Bytes):
		e.Cause = "write UTF-8"
	case strings.Contains(e.Problem, "unexpected EOF"):
		e.Cause = "the object does not end on its line: write each message on one line"
	case strings.Contains(e.Problem, "after top-level value"):
		e.Cause = "one object a line: end each with a line feed, and write logs to stderr"
	case hasAnyPrefix(rest, "NaN", "Infinity", "-Infinity", "undefined", "None", "True", "False", "'"):
		e.Cause = "this is no JSON: use a JSON writer"
	}
	return e
}

func hasAnyPrefix(text []byte, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(text, []byte(p)) })
}

// faulty is the error for a line that is good JSON but no good message. The
// schema names the place better than the decoder does.
func faulty(line Line, d Direction, messageType, what string) error {
	if better := explain(line.Bytes, d, messageType); better != "" {
		what = better
	}
	problem := what
	if messageType != "" {
		problem = fmt.Sprintf("%s: %s", messageType, what)
	}
	return &ProtocolError{Line: line.Number, Offset: line.Offset, Text: excerpt(line.Bytes), Problem: problem}
}

func unknownType(line Line, got string, known []string) error {
	e := &ProtocolError{
		Line: line.Number, Offset: line.Offset, Text: excerpt(line.Bytes),
		Problem: fmt.Sprintf("unknown type %q", got),
	}
	if got == "" {
		e.Problem = "no type"
		e.Cause = "if this is a log line: write logs to stderr"
	} else if slices.Contains(requestTypes, got) {
		e.Cause = "this type goes from the harness to the subject: is the subject echoing its input?"
	} else {
		e.Cause = "known are " + strings.Join(known, ", ")
	}
	return e
}

// typeOf is the type of a message that may otherwise be broken.
func typeOf(text []byte) string {
	var m struct {
		Type trace.Value `json:"type"`
	}
	if json.Unmarshal(text, &m) != nil || m.Type.Kind() != '"' {
		return ""
	}
	var name string
	if json.Unmarshal(m.Type, &name) != nil {
		return ""
	}
	return name
}

const missing = "missing "

// fault says which required member is missing or has a value that means
// nothing. It says the same as the schema.
func (r *Reply) fault() string {
	if r.Session == "" && r.isOutput() && r.Type != TypeLog {
		return missing + "session"
	}
	switch r.Type {
	case TypeHelloOK:
		return r.helloFault()
	case TypeOK:
		return need(r.Re > 0, "re")
	case TypeError:
		return need(r.Code != "", "code")
	case TypeSynced:
		return cmpFault(need(r.Re > 0, "re"), need(r.Idle != nil, "idle"), need(r.WaitingOn != nil, "waitingOn"), need(r.Events != nil, "events"))
	case TypeReduced:
		return cmpFault(need(r.Re > 0, "re"), need(r.View != nil, "view"))
	case TypeProgress:
		return need(r.Entry.Kind() == '{', "entry")
	case string(trace.KindEvent):
		return r.eventFault()
	case string(trace.KindCall):
		return cmpFault(callFault(r.Name), need(r.Payload != nil, "payload"), answerFault(r.Answer))
	case string(trace.KindRead):
		return cmpFault(callFault(r.Name), need(r.N != nil, "n"))
	case string(trace.KindCancelled):
		return callFault(r.Name)
	case string(trace.KindSettled):
		return cmpFault(need(r.Name != "", "name"), outcomeFault(r.Outcome))
	case string(trace.KindRetained):
		return need(r.Changed != nil, "changed")
	}
	return ""
}

func (r *Reply) helloFault() string {
	return cmpFault(
		need(r.Re > 0, "re"), need(r.Protocol > 0, "protocol"), need(r.Nonce != "", "nonce"),
		need(r.Subject != nil && r.Subject.Name != "", "subject.name"),
		need(r.Barrier == harness.BarrierQuiescent || r.Barrier == harness.BarrierNone, "barrier (quiescent or none)"),
		need(r.Capabilities != nil, "capabilities"),
	)
}

func (r *Reply) eventFault() string {
	if r.N == nil {
		return missing + "n"
	}
	return eventFault(r.Event)
}

func eventFault(e *trace.Event) string {
	if e == nil || e.Type == "" {
		return missing + "event.type"
	}
	return cmpFault(
		messageFault(e.Message), messagesFault(e.ToolResults), messagesFault(e.Messages), streamFault(e.StreamEvent),
		resultFault(e.PartialResult), resultFault(e.Result),
	)
}

func (r *Request) fault() string {
	if r.ID <= 0 {
		return missing + "id"
	}
	switch r.Type {
	case "":
		return missing + "type"
	case TypeHello:
		return cmpFault(need(len(r.Protocol) > 0, "protocol"), need(r.Nonce != "", "nonce"))
	case TypeOpen:
		return cmpFault(need(r.Session != "", "session"), need(r.Form != "", "form"), need(r.Edition != "", "edition"),
			need(r.Config != nil, "config"), need(r.Script != nil, "script"))
	case TypeUser:
		return cmpFault(need(r.Session != "", "session"), need(r.Name != "", "name"), need(r.Kind != "", "kind"), answerFault(r.Answer))
	case TypeAnswer:
		return cmpFault(need(r.Session != "", "session"), need(r.Call != "", "call"), need(r.Answer != nil, "answer"), answerFault(r.Answer))
	case TypeSync, TypeClose:
		return need(r.Session != "", "session")
	case TypeReduce:
		return eventFault(r.Event)
	case TypeProgress:
		return cmpFault(need(r.Session != "", "session"), need(r.Act != nil && r.Act.Do != "", "act.do"))
	case TypeClock:
		return cmpFault(need(r.Session != "", "session"), need(r.AdvanceMs > 0, "advanceMs"))
	}
	return ""
}

func need(present bool, name string) string {
	if present {
		return ""
	}
	return missing + name
}

// cmpFault is the first fault.
func cmpFault(faults ...string) string {
	for _, f := range faults {
		if f != "" {
			return f
		}
	}
	return ""
}

var callKinds = []string{"model/", "tool/", "hook/", "listener/"}

func callFault(name string) string {
	if name == "" {
		return missing + "name"
	}
	if !slices.ContainsFunc(callKinds, func(kind string) bool { return strings.HasPrefix(name, kind) }) {
		return fmt.Sprintf("name %q begins with none of %s", name, strings.Join(callKinds, ", "))
	}
	return ""
}

func outcomeFault(o trace.Outcome) string {
	switch o {
	case trace.OutcomeOK, trace.OutcomeError, trace.OutcomeRefused:
		return ""
	case trace.OutcomeComplete, trace.OutcomeDeadlock, trace.OutcomeTruncated, trace.OutcomeCrashed, trace.OutcomeHung:
	default:
	}
	return "outcome must be ok, error or refused"
}

func messageFault(m *trace.Message) string {
	if m == nil {
		return ""
	}
	return cmpFault(need(m.Role != "", "role of a message"), contentFault(m.Content))
}

func messagesFault(list []*trace.Message) string {
	for _, m := range list {
		if m == nil {
			return "null in the place of a message"
		}
		if f := messageFault(m); f != "" {
			return f
		}
	}
	return ""
}

func contentFault(c trace.Content) string {
	for i := range c.Blocks {
		if c.Blocks[i].Type == "" {
			return missing + "type of a content block"
		}
	}
	return ""
}

func resultFault(r *trace.Result) string {
	if r == nil {
		return ""
	}
	return contentFault(r.Content)
}

func streamFault(e *trace.StreamEvent) string {
	if e == nil {
		return ""
	}
	if e.Type == "" {
		return missing + "type of a stream event"
	}
	return cmpFault(messageFault(e.Partial), messageFault(e.Message), messageFault(e.Error))
}

func answerFault(a *trace.Answer) string {
	if a == nil {
		return ""
	}
	for i := range a.Events {
		if f := streamFault(&a.Events[i]); f != "" {
			return f
		}
	}
	return cmpFault(streamFault(a.Event), messageFault(a.Final), messagesFault(a.Messages), resultFault(a.Result), resultFault(a.Partial))
}
