package acpagent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/progress"
)

// session is one conversation.
type session struct {
	agent *Agent
	id    string
	loop  *loop.Agent

	mu        sync.Mutex
	active    bool // a prompt is not answered yet
	cancelled bool
}

type created struct {
	Session string `json:"sessionId"`
}

func (a *Agent) create() (any, error) {
	a.mu.Lock()
	s := &session{agent: a, id: fmt.Sprintf("session-%d", len(a.sessions)+1)}
	a.sessions[s.id] = s
	a.mu.Unlock()
	plug := progress.NewPlug(a.registry, s.id, cardOf)
	var tools []*loop.Tool
	for _, t := range a.tools() {
		tools = append(tools, plug.Wrap(t))
	}
	s.loop = loop.NewAgent(loop.Options{Stream: newModel().stream, Tools: tools, Model: loop.Model{ID: "scripted-1", Provider: "scripted"}})
	s.loop.Subscribe(plug.Listen)
	s.loop.Subscribe(s.listen)
	return created{s.id}, a.bridge.Open(s.id, s.id)
}

// chunk is what a notification says of a message.
type chunk struct {
	Update  string      `json:"sessionUpdate"`
	Content textContent `json:"content"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type chunkParams struct {
	Session string `json:"sessionId"`
	Update  chunk  `json:"update"`
}

func (s *session) tell(update, text string) error {
	params, err := json.Marshal(chunkParams{s.id, chunk{update, textContent{"text", text}}}, json.Deterministic(true))
	if err != nil {
		return err
	}
	return s.agent.say(message{Method: "session/update", Params: params})
}

// listen tells the client what the model says.
func (s *session) listen(_ context.Context, ev *trace.Event) error {
	if ev.Type != trace.MessageEnd || ev.Message.Role != trace.RoleAssistant {
		return nil
	}
	if text := ev.Message.Content.PlainText(); text != "" {
		_ = s.tell("agent_message_chunk", text) // a client that is gone does not break the run
	}
	return nil
}

type prompted struct {
	StopReason string `json:"stopReason"`
}

// prompt begins a run. It is answered when that is over.
func (a *Agent) prompt(m *message) error {
	s, err := a.find(m.Params)
	if err != nil {
		return err
	}
	var params struct {
		Prompt []textContent `json:"prompt"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return &fault{codeParams, err.Error()}
	}
	var texts []string
	for _, block := range params.Prompt {
		texts = append(texts, block.Text)
	}
	if !s.begin() {
		return &fault{codeProblem, "the session is busy with a prompt"}
	}
	a.prompts.Add(1)
	id := append(trace.Value{}, m.ID...)
	prompt := loop.UserMessage(time.Now(), strings.Join(texts, "\n"))
	if err := s.loop.BeginPrompt([]*trace.Message{prompt}, func(err error) { s.settled(id, err) }); err != nil {
		s.settled(id, err)
	}
	return errLater
}

func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active {
		return false
	}
	s.active, s.cancelled = true, false
	return true
}

func (s *session) cancel() {
	s.mu.Lock()
	active := s.active
	s.cancelled = s.cancelled || active
	s.mu.Unlock()
	if active {
		s.loop.Abort()
	}
}

// settled answers a prompt. Whatever was left open is closed before (BRIDGE-5).
func (s *session) settled(id trace.Value, err error) {
	defer s.agent.prompts.Done()
	s.agent.registry.Settle(s.id, "The call was not finished.")
	s.mu.Lock()
	cancelled := s.cancelled
	s.active = false
	s.mu.Unlock()
	if cancelled {
		_ = s.agent.answer(id, prompted{"cancelled"}, nil)
		return
	}
	reason, failure := s.reason()
	if err == nil {
		err = failure
	}
	_ = s.agent.answer(id, prompted{reason}, err)
}

// reason is why the last answer of the model has ended.
func (s *session) reason() (string, error) {
	messages := s.loop.Messages()
	last := messages[len(messages)-1]
	switch last.StopReason {
	case trace.StopLength:
		return "max_tokens", nil
	case trace.StopError:
		return "", &fault{codeProblem, last.ErrorMessage}
	case trace.StopAborted:
		return "cancelled", nil
	}
	return "end_turn", nil
}

// load tells a session again, from what was stored alone.
func (a *Agent) load(params trace.Value) error {
	s, err := a.find(params)
	if err != nil {
		return err
	}
	s.mu.Lock()
	active := s.active
	s.mu.Unlock()
	if active {
		return &fault{codeProblem, "the session is busy with a prompt"}
	}
	for _, m := range s.loop.Messages() {
		if err := s.replay(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) replay(m *trace.Message) error {
	text := m.Content.PlainText()
	switch {
	case text == "":
	case m.Role == trace.RoleUser:
		if err := s.tell("user_message_chunk", text); err != nil {
			return err
		}
	case m.Role == trace.RoleAssistant:
		if err := s.tell("agent_message_chunk", text); err != nil {
			return err
		}
	}
	for _, call := range m.ToolCalls() {
		if err := s.agent.bridge.Replay(s.id, s.agent.pair(s.id, call.ID)); err != nil {
			return err
		}
	}
	return nil
}
