package trace

import "slices"

// cleaner makes copies of entries without what the normal form forgives in a
// single entry. It walks a trace in order.
type cleaner struct {
	own      *ownTexts
	messages map[*Message]*Message // copies; a message occurs in many entries
}

func newCleaner(t *Trace) *cleaner {
	return &cleaner{own: newOwnTexts(t), messages: map[*Message]*Message{}}
}

// lookAhead takes in the whole trace before any of it is cleaned, for a form in
// which a request may come before the events whose texts it holds.
func (c *cleaner) lookAhead(entries []Entry) {
	for i := range entries {
		c.own.observe(&entries[i])
	}
}

func (c *cleaner) entry(e *Entry) {
	c.own.observe(e)
	e.Event = c.event(e.Event)
	e.State = c.state(e.State)
	e.Payload = c.payload(e.Payload)
	e.Answer = c.answer(e.Answer)
	if e.Kind == KindSettled && !c.own.keepsMessage(e) || e.Kind == KindEnd && brokeOff(e.Outcome) {
		e.Message = ""
	}
	e.Changed = orNil(e.Changed)
	e.Pending = orNil(e.Pending)
}

// brokeOff reports whether an end tells of a subject that was stopped somewhere: the
// message then holds stacks and the like.
func brokeOff(o Outcome) bool {
	return o == OutcomeCrashed || o == OutcomeHung || o == OutcomeLeaked
}

// orNil lets an empty list be absent, in what the harness writes.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (c *cleaner) event(e *Event) *Event {
	if e == nil {
		return nil
	}
	clean := *e
	clean.Message = c.message(e.Message)
	clean.StreamEvent = c.streamEvent(e.StreamEvent)
	clean.ToolResults = c.messageList(e.ToolResults)
	clean.Messages = c.messageList(e.Messages)
	clean.Args = canonical(e.Args)
	clean.PartialResult = c.result(e.PartialResult)
	clean.Result = c.result(e.Result)
	clean.DurationMs = nil
	clean.Extra = extra(e.Extra)
	if e.Type == ToolExecutionEnd && e.Result != nil {
		clean.Result.Content = c.own.content(clean.Result.Content, c.own.token(endTag(e)))
	}
	return &clean
}

func (c *cleaner) message(m *Message) *Message {
	if m == nil {
		return nil
	}
	if clean, done := c.messages[m]; done {
		return clean
	}
	clean := *m
	clean.Timestamp = 0
	clean.Content = cleanContent(m.Content)
	clean.Details = canonical(m.Details)
	clean.Usage = canonical(m.Usage)
	clean.Extra = extra(m.Extra)
	if m.Role == RoleToolResult {
		clean.Content = c.own.content(clean.Content, c.own.token(m.Tag()))
	}
	c.messages[m] = &clean
	return &clean
}

func (c *cleaner) messageList(messages []*Message) []*Message {
	clean := slices.Clone(messages)
	for i := range clean {
		clean[i] = c.message(clean[i])
	}
	return clean
}

func cleanContent(c Content) Content {
	c.Blocks = cleanBlocks(c.Blocks)
	return c
}

func cleanBlocks(blocks []Block) []Block {
	clean := slices.Clone(blocks)
	for i := range clean {
		clean[i].Arguments = canonical(clean[i].Arguments)
		clean[i].Extra = extra(clean[i].Extra)
	}
	return clean
}

func (c *cleaner) streamEvent(e *StreamEvent) *StreamEvent {
	if e == nil {
		return nil
	}
	clean := *e
	if e.ToolCall != nil {
		clean.ToolCall = &cleanBlocks([]Block{*e.ToolCall})[0]
	}
	clean.Partial = c.message(e.Partial)
	clean.Message = c.message(e.Message)
	clean.Error = c.message(e.Error)
	clean.Extra = extra(e.Extra)
	return &clean
}

func (c *cleaner) result(r *Result) *Result {
	if r == nil {
		return nil
	}
	clean := *r
	clean.Content = cleanContent(r.Content)
	clean.Details = canonical(r.Details)
	clean.Usage = canonical(r.Usage)
	clean.Extra = extra(r.Extra)
	return &clean
}

func (c *cleaner) state(s *State) *State {
	if s == nil {
		return nil
	}
	clean := *s
	clean.Last = c.own.tag(s.Last)
	return &clean
}

func (c *cleaner) payload(p *Payload) *Payload {
	if p == nil {
		return nil
	}
	clean := *p
	clean.Tools = orNil(p.Tools)
	clean.Messages = c.own.tags(p.Messages)
	clean.RawArgs = canonical(p.RawArgs)
	clean.Args = canonical(p.Args)
	clean.Result = c.result(p.Result)
	clean.Results = orNil(p.Results)
	clean.Context = c.own.tags(p.Context)
	return &clean
}

func (c *cleaner) answer(a *Answer) *Answer {
	if a == nil {
		return nil
	}
	clean := *a
	clean.Event = c.streamEvent(a.Event)
	clean.Events = slices.Clone(a.Events)
	for i := range clean.Events {
		clean.Events[i] = *c.streamEvent(&clean.Events[i])
	}
	clean.Final = c.message(a.Final)
	clean.Partial = c.result(a.Partial)
	clean.Sync = slices.Clone(a.Sync)
	for i := range clean.Sync {
		clean.Sync[i] = c.result(clean.Sync[i])
	}
	clean.Result = c.result(a.Result)
	clean.Hook = c.hook(a.Hook)
	clean.Messages = c.messageList(a.Messages)
	clean.Images = cleanBlocks(a.Images)
	return &clean
}

func (c *cleaner) hook(h *HookAnswer) *HookAnswer {
	if h == nil {
		return nil
	}
	clean := *h
	if h.Content != nil {
		content := cleanContent(*h.Content)
		clean.Content = &content
	}
	clean.Details = canonical(h.Details)
	clean.Usage = canonical(h.Usage)
	clean.Args = canonical(h.Args)
	clean.Append = c.messageList(h.Append)
	clean.Messages = c.messageList(h.Messages)
	return &clean
}
