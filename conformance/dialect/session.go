package dialect

import (
	"github.com/pi-conform/pi-conform/conformance/dialect/internal/scan"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// sessionRules are the rules that the order of messages alone can keep or
// break. A session file shows no more.
var sessionRules = map[string]bool{"TOOL-14": true, "PAR-4": true}

// sessionReader makes runs of a session file: one of each branch, with a turn
// for each message of the assistant.
type sessionReader struct {
	runs assembler
	last string // id of the entry before
}

// entry is one line of a session file.
type entry struct {
	kind, id, parent string
	hasParent        bool
	message          *trace.Message
}

func (l *Log) nextBranch() (*Run, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		l.reader.store = l.session.runs.store()
		e, err := l.reader.entry(line)
		if err != nil {
			return nil, l.malformed(line, err)
		}
		if run := l.session.take(l.current, &e); run != nil {
			return run, nil
		}
	}
}

func (r *reader) entry(line []byte) (entry, error) {
	var e entry
	s := scan.New(line)
	r.scan = s
	if s.Kind() != '{' {
		return e, errNoObject
	}
	s.Object(func(name []byte) {
		switch string(name) {
		case "type":
			e.kind = s.String()
		case "id":
			e.id = s.String()
		case "parentId":
			e.hasParent = s.Kind() == '"'
			e.parent = s.String()
		case "message":
			e.message = r.message(true)
		}
	})
	return e, s.End()
}

func (r *sessionReader) take(line int, e *entry) (done *Run) {
	if e.kind == "session" || e.hasParent && r.last != "" && e.parent != r.last {
		done = r.close()
	}
	r.last = e.id
	if e.kind != "message" || e.message == nil {
		return done
	}
	open := r.runs.open
	if open == nil {
		open = r.runs.begin()
	}
	add := func(kind string, m *trace.Message) {
		open.add(line, trace.Entry{Kind: trace.KindEvent, N: open.seen, Event: &trace.Event{Type: kind, Message: m}})
		open.seen++
	}
	if e.message.Role == trace.RoleAssistant {
		add(trace.TurnStart, nil)
	}
	add(trace.MessageStart, e.message)
	add(trace.MessageEnd, e.message)
	return done
}

func (r *sessionReader) close() *Run {
	run := r.runs.close()
	if run == nil {
		return nil
	}
	run.Cut = false
	run.Trace.Entries[len(run.Trace.Entries)-1].Outcome = trace.OutcomeComplete
	return run
}
