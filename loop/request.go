package loop

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// request asks the model once. Each request passes the same four steps in the
// same order: transform, convert, key, stream (CTX-1).
func (r *run) request() (*trace.Message, error) {
	messages, err := r.transformed()
	if err != nil {
		return nil, err
	}
	if messages, err = r.converted(messages); err != nil {
		return nil, err
	}
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	request := &Request{Model: r.model, Level: r.level, Key: key, Messages: messages}
	r.describe(request)
	stream, err := ask(r, func() (Stream, error) { return r.config.Stream(r.modelSignal(), request) })
	if err != nil {
		return nil, err
	}
	a := assistant{run: r, stream: stream, context: r.context}
	return a.read()
}

func (r *run) transformed() ([]*trace.Message, error) {
	messages := slices.Clip(r.context.Messages) // so that an append in a hook is the hook's own
	if r.has(ContextAliased) {
		messages = r.context.Messages
	}
	transform := r.config.Hooks.TransformContext
	if transform == nil {
		return messages, nil
	}
	return ask(r, func() ([]*trace.Message, error) { return transform(r.hookSignal(), messages) })
}

func (r *run) converted(messages []*trace.Message) ([]*trace.Message, error) {
	convert := r.config.Hooks.ConvertToLlm
	if convert == nil {
		return r.modelMessages(messages), nil
	}
	return ask(r, func() ([]*trace.Message, error) { return convert(messages) })
}

// modelMessages are those whose role the contract knows; others are for the
// user interface alone.
func (r *run) modelMessages(messages []*trace.Message) []*trace.Message {
	kept := r.memory.list(len(messages))
	for _, m := range messages {
		switch m.Role {
		case trace.RoleUser, trace.RoleAssistant, trace.RoleToolResult:
			kept = append(kept, m)
		case trace.RoleSystem:
			if r.is.systemMessages {
				kept = append(kept, m)
			}
		}
	}
	return kept
}

// key is the one that is looked up, or else the configured one (CTX-4). It is
// looked up each time, as keys expire.
func (r *run) key() (string, error) {
	lookUp := r.config.Hooks.GetAPIKey
	if lookUp == nil {
		return r.config.APIKey, nil
	}
	key, err := ask(r, func() (string, error) { return r.lookUp(lookUp) })
	if key == "" || r.has(ConfiguredKeyWins) && r.config.APIKey != "" {
		key = r.config.APIKey
	}
	return key, err
}

// describe adds system prompt and tools to a request (CTX-6).
func (r *run) describe(request *Request) {
	if r.is.systemMessages {
		request.SystemPrompt = systemPrompt(request.Messages)
		request.Tools = r.told.executable(request.Messages, r.context.Tools)
		return
	}
	request.SystemPrompt, request.Tools = r.context.SystemPrompt, r.tools()
}

// assistant is the model's message while it is streamed. The context holds its
// newest partial as the last message.
type assistant struct {
	run     *run
	stream  Stream
	context *Context
	begun   bool // message_start is out

	last  *trace.StreamEvent // the event that ended the stream, if one did; only defects ask for it
	ahead *trace.StreamEvent // an event that was read too early; only with a defect
}

// read passes the stream on, event by event. The next event is only asked for
// when everybody has dealt with the last (MSG-9). The stream ends with done or
// error, or just ends (MSG-6).
func (a *assistant) read() (*trace.Message, error) {
	for {
		ev, err := a.next()
		if err != nil {
			return nil, err // a message that was begun stays open (edge 4)
		}
		if ev == nil || ev.Type == trace.StreamDone || ev.Type == trace.StreamError {
			a.last = ev
			return a.finish()
		}
		if err := a.pass(ev); err != nil {
			return nil, err
		}
	}
}

// next is the next event, or nil at the end of the stream.
func (a *assistant) next() (*trace.StreamEvent, error) {
	if ev := a.ahead; ev != nil {
		a.ahead = nil
		return ev, nil
	}
	return ask(a.run, func() (*trace.StreamEvent, error) {
		ev, ok, err := a.stream.Next()
		if !ok {
			ev = nil
		}
		return ev, err
	})
}

// pass gives each stream event its event (MSG-3). A second start starts the
// message once more (edge 15); deltas before the first, and types that the
// contract does not name, give none.
func (a *assistant) pass(ev *trace.StreamEvent) error {
	switch {
	case ev.Type == trace.StreamStart:
		a.begun = true
		a.context.Messages = append(a.context.Messages, ev.Partial)
		return a.emitStart(ev.Partial)
	case ev.IsDelta() && a.begun:
		if a.run.has(UpdateSnapshotChanges) {
			*a.context.Messages[len(a.context.Messages)-1] = *ev.Partial
		}
		a.replaceLast(ev.Partial)
		update := a.run.about(ev.Partial, trace.MessageUpdate)
		update.StreamEvent = ev
		return a.emitUpdate(update)
	}
	return nil
}

// finish completes the message from the stream's result, which alone counts
// (MSG-4). A stream without start gets its message_start here (MSG-5).
func (a *assistant) finish() (*trace.Message, error) {
	final, err := ask(a.run, a.result)
	if err != nil {
		return nil, err
	}
	if a.run.has(AbortHangsOnModel) && a.run.aborted() {
		a.run.hang()
	}
	final = a.run.withLevel(final)
	if a.begun {
		a.replaceLast(final)
	} else {
		a.context.Messages = append(a.context.Messages, final)
		if err := a.emitStart(final); err != nil {
			return nil, err
		}
	}
	if err := a.emitEarly(final); err != nil {
		return nil, err
	}
	if a.run.has(PreparedBeforeListeners) {
		return final, a.run.endWhilePreparing(final)
	}
	return final, a.run.emit(a.run.about(final, trace.MessageEnd))
}

func (a *assistant) emitStart(m *trace.Message) error {
	if a.run.has(MessageStartMissing) && !a.begun {
		return nil
	}
	return a.run.emit(a.run.about(m, trace.MessageStart))
}

func (a *assistant) replaceLast(m *trace.Message) {
	a.context.Messages[len(a.context.Messages)-1] = m
}

// withLevel is the message with the thinking level that was asked for.
func (r *run) withLevel(m *trace.Message) *trace.Message {
	if !r.is.recordsLevel {
		return m
	}
	level := r.level
	if level == "" {
		level = "off"
	}
	recorded := *m
	recorded.Extra = withMember(m.Extra, "thinkingLevel", quoted(level))
	return &recorded
}
