package conformance

import "github.com/pi-conform/pi-conform/harness/trace"

var queueRules = []Rule{
	{
		ID: "QUE-1", Family: FamilyQueue, Level: Must, Source: "K, R", Needs: evidence{needE, needR, needPolls}, Edges: onFailures, check: que1,
		Sentence: "A queued message that a poll has drained gets its events and is in the next request, after the results of the turn.",
		Why:      "The user has corrected the agent; the correction has to reach the model before it goes on.",
	},
	{
		ID: "QUE-2", Family: FamilyQueue, Level: Must, Source: "K, R", Needs: evidence{needC, needE, needPolls}, Edges: onFailures, check: que2,
		Sentence: "Steering is polled once before the first request and after every turn_end, the last included; from 0.84.4 once more before a further turn, if nothing was found before.",
		Why:      "A message that is typed while the last answer streams would otherwise be left lying.",
	},
	{
		ID: "QUE-3", Family: FamilyQueue, Level: Must, Source: "K", From: "0.58.4", Needs: evidence{needE, needA, needC}, Edges: []int{2, 5, 11}, check: que3,
		Sentence: "Steering does not skip or cancel calls of the current batch.",
		Why:      "Half a batch leaves files half changed, and the model believes that its calls were run.",
	},
	{
		ID: "QUE-4", Family: FamilyQueue, Level: Must, Source: "K", Needs: evidence{needE, needA, needPolls}, Edges: onFailures, check: que4,
		Sentence: "Follow-ups are taken only when there are no more calls and no steering; they start a new turn of the same run.",
		Why:      "A follow-up is for when the work is done; taken too early it interrupts the work.",
	},
	{
		ID: "QUE-5", Family: FamilyQueue, Level: Must, Source: "K", Needs: evidence{needE, needA, needPolls}, Edges: onFailures, check: que5,
		Sentence: "one-at-a-time takes one message at a poll, all takes every one; order is kept; none is delivered twice, none is lost.",
		Why:      "Messages that are lost, doubled or swapped change what the user has said.",
	},
	{
		ID: "QUE-6", Family: FamilyQueue, Level: Must, Source: "K", Needs: evidence{needE, needA, needPolls}, Edges: []int{2, 8, 11}, check: que6,
		Sentence: "Messages not drained when the run ends stay queued.",
		Why:      "What the user typed at the last moment must still be there for the next run.",
	},
	{
		ID: "QUE-6r", Family: FamilyQueue, Level: Robust, Source: "R", Needs: evidence{needE, needA, needPolls}, Edges: onFailures, check: que6r,
		Sentence: "An aborted run drains nothing more.",
		Why:      "A correction that is drained into a dying turn is never answered.",
	},
	{
		ID: "QUE-7", Family: FamilyQueue, Level: Must, Source: "K", Needs: evidence{needE, needR, needA}, Edges: onFailures, check: que7,
		Sentence: "Prompts come before steering found by the first poll, in the same turn.",
		Why:      "A correction makes sense only after what it corrects.",
	},
}

func isPoll(kind callbackKind) bool { return kind == callSteering || kind == callFollowUp }

func drainedBy(c *callback) []*trace.Message {
	if c.answer == nil {
		return nil
	}
	return c.answer.Messages
}

func que1(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if !isPoll(c.kind) || len(drainedBy(c)) == 0 || c.run == none {
			continue
		}
		request := h.requestAfter(c)
		if request == none {
			if end := min(h.runs[c.run].end, h.over(&h.runs[c.run])); end != never {
				j.expect(false, c.begin, end, "a queued message is drained, and no request follows")
			}
			continue
		}
		begin := h.cb(request).begin
		h.expectEmitted(j, c.begin, begin, drainedBy(c), "a queued message that was drained is not emitted before the next request")
		if !h.editsContext(c.run) {
			h.expectAsked(j, c, request)
		}
	}
}

// expectAsked expects that drained messages are in a request, where the model
// gets to see their roles.
func (h *history) expectAsked(j *judge, c *callback, request int) {
	tags := h.payload(h.cb(request)).Messages
	for _, m := range drainedBy(c) {
		if m == nil || m.Role != trace.RoleUser {
			continue
		}
		j.expect(contains(tags, m), c.begin, h.cb(request).begin, "a queued message that was drained is not in the next request")
	}
}

func contains(tags []string, m *trace.Message) bool {
	for _, tag := range tags {
		if hasTag(tag, m) {
			return true
		}
	}
	return false
}

func que2(h *history, j *judge) {
	for k := range h.runs {
		h.expectFirstPoll(j, k)
	}
	for k := range h.turns {
		t := &h.turns[k]
		if t.end == never || t.message == nil || isFailure(t.message) || h.stopped(k) {
			continue
		}
		if next := h.nextEvent(t.end); next != never {
			h.expectPolls(j, k, next)
		}
	}
}

// expectFirstPoll expects one poll of steering before a run's first request,
// or none in a run that steering started.
func (h *history) expectFirstPoll(j *judge, index int) {
	r := &h.runs[index]
	if r.turns[0] == r.turns[1] || h.turns[r.turns[0]].request == none {
		return
	}
	request := h.cb(h.turns[r.turns[0]].request).begin
	polls := 0
	for k := range h.callbacks {
		if c := &h.callbacks[k]; c.run == index && c.kind == callSteering && c.begin < request {
			polls++
		}
	}
	skips := r.user != none && h.users[r.user].kind == userContinue && h.expect().resumes[r.user].steered
	j.expect(polls == 1 || skips && polls == 0, r.begin, request, "steering is not polled once before the first request")
}

// expectPolls expects the polls of steering between turn_end and the next event.
func (h *history) expectPolls(j *judge, turn, next int) {
	polls, found := 0, false
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.turn != turn || !isPoll(c.kind) || c.begin < h.turns[turn].end || c.begin > next {
			continue
		}
		if c.kind == callSteering {
			polls++
		}
		if polls < 2 {
			found = found || len(drainedBy(c)) > 0
		}
	}
	want := 1
	if h.since("0.84.4") && h.places[next].event == turnStart && !found {
		want = 2
	}
	j.expect(polls == want, h.turns[turn].end, next, "steering is not polled as often as it has to be after a turn")
}

func que3(h *history, j *judge) {
	for k := range h.users {
		u := &h.users[k]
		if u.kind != userSteer || u.active == none {
			continue
		}
		turn := h.places[u.entry].turn
		if turn == none {
			continue
		}
		t := &h.turns[turn]
		if !t.ran() || t.truncated() || t.duplicates || u.entry < t.answered || u.entry > t.end || t.end == never || h.abortedBy(t, t.end) {
			continue
		}
		for i := t.calls[0]; i < t.calls[1]; i++ {
			c := &h.calls[i]
			skipped := c.resultEnd == never || c.execute == none && h.wasAllowed(c)
			j.expect(!skipped, u.entry, t.end, "a call of the batch is skipped because of steering")
		}
	}
}

// wasAllowed reports whether a call surely passed its preparation.
func (h *history) wasAllowed(c *call) bool {
	if h.refusal(c) != causeUnseen {
		return false
	}
	if c.before != none {
		return h.settles(c.before) != never
	}
	tool := h.tool(c.block.Name)
	return !h.hooked(trace.HookBeforeToolCall) && tool != nil && len(tool.Parameters) == 0
}

func que4(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind != callFollowUp || c.turn == none {
			continue
		}
		t := &h.turns[c.turn]
		all, _ := h.terminates(t)
		j.expect(t.plain() || all, min(t.answered, c.begin), c.begin, "follow-ups are polled while results are still to be shown to the model")
		if last := h.pollBefore(k); last != none {
			j.expect(len(drainedBy(h.cb(last))) == 0, h.cb(last).begin, c.begin, "follow-ups are polled although there is steering")
		}
		if len(drainedBy(c)) > 0 {
			if next := h.nextEvent(c.begin); next != never {
				j.expect(h.places[next].event == turnStart, c.begin, next, "follow-ups do not start a new turn of the same run")
			}
		}
	}
}

// pollBefore is the latest poll of steering in the same turn before a callback,
// or none.
func (h *history) pollBefore(k int) int {
	for i := k - 1; i >= 0 && h.callbacks[i].turn == h.callbacks[k].turn; i-- {
		if h.callbacks[i].kind == callSteering {
			return i
		}
	}
	return none
}

func que5(h *history, j *judge) {
	for k := range h.callbacks {
		if c := &h.callbacks[k]; isPoll(c.kind) && !h.expect().skipped[k] && !h.losesLeftOver(k) {
			j.expect(sameTags(drainedBy(c), h.expect().polls[k]), h.lastQueued(c.begin), c.begin, "a poll does not drain what is queued, in order and by its mode")
		}
	}
}

// lastQueued is the latest action before an entry that queued something, or
// none.
func (h *history) lastQueued(before int) int {
	last := none
	for k := range h.users {
		if u := &h.users[k]; (u.kind == userSteer || u.kind == userFollowUp) && u.entry < before {
			last = u.entry
		}
	}
	return last
}

func que6(h *history, j *judge) {
	for k := range h.runs {
		first := h.firstPoll(k)
		if queued := h.leftOver(first); queued != none {
			j.expect(!h.losesLeftOver(first), queued, h.cb(first).begin, "a message that was left when a run ended is no longer queued")
		}
	}
}

// leftOver is where a message was queued that was left when a run ended, and that
// a poll should drain as the first of the next run; none if there is no such.
func (h *history) leftOver(poll int) int {
	if poll == none || h.expect().skipped[poll] || len(h.expect().polls[poll]) == 0 {
		return none
	}
	run := h.cb(poll).run
	if run <= 0 || h.firstPoll(run) != poll {
		return none
	}
	queued := h.lastQueued(h.runs[run].begin)
	if queued == none || queued < h.runs[run-1].begin {
		return none
	}
	return queued
}

// losesLeftOver reports whether a poll finds nothing although a message was left.
// That is for QUE-6 to say.
func (h *history) losesLeftOver(poll int) bool {
	return h.leftOver(poll) != none && len(drainedBy(h.cb(poll))) == 0
}

// firstPoll is the first poll of steering in a run, or none.
func (h *history) firstPoll(run int) int {
	for k := range h.callbacks {
		if c := &h.callbacks[k]; c.run == run && c.kind == callSteering {
			return k
		}
	}
	return none
}

func que6r(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if !isPoll(c.kind) || c.run == none || h.runs[c.run].abort > c.begin {
			continue
		}
		j.expect(len(drainedBy(c)) == 0, h.runs[c.run].abort, c.begin, "an aborted run drains a queue")
	}
}

func que7(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		first := h.firstPoll(k)
		if r.user == none || h.users[r.user].kind != userPrompt || first == none || len(drainedBy(h.cb(first))) == 0 || r.turns[0] == r.turns[1] {
			continue
		}
		request := h.turns[r.turns[0]].request
		if request == none {
			continue
		}
		h.expectSteeringLast(j, r, drainedBy(h.cb(first)), h.cb(request).begin)
	}
}

// expectSteeringLast expects that the messages before a request end with the
// steering.
func (h *history) expectSteeringLast(j *judge, r *run, steering []*trace.Message, request int) {
	var started []int
	for _, i := range h.eventsIn(r.begin, request) {
		if m := h.event(i).Message; h.places[i].event == messageStart && m != nil && m.Role != trace.RoleSystem {
			started = append(started, i)
		}
	}
	prompts := len(started) - len(steering)
	if prompts < 1 {
		j.expect(false, r.begin, request, "prompts and steering are not both there before the first request")
		return
	}
	for n, m := range steering {
		i := started[prompts+n]
		last := sameTag(m, h.event(i).Message)
		if !last {
			i = h.startOf(m, started, i)
		}
		j.expect(last, r.begin, i, "steering does not come after the prompts")
	}
}

// startOf is the first of some message_starts that is of a message, or otherwise.
func (h *history) startOf(m *trace.Message, started []int, otherwise int) int {
	for _, i := range started {
		if sameTag(m, h.event(i).Message) {
			return i
		}
	}
	return otherwise
}
