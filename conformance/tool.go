package conformance

import (
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

var toolRules = []Rule{
	{
		ID: "TOOL-1", Family: FamilyTool, Level: Must, Source: "U3", Needs: evidence{needE}, Edges: []int{1, 2, 5, 11}, check: tool1,
		Sentence: "Each call that is not skipped by an abort has exactly one start, one end and one result message, in that order.",
		Why:      "A card that gets no end spins for ever, and a call without a result makes the next request invalid.",
	},
	{
		ID: "TOOL-2", Family: FamilyTool, Level: Must, Source: "U3", Needs: evidence{needE}, Edges: onFailures, check: tool2,
		Sentence: "No start comes before the assistant's message_end.",
		Why:      "Until then the arguments are not final; a card would show a command that the model never finished.",
	},
	{
		ID: "TOOL-3", Family: FamilyTool, Level: Must, Source: "U3, K", Needs: evidence{needL, needC}, Edges: onFailures, check: tool3,
		Sentence: "No prepareArguments, beforeToolCall or execute begins before every listener has finished with the assistant's message_end.",
		Why:      "A session that is stored by a listener must hold the request for a tool before the tool changes anything.",
	},
	{
		ID: "TOOL-4", Family: FamilyTool, Level: Must, Source: "U4", Needs: evidence{needE, needC}, Edges: onFailures, check: tool4,
		Sentence: "start comes before prepareArguments, beforeToolCall and execute of that call.",
		Why:      "The question whether a command may run appears on the card of that command, so the card has to be there.",
	},
	{
		ID: "TOOL-5", Family: FamilyTool, Level: Must, Source: "U4, R", Needs: evidence{needE}, Edges: []int{2, 11, 15}, check: tool5,
		Sentence: "The args of start and updates are the model's raw arguments, whatever preparation returns.",
		Why:      "The user should see what the model asked for, not what the program made of it.",
	},
	{
		ID: "TOOL-6", Family: FamilyTool, Level: Must, Source: "U5, K", Needs: evidence{needC}, Edges: []int{2, 5, 11, 15}, check: tool6,
		Sentence: "prepareArguments, beforeToolCall, execute and afterToolCall come in that order, each at most once a call; beforeToolCall and execute get the prepared, validated arguments.",
		Why:      "A permission that was given for one command must not be used for another.",
	},
	{
		ID: "TOOL-7", Family: FamilyTool, Level: Must, Source: "U5, U8", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: tool7,
		Sentence: "An unknown tool, invalid arguments, a throwing prepareArguments or beforeToolCall, or a block gives an error outcome: isError, no execute, no afterToolCall.",
		Why:      "What was forbidden must not happen, and the model has to be told that it did not.",
	},
	{
		ID: "TOOL-8", Family: FamilyTool, Level: Must, Source: "K, R", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: tool8,
		Sentence: "A blocked call's text is the hook's reason, or a default; it terminates only if the hook said so; if the run was aborted meanwhile it is an aborted outcome instead.",
		Why:      "The reason is how the user tells the model what to do instead.",
	},
	{
		ID: "TOOL-9", Family: FamilyTool, Level: Must, Source: "U3", Needs: evidence{needE}, Edges: onFailures, check: tool9,
		Sentence: "end comes before message_start of the same call's result.",
		Why:      "The card settles before the history does; otherwise a result is listed whose card still spins.",
	},
	{
		ID: "TOOL-10", Family: FamilyTool, Level: Must, Source: "U8, R", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: tool10,
		Sentence: "end.result carries what afterToolCall left: content, details, usage, isError and terminate, each replaced as a whole if given.",
		Why:      "That hook redacts secrets and shortens output; what it took out must not come back.",
	},
	{
		ID: "TOOL-11", Family: FamilyTool, Level: Must, Source: "U14, K", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: tool11,
		Sentence: "A tool that throws gives an error outcome with the error's message, and it passes through afterToolCall.",
		Why:      "The model can only correct a command if it is told what went wrong.",
	},
	{
		ID: "TOOL-12", Family: FamilyTool, Level: Must, Source: "K, R", From: "0.67.68", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: tool12,
		Sentence: "An afterToolCall that throws gives an error with that message, and ends neither batch nor run.",
		Why:      "A mistake in one extension must not lose the work of every tool of the turn.",
	},
	{
		ID: "TOOL-13", Family: FamilyTool, Level: Must, Source: "K, R", Needs: evidence{needE}, Edges: []int{2, 5, 11}, check: tool13,
		Sentence: "The result message has the call's id and name, and the end's content, details, usage and isError.",
		Why:      "What the user saw on the card and what the model is told have to be the same.",
	},
	{
		ID: "TOOL-14", Family: FamilyTool, Level: Must, Source: "K", Needs: evidence{needE}, Edges: []int{2, 5, 11}, check: tool14,
		Sentence: "Every result that the loop makes answers a call of the same turn's assistant message; never two for one call.",
		Why:      "Providers refuse a request that holds a result for a call that was not made.",
	},
	{
		ID: "TOOL-15", Family: FamilyTool, Level: Must, Source: "K", Needs: evidence{needR, needE}, Edges: []int{2, 5, 11}, check: tool15,
		Sentence: "In every request each result follows its assistant message with no other message of the model between, in source order.",
		Why:      "Providers refuse a request in which calls and results do not stand together.",
	},
	{
		ID: "TOOL-17", Family: FamilyTool, Level: Must, Source: "K, R", Needs: evidence{needC, needE}, Edges: []int{2, 5, 11, 15}, check: tool17,
		Sentence: "beforeToolCall and afterToolCall get the assistant message, the raw call, and a context that has the assistant message and every earlier turn's results, but none of the same batch.",
		Why:      "A hook that decides whether a command is safe has to see why the model asked for it.",
	},
	{
		ID: "TOOL-18", Family: FamilyTool, Level: Must, Source: "K, R", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: tool18,
		Sentence: "An error that the loop makes has one text block, empty details, no terminate (block and afterToolCall aside).",
		Why:      "Interfaces and models read errors in one shape, and an error must not end the run behind the model's back.",
	},
	{
		ID: "TOOL-19", Family: FamilyTool, Level: Must, Source: "R", Needs: evidence{needE, needC}, Edges: []int{2, 5, 11}, check: tool19,
		Sentence: "A tool's own isError is honoured from edition 0.99 and ignored before; durationMs stands on executed calls only.",
		Why:      "A tool that reports failure without throwing would be shown as a success, or the other way round.",
	},
}

func tool1(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		t := h.turnOf(c)
		if t.end == never || isFailure(t.message) || h.abortedBy(t, t.end) {
			continue
		}
		h.expectOnce(j, c)
	}
}

// expectOnce expects one start, one end and one result of a call, in that order.
func (h *history) expectOnce(j *judge, c *call) {
	t := h.turnOf(c)
	switch {
	case c.starts != 1 || c.ends != 1:
		j.expect(false, t.answered, h.evident(c, t.end), "a call has not exactly one start and one end")
	case c.results != 1:
		j.expect(false, c.end, h.evident(c, t.end), "a call has not exactly one result message")
	default:
		j.expect(c.start < c.end && c.end < c.resultStart, c.start, max(c.end, c.resultStart), "start, end and result of a call come in another order")
	}
}

// evident is where it became evident that a call has too few or too many events:
// at the one too many, or at the end of the turn.
func (h *history) evident(c *call, end int) int {
	starts, ends, results := 0, 0, 0
	for _, i := range h.eventsIn(h.turnOf(c).answered, end) {
		if !h.hasCall(i) || h.callAt(i) != c {
			continue
		}
		switch h.places[i].event {
		case toolStart:
			starts++
		case toolEnd:
			ends++
		case messageStart:
			results++
		default:
		}
		if starts > 1 || ends > 1 || results > 1 {
			return i
		}
	}
	return end
}

func tool2(h *history, j *judge) {
	for _, i := range h.events {
		if h.places[i].event != toolStart {
			continue
		}
		t := h.places[i].turn
		if t == none {
			j.expect(false, none, i, "a tool starts outside a turn")
			continue
		}
		j.expect(h.turns[t].answered < i, h.turns[t].start, i, "a tool starts before the assistant's message has ended")
	}
}

func tool3(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if !c.kind.isOfTool() || c.turn == none {
			continue
		}
		t := &h.turns[c.turn]
		if t.answered == never || h.places[t.answered].first == none && t.answered < c.begin {
			continue
		}
		j.expect(max(t.answered, h.delivered(t.answered)) < c.begin, t.answered, c.begin, "a tool is run before every listener has finished with the assistant's message_end")
	}
}

func tool4(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if !c.kind.isOfTool() || c.call == none {
			continue
		}
		start := h.calls[c.call].start
		j.expect(start < c.begin, c.begin, min(start, len(h.entries)-1), "a tool is run before its start")
	}
}

func tool5(h *history, j *judge) {
	for _, i := range h.events {
		kind := h.places[i].event
		if kind != toolStart && kind != toolUpdate || !h.hasCall(i) {
			continue
		}
		c := h.callAt(i)
		args := h.event(i).Args
		same := h.wereGiven(c, args)
		j.expect(same, h.turnOf(c).answered, i, "the arguments are not those that the model gave")
	}
}

// wereGiven reports whether the model gave the arguments to a call, or to another
// that shares its id (e5).
func (h *history) wereGiven(c *call, args trace.Value) bool {
	batch := h.turnCalls(h.turnOf(c))
	for k := range batch {
		given := batch[k].block.Arguments
		if batch[k].block.ID == c.block.ID && (sameValue(args, given) || isEmptyObject(args) && isEmptyObject(given)) {
			return true
		}
	}
	return false
}

func tool6(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone {
			continue
		}
		h.expectPhases(j, c)
		h.expectArguments(j, c)
	}
}

// expectPhases expects that the callbacks of a call come once and in order.
func (h *history) expectPhases(j *judge, c *call) {
	last, count := none, 0
	for k := range h.callbacks {
		cb := &h.callbacks[k]
		if cb.call == none || &h.calls[cb.call] != c || !cb.kind.isOfTool() && cb.kind != callAfter {
			continue
		}
		if last != none {
			before := h.cb(last)
			j.expect(phase(before.kind) < phase(cb.kind) && before.settle <= cb.begin, before.begin, cb.begin, "preparation, hook, execution and hook of a call come twice or in another order")
		}
		last = k
		count++
	}
	if count == 1 {
		j.expect(true, h.cb(last).begin, none, "")
	}
}

func phase(kind callbackKind) int {
	switch kind {
	case callPrepareArguments:
		return 1
	case callBefore:
		return 2
	case callTool:
		return 3
	case callAfter:
		return 4
	default:
	}
	return 0
}

func (h *history) expectArguments(j *judge, c *call) {
	want, at := c.block.Arguments, h.turnOf(c).answered
	if c.prepare != none {
		if args := h.hookAnswer(c.prepare).Args; len(args) > 0 {
			want, at = args, h.cb(c.prepare).begin
		}
	}
	for _, k := range [...]int{c.before, c.execute} {
		if k == none {
			continue
		}
		args := h.payload(h.cb(k)).Args
		j.expect(alike(args, want) || isEmptyObject(args) && isEmptyObject(want) || h.widened(c), at, h.cb(k).begin, "the arguments are not the prepared ones")
	}
}

// widened reports whether validation may have added to the arguments: the
// tool's schema names defaults.
func (h *history) widened(c *call) bool {
	tool := h.tool(c.block.Name)
	return tool != nil && strings.Contains(string(tool.Parameters), `"default"`)
}

func tool7(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.end == never || h.turnOf(c).truncated() {
			continue
		}
		if h.refusal(c) == causeUnseen && c.execute != none || h.abortedWhileAsked(c) {
			continue
		}
		if h.refusal(c) == causeUnseen && h.turnOf(c).ran() && !h.abortedBy(h.turnOf(c), c.end) && h.surelyValid(c) {
			j.expect(false, c.start, c.end, "a call is refused although its prepared arguments are valid")
			continue
		}
		j.expect(isTrue(h.event(c.end).IsError), c.start, c.end, "a call that must not be executed has no error outcome")
		if c.execute != none {
			j.expect(false, h.refusedAt(c), h.cb(c.execute).begin, "a call that was refused is executed")
		}
		if c.after != none {
			j.expect(false, h.refusedAt(c), h.cb(c.after).begin, "afterToolCall is asked about a call that was refused")
		}
	}
}

// abortedWhileAsked reports whether the run was aborted while beforeToolCall was
// asked about a call and nothing else was wrong with it. What becomes of it then
// is for ABRT-3 to say.
func (h *history) abortedWhileAsked(c *call) bool {
	return h.since("0.75.4") && h.has(needA) && h.refusal(c) == causeUnseen && h.abortDuringHook(c) != never
}

// refusedAt is where a call was refused in its preparation.
func (h *history) refusedAt(c *call) int {
	switch h.refusal(c) {
	case causeBefore, causeBlocked:
		return h.settles(c.before)
	case causePrepare:
		return h.settles(c.prepare)
	case causeUnknown, causeUnseen:
	}
	return c.start
}

// endText is the text of the result at a call's end; plain if it is one block of
// text.
func (h *history) endText(c *call) (text string, plain bool) {
	r := h.event(c.end).Result
	if r == nil {
		return "", false
	}
	return r.Content.PlainText(), len(r.Content.Blocks) == 1 && r.Content.Blocks[0].Type == trace.BlockText
}

// ownText reports whether a text stands for one that the loop itself wrote, as
// it does in the normal form of a trace.
func ownText(text string) bool { return strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") }

func tool8(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.end == never || h.refusal(c) != causeBlocked {
			continue
		}
		hook, settle := h.hookAnswer(c.before), h.settles(c.before)
		text, _ := h.endText(c)
		result := h.event(c.end).Result
		terminates := result != nil && isTrue(result.Terminate)
		if h.abortedBy(h.turnOf(c), settle) {
			j.expect((hook.Reason == "" || text != hook.Reason) && !terminates, settle, c.end, "the run was aborted, and the call ends as blocked")
			continue
		}
		if hook.Reason != "" {
			j.expect(text == hook.Reason, settle, c.end, "the reason of the block is not told")
		} else {
			j.expect(text != "", settle, c.end, "a block without a reason gives no text")
		}
		if h.since("0.84.1") {
			j.expect(terminates == isTrue(hook.Terminate), settle, c.end, "a blocked call terminates although the hook did not say so, or not although it did")
		}
	}
}

func tool9(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if c.resultStart == never {
			continue
		}
		if c.end == never {
			j.expect(false, c.start, c.resultStart, "a result starts, and the call has not ended")
			continue
		}
		j.expect(c.end < c.resultStart, c.resultStart, c.end, "a result starts before its call has ended")
	}
}

// given is what the execution of a call gave, before afterToolCall.
func (h *history) given(c *call) (r trace.Result, isError, ok bool) {
	cb := h.cb(c.execute)
	if cb.settle == never || cb.answer == nil {
		return r, false, false
	}
	if cb.throws {
		return errorResult(h.thrown(c.execute)), true, true
	}
	if cb.answer.Result == nil {
		return r, false, false
	}
	r = *cb.answer.Result
	return r, h.since("0.99.0") && isTrue(r.IsError), true
}

func errorResult(text string) trace.Result {
	return trace.Result{Content: trace.TextContent(text), Details: trace.Value("{}")}
}

func tool10(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.end == never || c.execute == none || c.after != none && (h.cb(c.after).throws || h.settles(c.after) == never) {
			continue
		}
		want, isError, ok := h.given(c)
		if !ok {
			continue
		}
		at := h.settles(c.execute)
		if c.after != none {
			at = h.settles(c.after)
			isError = replaced(&want, h.hookAnswer(c.after), isError)
		}
		j.expect(sameResult(&want, h.event(c.end).Result), at, c.end, "the result at the end is not what the tool and afterToolCall left")
		j.expect(isTrue(h.event(c.end).IsError) == isError, at, c.end, "isError at the end is not what the tool and afterToolCall left")
	}
}

// replaced puts what afterToolCall answered in place of a result.
func replaced(r *trace.Result, a *trace.HookAnswer, isError bool) bool {
	if a.Content != nil {
		r.Content = *a.Content
	}
	if canonical(a.Details) != nil {
		r.Details = a.Details
	}
	if canonical(a.Usage) != nil {
		r.Usage = a.Usage
	}
	if a.Terminate != nil {
		r.Terminate = a.Terminate
	}
	if a.IsError != nil {
		return *a.IsError
	}
	return isError
}

func tool11(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.end == never || c.execute == none || !h.cb(c.execute).throws {
			continue
		}
		at := h.settles(c.execute)
		if h.hooked(trace.HookAfterToolCall) {
			j.expect(c.after != none, at, c.end, "the error of a tool does not pass through afterToolCall")
		}
		if c.after != none {
			j.expect(isTrue(h.payload(h.cb(c.after)).IsError), at, h.cb(c.after).begin, "afterToolCall is not told that the tool failed")
			continue
		}
		text, _ := h.endText(c)
		j.expect(isTrue(h.event(c.end).IsError) && text == h.thrown(c.execute), at, c.end, "a tool threw, and its call does not end with that error")
	}
}

func tool12(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.after == none || !h.cb(c.after).throws {
			continue
		}
		at := h.settles(c.after)
		if c.end == never {
			if end := h.turnOf(c).end; end != never {
				j.expect(false, at, end, "afterToolCall threw, and the call has no end")
			}
			continue
		}
		text, _ := h.endText(c)
		j.expect(isTrue(h.event(c.end).IsError) && text == h.thrown(c.after), at, c.end, "afterToolCall threw, and the call does not end with that error")
	}
}

func tool13(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.end == never || c.resultStart == never {
			continue
		}
		m, end := h.event(c.resultStart).Message, h.event(c.end)
		j.expect(m.ToolName == c.block.Name, c.end, c.resultStart, "the result has another tool's name")
		if end.Result == nil {
			continue
		}
		r := end.Result
		same := sameContent(m.Content, r.Content) && sameValue(m.Details, r.Details) && sameValue(m.Usage, r.Usage) && m.IsError == isTrue(end.IsError)
		j.expect(same, c.end, c.resultStart, "the result message is not what the call ended with")
	}
}

func tool14(h *history, j *judge) {
	for _, i := range h.events {
		m := h.event(i).Message
		if h.places[i].event != messageStart || m == nil || m.Role != trace.RoleToolResult || h.places[i].turn == none {
			continue
		}
		t := h.places[i].turn
		if h.turns[t].answered > i {
			continue
		}
		if !h.hasCall(i) {
			j.expect(false, h.turns[t].answered, i, "a result answers no call")
			continue
		}
		c := h.callAt(i)
		j.expect(c.turn == int(t), h.turns[t].answered, i, "a result answers a call of another turn")
		j.expect(c.resultStart == i || !c.alone, c.resultStart, i, "a call gets a second result")
	}
}

func tool15(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind != callModel || h.editsContext(c.run) {
			continue
		}
		h.expectTogether(j, c)
	}
}

// editsContext reports whether a hook changed what the model is shown in a run.
func (h *history) editsContext(run int) bool {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.run != run || c.answer == nil || c.answer.Hook == nil {
			continue
		}
		if a := c.answer.Hook; a.Drop > 0 || len(a.Append) > 0 || len(a.Without) > 0 {
			return true
		}
	}
	return false
}

func (h *history) expectTogether(j *judge, c *callback) {
	assistant, next := none, 0 // entry of the latest assistant message; index that its next result may have
	for _, tag := range h.payload(c).Messages {
		switch role, rest, _ := strings.Cut(tag, " "); role {
		case trace.RoleAssistant:
			assistant, next = h.answerWith(tag, c.begin), 0
		case trace.RoleToolResult:
			id := resultID(rest)
			made := h.madeCall(id, c.begin)
			if made == nil || !made.alone {
				continue
			}
			t := h.turnOf(made)
			j.expect(t.answered == assistant && made.index >= next, t.answered, c.begin, "a result does not stand behind its assistant message in source order")
			next = made.index + 1
		}
	}
}

func resultID(rest string) string {
	id, _, _ := strings.Cut(rest, ":")
	return strings.TrimSuffix(id, " error")
}

// answerWith is the entry of the latest assistant message with that tag before
// an entry, or none.
func (h *history) answerWith(tag string, before int) int {
	for k := len(h.turns) - 1; k >= 0; k-- {
		t := &h.turns[k]
		if t.answered < before && hasTag(tag, t.message) {
			return t.answered
		}
	}
	return none
}

// madeCall is the one call with that id before an entry; nil if there are none
// or several.
func (h *history) madeCall(id string, before int) *call {
	var found *call
	for k := range h.calls {
		c := &h.calls[k]
		if c.block.ID != id || h.turnOf(c).answered > before {
			continue
		}
		if found != nil {
			return nil
		}
		found = c
	}
	return found
}

func tool17(h *history, j *judge) {
	for k := range h.callbacks {
		cb := &h.callbacks[k]
		if cb.kind != callBefore && cb.kind != callAfter || cb.call == none || h.calls[cb.call].turn != cb.turn {
			continue
		}
		c := &h.calls[cb.call]
		t, p := h.turnOf(c), h.payload(cb)
		if p.Assistant == "" || !c.alone || t.doubled {
			continue
		}
		j.expect(hasTag(p.Assistant, t.message), t.answered, cb.begin, "the hook is not given the assistant message")
		j.expect(alike(p.RawArgs, c.block.Arguments) || isEmptyObject(p.RawArgs) && isEmptyObject(c.block.Arguments), t.answered, cb.begin, "the hook is not given the raw call")
		if want := &h.expect().contexts[k]; want.known && h.form == trace.FormAgent && p.Context != nil {
			j.expect(holds(p.Context, want.messages), t.answered, cb.begin, "the hook is given another context")
		}
	}
}

func tool18(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.end == never || !isTrue(h.event(c.end).IsError) || h.event(c.end).Result == nil || !h.isLoopsError(c) {
			continue
		}
		text, plain := h.endText(c)
		r := h.event(c.end).Result
		j.expect(plain && text != "" || ownText(text) || plain && h.threwNothing(c), c.start, c.end, "an error that the loop made is not one block of text")
		j.expect(isEmptyObject(r.Details), c.start, c.end, "an error that the loop made has details")
		if h.refusal(c) != causeBlocked {
			j.expect(!isTrue(r.Terminate), c.start, c.end, "an error that the loop made terminates")
		}
	}
}

// isLoopsError reports whether the loop itself made the error of a call: the
// call was not executed, or something threw and nobody replaced the outcome.
func (h *history) isLoopsError(c *call) bool {
	switch {
	case c.execute == none:
		return true
	case c.after != none:
		return h.cb(c.after).throws
	}
	return h.cb(c.execute).throws
}

// threwNothing reports whether an error with an empty message was thrown.
func (h *history) threwNothing(c *call) bool {
	for _, k := range [...]int{c.prepare, c.before, c.execute, c.after} {
		if k != none && h.cb(k).throws && h.thrown(k) == "" {
			return true
		}
	}
	return false
}

func tool19(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		if !c.alone || c.end == never {
			continue
		}
		end := h.event(c.end)
		if end.DurationMs != nil && h.since("1.1.0") {
			j.expect(c.execute != none, c.start, c.end, "a call that was not executed has a duration")
		}
		if c.execute == none || c.after != none {
			continue
		}
		r, isError, ok := h.given(c)
		if ok && r.IsError != nil {
			j.expect(isTrue(end.IsError) == isError, h.settles(c.execute), c.end, "a tool's own isError is not treated as the edition has it")
		}
	}
}
