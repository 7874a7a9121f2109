package conformance

import "github.com/pi-conform/pi-conform/harness/trace"

var runRules = []Rule{
	{
		ID: "RUN-1", Family: FamilyRun, Level: Must, Source: "K", Needs: evidence{needE}, Edges: onFailures, check: run1,
		Sentence: "The first event of a run is agent_start, once, the second turn_start.",
		Why:      "A user interface opens its view of a run at agent_start; without it the run happens on a screen that still shows the last one.",
	},
	{
		ID: "RUN-2", Family: FamilyRun, Level: Must, Source: "K, U1, R", Needs: evidence{needE}, Edges: []int{2, 3, 11}, check: run2,
		Sentence: "agent_end is the last event of a run, exactly once, and no event of that run follows it.",
		Why:      "What listens for agent_end stores the transcript and lets the user type again; whatever comes later is lost or lands in the next run.",
	},
	{
		ID: "RUN-2r", Family: FamilyRun, Level: Robust, Source: "R", Needs: evidence{needE}, AfterFailure: true, check: run2,
		Sentence: "agent_end is the last event of a run, exactly once, even if a listener threw.",
		Why:      "A listener that throws is somebody else's mistake; the other listeners still need one clear end.",
	},
	{
		ID: "RUN-3", Family: FamilyRun, Level: Must, Source: "K", Needs: evidence{needE}, Edges: onFailures, check: run3,
		Sentence: "agent_end.messages is exactly the messages that this run added, in the order of their message_end.",
		Why:      "Whoever saves a conversation from agent_end would save a conversation that never took place.",
	},
	{
		ID: "RUN-4", Family: FamilyRun, Level: Must, Source: "K", Needs: evidence{needA, needC, needE, needS}, AfterFailure: true, check: run4,
		Sentence: "A prompt or continue while a run is active is refused with an error, at once, and changes nothing.",
		Why:      "Two runs on one transcript interleave their messages, and the next request is refused by the provider.",
	},
	{
		ID: "RUN-5", Family: FamilyRun, Level: Must, Source: "U9, K", Needs: evidence{needA, needL, needS}, Edges: onFailures, check: run5,
		Sentence: "The run is idle only after every listener of agent_end has settled.",
		Why:      "A program that exits once prompt has returned would cut off the listener that is still saving the session.",
	},
	{
		ID: "RUN-6", Family: FamilyRun, Level: Must, Source: "K", Needs: evidence{needA}, AfterFailure: true, check: run6,
		Sentence: "waitForIdle settles at once when no run is active.",
		Why:      "A program that waits before it goes on would wait for ever.",
	},
	{
		ID: "RUN-7", Family: FamilyRun, Level: Must, Source: "K, R", From: "0.74.1", Forms: inAgent, Needs: evidence{needE, needS, needA}, AfterFailure: true, check: run7,
		Sentence: "A failure outside the protocol ends the run with an error message of the assistant, its start and end, turn_end without results, and agent_end with that message alone.",
		Why:      "The user has to see why the answer did not come, and the view of the run has to be closed.",
	},
	{
		ID: "RUN-8", Family: FamilyRun, Level: Must, Source: "K", Forms: inAgent, Needs: evidence{needA, needE, needS}, AfterFailure: true, check: run8,
		Sentence: "After a run of any outcome a new prompt works: isStreaming false, pendingToolCalls empty, streamingMessage unset.",
		Why:      "One failed answer must not make the whole session useless until it is restarted.",
	},
	{
		ID: "RUN-9", Family: FamilyRun, Level: Must, Source: "K", Forms: inAgent, Needs: evidence{needA, needE}, AfterFailure: true, check: run9,
		Sentence: "continue with an empty transcript, or with an assistant message last and both queues empty, is refused and emits nothing.",
		Why:      "There is nothing to ask the model; the request would be refused by the provider or answered with nonsense.",
	},
	{
		ID: "RUN-10", Family: FamilyRun, Level: Must, Source: "K", Forms: inAgent, Needs: evidence{needE, needA, needPolls}, Edges: onFailures, check: run10,
		Sentence: "continue with an assistant message last drains one batch of steering, else of follow-ups, and starts a prompt run with it; that run's initial steering poll is skipped if steering started it.",
		Why:      "Messages that the user typed too late are delivered this way; they must neither be lost nor arrive two at a time.",
	},
	{
		ID: "RUN-11", Family: FamilyRun, Level: Must, Source: "K", Forms: inAgent, Needs: evidence{needE, needA, needR}, Edges: onFailures, check: run11,
		Sentence: "continue with a user or tool result message last emits agent_start and turn_start, and nothing for what is already in the transcript.",
		Why:      "A retry would show every message of the user twice.",
	},
	{
		ID: "RUN-12", Family: FamilyRun, Level: Must, Source: "K", Needs: evidence{needE, needA}, Edges: onFailures, check: run12,
		Sentence: "Text with images becomes one user message, text block first, images in order; a list of messages is taken as it is.",
		Why:      "The model has to be told what the user said, with the pictures that the words speak of.",
	},
	{
		ID: "RUN-13", Family: FamilyRun, Level: Must, Source: "R", From: "0.84.1", Forms: inAgent, Needs: evidence{needA, needE, needS}, AfterFailure: true, check: run13,
		Sentence: "reset during a run is refused and changes nothing; when idle it clears transcript, queues and error.",
		Why:      "A transcript that is cleared under a running loop begins with an answer to nothing.",
	},
	{
		ID: "RUN-14", Family: FamilyRun, Level: Must, Source: "K, R", Needs: evidence{needC, needA}, Edges: onFailures, check: run14,
		Sentence: "Once idle, no callback is pending, none is made, and no task is left behind.",
		Why:      "A tool that still works after the run has ended changes files that the user believes to be settled.",
	},
}

func run1(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.first == never {
			if r.user != none && r.settled != never {
				j.expect(h.users[r.user].outcome != trace.OutcomeOK, r.action, r.settled, "the run settled without any event")
			}
			continue
		}
		first := h.timely(r.first)
		if first == never {
			continue
		}
		j.expect(h.places[first].event == agentStart, r.action, first, "the first event of the run is not agent_start")
		second := h.timely(h.nextEvent(first))
		if second == never {
			continue
		}
		j.expect(h.places[second].event == turnStart, first, second, "the second event of the run is not turn_start")
		for _, i := range h.eventsIn(second, r.stop) {
			if h.places[i].event == agentStart && !h.intrudes(i) {
				j.expect(false, r.first, i, "agent_start comes again in the same run")
			}
		}
	}
}

// intrudes reports whether an event comes of a prompt or continue that had to be
// refused, which is for RUN-4 to say.
func (h *history) intrudes(event int) bool {
	for k := range h.users {
		u := &h.users[k]
		if u.active != none && (u.kind == userPrompt || u.kind == userContinue) && h.step(u.entry) == h.step(event) {
			return true
		}
	}
	return false
}

func run2(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.end == never {
			if over := h.over(r); over != never && r.first != never {
				j.expect(false, r.first, over, "the run is over and there was no agent_end")
			}
			continue
		}
		after := h.timely(h.nextEvent(r.end))
		if after == never {
			j.expect(true, r.end, none, "")
			continue
		}
		if h.places[after].event == agentEnd {
			j.expect(false, r.end, after, "agent_end comes twice")
			continue
		}
		j.expect(false, r.end, after, "an event follows the agent_end of its run")
	}
}

func run3(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.end == never {
			continue
		}
		messages := h.event(r.end).Messages
		last, same := r.end, true
		for _, i := range h.eventsIn(r.begin, r.end) {
			if h.places[i].event != messageEnd {
				continue
			}
			if len(messages) == 0 || !sameTag(messages[0], h.event(i).Message) {
				last, same = i, false
				break
			}
			messages = messages[1:]
		}
		j.expect(same && len(messages) == 0, last, r.end, "agent_end.messages are not the messages that the run added")
	}
}

// noise is the first output of the step that an action began, other than
// the settling of a user action; none if there is none.
func (h *history) noise(action int) int {
	for i := action + 1; i < len(h.entries) && h.step(i) == h.step(action); i++ {
		switch h.entries[i].Kind {
		case trace.KindEvent, trace.KindCall, trace.KindRead, trace.KindCancelled:
			return i
		case trace.KindAction, trace.KindSettled, trace.KindRetained, trace.KindEnd:
		default:
		}
	}
	return none
}

// refusedAtOnce reports whether a user action was refused in its own step.
func (h *history) refusedAtOnce(u *user) bool {
	return u.settled != never && u.outcome == trace.OutcomeRefused && h.step(u.settled) == h.step(u.entry)
}

// settledBy is where a user action settled, or the last entry of the trace.
func (h *history) settledBy(u *user) int { return min(u.settled, len(h.entries)-1) }

func run4(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.active == none || u.kind != userPrompt && u.kind != userContinue {
			continue
		}
		j.expect(h.refusedAtOnce(u), u.entry, h.settledBy(u), "a run is active, and the new one is not refused at once")
		if i := h.noise(u.entry); i != none {
			j.expect(false, u.entry, i, "what was refused changed something")
		}
	}
}

func run5(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.end == never || h.places[r.end].first == none {
			continue
		}
		done := h.delivered(r.end)
		if r.settled != never {
			j.expect(done < r.settled, r.end, r.settled, "the run settled before every listener of agent_end had finished")
		}
		for i := range h.users {
			if u := &h.users[i]; u.kind == userWaitForIdle && u.active == k && u.settled != never {
				j.expect(done < u.settled, r.end, u.settled, "waitForIdle settled before every listener of agent_end had finished")
			}
		}
	}
}

func run6(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userWaitForIdle || u.active != none {
			continue
		}
		atOnce := u.settled != never && h.step(u.settled) == h.step(u.entry) && u.outcome == trace.OutcomeOK
		j.expect(atOnce, u.entry, h.settledBy(u), "no run is active, and waitForIdle does not settle at once")
	}
}

func run7(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.edge == never || r.settled == never || h.failsAgain(k) || len(h.failed) > 0 && h.failed[0].from < r.edge && h.failed[0].to > r.edge {
			continue
		}
		tail := h.lastProtocolEvents(r)
		start := tail[0]
		j.expect(start != none && h.isFailureSequence(tail), r.edge, r.settled, "the run failed and does not end with message_start, message_end, turn_end, agent_end of a failure message alone")
		if start == none || !h.isFailureSequence(tail) {
			continue
		}
		want := trace.StopError
		if r.abort < start {
			want = trace.StopAborted
		}
		j.expect(h.event(start).Message.StopReason == want, r.edge, start, "the failure message has the wrong stop reason")
	}
}

// failsAgain reports whether anything threw in a run after its first failure:
// a listener may have thrown in the failure sequence too, which leaves no end.
func (h *history) failsAgain(k int) bool {
	r := &h.runs[k]
	for i := range h.callbacks {
		c := &h.callbacks[i]
		if c.run == k && c.settle != never && c.settle > r.edge && h.failsRun(c) {
			return true
		}
	}
	return false
}

// lastProtocolEvents are the last four events of a run that are not of tools: a
// sibling that still runs may speak between them.
func (h *history) lastProtocolEvents(r *run) [4]int {
	tail := [4]int{none, none, none, none}
	events := h.eventsIn(max(r.edge, r.begin), r.stop)
	at := len(tail)
	for k := len(events) - 1; k >= 0 && at > 0; k-- {
		if !h.places[events[k]].event.isTool() {
			at--
			tail[at] = events[k]
		}
	}
	return tail
}

func (h *history) isFailureSequence(tail [4]int) bool {
	for k, want := range [...]eventType{messageStart, messageEnd, turnEnd, agentEnd} {
		if tail[k] == none || h.places[tail[k]].event != want {
			return false
		}
	}
	start, end, turn, agent := h.event(tail[0]), h.event(tail[1]), h.event(tail[2]), h.event(tail[3])
	m := start.Message
	return m != nil && m.Role == trace.RoleAssistant && isFailure(m) && m.ErrorMessage != "" &&
		sameTag(m, end.Message) && sameTag(m, turn.Message) && len(turn.ToolResults) == 0 &&
		len(agent.Messages) == 1 && sameTag(m, agent.Messages[0])
}

func run8(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind == userPrompt && u.active == none {
			j.expect(!h.refusedAtOnce(u), u.entry, h.settledBy(u), "no run is active, and a prompt is refused")
		}
	}
	for k := range h.runs {
		r := &h.runs[k]
		if r.start == never || h.entries[r.start].State == nil {
			continue
		}
		state := h.entries[r.start].State
		j.expect(len(state.Pending) == 0, r.action, r.start, "a run begins with pending tool calls")
		j.expect(state.Streaming == "", r.action, r.start, "a run begins with a streaming message")
	}
	if r := h.stuck(); r != nil && r.abort == never {
		j.expect(false, r.begin, h.end, "the run never becomes idle, and nothing is left that it could wait for")
	}
}

// stuck is the run that is still active at a deadlock, or nil.
func (h *history) stuck() *run {
	if h.outcome != trace.OutcomeDeadlock || len(h.runs) == 0 {
		return nil
	}
	return &h.runs[len(h.runs)-1]
}

func run9(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userContinue || u.active != none || !h.nothingToContinue(k) {
			continue
		}
		j.expect(h.refusedAtOnce(u), u.entry, h.settledBy(u), "there is nothing to continue from, and continue is not refused")
		if i := h.noise(u.entry); i != none {
			j.expect(false, u.entry, i, "a continue that had to be refused did something")
		}
	}
}

func (h *history) nothingToContinue(user int) bool {
	r := &h.expect().resumes[user]
	return r.empty || r.last == trace.RoleAssistant && len(r.drained) == 0 && h.queuesKnown()
}

// queuesKnown reports whether it can be told what is queued: polls are seen, or
// nothing was ever queued.
func (h *history) queuesKnown() bool {
	if h.has(needPolls) {
		return true
	}
	for k := range h.users {
		if kind := h.users[k].kind; kind == userSteer || kind == userFollowUp {
			return false
		}
	}
	return true
}

func run10(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userContinue || u.active != none {
			continue
		}
		resume := &h.expect().resumes[k]
		if len(resume.drained) == 0 {
			continue
		}
		j.expect(!h.refusedAtOnce(u), u.entry, h.settledBy(u), "messages are queued, and continue is refused")
		if u.run == none {
			continue
		}
		r := &h.runs[u.run]
		h.expectOpening(j, r, resume.drained, "the run does not begin with the queued messages")
		if resume.steered {
			h.expectNoInitialSteering(j, r)
		}
	}
}

// expectOpening expects that a run's first messages, the system's aside, are
// these.
func (h *history) expectOpening(j *judge, r *run, messages []*trace.Message, text string) {
	for _, i := range h.eventsIn(r.begin, r.stop) {
		if len(messages) == 0 {
			break
		}
		ev := h.event(i)
		if h.places[i].event != messageEnd || ev.Message == nil || ev.Message.Role == trace.RoleSystem {
			continue
		}
		j.expect(sameTag(ev.Message, messages[0]), r.action, i, text)
		messages = messages[1:]
	}
	if over := h.over(r); len(messages) > 0 && over != never {
		j.expect(false, r.action, over, text)
	}
}

func (h *history) expectNoInitialSteering(j *judge, r *run) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.begin < r.begin || c.begin >= r.stop {
			continue
		}
		if c.kind == callModel {
			return
		}
		if c.kind == callSteering && c.answer != nil {
			j.expect(len(c.answer.Messages) == 0, r.action, c.begin, "steering started the run, and its initial poll took more")
		}
	}
}

func run11(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userContinue || u.run == none {
			continue
		}
		resume := &h.expect().resumes[k]
		if resume.empty || resume.last != trace.RoleUser && resume.last != trace.RoleToolResult {
			continue
		}
		h.expectNothingRepeated(j, &h.runs[u.run])
	}
}

// expectNothingRepeated expects that the messages before a run's first request
// are all of the user's steering.
func (h *history) expectNothingRepeated(j *judge, r *run) {
	if r.turns[0] == r.turns[1] {
		return
	}
	t := &h.turns[r.turns[0]]
	if t.request == none {
		return
	}
	repeated := none
	for _, i := range h.eventsIn(r.begin, h.cb(t.request).begin) {
		m := h.event(i).Message
		if h.places[i].event == messageStart && m != nil && m.Role != trace.RoleSystem && !h.wasSteered(m, i) {
			repeated = i
			break
		}
	}
	j.expect(repeated == none, r.action, max(repeated, r.action), "a continuation emits what is already in the transcript")
}

func (h *history) wasSteered(m *trace.Message, before int) bool {
	for k := range h.users {
		u := &h.users[k]
		a := h.entries[u.entry].Answer
		if u.kind != userSteer || u.entry > before || a == nil {
			continue
		}
		for _, s := range a.Messages {
			if sameTag(s, m) {
				return true
			}
		}
	}
	return false
}

func run12(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.user == none || h.users[r.user].kind != userPrompt {
			continue
		}
		a := h.entries[r.action].Answer
		switch {
		case a == nil:
		case len(a.Messages) > 0:
			h.expectPrompts(j, r, a.Messages)
		case a.Text != "" || len(a.Images) > 0:
			h.expectText(j, r, a)
		}
	}
}

func (h *history) expectPrompts(j *judge, r *run, prompts []*trace.Message) {
	for _, i := range h.eventsIn(r.begin, r.stop) {
		if len(prompts) == 0 {
			break
		}
		m := h.event(i).Message
		if h.places[i].event != messageEnd || m == nil || m.Role == trace.RoleSystem {
			continue
		}
		for len(prompts) > 0 && (prompts[0] == nil || prompts[0].Role == trace.RoleSystem) {
			prompts = prompts[1:]
		}
		if len(prompts) > 0 {
			j.expect(sameTag(m, prompts[0]) && sameContent(m.Content, prompts[0].Content), r.action, i, "a prompted message is not taken as it is")
			prompts = prompts[1:]
		}
	}
}

func (h *history) expectText(j *judge, r *run, a *trace.Answer) {
	for _, i := range h.eventsIn(r.begin, r.stop) {
		m := h.event(i).Message
		if h.places[i].event != messageEnd || m == nil || m.Role == trace.RoleSystem {
			continue
		}
		j.expect(m.Role == trace.RoleUser && isTextWithImages(m.Content, a), r.action, i, "text and images do not become one user message of them")
		return
	}
}

func isTextWithImages(c trace.Content, a *trace.Answer) bool {
	if len(a.Images) == 0 {
		return c.PlainText() == a.Text
	}
	if len(c.Blocks) != 1+len(a.Images) || c.Blocks[0].Type != trace.BlockText || c.Blocks[0].Text != a.Text {
		return false
	}
	for k := range a.Images {
		if !sameBlock(&c.Blocks[1+k], &a.Images[k]) {
			return false
		}
	}
	return true
}

func run13(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userReset {
			continue
		}
		if u.active != none {
			j.expect(h.refusedAtOnce(u), u.entry, h.settledBy(u), "a run is active, and reset is not refused")
			if i := h.noise(u.entry); i != none {
				j.expect(false, u.entry, i, "a reset that was refused changed something")
			}
			continue
		}
		h.expectCleared(j, u)
	}
}

// expectCleared expects that the next run begins with an empty transcript; from
// edition 0.86 the system's message stays.
func (h *history) expectCleared(j *judge, u *user) {
	left := 0
	if h.keepsSystem() {
		left = 1
	}
	for k := range h.runs {
		r := &h.runs[k]
		if r.begin < u.entry || r.start == never || h.entries[r.start].State == nil {
			continue
		}
		state := h.entries[r.start].State
		j.expect(state.Messages <= left && state.Error == "", u.entry, r.start, "reset left messages or an error behind")
		return
	}
}

func run14(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.settled == never {
			continue
		}
		j.expect(true, r.settled, none, "")
		for i := range h.callbacks {
			c := &h.callbacks[i]
			switch {
			case c.run != k:
			case c.begin > r.settled:
				j.expect(false, r.settled, c.begin, "the loop calls out although no run is active")
			case c.settle > r.settled:
				j.expect(false, c.begin, r.settled, "the run is over while a callback is pending")
			}
		}
	}
	if n := len(h.runs); h.outcome == trace.OutcomeLeaked && n > 0 && h.runs[n-1].settled != never {
		j.expect(false, h.runs[n-1].settled, h.end, "the loop has left tasks behind, which go on although no run is active")
	}
}
