package acp

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pi-conform/pi-conform/conformance/dialect/internal/scan"
)

// side is who sent a message.
type side int

const (
	unknown side = iota
	client
	agent
)

func (s side) other() side {
	switch s {
	case client:
		return agent
	case agent:
		return client
	case unknown:
	}
	return unknown
}

// message is one JSON-RPC message. What is absent is nil.
type message struct {
	from                              side
	version                           string
	id, method, params, result, error []byte
}

func (m *message) isRequest() bool  { return m.method != nil && m.id != nil }
func (m *message) isResponse() bool { return m.method == nil }

// arrows are marks before a line, of the client's messages and of the agent's.
var arrows = map[string]side{
	"-->": client, "->": client, ">>>": client, ">>": client, ">": client, "→": client, "client:": client, "C:": client,
	"<--": agent, "<-": agent, "<<<": agent, "<<": agent, "<": agent, "←": agent, "agent:": agent, "A:": agent,
}

// sides are the words for who sent a message, in a record around it. In and out
// are meant as the agent has them.
var sides = map[string]side{
	"client": client, "c2a": client, "client->agent": client, "client-to-agent": client, "to-agent": client, "in": client, "stdin": client, "request": unknown,
	"agent": agent, "a2c": agent, "agent->client": agent, "agent-to-client": agent, "to-client": agent, "out": agent, "stdout": agent,
}

// unmark takes off the mark of who sent a line.
func unmark(line []byte) ([]byte, side) {
	brace := bytes.IndexByte(line, '{')
	if brace <= 0 {
		return line, unknown
	}
	if from, ok := arrows[string(bytes.TrimSpace(line[:brace]))]; ok {
		return line[brace:], from
	}
	return line, unknown
}

// unwrap takes off a record around a message that says who sent it.
func unwrap(line []byte) ([]byte, side) {
	var inner []byte
	from := unknown
	s := scan.New(line)
	wrapped := true
	s.Object(func(name []byte) {
		switch string(name) {
		case "jsonrpc":
			wrapped = false
		case "message", "msg", "data", "payload":
			if s.Kind() == '{' {
				inner = s.Raw()
			}
		case "dir", "direction", "from", "sender":
			from = sides[strings.ToLower(s.String())]
		}
	})
	if s.End() != nil || !wrapped || inner == nil || !speaks(inner) {
		return line, unknown
	}
	return inner, from
}

// speaks reports whether a text is an object with a member jsonrpc.
func speaks(text []byte) bool {
	found := false
	s := scan.New(text)
	s.Object(func(name []byte) { found = found || string(name) == "jsonrpc" })
	return found && s.End() == nil
}

// LooksLike reports whether a line is a message of the protocol.
func LooksLike(line []byte) bool {
	text, _ := unmark(line)
	text, _ = unwrap(text)
	return speaks(text)
}

var errNoObject = errors.New("the line is no JSON object")

func parse(line []byte) (message, error) {
	text, from := unmark(line)
	if !bytes.HasPrefix(text, []byte("{")) {
		return message{}, errNoObject
	}
	inner, wrapper := unwrap(text)
	m := message{from: max(from, wrapper)}
	s := scan.New(inner)
	s.Object(func(name []byte) {
		switch string(name) {
		case "jsonrpc":
			m.version = s.String()
		case "id":
			m.id = s.Raw()
		case "method":
			m.method = s.Bytes()
		case "params":
			m.params = s.Raw()
		case "result":
			m.result = s.Raw()
		case "error":
			m.error = s.Raw()
		}
	})
	if sender, ok := senders[string(m.method)]; ok {
		m.from = sender
	}
	return m, s.End()
}

// senders say who may call a method.
var senders = map[string]side{
	"initialize": client, "authenticate": client, "session/new": client, "session/load": client, "session/resume": client,
	"session/fork": client, "session/list": client, "session/close": client, "session/prompt": client, "session/cancel": client,
	"session/set_mode": client, "session/set_model": client, "session/set_config_option": client,
	"session/update": agent, "session/request_permission": agent, "fs/read_text_file": agent, "fs/write_text_file": agent,
	"terminal/create": agent, "terminal/output": agent, "terminal/release": agent, "terminal/wait_for_exit": agent, "terminal/kill": agent,
}

// member is a member of an object as it is written; nil if it is absent.
func member(object []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		s := scan.New(object)
		if s.Kind() != '{' {
			return nil
		}
		s.Object(func(has []byte) {
			if string(has) == name {
				found = s.Raw()
			}
		})
		if object = found; object == nil {
			return nil
		}
	}
	return object
}

// text is a member that is a string; empty if it is absent or anything else.
func text(object []byte, path ...string) string {
	raw := member(object, path...)
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return scan.New(raw).String()
}

// elements are the elements of an array.
func elements(array []byte) [][]byte {
	if len(array) == 0 || array[0] != '[' {
		return nil
	}
	var all [][]byte
	s := scan.New(array)
	s.Array(func() { all = append(all, s.Raw()) })
	return all
}
