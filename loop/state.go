package loop

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// state is what an agent knows of itself. Its owner locks it. The lists in it
// are handed out as they are, and so are only ever appended to or replaced
// (STATE-8).
type state struct {
	systemPrompt string
	model        Model
	level        string
	tools        []*Tool
	messages     []*trace.Message

	isStreaming bool
	streaming   *trace.Message // the message between its start and its end (STATE-4)
	pending     []string       // calls started and not ended (STATE-3); replaced, never changed
	err         string

	memory *Memory

	lastTag string // tag of lastTagged
	tagged  *trace.Message
}

// openTranscript puts system prompt and tools at the head of the transcript, for
// editions in which they stand there.
func (s *state) openTranscript() {
	if len(s.messages) > 0 && isSystem(s.messages[0]) {
		return
	}
	if m := initialSystemMessage(s.systemPrompt, s.tools); m != nil {
		s.messages = slices.Insert(s.messages, 0, m)
	}
}

// empty: there is nothing to continue from (RUN-9).
func (s *state) empty() bool {
	return !slices.ContainsFunc(s.messages, func(m *trace.Message) bool { return !isSystem(m) })
}

// context is what a run starts from.
func (s *state) context() *Context {
	return &Context{SystemPrompt: s.systemPrompt, Messages: withRoom(s.messages), Tools: slices.Clone(s.tools)}
}

// begin: a run is active from here, before its first event (STATE-7).
func (s *state) begin() {
	s.isStreaming, s.streaming, s.err = true, nil, ""
}

// end: no run is active, whatever the last one left open (RUN-8).
func (s *state) end() {
	s.isStreaming, s.streaming, s.pending = false, nil, nil
}

// reset clears everything but the system prompt and the tools (RUN-13).
func (s *state) reset(systemMessages bool) {
	folded := foldedSystemMessage(s.messages)
	s.end()
	s.messages, s.err = nil, ""
	if systemMessages && folded != nil {
		s.messages = []*trace.Message{folded}
	}
}

// reduce takes in an event. Pending calls may be left to the caller.
func (s *state) reduce(ev *trace.Event, pending bool) {
	switch ev.Type {
	case trace.MessageStart, trace.MessageUpdate:
		s.streaming = ev.Message
	case trace.MessageEnd:
		s.streaming = nil
		s.messages = append(s.messages, ev.Message)
	case trace.ToolExecutionStart, trace.ToolExecutionEnd:
		if pending {
			s.reducePending(ev)
		}
	case trace.TurnEnd:
		if ev.Message.Role == trace.RoleAssistant && ev.Message.ErrorMessage != "" {
			s.err = ev.Message.ErrorMessage // whatever the stop reason (STATE-6)
		}
	case trace.AgentEnd:
		s.streaming = nil
	}
}

// reducePending keeps the calls that are under way (STATE-2). It is a set of
// ids: of two calls with one id the first end counts (edge 5).
func (s *state) reducePending(ev *trace.Event) {
	i := slices.Index(s.pending, ev.ToolCallID)
	switch {
	case ev.Type == trace.ToolExecutionStart && i < 0:
		s.pending = append(append(s.memory.ids.List(len(s.pending)+1), s.pending...), ev.ToolCallID)
	case ev.Type == trace.ToolExecutionEnd && i >= 0:
		s.pending = slices.Delete(append(s.memory.ids.List(len(s.pending)), s.pending...), i, i+1)
	}
}

// snapshot is the state as others see it.
func (s *state) snapshot() trace.State {
	st := trace.State{
		IsStreaming: s.isStreaming, Pending: s.pending, Messages: len(s.messages),
		Last: s.last(), Error: s.err,
	}
	if s.streaming != nil {
		st.Streaming = s.streaming.Role
	}
	return st
}

// last is the tag of the transcript's last message, made once for each.
func (s *state) last() string {
	if len(s.messages) == 0 {
		return ""
	}
	if m := s.messages[len(s.messages)-1]; m != s.tagged {
		s.tagged, s.lastTag = m, m.Tag()
	}
	return s.lastTag
}

// State is the agent's state now. Its lists are never changed later.
func (a *Agent) State() trace.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.snapshot()
}

// Messages is the transcript now.
func (a *Agent) Messages() []*trace.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.state.messages)
}

// SetMessages replaces the transcript; it counts from the next run on.
func (a *Agent) SetMessages(messages []*trace.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.messages = slices.Clone(messages)
}

// Tools are the agent's tools.
func (a *Agent) Tools() []*Tool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.tools
}

// SetTools replaces the tools; it counts from the next run on.
func (a *Agent) SetTools(tools []*Tool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.tools = slices.Clone(tools)
}

// Model is the agent's model.
func (a *Agent) Model() Model {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.model
}

// SetModel replaces the model; it counts from the next run on.
func (a *Agent) SetModel(m Model) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.model = m
}

// Level is the agent's thinking level.
func (a *Agent) Level() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.level
}

// SetLevel replaces the thinking level; it counts from the next run on.
func (a *Agent) SetLevel(level string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.level = level
}

// SystemPrompt is the agent's system prompt.
func (a *Agent) SystemPrompt() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.is.systemMessages {
		return systemPrompt(a.state.messages)
	}
	return a.state.systemPrompt
}

// SetSystemPrompt replaces the system prompt; it counts from the next run on.
// In editions where the transcript holds the prompt it is an error: there the
// prompt is changed by a system message.
func (a *Agent) SetSystemPrompt(prompt string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.is.systemMessages {
		return errPromptPart
	}
	a.state.systemPrompt = prompt
	return nil
}

// SetSteeringMode says how many messages a look at the steering queue takes.
func (a *Agent) SetSteeringMode(mode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steering.mode = mode
}

// SetFollowUpMode says how many messages a look at the follow-up queue takes.
func (a *Agent) SetFollowUpMode(mode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followUps.mode = mode
}
