package conformance

import "github.com/pi-conform/pi-conform/harness/trace"

var turnRules = []Rule{
	{
		ID: "TURN-1", Family: FamilyTurn, Level: Must, Source: "K", Needs: evidence{needE}, Edges: onFailures, check: turn1,
		Sentence: "turn_start and turn_end alternate, beginning with turn_start; no message or tool event lies outside a turn.",
		Why:      "Interfaces and logs group what happens by turn; an event outside has no place to be shown.",
	},
	{
		ID: "TURN-2", Family: FamilyTurn, Level: Must, Source: "K", Needs: evidence{needE}, Edges: onFailures, check: turn2,
		Sentence: "A turn has exactly one assistant message made by the model, and its turn_end carries it.",
		Why:      "Costs, retries and stored turns are counted by the message that turn_end carries.",
	},
	{
		ID: "TURN-3", Family: FamilyTurn, Level: Must, Source: "U3", Needs: evidence{needE}, Edges: onFailures, check: turn3,
		Sentence: "turn_end comes after message_end of every tool result that the loop made in the turn.",
		Why:      "A turn that is shown as finished must not gain results afterwards.",
	},
	{
		ID: "TURN-4", Family: FamilyTurn, Level: Must, Source: "U11", Needs: evidence{needE}, Edges: onFailures, check: turn4,
		Sentence: "turn_end.toolResults is exactly the turn's tool result messages, in the same order.",
		Why:      "Whoever reads only turn_end would store other results than the model is shown.",
	},
	{
		ID: "TURN-5", Family: FamilyTurn, Level: Must, Source: "K", Needs: evidence{needE, needC}, Edges: onFailures, check: turn5,
		Sentence: "An assistant message of stopReason error or aborted ends the run: turn_end without results, agent_end; its calls are not started, prepared or executed.",
		Why:      "The calls of a broken answer may be half written; to run them does what nobody asked for.",
	},
	{
		ID: "TURN-6", Family: FamilyTurn, Level: Must, Source: "K, R", Needs: evidence{needE, needR}, Edges: onFailures, check: turn6,
		Sentence: "After tool results exactly one further request follows, unless every result terminates, a hook stops the run, or a hook throws.",
		Why:      "The model asked for the results; if it is not shown them, the user never gets an answer.",
	},
	{
		ID: "TURN-7", Family: FamilyTurn, Level: Must, Source: "K, R", From: "0.69.0", Needs: evidence{needE, needC}, Edges: []int{2, 7, 11}, check: turn7,
		Sentence: "The tool cycle ends early if and only if the batch is not empty and every finalized result has terminate exactly true.",
		Why:      "A tool that hands over to the user relies on it; a call that did not ask for the end still owes the model its result.",
	},
	{
		ID: "TURN-8", Family: FamilyTurn, Level: Must, Source: "K", From: "0.72.1", Until: "0.87.0", Needs: evidence{needC, needE}, Edges: onFailures, check: turn8,
		Sentence: "shouldStopAfterTurn is asked after turn_end; if yes, agent_end follows at once and no queue is polled.",
		Why:      "A program that stops the loop to compact the transcript must not find that a queued message has been swallowed.",
	},
	{
		ID: "TURN-9", Family: FamilyTurn, Level: Must, Source: "K, R", Forms: inAgent, Needs: evidence{needC, needR}, Edges: []int{2, 11, 15}, check: turn9,
		Sentence: "prepareNextTurn gets that turn's message, results and context; the context, model and level that it returns are those of the next request, and what it leaves out stays.",
		Why:      "Compaction and the change of models between turns hang on it; a change that is forgotten costs money or breaks the request.",
	},
	{
		ID: "TURN-10", Family: FamilyTurn, Level: Must, Source: "K", Forms: inAwaited, Needs: evidence{needE}, Edges: onFailures, check: turn10,
		Sentence: "An assistant message without calls, with nothing queued and no decision to continue, ends the run: turn_end, agent_end.",
		Why:      "The answer is complete; a loop that asks again burns tokens and may never stop.",
	},
	{
		ID: "TURN-11", Family: FamilyTurn, Level: Must, Source: "K, R", Needs: evidence{needC, needE}, Edges: onFailures, check: turn11,
		Sentence: "The hooks around a turn's end come in the edition's order.",
		Why:      "A hook that decides on what another has prepared must not be asked before it.",
	},
	{
		ID: "TURN-12", Family: FamilyTurn, Level: Must, Source: "R", From: "0.87.0", Needs: evidence{needC, needE, needR}, Edges: onFailures, check: turn12,
		Sentence: "finishTurn is asked before turn_end; end ends the run without polling, continue ensures one more request; prepareRequest comes directly before each request.",
		Why:      "Programs decide there whether the agent is done; a decision that is not followed loses a turn or adds one.",
	},
	{
		ID: "TURN-13", Family: FamilyTurn, Level: Must, Source: "K", Needs: evidence{needE, needC}, Edges: []int{1, 2, 11}, check: turn13,
		Sentence: "Calls run because they are there, not by stopReason (error, aborted and length aside); toolUse without calls ends like an answer.",
		Why:      "Providers differ in the stop reason that they give; a loop that trusts it leaves calls unanswered.",
	},
	{
		ID: "TURN-14", Family: FamilyTurn, Level: Must, Source: "K, R", Needs: evidence{needC}, Edges: onFailures, check: turn14,
		Sentence: "After an error or aborted message no hook and no poll follows (from 0.87 finishTurn only).",
		Why:      "A run that failed must not swallow a queued message on its way out.",
	},
}

func turn1(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		open, last := false, none
		for _, i := range h.eventsIn(r.begin, r.stop) {
			switch kind := h.places[i].event; {
			case kind == turnStart:
				j.expect(!open, last, i, "a turn starts inside another")
				open, last = true, i
			case kind == turnEnd:
				j.expect(open, last, i, "a turn ends that was not started")
				open, last = false, i
			case kind == agentEnd && open:
				j.expect(false, last, i, "the run ends inside a turn")
				open = false
			case (kind.isMessage() || kind.isTool()) && !open && !h.isLate(i) && !h.isLateResult(i):
				j.expect(false, last, i, "an event lies outside a turn")
			}
		}
	}
}

// isLateResult reports whether an event is of the result of a call whose turn has
// ended. That is for TURN-3 to say.
func (h *history) isLateResult(i int) bool {
	if !h.places[i].event.isMessage() || !h.hasCall(i) {
		return false
	}
	c := h.callAt(i)
	return h.turnOf(c).end < i && (i == c.resultStart || i == c.resultEnd && c.resultStart != never)
}

func turn2(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never {
			continue
		}
		if t.message == nil {
			j.expect(false, t.start, t.end, "the turn has no message of the assistant")
			continue
		}
		j.expect(t.answers == 1, t.answered, t.end, "the turn has more than one message of the assistant")
		j.expect(sameTag(t.message, h.event(t.end).Message), t.answered, t.end, "turn_end carries another message than the assistant's")
	}
}

func turn3(h *history, j *judge) {
	for k := range h.calls {
		c := &h.calls[k]
		end := h.turnOf(c).end
		if end == never || c.resultStart == never {
			continue
		}
		switch {
		case c.resultStart > end:
			j.expect(false, end, c.resultStart, "a result starts after turn_end")
		case c.resultEnd == never:
			j.expect(false, c.resultStart, end, "turn_end comes before message_end of a result")
		default:
			j.expect(c.resultEnd < end, end, c.resultEnd, "turn_end comes before message_end of a result")
		}
	}
}

func turn4(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || t.answered > t.end {
			continue
		}
		results := h.event(t.end).ToolResults
		last, same := t.answered, true
		for _, i := range h.eventsIn(t.answered, h.runOf(t).stop) {
			m := h.event(i).Message
			if h.places[i].event != messageEnd || m == nil || m.Role != trace.RoleToolResult {
				continue
			}
			if i > t.end && (!h.isLateResult(i) || h.turnOf(h.callAt(i)) != t) {
				continue
			}
			if last = i; len(results) == 0 || !sameTag(results[0], m) {
				same = false
				break
			}
			results = results[1:]
		}
		j.expect(same && len(results) == 0, last, t.end, "turn_end.toolResults are not the turn's results in their order")
	}
}

func turn5(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.message == nil || !isFailure(t.message) {
			continue
		}
		next := h.nextEvent(t.answered)
		if next != never {
			j.expect(h.places[next].event == turnEnd && len(h.event(next).ToolResults) == 0, t.answered, next, "a failed message is not followed by turn_end without results")
			h.expectAgentEnd(j, next, "a failed message does not end the run")
		}
		for i := range h.callbacks {
			if c := &h.callbacks[i]; c.turn == k && c.kind.isOfTool() && c.begin > t.answered {
				j.expect(false, t.answered, c.begin, "a call of a failed message is run")
			}
		}
	}
}

// expectAgentEnd expects that the next event in the run is agent_end.
func (h *history) expectAgentEnd(j *judge, after int, text string) {
	if next := h.nextEvent(after); next != never {
		j.expect(h.places[next].event == agentEnd, after, next, text)
	}
}

// endOfRun is where the run of a turn came to its end, or never.
func (h *history) endOfRun(t *turn) int { return min(h.runOf(t).end, h.over(h.runOf(t))) }

// concluded is where it was seen that a run, which ended at an entry, would end
// with a turn: where the loop looked for follow-ups, and at the latest there.
func (h *history) concluded(turn, end int) int {
	for k := range h.callbacks {
		if c := &h.callbacks[k]; c.turn == turn && c.kind == callFollowUp && c.begin > h.turns[turn].end {
			return min(c.begin, end)
		}
	}
	return end
}

func turn6(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || !t.ran() || t.truncated() || len(h.event(t.end).ToolResults) == 0 {
			continue
		}
		if _, some := h.terminates(t); !some {
			h.expectRequest(j, k)
		}
	}
}

// expectRequest expects exactly one request after a turn, before the next one
// ends, unless a hook stops the run.
func (h *history) expectRequest(j *judge, index int) {
	t := &h.turns[index]
	if h.stopped(index) {
		return
	}
	next := h.nextTurn(index)
	if next == nil {
		if end := h.endOfRun(t); end != never {
			j.expect(false, t.end, h.concluded(index, end), "the run ends, and the model is not shown the results")
		}
		return
	}
	if next.end != never || next.requests > 0 {
		j.expect(next.requests == 1, t.end, min(next.end, len(h.entries)-1), "not exactly one request follows the results")
	}
}

func turn7(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || !t.ran() || h.stopped(k) {
			continue
		}
		all, some := h.terminates(t)
		next := h.nextTurn(k)
		switch {
		case all && next == nil:
			j.expect(true, t.end, none, "")
		case all:
			if next.request != none {
				goesOn := h.injected(next) || h.wantsMore(k)
				j.expect(goesOn, t.end, h.cb(next.request).begin, "every result terminates, and the tool cycle goes on")
			}
		case some && next == nil:
			if end := h.endOfRun(t); end != never {
				j.expect(false, t.end, h.concluded(k, end), "not every result terminates, and the tool cycle ends")
			}
		case some:
			j.expect(true, next.start, none, "")
		}
	}
}

func turn8(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		next := never
		if t.end != never {
			next = h.nextEvent(t.end)
		}
		asked := 0
		for i := range h.callbacks {
			c := &h.callbacks[i]
			if c.turn != k || c.kind != callShouldStop {
				continue
			}
			asked++
			j.expect(t.end < c.begin, c.begin, min(t.end, len(h.entries)-1), "shouldStopAfterTurn is asked before turn_end")
			if h.hookAnswer(i).Stop && t.end < c.begin {
				h.expectStop(j, k, c.settle)
			}
		}
		if next != never && h.hooked(trace.HookShouldStopAfterTurn) && t.message != nil && !isFailure(t.message) {
			j.expect(asked == 1, t.end, next, "shouldStopAfterTurn is not asked once after the turn")
		}
	}
}

// expectStop expects that a turn's run ends at once, without a poll.
func (h *history) expectStop(j *judge, turn, from int) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.turn == turn && c.begin > from && (c.kind == callSteering || c.kind == callFollowUp) {
			j.expect(false, from, c.begin, "a queue is polled although a hook has stopped the run")
		}
	}
	if next := h.nextEvent(from); next != never {
		j.expect(h.places[next].event == agentEnd, from, next, "the run goes on although a hook has stopped it")
	}
}

func turn9(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind != callPrepareNext || c.turn == none {
			continue
		}
		h.expectTurnPayload(j, c, k)
		h.expectPrepared(j, c)
	}
}

func (h *history) expectTurnPayload(j *judge, c *callback, k int) {
	t, p := &h.turns[c.turn], h.payload(c)
	if p.Assistant == "" || t.message == nil || t.end == never {
		return
	}
	j.expect(hasTag(p.Assistant, t.message), t.answered, c.begin, "the hook is not given the turn's message")
	results := h.event(t.end).ToolResults
	same := len(results) == len(p.Results)
	for i := 0; same && i < len(results); i++ {
		same = results[i] != nil && results[i].ToolCallID == p.Results[i]
	}
	j.expect(same, min(t.end, c.begin), c.begin, "the hook is not given the turn's results")
	if want := &h.expect().contexts[k]; want.known {
		j.expect(holds(p.Context, want.messages), min(t.end, c.begin), c.begin, "the hook is given another context")
	}
}

// expectPrepared expects that the next request is what prepareNextTurn made it.
func (h *history) expectPrepared(j *judge, c *callback) {
	if c.settle == never || c.throws || c.answer == nil || c.answer.Hook == nil || c.run == none {
		return
	}
	a := c.answer.Hook
	next := h.requestAfter(c)
	if next == none {
		return
	}
	request, want := h.cb(next), &h.expect().contexts[next]
	p := h.payload(request)
	if a.Model != "" {
		j.expect(p.Model == want.model, c.settle, request.begin, "the model that the hook chose is not asked")
	}
	if a.Level != "" {
		j.expect(h.level(p) == want.level, c.settle, request.begin, "the thinking level that the hook chose is not used")
	}
	if (a.Drop > 0 || len(a.Append) > 0) && want.known {
		j.expect(holds(p.Messages, want.messages), c.settle, request.begin, "the context that the hook gave is not the one of the request")
	}
	if len(a.Messages) > 0 && h.since("0.87.0") {
		h.expectEmitted(j, c.settle, request.begin, a.Messages, "messages that the hook gave are not emitted before the request")
	}
}

func (h *history) level(p *trace.Payload) string {
	if p.Level == "off" {
		return ""
	}
	return p.Level
}

// requestAfter is the first request in the run of a callback that follows it.
func (h *history) requestAfter(c *callback) int {
	for k := range h.callbacks {
		m := &h.callbacks[k]
		if m.kind == callModel && m.run == c.run && m.begin > c.begin {
			return k
		}
	}
	return none
}

// expectEmitted expects message_end of each message between two entries, in
// order.
func (h *history) expectEmitted(j *judge, from, to int, messages []*trace.Message, text string) {
	for _, i := range h.eventsIn(from, to) {
		if len(messages) > 0 && h.places[i].event == messageEnd && sameTag(h.event(i).Message, messages[0]) {
			messages = messages[1:]
		}
	}
	j.expect(len(messages) == 0, from, to, text)
}

func turn10(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end != never && t.plain() && !t.truncated() {
			h.expectAnswered(j, k)
		}
	}
}

// expectAnswered expects that a turn without calls ends the run, unless there is
// something that goes on.
func (h *history) expectAnswered(j *judge, index int) {
	t := &h.turns[index]
	next := h.nextTurn(index)
	if next == nil {
		h.expectAgentEnd(j, t.end, "an answer without calls is not followed by agent_end")
		return
	}
	if next.request == none && next.answered == never {
		return
	}
	goesOn := h.injected(next) || h.wantsMore(index)
	at := next.answered
	if next.request != none {
		at = h.cb(next.request).begin
	}
	j.expect(goesOn, t.end, at, "nothing is queued, and the model is asked again after an answer without calls")
}

// rank is the place of a callback in the order around the end of a turn, or 0
// for any other. From edition 0.84.4 a second poll of steering follows.
func (h *history) rank(kind callbackKind, polled bool) int {
	switch kind {
	case callPrepareNext:
		if h.since("0.84.4") {
			return 4
		}
		return 1
	case callShouldStop:
		if h.since("0.84.4") {
			return 1
		}
		return 2
	case callSteering:
		if polled && h.since("0.84.4") {
			return 5
		}
		return 2
	case callFollowUp:
		return 3
	default:
	}
	return 0
}

func turn11(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || t.message == nil || isFailure(t.message) {
			continue
		}
		next := h.nextEvent(t.end)
		h.expectOrder(j, k, next)
		if next != never && h.hooked(trace.HookPrepareNextTurn) && !h.stopped(k) {
			h.expectPrepare(j, k, next)
		}
	}
}

func (h *history) expectOrder(j *judge, turn, next int) {
	last, at, polled := 0, h.turns[turn].end, false
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.turn != turn || c.begin > next || c.begin < h.turns[turn].answered {
			continue
		}
		rank := h.rank(c.kind, polled)
		if rank == 0 {
			continue
		}
		j.expect(c.begin > h.turns[turn].end && rank >= last, at, c.begin, "the hooks around the turn's end come in another order")
		last, at, polled = rank, c.begin, polled || c.kind == callSteering
	}
}

// expectPrepare expects that prepareNextTurn is called once: after every turn,
// from edition 0.84.4 only if another follows.
func (h *history) expectPrepare(j *judge, turn, next int) {
	asked := 0
	for k := range h.callbacks {
		if c := &h.callbacks[k]; c.turn == turn && c.kind == callPrepareNext {
			asked++
		}
	}
	want := 1
	if h.since("0.84.4") && h.places[next].event != turnStart {
		want = 0
	}
	j.expect(asked == want, h.turns[turn].end, next, "prepareNextTurn is not called where the edition has it")
}

func turn12(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		switch {
		case c.turn == none:
		case c.kind == callFinishTurn:
			h.expectFinish(j, k)
		case c.kind == callModel && h.hooked(trace.HookPrepareRequest):
			h.expectPrepareRequest(j, k)
		}
	}
	if !h.hooked(trace.HookFinishTurn) {
		return
	}
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || t.message == nil || t.answered > t.end {
			continue
		}
		asked := 0
		for i := range h.callbacks {
			if c := &h.callbacks[i]; c.turn == k && c.kind == callFinishTurn {
				asked++
			}
		}
		j.expect(asked == 1, t.answered, t.end, "finishTurn is not asked once before turn_end")
	}
}

func (h *history) expectFinish(j *judge, k int) {
	c := h.cb(k)
	t := &h.turns[c.turn]
	if t.end == never {
		return
	}
	j.expect(c.settle < t.end, min(c.begin, t.end), t.end, "finishTurn is not settled before turn_end")
	if t.message == nil || isFailure(t.message) {
		return
	}
	switch h.hookAnswer(k).Action {
	case "end":
		h.expectStop(j, c.turn, t.end)
	case "continue":
		next := h.nextTurn(c.turn)
		if end := h.endOfRun(t); next == nil && end != never {
			j.expect(false, c.begin, end, "finishTurn asked for one more request, and the run ends")
		} else if next != nil {
			j.expect(true, next.start, none, "")
		}
	}
}

// expectPrepareRequest expects that prepareRequest is the last callback before
// the steps that make the request.
func (h *history) expectPrepareRequest(j *judge, request int) {
	m := h.cb(request)
	for k := request - 1; k >= 0; k-- {
		c := h.cb(k)
		switch c.kind {
		case callTransform, callConvert, callKey, callListener:
			continue
		case callPrepareRequest:
			j.expect(c.run == m.run && c.settle < m.begin, c.begin, m.begin, "the request is made before prepareRequest has settled")
			return
		default:
		}
		break
	}
	j.expect(false, none, m.begin, "prepareRequest does not come directly before the request")
}

func turn13(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || t.message == nil || isFailure(t.message) || t.truncated() {
			continue
		}
		if t.ran() {
			if t.message.StopReason != trace.StopToolUse {
				j.expect(h.calls[t.calls[0]].start < t.end, t.answered, t.end, "a call is not run because of the message's stop reason")
			}
			continue
		}
		if t.message.StopReason == trace.StopToolUse {
			next := h.nextEvent(t.answered)
			j.expect(next == t.end, t.answered, next, "a message without calls does not end like an answer")
		}
	}
}

func turn14(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.message == nil || !isFailure(t.message) {
			continue
		}
		j.expect(true, t.answered, none, "")
		for i := range h.callbacks {
			c := &h.callbacks[i]
			if c.turn != k || !c.kind.isHook() || c.begin < t.answered {
				continue
			}
			if c.kind == callFinishTurn && h.since("0.87.0") {
				continue
			}
			j.expect(false, t.answered, c.begin, "a hook or a poll follows a failed message")
		}
	}
}
