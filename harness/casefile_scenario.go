package harness

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// scenario reads the section of that name.
func (r *caseReader) scenario(sc *Scenario, data []byte) {
	root := r.parseYAML(data)
	if root == nil {
		return
	}
	r.readFields(root, "the scenario", scenarioFields(sc))
	r.checkCalls(sc, root)
	r.checkHooks(sc, root)
	r.checkListeners(sc, root)
}

func formatScenario(sc *Scenario) string {
	reachable := *sc
	reachable.Calls = maps.Clone(sc.Calls)
	maps.DeleteFunc(reachable.Calls, func(name string, _ ToolScript) bool { return !sc.calls(name) })
	reachable.Hooks = map[string]HookScript{}
	for name, mode := range sc.Config.Hooks {
		reachable.Hooks[name] = HookScript{Gate: mode == trace.ModeGate}
	}
	for name, hook := range sc.Hooks {
		hook.Answers = maps.Clone(hook.Answers)
		maps.DeleteFunc(hook.Answers, func(key string, _ HookReply) bool { return sc.hookKeyFault(name, key) != "" })
		reachable.Hooks[name] = hook
	}
	return writeFields(scenarioFields(&reachable)).document()
}

func scenarioFields(sc *Scenario) []field {
	c := &sc.Config
	return []field{
		member("edition", &sc.Edition, oneOf(edition.Known()...)),
		member("form", &sc.Form, oneOf(trace.FormAgent, trace.FormLoop, trace.FormStream, trace.FormSession)),
		member("systemPrompt", &c.SystemPrompt, textForm),
		member("modelId", &c.Model, without(textForm, c.Model == defaultModel)),
		member("thinkingLevel", &c.Level, textForm),
		member("apiKey", &c.APIKey, textForm),
		member("toolExecution", &c.ToolExecution, executionForm),
		member("steeringMode", &c.SteeringMode, queueForm),
		member("followUpMode", &c.FollowUpMode, queueForm),
		member("session", &c.Session, pointerTo(sessionForm)),
		member("tools", &c.Tools, listOf(toolForm)),
		member("messages", &c.Messages, listOf(messageForm)),
		member("model", &sc.Model, listOf(turnForm)),
		member("calls", &sc.Calls, mapOf(callForm)),
		member("hooks", &sc.Hooks, mapBy(hookForm)),
		member("listeners", &c.Listeners, listOf(listenerForm)),
		member("user", &sc.User, listOf(userForm)),
	}
}

// defaultModel is what Complete fills in.
const defaultModel = "scripted-1"

var (
	executionForm = oneOf("parallel", "sequential")
	queueForm     = oneOf("one-at-a-time", "all")
	stopForm      = oneOf(trace.StopStop, trace.StopToolUse, trace.StopLength, trace.StopError, trace.StopAborted)
)

var sessionForm = object("a session", func(s *trace.SessionConfig) []field {
	defaults := len(s.Retryable) == 1 && s.Retryable[0] == defaultRetryable
	return []field{
		member("maxRetries", &s.MaxRetries, numberForm),
		member("baseDelayMs", &s.BaseDelayMs, millisForm),
		member("retryable", &s.Retryable, without(listOf(textForm), defaults)),
		member("compact", &s.Compact, listOf(compactForm)),
	}
})

var compactForm = oneOf("overflow", "threshold")

var toolForm = orText(
	withCheck(object("a tool", func(t *trace.Tool) []field {
		return []field{
			member("name", &t.Name, textForm),
			member("mode", &t.ExecutionMode, executionForm),
			member("parameters", &t.Parameters, valueForm),
			member("prepareArguments", &t.PrepareArguments, flagForm),
		}
	}), func(t *trace.Tool) string {
		if t.Name == "" {
			return "a tool needs a name"
		}
		return ""
	}),
	func(name string) trace.Tool { return trace.Tool{Name: name} },
	func(t *trace.Tool) (string, bool) {
		return t.Name, t.ExecutionMode == "" && t.Parameters == nil && !t.PrepareArguments
	})

var turnForm = object("a turn of the model", func(t *scriptedmodel.Turn) []field {
	return []field{
		member("thinking", &t.Thinking, textForm),
		member("text", &t.Text, textForm),
		member("calls", &t.Calls, listOf(modelCallForm)),
		member("stop", &t.Stop, stopForm),
		member("error", &t.Error, textForm),
		member("gate", &t.Gate, without(flagForm, t.End == scriptedmodel.EndStalls)),
		member("stream", &t.Stream, oneOf(scriptedmodel.StreamBare, scriptedmodel.StreamDeltas, scriptedmodel.StreamOdd, scriptedmodel.StreamTwice)),
		member("end", &t.End, oneOf(scriptedmodel.EndSilent, scriptedmodel.EndThrows, scriptedmodel.EndRefuses, scriptedmodel.EndStalls)),
		member("throw", &t.Throw, textForm),
		member("result", &t.Result, textForm),
		member("usage", &t.Usage, valueForm),
	}
})

var modelCallForm = withCheck(object("a call", func(c *scriptedmodel.Call) []field {
	return []field{
		member("id", &c.ID, textForm),
		member("name", &c.Name, textForm),
		member("args", &c.Args, valueForm),
	}
}), func(c *scriptedmodel.Call) string {
	if c.ID == "" || c.Name == "" {
		return "a call needs an id and the name of a tool"
	}
	return ""
})

var callForm = withCheck(object("the script of a call", func(t *ToolScript) []field {
	implied := len(t.Updates)+len(t.Late) > 0 || t.Notice
	return []field{
		member("gate", &t.Gate, without(flagForm, implied)),
		member("sync", &t.Sync, listOf(pointerTo(resultForm))),
		member("updates", &t.Updates, listOf(pointerTo(resultForm))),
		member("late", &t.Late, listOf(pointerTo(resultForm))),
		member("return", &t.Return, without(pointerTo(resultForm), t.Throw != nil)),
		member("throw", &t.Throw, pointerTo(textForm)),
		member("notice", &t.Notice, flagForm),
		member("abort", &t.Abort, without(flagForm, t.Gate)),
	}
}), func(t *ToolScript) string {
	switch {
	case t.Return != nil && t.Throw != nil:
		return "a tool returns or throws, not both"
	case t.Abort && (t.Gate || t.Notice || len(t.Updates)+len(t.Late) > 0):
		return "only a tool that does not wait aborts by itself; let the user abort while it waits"
	}
	return ""
})

// resultForm is a result of a tool; plain text stands for one text block.
var resultForm = orText(
	form[trace.Result]{
		read: func(r *caseReader, n *node, to *trace.Result) {
			c := shortContent{content: &to.Content}
			r.readFields(n, "a result", resultFields(to, &c))
			r.joinContent(n, &c)
		},
		write: func(from *trace.Result) *node {
			c := shorten(from.Content, false)
			return writeFields(resultFields(from, &c))
		},
		zero: func(*trace.Result) bool { return false },
	},
	func(text string) trace.Result { return trace.Result{Content: trace.TextContent(text)} },
	func(r *trace.Result) (string, bool) {
		c := shorten(r.Content, false)
		plain := r.Details == nil && r.Usage == nil && r.Terminate == nil && r.IsError == nil
		if c.text == nil || !plain {
			return "", false
		}
		return *c.text, true
	})

func resultFields(result *trace.Result, c *shortContent) []field {
	return []field{
		member("text", &c.text, pointerTo(textForm)),
		member("content", &c.content, pointerTo(contentForm)),
		member("details", &result.Details, valueForm),
		member("usage", &result.Usage, valueForm),
		member("terminate", &result.Terminate, pointerTo(flagForm)),
		member("isError", &result.IsError, pointerTo(flagForm)),
	}
}

// shortContent is content in one of two spellings: as it is, or as text and the
// like, for content that has at most one block of thinking, then one of text,
// then calls. If it is short, content is nil, or the place for the whole.
type shortContent struct {
	content  *trace.Content
	thinking *string
	text     *string
	calls    []scriptedmodel.Call
}

// shorten spells content in the short way, if it can be; blocks of other types
// than text only if they may be there.
func shorten(content trace.Content, withCalls bool) shortContent {
	long := shortContent{content: &content}
	if content.IsZero() {
		return shortContent{}
	}
	if len(content.Blocks) == 0 {
		return long
	}
	var short shortContent
	for i := range content.Blocks {
		b := &content.Blocks[i]
		switch {
		case b.Type == trace.BlockText && short.text == nil && short.calls == nil:
			short.text = &b.Text
		case b.Type == trace.BlockThinking && withCalls && i == 0:
			short.thinking = &b.Thinking
		case b.Type == trace.BlockToolCall && withCalls:
			call := scriptedmodel.Call{ID: b.ID, Name: b.Name, Args: b.Arguments}
			if string(b.Arguments) == "{}" {
				call.Args = nil
			}
			short.calls = append(short.calls, call)
		default:
			return long
		}
	}
	return short
}

// joinContent puts content that was read in the short way into its place.
func (r *caseReader) joinContent(n *node, c *shortContent) {
	if c.text == nil && c.thinking == nil && c.calls == nil {
		return
	}
	if !c.content.IsZero() {
		r.fault(n.line, "content says everything: text, thinking and calls do not go with it")
	}
	blocks := []trace.Block{}
	if c.thinking != nil {
		blocks = append(blocks, trace.Block{Type: trace.BlockThinking, Thinking: *c.thinking})
	}
	if c.text != nil {
		blocks = append(blocks, trace.Block{Type: trace.BlockText, Text: *c.text})
	}
	for _, call := range c.calls {
		args := call.Args
		if args == nil {
			args = trace.Value("{}")
		}
		blocks = append(blocks, trace.Block{Type: trace.BlockToolCall, ID: call.ID, Name: call.Name, Arguments: args})
	}
	*c.content = trace.Content{Blocks: blocks}
}

// contentForm is content as it stands in a message: text, or a list of blocks.
var contentForm = form[trace.Content]{
	read: func(r *caseReader, n *node, to *trace.Content) {
		if n.kind == nodeString {
			*to = trace.Content{Text: n.text, IsText: true}
			return
		}
		*to = trace.Content{Blocks: []trace.Block{}}
		listOf(blockForm).read(r, n, &to.Blocks)
	},
	write: func(from *trace.Content) *node {
		if from.IsText {
			return &node{kind: nodeString, text: from.Text}
		}
		return listOf(blockForm).write(&from.Blocks)
	},
	zero: func(from *trace.Content) bool { return from.IsZero() },
}

var blockForm = form[trace.Block]{
	read: func(r *caseReader, n *node, to *trace.Block) {
		r.readFields(n, "a block", blockFields(to))
		if to.Type == "" {
			to.Type = blockType(to)
		}
	},
	write: func(from *trace.Block) *node { return writeFields(blockFields(from)) },
	zero:  func(*trace.Block) bool { return false },
}

func blockFields(b *trace.Block) []field {
	return []field{
		member("type", &b.Type, textForm),
		member("text", &b.Text, textForm),
		member("thinking", &b.Thinking, textForm),
		member("id", &b.ID, textForm),
		member("name", &b.Name, textForm),
		member("arguments", &b.Arguments, valueForm),
		member("data", &b.Data, textForm),
		member("mimeType", &b.MimeType, textForm),
	}
}

// blockType is the type that a block has by what is in it.
func blockType(b *trace.Block) string {
	switch {
	case b.Data != "":
		return trace.BlockImage
	case b.Thinking != "":
		return trace.BlockThinking
	case b.Name != "":
		return trace.BlockToolCall
	}
	return trace.BlockText
}

// messageForm is a message; plain text stands for a user message.
var messageForm = pointerTo(orText(
	form[trace.Message]{
		read: func(r *caseReader, n *node, to *trace.Message) {
			c := shortContent{content: &to.Content}
			to.Role = trace.RoleUser
			r.readFields(n, "a message", messageFields(to, &c))
			r.joinContent(n, &c)
		},
		write: func(from *trace.Message) *node {
			c := shorten(from.Content, true)
			return writeFields(messageFields(from, &c))
		},
		zero: func(*trace.Message) bool { return false },
	},
	userText,
	func(m *trace.Message) (string, bool) {
		c := shorten(m.Content, false)
		if c.text == nil || len(writeFields(messageFields(m, &c)).pairs) > 2 || m.Role != trace.RoleUser {
			return "", false
		}
		return *c.text, true
	}))

func userText(text string) trace.Message {
	return trace.Message{Role: trace.RoleUser, Content: trace.TextContent(text)}
}

func messageFields(m *trace.Message, c *shortContent) []field {
	return []field{
		member("role", &m.Role, textForm),
		member("thinking", &c.thinking, pointerTo(textForm)),
		member("text", &c.text, pointerTo(textForm)),
		member("calls", &c.calls, listOf(modelCallForm)),
		member("content", &c.content, pointerTo(contentForm)),
		member("stopReason", &m.StopReason, textForm),
		member("errorMessage", &m.ErrorMessage, textForm),
		member("toolCallId", &m.ToolCallID, textForm),
		member("toolName", &m.ToolName, textForm),
		member("details", &m.Details, valueForm),
		member("isError", &m.IsError, flagForm),
		member("usage", &m.Usage, valueForm),
		member("api", &m.API, textForm),
		member("provider", &m.Provider, textForm),
		member("model", &m.Model, textForm),
		member("timestamp", &m.Timestamp, millisForm),
	}
}

func hookForm(name string) form[HookScript] {
	reply := hookReplyForm(name)
	return object("hook "+name, func(h *HookScript) []field {
		return []field{
			member("gate", &h.Gate, flagForm),
			member("answers", &h.Answers, mapOf(reply)),
			member("else", &h.Else, reply),
		}
	})
}

// hookReplyForm is what that hook answers, with the members that it has.
func hookReplyForm(name string) form[HookReply] {
	return form[HookReply]{
		read: func(r *caseReader, n *node, to *HookReply) {
			c := shortContent{content: new(trace.Content)}
			r.readFields(n, "an answer of "+name, hookReplyFields(name, to, &c))
			r.joinContent(n, &c)
			if !c.content.IsZero() {
				to.Value.Content = c.content
			}
		},
		write: func(from *HookReply) *node {
			c := shortHookContent(from)
			return writeFields(hookReplyFields(name, from, &c))
		},
		zero: func(from *HookReply) bool {
			c := shortHookContent(from)
			return len(writeFields(hookReplyFields(name, from, &c)).pairs) == 0
		},
	}
}

func shortHookContent(h *HookReply) shortContent {
	if h.Value.Content == nil {
		return shortContent{}
	}
	return shorten(*h.Value.Content, false)
}

func hookReplyFields(name string, h *HookReply, c *shortContent) []field {
	return append([]field{
		member("throw", &h.Throw, pointerTo(textForm)),
		member("abort", &h.Abort, flagForm),
	}, hookAnswerFields(name, &h.Value, c)...)
}

func hookAnswerFields(name string, h *trace.HookAnswer, c *shortContent) []field {
	change := []field{
		member("drop", &h.Drop, numberForm),
		member("append", &h.Append, listOf(messageForm)),
	}
	request := append(change[:2:2],
		member("systemPrompt", &h.SystemPrompt, pointerTo(textForm)),
		member("model", &h.Model, textForm),
		member("level", &h.Level, textForm),
	)
	switch name {
	case trace.HookPrepareArguments:
		return []field{member("args", &h.Args, valueForm)}
	case trace.HookBeforeToolCall:
		return []field{
			member("block", &h.Block, flagForm),
			member("reason", &h.Reason, textForm),
			member("terminate", &h.Terminate, pointerTo(flagForm)),
		}
	case trace.HookAfterToolCall:
		return []field{
			member("text", &c.text, pointerTo(textForm)),
			member("content", &c.content, pointerTo(contentForm)),
			member("details", &h.Details, valueForm),
			member("usage", &h.Usage, valueForm),
			member("terminate", &h.Terminate, pointerTo(flagForm)),
			member("isError", &h.IsError, pointerTo(flagForm)),
		}
	case trace.HookTransformContext:
		return change
	case trace.HookConvertToLlm:
		return []field{member("without", &h.Without, listOf(textForm))}
	case trace.HookGetAPIKey:
		return []field{member("key", &h.Key, textForm)}
	case trace.HookPrepareNextTurn:
		return append(request, member("messages", &h.Messages, listOf(messageForm)))
	case trace.HookShouldStopAfterTurn:
		return []field{member("stop", &h.Stop, flagForm)}
	case trace.HookCompact:
		return append(change, member("continue", &h.Continue, flagForm))
	case trace.HookFinishTurn:
		return []field{member("action", &h.Action, oneOf("end", "continue"))}
	case trace.HookPrepareRequest:
		return request
	}
	return nil
}

var listenerForm = object("a listener", func(l *trace.ListenerConfig) []field {
	return []field{
		member("gate", &l.Gate, listOf(patternForm)),
		member("throw", &l.Throw, mapOf(textForm)),
		member("late", &l.Late, flagForm),
	}
})

var patternForm = withCheck(textForm, func(pattern *string) string { return patternFault(*pattern) })

// patternFault says what is wrong with a pattern of deliveries: an event type,
// alone or with what it is about, or *.
func patternFault(pattern string) string {
	event, _, _ := strings.Cut(pattern, "/")
	if pattern == "*" || slices.Contains(eventTypes, event) {
		return ""
	}
	return "unknown event " + strconv.Quote(event) + didYouMean(event, eventTypes)
}

// checkCalls looks whether the model makes the calls that are scripted.
func (r *caseReader) checkCalls(sc *Scenario, root *node) {
	for _, p := range root.member("calls") {
		if !sc.calls(p.name) {
			r.fault(p.line, "the model makes no call %q%s", p.name, didYouMean(p.name, sc.callIDs()))
		}
	}
}

func (r *caseReader) checkHooks(sc *Scenario, root *node) {
	for _, p := range root.member("hooks") {
		switch {
		case p.name == trace.HookPollSteering || p.name == trace.HookPollFollowUp:
			r.fault(p.line, "%s cannot be scripted: what it gives is what the user has queued", p.name)
			continue
		case !slices.Contains(hookNames, p.name):
			r.fault(p.line, "unknown hook %q%s", p.name, didYouMean(p.name, hookNames))
			continue
		case p.name == trace.HookPrepareArguments && sc.Hooks[p.name].Gate:
			r.fault(p.line, "prepareArguments cannot wait: it is not asynchronous")
		case p.name == trace.HookPrepareArguments && !slices.ContainsFunc(sc.Config.Tools, func(t trace.Tool) bool { return t.PrepareArguments }):
			r.fault(p.line, "no tool has prepareArguments: true")
		}
		for _, q := range p.value.member("answers") {
			if why := sc.hookKeyFault(p.name, q.name); why != "" {
				r.fault(q.line, "%s", why)
			}
		}
	}
}

// hookKeyFault says what is wrong with the name under which a hook has an answer.
func (sc *Scenario) hookKeyFault(hook, key string) string {
	if slices.Contains(callHooks, hook) {
		if !sc.calls(key) {
			return "the model makes no call " + strconv.Quote(key) + didYouMean(key, sc.callIDs())
		}
		return ""
	}
	return numberFault(key, "an answer of "+hook)
}

func (r *caseReader) checkListeners(sc *Scenario, root *node) {
	for _, item := range root.list("listeners") {
		for _, p := range item.member("throw") {
			if why := patternFault(p.name); why != "" {
				r.fault(p.line, "%s", why)
			}
		}
	}
	for i, item := range root.list("user") {
		if i >= len(sc.User) || sc.User[i].Answer.Listener == nil {
			continue
		}
		if l, n := *sc.User[i].Answer.Listener, len(sc.Config.Listeners); l >= n {
			r.fault(item.line, "there is no listener %d, only %d of them, from 0", l, n)
		}
	}
}

// member gives the pairs of the mapping that is the member of that name.
func (n *node) member(name string) []pair {
	for _, p := range n.pairs {
		if p.name == name {
			return p.value.pairs
		}
	}
	return nil
}

func (n *node) list(name string) []*node {
	for _, p := range n.pairs {
		if p.name == name {
			return p.value.items
		}
	}
	return nil
}

// calls reports whether the model makes a call to which an execution of that
// name can belong.
func (sc *Scenario) calls(name string) bool {
	ids := sc.callIDs()
	return slices.Contains(ids, name) || slices.Contains(ids, callID(name))
}

func (sc *Scenario) callIDs() []string {
	var ids []string
	for i := range sc.Model {
		for _, call := range sc.Model[i].Calls {
			ids = append(ids, call.ID)
		}
	}
	return ids
}
