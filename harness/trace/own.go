package trace

import (
	"slices"
	"strings"
)

// What stands for the texts that a loop writes itself, which no contract words.
const (
	ownNotFound  = "<not-found>"
	ownInvalid   = "<invalid>"
	ownBlocked   = "<blocked>"
	ownTruncated = "<truncated>"
	ownAborted   = "<aborted>"
)

// ownTexts finds the error results that the loop worded itself: those of tool
// calls that were never executed, unless the surroundings gave the text. It
// walks a trace in order.
type ownTexts struct {
	callbacks bool                  // the trace shows which calls were executed
	tools     map[string]bool       // tools that there are
	calls     map[string]*callFacts // by id; a later message with the same id begins anew
	ids       map[string]string     // tool call id by callback name
	given     map[string]bool       // error messages that the surroundings threw
	aborted   bool                  // the run was aborted
	tokens    map[string]string     // by tag of the result message
}

// callFacts is what is known of one tool call.
type callFacts struct {
	stop     string          // stop reason of its assistant message
	executed bool            // execute was called
	shared   bool            // other calls of the message have the same id
	blocked  bool            // beforeToolCall blocked it
	texts    map[string]bool // texts that the surroundings gave for its result
	judged   map[string]bool // tags of results that were looked at
}

func newOwnTexts(t *Trace) *ownTexts {
	o := &ownTexts{
		callbacks: t.Has(EvidenceCallbacks),
		tools:     map[string]bool{},
		calls:     map[string]*callFacts{},
		ids:       map[string]string{},
		given:     map[string]bool{},
		tokens:    map[string]string{},
	}
	for _, tool := range t.Header.Config.Tools {
		o.tools[tool.Name] = true
	}
	for _, listener := range t.Header.Config.Listeners {
		for _, message := range listener.Throw {
			o.given[message] = true
		}
	}
	return o
}

func (o *ownTexts) observe(e *Entry) {
	switch e.Kind {
	case KindAction:
		if e.Label == "abort" || strings.HasPrefix(e.Label, "abort/") {
			o.aborted = true
		}
		o.answer(e.Name, e.Answer)
	case KindCall:
		o.call(e)
		o.answer(e.Name, e.Answer)
	case KindEvent:
		if e.Event != nil {
			o.event(e.Event)
		}
	default:
	}
}

func (o *ownTexts) call(e *Entry) {
	if _, ok := callOf(e.Name); !ok {
		return
	}
	id := e.call()
	o.ids[e.Name] = id
	if strings.HasPrefix(e.Name, "tool/") {
		o.facts(id).executed = true
	}
}

func (o *ownTexts) answer(name string, a *Answer) {
	if a == nil {
		return
	}
	if a.Abort {
		o.aborted = true
	}
	if a.Throw != nil {
		o.given[*a.Throw] = true
	}
	id, known := o.ids[name]
	if !known {
		return
	}
	f := o.facts(id)
	if a.Throw != nil {
		f.texts[*a.Throw] = true
	}
	if a.Result != nil {
		f.texts[a.Result.Content.PlainText()] = true
	}
	if a.Hook == nil {
		return
	}
	if a.Hook.Block {
		f.blocked = true
		f.texts[a.Hook.Reason] = true
	}
	if a.Hook.Content != nil {
		f.texts[a.Hook.Content.PlainText()] = true
	}
}

func (o *ownTexts) event(e *Event) {
	switch e.Type {
	case AgentStart:
		o.aborted = false
	case MessageStart, MessageEnd:
		o.message(e)
	case ToolExecutionEnd:
		if e.IsError != nil && *e.IsError && e.Result != nil {
			o.judge(e.ToolCallID, e.ToolName, e.Result.Content, endTag(e))
		}
	}
}

func (o *ownTexts) message(e *Event) {
	m := e.Message
	switch {
	case m == nil:
	case m.Role == RoleToolResult && m.IsError:
		o.judge(m.ToolCallID, m.ToolName, m.Content, m.Tag())
	case m.Role == RoleAssistant && e.Type == MessageEnd:
		calls := m.ToolCalls()
		for _, call := range calls {
			delete(o.calls, call.ID)
		}
		for _, call := range calls {
			f := o.facts(call.ID)
			f.shared = f.stop != ""
			f.stop = m.StopReason
		}
	}
}

func (o *ownTexts) facts(id string) *callFacts {
	f := o.calls[id]
	if f == nil {
		f = &callFacts{texts: map[string]bool{}, judged: map[string]bool{}}
		o.calls[id] = f
	}
	return f
}

// judge decides, where a result is first seen, whether the loop worded it.
// What is not one plain text is none of the loop's own errors (TOOL-18). Of calls
// that share an id one may have been executed and another not: there only the
// texts tell.
func (o *ownTexts) judge(id, tool string, content Content, tag string) {
	f := o.facts(id)
	text, plain := oneText(content)
	executed := f.executed && !f.shared
	if !o.callbacks || !plain || executed || f.judged[tag] {
		return
	}
	f.judged[tag] = true
	// Where ids come again, two results can have one tag. The first one says what it
	// stands for, or a message would change its text when it is told of again.
	if token := o.worded(f, tool, text); token != "" && o.tokens[tag] == "" {
		o.tokens[tag] = token
	}
}

// worded is the token for a text, or empty if the surroundings gave it.
func (o *ownTexts) worded(f *callFacts, tool, text string) string {
	switch {
	case f.stop == StopLength:
		return ownTruncated
	case text != "" && f.texts[text]:
		return ""
	case !o.tools[tool]:
		return ownNotFound
	case o.aborted:
		return ownAborted
	case f.blocked:
		return ownBlocked
	}
	return ownInvalid
}

func oneText(c Content) (text string, ok bool) {
	if c.IsText {
		return c.Text, true
	}
	if len(c.Blocks) == 1 && c.Blocks[0].Type == BlockText {
		return c.Blocks[0].Text, true
	}
	return "", false
}

// endTag is the tag that the result message of a tool_execution_end has.
func endTag(e *Event) string {
	m := Message{Role: RoleToolResult, ToolCallID: e.ToolCallID, IsError: e.IsError != nil && *e.IsError}
	if e.Result != nil {
		m.Content = e.Result.Content
	}
	return m.Tag()
}

func (o *ownTexts) token(tag string) string { return o.tokens[tag] }

// content is the content with the token as its one text; the caller has made
// sure that its blocks may be changed.
func (o *ownTexts) content(c Content, token string) Content {
	switch {
	case token == "":
	case c.IsText:
		c.Text = token
	case len(c.Blocks) == 1:
		c.Blocks[0].Text = token
	}
	return c
}

// tag is the tag with the token in the place of the text.
func (o *ownTexts) tag(tag string) string {
	token := o.tokens[tag]
	if token == "" {
		return tag
	}
	// toolResult <id> error: <text>; an id has no such mark, a text may.
	before, _, _ := strings.Cut(tag, " error: ")
	return before + " error: " + token
}

func (o *ownTexts) tags(tags []string) []string {
	if len(tags) == 0 {
		return nil
	}
	if len(o.tokens) == 0 {
		return tags
	}
	clean := slices.Clone(tags)
	for i := range clean {
		clean[i] = o.tag(clean[i])
	}
	return clean
}

// keepsMessage reports whether the message of a settled entry came from the
// surroundings. What refuses an action is always the loop.
func (o *ownTexts) keepsMessage(e *Entry) bool {
	return e.Outcome != OutcomeRefused && o.given[e.Message]
}
