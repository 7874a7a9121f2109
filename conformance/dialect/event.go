package dialect

import (
	"bytes"
	"errors"

	"github.com/pi-conform/pi-conform/conformance/dialect/internal/scan"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// record is one line of what pi writes: an event of the loop, or something of
// the session around it.
type record struct {
	kind  string // its type
	loop  bool   // it is an event of the loop
	event trace.Event

	command string // of a response: what it answers
	aborted bool   // of agent_settled
	done    bool   // of a response: it succeeded
}

var loopEvents = map[string]string{}

func init() {
	for _, kind := range [...]string{
		trace.AgentStart, trace.TurnStart, trace.MessageStart, trace.MessageUpdate, trace.MessageEnd, trace.ToolExecutionStart,
		trace.ToolExecutionUpdate, trace.ToolExecutionEnd, trace.TurnEnd, trace.AgentEnd,
	} {
		loopEvents[kind] = kind
	}
}

// reader reads lines. What it makes lies in its store.
type reader struct {
	*store
	scan   *scan.Scanner
	rec    *record
	blocks []trace.Block // of the content that is being read
}

// record reads a line into rec; an error says in which way it is no JSON.
func (r *reader) record(line []byte, rec *record) error {
	r.scan, r.rec = scan.New(line), rec
	*rec = record{}
	if r.scan.Kind() != '{' {
		return errNoObject
	}
	r.scan.Object(r.member)
	return r.scan.End()
}

var errNoObject = errors.New("not a JSON object")

func (r *reader) member(name []byte) {
	if r.rec.event.Type == trace.MessageUpdate {
		return // only where it stands is looked at
	}
	s, e := r.scan, &r.rec.event
	switch string(name) {
	case "type":
		r.kind(s.Bytes())
	case "message":
		e.Message = r.message(true)
	case "messages":
		e.Messages = r.messageList()
	case "toolResults":
		e.ToolResults = r.messageList()
	case "toolCallId":
		e.ToolCallID = r.text(s.Bytes())
	case "toolName":
		e.ToolName = r.text(s.Bytes())
	case "args":
		e.Args = condenseValue(s.Raw())
	case "result":
		e.Result = r.result()
	case "isError":
		e.IsError = truth(s.Bool())
	case "command":
		r.rec.command = r.text(s.Bytes())
	case "aborted":
		r.rec.aborted = s.Bool()
	case "success":
		r.rec.done = s.Bool()
	}
}

func (r *reader) kind(kind []byte) {
	if known, ok := loopEvents[string(kind)]; ok {
		r.rec.kind, r.rec.loop, r.rec.event.Type = known, true, known
		return
	}
	r.rec.kind = string(kind)
}

// isUpdate reports whether a line is a message_update that begins like all that
// pi writes.
func isUpdate(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"type":"message_update",`)) }

// messageList reads messages of which only the tags will be asked for.
func (r *reader) messageList() []*trace.Message {
	messages := make([]*trace.Message, 0, 8)
	r.scan.Array(func() { messages = append(messages, r.message(false)) })
	return messages
}

// message reads what rules ask of a message; nil if it is none.
func (r *reader) message(whole bool) *trace.Message {
	s := r.scan
	if s.Kind() != '{' {
		s.Skip()
		return nil
	}
	m := r.messages.New()
	s.Object(func(name []byte) {
		switch string(name) {
		case "role":
			m.Role = r.text(s.Bytes())
		case "content":
			m.Content = r.content(whole)
		case "stopReason":
			m.StopReason = r.text(s.Bytes())
		case "errorMessage":
			m.ErrorMessage = r.text(s.Bytes())
		case "toolCallId":
			m.ToolCallID = r.text(s.Bytes())
		case "toolName":
			m.ToolName = r.text(s.Bytes())
		case "isError":
			m.IsError = s.Bool()
		case "details":
			if whole {
				m.Details = condenseValue(s.Raw())
			}
		case "usage":
			if whole && m.Role == trace.RoleToolResult {
				m.Usage = condenseValue(s.Raw())
			}
		}
	})
	return m
}

func (r *reader) content(whole bool) trace.Content {
	s := r.scan
	if s.Kind() == '"' {
		return trace.Content{IsText: true, Text: r.text(s.Bytes())}
	}
	r.blocks = r.blocks[:0]
	s.Array(func() { r.blocks = append(r.blocks, r.block(whole)) })
	return trace.Content{Blocks: append([]trace.Block{}, r.blocks...)}
}

func (r *reader) block(whole bool) trace.Block {
	s := r.scan
	var b trace.Block
	s.Object(func(name []byte) {
		switch string(name) {
		case "type":
			b.Type = r.text(s.Bytes())
		case "text":
			b.Text = r.text(s.Bytes())
		case "id":
			b.ID = r.text(s.Bytes())
		case "name":
			b.Name = r.text(s.Bytes())
		case "arguments":
			if whole {
				b.Arguments = condenseValue(s.Raw())
			}
		case "data":
			if whole {
				b.Data = r.text(s.Bytes())
			}
		}
	})
	return b
}

func (r *reader) result() *trace.Result {
	s := r.scan
	if s.Kind() != '{' {
		s.Skip()
		return nil
	}
	made := r.results.New()
	s.Object(func(name []byte) {
		switch string(name) {
		case "content":
			made.Content = r.content(true)
		case "details":
			made.Details = condenseValue(s.Raw())
		case "usage":
			made.Usage = condenseValue(s.Raw())
		case "terminate":
			made.Terminate = truth(s.Bool())
		}
	})
	return made
}

var isTrue, isFalse = true, false

// truth is a pointer to a value that nobody changes.
func truth(is bool) *bool {
	if is {
		return &isTrue
	}
	return &isFalse
}
