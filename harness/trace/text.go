package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is a trace as a person reads it: a line an entry, the number of the
// step before each action, and the state where it changed.
//
//	12  > tool/c1/return "A"
//	    tool_execution_end c1 ok "A"  {pending c2}
//	    call hook/beforeToolCall/c2 [auto block "no"]
//
// It is stable, but no substitute for the trace: long texts are cut, and what
// is seldom of interest is not shown.
func Text(t *Trace) string {
	var b strings.Builder
	title := words(t.Header.Case, t.Header.Edition, string(t.Header.Form))
	fmt.Fprintf(&b, "# %s\n", oneLine(strings.Join(title, " · ")))
	width := 2
	if n := len(t.Entries); n > 0 {
		width = max(width, len(strconv.Itoa(t.Entries[n-1].Step)))
	}
	var seen State
	for i := range t.Entries {
		e := &t.Entries[i]
		number := ""
		if e.Kind == KindAction {
			number = strconv.Itoa(e.Step)
		}
		fmt.Fprintf(&b, "%*s  %s", width, number, Line(e))
		if e.State != nil {
			b.WriteString(oneLine(stateChange(&seen, e.State)))
			seen = *e.State
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Line is one entry as a person reads it, without its step and state.
func Line(e *Entry) string { return oneLine(entryText(e)) }

func entryText(e *Entry) string {
	switch e.Kind {
	case KindAction:
		return join(">", e.Label, answerText(e.Answer), timeText(e.Time))
	case KindEvent:
		return eventText(e.Event)
	case KindCall:
		return join("call", e.Name, payloadText(e.Payload), callText(e))
	case KindRead:
		return join("read", e.Name, strconv.Itoa(e.N))
	case KindView:
		return join("view", viewText(e.View))
	case KindRetained:
		return join("retained", "changed", fmt.Sprint(e.Changed))
	default:
	}
	return join(string(e.Kind), e.Name, string(e.Outcome), quoted(e.Message), pendingText(e.Pending))
}

func viewText(v *View) string {
	if v == nil {
		return ""
	}
	parts := []string{}
	if v.Input != nil {
		parts = append(parts, "of", v.Input.Type)
	}
	parts = append(parts, shorten(string(v.State)))
	if v.Again != nil {
		parts = append(parts, "then", shorten(string(v.Again)))
	}
	if v.Before != nil {
		parts = append(parts, "changed its input to", shorten(string(v.Before)))
	}
	return join(parts...)
}

func timeText(milliseconds int64) string {
	if milliseconds == 0 {
		return ""
	}
	return fmt.Sprintf("@%dms", milliseconds)
}

func pendingText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "pending " + list(names)
}

// callText is what became of a call at once.
func callText(e *Entry) string {
	var facts []string
	if e.Auto {
		facts = words("auto", answerText(e.Answer))
	}
	if e.Aborted {
		facts = append(facts, "aborted")
	}
	if facts == nil {
		return ""
	}
	return list(facts)
}

func eventText(e *Event) string {
	if e == nil {
		return "event"
	}
	switch e.Type {
	case MessageStart, MessageEnd:
		return join(e.Type, messageText(e.Message))
	case MessageUpdate:
		return join(e.Type, streamText(e.StreamEvent))
	case ToolExecutionStart:
		return join(e.Type, e.ToolCallID, e.ToolName, shorten(string(e.Args)))
	case ToolExecutionUpdate:
		return join(e.Type, e.ToolCallID, resultText(e.PartialResult))
	case ToolExecutionEnd:
		return join(e.Type, e.ToolCallID, verdict(e.IsError), resultText(e.Result))
	case TurnEnd:
		return join(e.Type, resultIDs(e.ToolResults))
	case AgentEnd:
		return join(e.Type, plural(len(e.Messages), "message"))
	}
	return join(e.Type, e.ToolCallID, shorten(string(e.Extra)))
}

func verdict(isError *bool) string {
	switch {
	case isError == nil:
		return ""
	case *isError:
		return "error"
	}
	return "ok"
}

func resultIDs(messages []*Message) string {
	ids := make([]string, 0, len(messages))
	for _, m := range messages {
		if m != nil {
			ids = append(ids, m.ToolCallID)
		}
	}
	return list(ids)
}

func messageText(m *Message) string {
	if m == nil {
		return ""
	}
	return shorten(m.Tag())
}

func messageTexts(messages []*Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, messageText(m))
	}
	return strings.Join(texts, " | ")
}

func streamText(e *StreamEvent) string {
	if e == nil {
		return ""
	}
	parts := []string{e.Type}
	if e.ContentIndex != nil {
		parts = append(parts, strconv.Itoa(*e.ContentIndex))
	}
	if e.ToolCall != nil {
		parts = append(parts, e.ToolCall.ID)
	}
	parts = append(parts, quoted(e.Delta), quoted(e.Content), messageText(e.Message), messageText(e.Error))
	return join(parts...)
}

func resultText(r *Result) string {
	if r == nil {
		return ""
	}
	return join(contentText(r.Content), flag(r.Terminate, "terminate"), flag(r.IsError, "isError"))
}

func contentText(c Content) string {
	if c.IsZero() {
		return ""
	}
	return strconv.Quote(shorten(c.PlainText()))
}

// flag shows false too: for a result, false and absent are not the same.
func flag(value *bool, name string) string {
	switch {
	case value == nil:
		return ""
	case *value:
		return name
	}
	return name + "=false"
}

func payloadText(p *Payload) string {
	if p == nil {
		return ""
	}
	parts := []string{p.Model, p.Level, shorten(string(p.Args))}
	if p.Messages != nil {
		parts = append(parts, plural(len(p.Messages), "message"))
	}
	parts = append(parts, resultText(p.Result), verdict(p.IsError), p.Provider)
	if p.Results != nil {
		parts = append(parts, "results "+list(p.Results))
	}
	if p.Event != nil {
		parts = append(parts, fmt.Sprintf("#%d", *p.Event))
	}
	return join(parts...)
}

func answerText(a *Answer) string {
	if a == nil {
		return ""
	}
	parts := []string{streamText(a.Event)}
	if a.Events != nil {
		parts = append(parts, plural(len(a.Events), "event"))
	}
	parts = append(parts, messageText(a.Final))
	if a.Throw != nil {
		parts = append(parts, "throw "+strconv.Quote(shorten(*a.Throw)))
	}
	for _, r := range a.Sync {
		parts = append(parts, "update "+resultText(r))
	}
	parts = append(parts, resultText(a.Partial), resultText(a.Result), hookText(a.Hook), messageTexts(a.Messages), quoted(a.Text))
	if a.Images != nil {
		parts = append(parts, plural(len(a.Images), "image"))
	}
	if a.Abort {
		parts = append(parts, "abort")
	}
	return join(parts...)
}

func hookText(h *HookAnswer) string {
	if h == nil {
		return ""
	}
	var parts []string
	add := func(is bool, word string) {
		if is {
			parts = append(parts, word)
		}
	}
	add(h.Block, "block")
	parts = append(parts, quoted(h.Reason))
	if h.Content != nil {
		parts = append(parts, contentText(*h.Content))
	}
	parts = append(parts, shorten(string(h.Args)), flag(h.Terminate, "terminate"), flag(h.IsError, "isError"))
	add(h.Drop > 0, fmt.Sprintf("drop %d", h.Drop))
	add(h.Append != nil, "append "+messageTexts(h.Append))
	add(h.Without != nil, "without "+list(h.Without))
	parts = append(parts, h.Model, h.Level, messageTexts(h.Messages))
	add(h.Stop, "stop")
	add(h.Continue, "continue")
	parts = append(parts, h.Action, h.Key)
	return join(parts...)
}

// stateChange is what differs from the state that was shown before; the last
// message is not shown, for the events tell it.
func stateChange(before, now *State) string {
	var parts []string
	add := func(changed bool, word string) {
		if changed {
			parts = append(parts, word)
		}
	}
	add(before.IsStreaming != now.IsStreaming, map[bool]string{true: "busy", false: "idle"}[now.IsStreaming])
	add(before.Messages != now.Messages, plural(now.Messages, "message"))
	add(!slices.Equal(before.Pending, now.Pending), "pending "+orNone(strings.Join(now.Pending, " ")))
	add(before.Streaming != now.Streaming, "streaming "+orNone(now.Streaming))
	add(before.Error != now.Error, "error "+orNone(quoted(now.Error)))
	if parts == nil {
		return ""
	}
	return "  {" + strings.Join(parts, ", ") + "}"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func list(items []string) string { return "[" + strings.Join(items, " ") + "]" }

// words are the texts that are not empty.
func words(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

func join(texts ...string) string { return strings.Join(words(texts...), " ") }

// quoted is a text in quotes, or nothing if there is none.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return strconv.Quote(shorten(text))
}

// oneLine is a text with what cannot be printed escaped: a subject's names may
// hold anything.
func oneLine(text string) string {
	unprintable := func(r rune) bool { return !strconv.IsPrint(r) }
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shorten cuts a text that is too long for a line.
func shorten(text string) string {
	const longest = 160 // characters
	count := utf8.RuneCountInString(text)
	if count <= longest {
		return text
	}
	runes := []rune(text)
	return string(runes[:longest]) + fmt.Sprintf("…(%d more)", count-longest)
}
