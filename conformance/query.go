package conformance

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// The questions that rules ask of a history.

func (h *history) step(i int) int { return h.entries[i].Step }

func (h *history) event(i int) *trace.Event { return h.entries[i].Event }

func (h *history) payload(c *callback) *trace.Payload {
	if p := h.entries[c.begin].Payload; p != nil {
		return p
	}
	return &noPayload
}

var noPayload trace.Payload

// over is the entry from which on a run can bring nothing more, or never: where
// its user action settled, or, where actions are not recorded, its agent_end.
func (h *history) over(r *run) int {
	if r.user != none {
		return r.settled
	}
	return r.end
}

func (h *history) turnCalls(t *turn) []call { return h.calls[t.calls[0]:t.calls[1]] }
func (h *history) turnOf(c *call) *turn     { return &h.turns[c.turn] }
func (h *history) runOf(t *turn) *run       { return &h.runs[t.run] }
func (h *history) cb(k int) *callback       { return &h.callbacks[k] }
func (h *history) settles(k int) int        { return h.callbacks[k].settle }
func (h *history) callAt(i int) *call       { return &h.calls[h.places[i].call] }
func (h *history) hasCall(i int) bool       { return h.places[i].call != none }
func (h *history) eventsIn(from, to int) []int {
	lo := h.eventIndex(from)
	hi := lo
	for hi < len(h.events) && h.events[hi] < to {
		hi++
	}
	return h.events[lo:hi]
}

// eventIndex is the number of events before an entry.
func (h *history) eventIndex(entry int) int {
	lo, hi := 0, len(h.events)
	for lo < hi {
		mid := (lo + hi) / 2
		if h.events[mid] < entry {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// nextEvent is the entry of the first event after an entry, in the same run, or
// never.
func (h *history) nextEvent(i int) int {
	k := h.eventIndex(i + 1)
	if k >= len(h.events) || h.places[h.events[k]].run != h.places[i].run {
		return never
	}
	return h.events[k]
}

// isLate reports whether an event is what came of an update that was made too
// late. That is for UPD-2 to say, wherever the event lies.
func (h *history) isLate(i int) bool {
	if h.places[i].event != toolUpdate {
		return false
	}
	for k := range h.reports {
		if h.reports[k].kind == reportLate && h.step(h.reports[k].entry) == h.step(i) {
			return true
		}
	}
	return false
}

// timely is the event, or the next one of its run that is not late.
func (h *history) timely(i int) int {
	for i != never && h.isLate(i) {
		i = h.nextEvent(i)
	}
	return i
}

// nextTurn is the turn after t in the same run, or nil.
func (h *history) nextTurn(index int) *turn {
	if index+1 < len(h.turns) && h.turns[index+1].run == h.turns[index].run {
		return &h.turns[index+1]
	}
	return nil
}

// delivered is the entry at which the last listener has finished with an event:
// none if no listener was called, never if one is still busy.
func (h *history) delivered(event int) int {
	last := none
	for k := int(h.places[event].first); k != none; k = h.callbacks[k].next {
		last = max(last, h.callbacks[k].settle)
	}
	return last
}

// heldUp reports whether some listener was busy all the time from an entry to the
// step of a later one. Deliveries may overlap (edge 13), but none has to: a loop
// may as well tell its events one after the other, and then speaks later.
func (h *history) heldUp(from, until int) bool {
	for step := h.step(from); step < h.step(until); step++ {
		if !slices.ContainsFunc(h.callbacks, func(c callback) bool {
			return c.kind == callListener && h.step(c.begin) <= step && (c.settle == never || h.step(c.settle) > step)
		}) {
			return false
		}
	}
	return h.step(from) < h.step(until)
}

// isFailure reports whether a message ends its run at once.
func isFailure(m *trace.Message) bool {
	return m.StopReason == trace.StopError || m.StopReason == trace.StopAborted
}

// ran reports whether the calls of a turn were to be run at all.
func (t *turn) ran() bool {
	return t.message != nil && !isFailure(t.message) && t.calls[1] > t.calls[0]
}

// plain reports whether the model's message asks for no tool.
func (t *turn) plain() bool {
	return t.message != nil && !isFailure(t.message) && t.calls[1] == t.calls[0]
}

func (t *turn) truncated() bool { return t.message != nil && t.message.StopReason == trace.StopLength }

// sequential reports whether the batch of a turn has to run one call at a time.
func (h *history) sequential(t *turn) bool {
	if h.tr.Header.Config.ToolExecution == "sequential" {
		return true
	}
	for k := range h.turnCalls(t) {
		if tool := h.tool(h.turnCalls(t)[k].block.Name); tool != nil && tool.ExecutionMode == "sequential" {
			return true
		}
	}
	return false
}

// parallel reports whether the calls of a turn run together.
func (h *history) parallel(t *turn) bool {
	return t.ran() && !t.truncated() && !h.sequential(t)
}

func (h *history) tool(name string) *trace.Tool {
	tools := h.tr.Header.Config.Tools
	for k := range tools {
		if tools[k].Name == name {
			return &tools[k]
		}
	}
	return nil
}

func (h *history) hooked(name string) bool {
	_, ok := h.tr.Header.Config.Hooks[name]
	return ok
}

// abortedBy reports whether the run of a turn had been aborted by an entry.
func (h *history) abortedBy(t *turn, entry int) bool { return h.runOf(t).abort <= entry }

// terminates reports whether every finalized call of a turn asked for the end of
// the tool cycle, and some whether at least one did.
func (h *history) terminates(t *turn) (all, some bool) {
	ended := 0
	all = true
	for k := range h.turnCalls(t) {
		c := &h.turnCalls(t)[k]
		if c.end == never {
			continue
		}
		ended++
		if result := h.event(c.end).Result; result != nil && isTrue(result.Terminate) {
			some = true
		} else {
			all = false
		}
	}
	return all && ended > 0, some
}

// stopped reports whether a hook ended the run at a turn.
func (h *history) stopped(index int) bool {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.turn != index || c.answer == nil || c.answer.Hook == nil {
			continue
		}
		if c.kind == callShouldStop && c.answer.Hook.Stop || c.kind == callFinishTurn && c.answer.Hook.Action == "end" {
			return true
		}
	}
	return false
}

// wants reports whether finishTurn asked for one more request after a turn.
func (h *history) wantsMore(index int) bool {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.turn == index && c.kind == callFinishTurn && c.answer != nil && c.answer.Hook != nil && c.answer.Hook.Action == "continue" {
			return true
		}
	}
	return false
}

// injected reports whether a turn began with queued messages: any message that
// is not the system's, before its request.
func (h *history) injected(t *turn) bool {
	until := min(t.answered, t.end)
	if t.request != none {
		until = min(until, h.cb(t.request).begin)
	}
	for _, i := range h.eventsIn(t.start, until) {
		if h.places[i].event == messageStart && h.event(i).Message != nil && h.event(i).Message.Role != trace.RoleSystem {
			return h.event(i).Message.Role != trace.RoleAssistant || t.request != none
		}
	}
	return false
}

// pendingAt reports whether a callback had begun and not settled at an entry.
func (c *callback) pendingAt(i int) bool { return c.begin < i && c.settle > i }

// preparedAt is the entry at which the preparation of a call ends, or never.
func (h *history) preparedAt(c *call) int {
	if c.before != none {
		return h.settles(c.before)
	}
	return h.preparingAt(c)
}

// preparingAt is the entry by which the preparation of a call has begun, and
// all its listeners have heard of its start; never if it has not.
func (h *history) preparingAt(c *call) int {
	switch {
	case c.start == never:
		return never
	case c.prepare != none:
		return h.cb(c.prepare).begin
	}
	return max(c.start, h.delivered(c.start))
}

// cause says why a call was never executed, as far as the trace tells.
type cause uint8

const (
	causeUnseen  cause = iota // none seen: invalid arguments, an abort, or no reason at all
	causeUnknown              // there is no such tool
	causePrepare              // prepareArguments threw
	causeBefore               // beforeToolCall threw
	causeBlocked
)

func (h *history) refusal(c *call) cause {
	switch {
	case h.tool(c.block.Name) == nil:
		return causeUnknown
	case c.prepare != none && h.cb(c.prepare).throws:
		return causePrepare
	case c.before != none && h.cb(c.before).throws:
		return causeBefore
	case c.before != none && h.hookAnswer(c.before).Block:
		return causeBlocked
	}
	return causeUnseen
}

var noAnswer trace.HookAnswer

func (h *history) hookAnswer(k int) *trace.HookAnswer {
	if a := h.cb(k).answer; a != nil && a.Hook != nil {
		return a.Hook
	}
	return &noAnswer
}

func (h *history) thrown(k int) string {
	if a := h.cb(k).answer; a != nil && a.Throw != nil {
		return *a.Throw
	}
	return ""
}

// ---- comparing ----

func isTrue(b *bool) bool { return b != nil && *b }

// sameTag reports whether two messages have the same tag.
func sameTag(a, b *trace.Message) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a == b {
		return true
	}
	return a.Role == b.Role && a.StopReason == b.StopReason && a.ToolCallID == b.ToolCallID &&
		a.IsError == b.IsError && sameText(a.Content, b.Content) && sameCalls(a, b)
}

func sameText(a, b trace.Content) bool { return a.PlainText() == b.PlainText() }

func sameCalls(a, b *trace.Message) bool {
	x, y := a.Content.Blocks, b.Content.Blocks
	for {
		x, y = toNextCall(x), toNextCall(y)
		if len(x) == 0 || len(y) == 0 {
			return len(x) == len(y)
		}
		if x[0].ID != y[0].ID {
			return false
		}
		x, y = x[1:], y[1:]
	}
}

func toNextCall(blocks []trace.Block) []trace.Block {
	for len(blocks) > 0 && blocks[0].Type != trace.BlockToolCall {
		blocks = blocks[1:]
	}
	return blocks
}

func sameTags(a, b []*trace.Message) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if !sameTag(a[k], b[k]) {
			return false
		}
	}
	return true
}

// sameContent reports whether two contents are the same, block by block. No
// content and no blocks are the same.
func sameContent(a, b trace.Content) bool {
	if a.IsText || b.IsText {
		return a.IsText == b.IsText && a.Text == b.Text
	}
	if len(a.Blocks) != len(b.Blocks) {
		return false
	}
	for k := range a.Blocks {
		if !sameBlock(&a.Blocks[k], &b.Blocks[k]) {
			return false
		}
	}
	return true
}

func sameBlock(a, b *trace.Block) bool {
	return a.Type == b.Type && a.Text == b.Text && a.Thinking == b.Thinking && a.ID == b.ID && a.Name == b.Name &&
		a.Data == b.Data && a.MimeType == b.MimeType && sameValue(a.Arguments, b.Arguments)
}

// sameResult reports whether two results of tools are the same in all that the
// contract names.
func sameResult(a, b *trace.Result) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a == b {
		return true
	}
	return sameContent(a.Content, b.Content) && sameValue(a.Details, b.Details) && sameValue(a.Usage, b.Usage) &&
		isTrue(a.Terminate) == isTrue(b.Terminate)
}

// sameValue compares JSON values by what they mean; absent equals null.
func sameValue(a, b trace.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := canonical(a), canonical(b)
	return bytes.Equal(x, y)
}

// alike compares JSON values but takes a scalar for its text, as validation may
// have turned the one into the other.
func alike(a, b trace.Value) bool {
	if sameValue(a, b) {
		return true
	}
	unquoted := func(v trace.Value) []byte { return bytes.ReplaceAll(canonical(v), []byte{'"'}, nil) }
	return bytes.Equal(unquoted(a), unquoted(b))
}

func canonical(v trace.Value) trace.Value {
	if len(v) == 0 || string(v) == "null" {
		return nil
	}
	c := v.Clone()
	if err := c.Canonicalize(); err != nil {
		return v
	}
	return c
}

func isEmptyObject(v trace.Value) bool {
	c := canonical(v)
	return c == nil || string(c) == "{}"
}

// hasTag reports whether a tag is that of a message, without making the tag.
func hasTag(tag string, m *trace.Message) bool {
	if m == nil {
		return false
	}
	rest, ok := strings.CutPrefix(tag, m.Role)
	if !ok {
		return false
	}
	switch m.Role {
	case trace.RoleAssistant:
		rest, ok = cutAnswer(rest, m)
	case trace.RoleToolResult:
		rest, ok = cutResult(rest, m)
	}
	if !ok {
		return false
	}
	rest, ok = strings.CutPrefix(rest, ": ")
	return ok && rest == m.Content.PlainText()
}

// cutAnswer takes stop reason and call ids of an assistant message off a tag.
func cutAnswer(tag string, m *trace.Message) (rest string, ok bool) {
	if rest, ok = cutAll(tag, " ", m.StopReason, " ["); !ok {
		return tag, false
	}
	separator := ""
	for blocks := toNextCall(m.Content.Blocks); len(blocks) > 0; blocks = toNextCall(blocks[1:]) {
		if rest, ok = cutAll(rest, separator, blocks[0].ID, ""); !ok {
			return tag, false
		}
		separator = " "
	}
	return strings.CutPrefix(rest, "]")
}

// cutResult takes call id and error mark of a tool result message off a tag.
func cutResult(tag string, m *trace.Message) (rest string, ok bool) {
	mark := ""
	if m.IsError {
		mark = " error"
	}
	return cutAll(tag, " ", m.ToolCallID, mark)
}

func cutAll(tag, a, b, c string) (rest string, ok bool) {
	for _, part := range [...]string{a, b, c} {
		if tag, ok = strings.CutPrefix(tag, part); !ok {
			return tag, false
		}
	}
	return tag, true
}
