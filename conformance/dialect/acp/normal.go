package acp

import (
	"fmt"
	"strings"
)

// Normal makes the normal form of a log: what came in each session, in order,
// with names for sessions in the place of ids, and the pieces of a text as one.
type Normal struct {
	names    map[string]string // of sessions
	order    []string
	lines    map[string][]string // by name of session
	requests map[string]*request // of the client
}

// NewNormal begins a normal form.
func NewNormal() *Normal {
	return &Normal{names: map[string]string{}, lines: map[string][]string{}, requests: map[string]*request{}}
}

// Line takes in a line of the log.
func (n *Normal) Line(line []byte) {
	m, err := parse(line)
	if err != nil {
		return
	}
	session := text(m.params, "sessionId")
	switch {
	case m.isRequest():
		if m.from == client {
			n.requests[string(m.id)] = &request{method: string(m.method), session: session}
		}
		n.add(session, string(m.method))
	case m.isResponse():
		n.answer(&m)
	case string(m.method) == "session/update":
		n.add(session, describe(member(m.params, "update")))
	default:
		n.add(session, string(m.method))
	}
}

func (n *Normal) answer(m *message) {
	r := n.requests[string(m.id)]
	if r == nil || m.from == client {
		return
	}
	session := r.session
	if made := text(m.result, "sessionId"); made != "" {
		session = made
	}
	what := text(m.result, "stopReason")
	if m.error != nil {
		what = "error"
	}
	n.add(session, strings.TrimSpace("answer to "+r.method+" "+what))
}

// Describe is a line in a few words; empty if it is no message.
func Describe(line []byte) string {
	m, err := parse(line)
	switch {
	case err != nil:
		return ""
	case string(m.method) == "session/update":
		return describe(member(m.params, "update"))
	case m.method != nil:
		return string(m.method)
	case m.error != nil:
		return "answer " + string(m.id) + ": an error"
	}
	return strings.TrimSpace("answer " + string(m.id) + " " + text(m.result, "stopReason"))
}

// describe is an update in words.
func describe(update []byte) string {
	kind := text(update, "sessionUpdate")
	switch kind {
	case "tool_call", "tool_call_update":
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", kind, text(update, "toolCallId"), text(update, "status")))
	}
	return kind
}

// add adds what is not the same as the last of its session.
func (n *Normal) add(session, what string) {
	name, ok := n.names[session]
	if !ok {
		name = fmt.Sprintf("session %d", len(n.order))
		if session == "" {
			name = "no session"
		}
		n.names[session] = name
		n.order = append(n.order, name)
	}
	lines := n.lines[name]
	if len(lines) > 0 && lines[len(lines)-1] == what {
		return
	}
	n.lines[name] = append(lines, what)
}

func (n *Normal) String() string {
	var b strings.Builder
	for _, name := range n.order {
		fmt.Fprintf(&b, "%s\n", name)
		for _, line := range n.lines[name] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}
