package drive

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// client is what a client of ACP keeps.
type client struct {
	asked    map[string]asked  // open requests of ours, by id
	sessions map[string]string // ids of the agent, by the names of the script
	idle     bool              // initialized
	last     asked             // request that the latest line answers
}

// asked is a request of ours.
type asked struct{ method, session string }

// first is the name of the session of a script that names none.
const first = "a"

func (d *driver) initialize() error {
	d.acp = client{asked: map[string]asked{}, sessions: map[string]string{}}
	if len(d.script.Steps) == 0 || !slices.ContainsFunc(d.script.Steps, func(s Step) bool { return s.New }) {
		opening := []Step{{New: true, Session: first}, {Prompt: d.script.Prompt, Session: first}}
		d.script = &Script{Model: d.script.Model, Steps: append(opening, d.script.Steps...), Client: d.script.Client, Prompt: d.script.Prompt}
	}
	return d.ask("initialize", "", map[string]any{
		"protocolVersion":    1,
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": d.script.Client.Files, "writeTextFile": d.script.Client.Files}, "terminal": false},
		"clientInfo":         map[string]any{"name": "pi-conform", "version": "1"},
	})
}

func (d *driver) ask(method, session string, params map[string]any) error {
	id := strconv.Itoa(d.sent)
	d.sent++
	d.acp.asked[id] = asked{method, session}
	d.settled = false
	return d.send(map[string]any{"jsonrpc": "2.0", "id": d.sent - 1, "method": method, "params": params})
}

// ready reports whether a step can be done as far as the client's own requests
// go: nothing is done before the agent is initialized, or to a session that is
// not there yet.
func (d *driver) ready(s *Step) bool {
	if d.options.Mode != ACP || s.Open != "" || s.Touch != "" {
		return true
	}
	return d.acp.idle && (s.New || d.acp.sessions[s.session()] != "")
}

func (s *Step) session() string {
	if s.Session == "" {
		return first
	}
	return s.Session
}

func (c *client) matches(s *Step, value any) bool {
	if s.Answer != "" {
		return c.last.method == s.Answer && (s.In == "" || c.last.session == s.In)
	}
	return s.In == "" || at(value, "params.sessionId") == c.sessions[s.In]
}

func (d *driver) doACP(s *Step) error {
	id := d.acp.sessions[s.session()]
	switch {
	case s.New:
		return d.ask("session/new", s.session(), map[string]any{"cwd": d.folder, "mcpServers": []any{}})
	case s.Prompt != "":
		return d.ask("session/prompt", s.session(), map[string]any{"sessionId": id, "prompt": []any{map[string]any{"type": "text", "text": s.Prompt}}})
	case s.Load:
		return d.ask("session/load", s.session(), map[string]any{"sessionId": id, "cwd": d.folder, "mcpServers": []any{}})
	case s.Cancel, s.Abort:
		return d.send(map[string]any{"jsonrpc": "2.0", "method": "session/cancel", "params": map[string]any{"sessionId": id}})
	}
	return errors.New("ACP has nothing like that")
}

// message is what a client has to understand of a message.
type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  jsontext.Value `json:"error"`
}

// hear takes in a message of the agent.
func (d *driver) hear(line []byte, value any) error {
	d.acp.last = asked{}
	var m message
	if json.Unmarshal(line, &m) != nil {
		return nil // it will be judged
	}
	switch {
	case m.Method != "" && m.ID != nil:
		return d.serve(&m)
	case m.Method != "":
		return nil
	}
	return d.answered(&m)
}

func (d *driver) answered(m *message) error {
	id := string(m.ID)
	r, ok := d.acp.asked[id]
	if !ok {
		return nil
	}
	delete(d.acp.asked, id)
	d.acp.last = r
	d.settled = len(d.acp.asked) == 0
	switch r.method {
	case "initialize":
		if m.Error != nil {
			return fmt.Errorf("the agent refuses to be initialized: %s", m.Error)
		}
		d.acp.idle = true
	case "session/new":
		var made struct {
			SessionID string `json:"sessionId"`
		}
		if m.Error != nil || json.Unmarshal(m.Result, &made) != nil || made.SessionID == "" {
			return fmt.Errorf("the agent makes no session: %s%s", m.Error, m.Result)
		}
		d.acp.sessions[r.session] = made.SessionID
	}
	return nil
}

// serve answers a request of the agent.
func (d *driver) serve(m *message) error {
	reply := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	var asked struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	_ = json.Unmarshal(m.Params, &asked) // what is missing is refused below
	switch {
	case m.Method == "session/request_permission":
		var kinds []string
		var ids []string
		for _, o := range asked.Options {
			kinds, ids = append(kinds, o.Kind), append(ids, o.ID)
		}
		reply["result"] = map[string]any{"outcome": d.permit(kinds, ids)}
	case m.Method == "fs/read_text_file" && d.script.Client.Files:
		text, err := os.ReadFile(asked.Path)
		if err != nil {
			return d.send(refusal(m, err.Error()))
		}
		reply["result"] = map[string]any{"content": string(text)}
	case m.Method == "fs/write_text_file" && d.script.Client.Files:
		if err := os.WriteFile(asked.Path, []byte(asked.Content), 0o600); err != nil {
			return d.send(refusal(m, err.Error()))
		}
		reply["result"] = nil
	default:
		return d.send(refusal(m, "this client cannot "+m.Method))
	}
	return d.send(reply)
}

func refusal(m *message, why string) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": why}}
}

// permit chooses among the options of a request by the policy of the script.
func (d *driver) permit(kinds, ids []string) map[string]any {
	wants := map[string][]string{"": {"allow_once", "allow_always"}, "allow": {"allow_once", "allow_always"}, "reject": {"reject_once", "reject_always"}}
	for _, kind := range wants[d.script.Client.Permission] {
		if i := slices.Index(kinds, kind); i >= 0 {
			return map[string]any{"outcome": "selected", "optionId": ids[i]}
		}
	}
	return map[string]any{"outcome": "cancelled"}
}
