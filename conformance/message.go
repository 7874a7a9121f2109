package conformance

import "github.com/pi-conform/pi-conform/harness/trace"

var messageRules = []Rule{
	{
		ID: "MSG-1", Family: FamilyMessage, Level: Must, Source: "K, U3", Needs: evidence{needE}, Edges: []int{2, 4, 11, 15}, check: msg1,
		Sentence: "Every message_start has exactly one message_end of the same message before the next message_start.",
		Why:      "A bubble that is never closed keeps blinking, and one that is closed twice is stored twice.",
	},
	{
		ID: "MSG-2", Family: FamilyMessage, Level: Must, Source: "U2", Needs: evidence{needE}, Edges: onFailures, check: msg2,
		Sentence: "message_update occurs only between start and end of an assistant message; it never carries tool progress.",
		Why:      "An interface would write the output of a tool into what the model says.",
	},
	{
		ID: "MSG-3", Family: FamilyMessage, Level: Must, Source: "K, R", Needs: evidence{needE, needC}, Edges: []int{2, 11, 15}, check: msg3,
		Sentence: "Each of the nine text, thinking and toolcall stream events after start gives exactly one message_update, in order, carrying that stream event; before start, or of unknown type, none.",
		Why:      "Text that is streamed to the user would have gaps, repetitions, or words in the wrong order.",
	},
	{
		ID: "MSG-4", Family: FamilyMessage, Level: Must, Source: "K, U9, R", Needs: evidence{needE, needC}, Edges: onFailures, check: msg4,
		Sentence: "message_end of the assistant carries the stream's result, whatever the last partial or the done event held.",
		Why:      "The stream's result is what the provider stands by: it has the final text, usage and stop reason.",
	},
	{
		ID: "MSG-5", Family: FamilyMessage, Level: Must, Source: "K, U9", Needs: evidence{needE, needC}, Edges: onFailures, check: msg5,
		Sentence: "A stream that goes straight to done or error gives message_start, message_end, no update.",
		Why:      "Short and failed answers come this way; without a start there is no bubble to show them in.",
	},
	{
		ID: "MSG-6", Family: FamilyMessage, Level: Must, Source: "K", Needs: evidence{needE, needC}, Edges: onFailures, check: msg6,
		Sentence: "A stream that simply ends is completed from its result.",
		Why:      "Some providers close the connection without a last event; their answer must not be lost.",
	},
	{
		ID: "MSG-7", Family: FamilyMessage, Level: Must, Source: "K, U10", Needs: evidence{needK}, Edges: []int{15}, check: msg7,
		Sentence: "What a listener kept at the top level of an event's message is not changed later by the loop.",
		Why:      "A listener that keeps a message to draw or store it later would find another one there.",
	},
	{
		ID: "MSG-8", Family: FamilyMessage, Level: Must, Source: "K", Needs: evidence{needE, needR, needA}, Edges: onFailures, check: msg8,
		Sentence: "Prompt messages get start and end in order, before the first request.",
		Why:      "The user has to see what was asked before an answer to it appears.",
	},
	{
		ID: "MSG-9", Family: FamilyMessage, Level: Must, Source: "K, R", Needs: evidence{needC, needL, needReads}, Edges: onFailures, check: msg9,
		Sentence: "The next stream event is read only after every listener has finished with the last; nothing is read after done or error.",
		Why:      "A slow terminal or socket holds the stream back this way; otherwise text piles up in memory or is shown out of order.",
	},
}

func msg1(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		open := none
		for _, i := range h.eventsIn(r.begin, r.stop) {
			switch h.places[i].event {
			case messageStart:
				if !h.isDoubled(i) {
					j.expect(open == none, open, i, "a message starts before the last has ended")
				}
				open = i
			case messageEnd:
				j.expect(open != none && sameMessage(h.event(open).Message, h.event(i).Message), open, i, "a message ends that was not started, or another than the one that was")
				open = none
			case agentEnd:
				if open != none {
					j.expect(false, open, i, "a message is started and never ends")
					open = none
				}
			default:
			}
		}
	}
}

// isDoubled reports whether a message_start is one of a stream that started
// twice (e15).
func (h *history) isDoubled(i int) bool {
	t := h.places[i].turn
	return t != none && h.turns[t].doubled
}

// sameMessage reports whether a message that starts and one that ends can be the
// same; an assistant's grows in between.
func sameMessage(a, b *trace.Message) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Role == trace.RoleAssistant {
		return b.Role == trace.RoleAssistant
	}
	return sameTag(a, b)
}

func msg2(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		open, last := none, none
		for _, i := range h.eventsIn(r.begin, r.stop) {
			switch h.places[i].event {
			case messageStart:
				open, last = i, i
			case messageEnd:
				open, last = none, i
			case messageUpdate:
				m := h.event(i).Message
				inside := open != none && h.event(open).Message != nil && h.event(open).Message.Role == trace.RoleAssistant
				j.expect(inside && (m == nil || m.Role == trace.RoleAssistant), last, i, "a message_update lies outside an assistant message")
			default:
			}
		}
	}
}

// updatesOf bounds the message_updates of a turn's assistant message.
func (h *history) updatesOf(t *turn) (from, to int) {
	return h.cb(t.request).begin, min(t.answered, t.end, h.runOf(t).stop)
}

func msg3(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.request == none || t.doubled {
			continue
		}
		from, to := h.updatesOf(t)
		events := h.eventsIn(from, to)
		started := false
		h.stream(h.cb(t.request), func(ev *trace.StreamEvent, entry int) {
			if ev.Type == trace.StreamStart {
				started = true
			}
			if !started || !ev.IsDelta() || entry > to {
				return
			}
			events = h.expectUpdate(j, events, ev, entry, to)
		})
		for _, i := range events {
			if h.places[i].event == messageUpdate && !h.isBare(t) {
				j.expect(false, from, i, "a message_update has no stream event of its own")
			}
		}
	}
}

// expectUpdate expects that the next message_update of events carries the
// stream event, and gives the events after it.
func (h *history) expectUpdate(j *judge, events []int, ev *trace.StreamEvent, entry, to int) []int {
	for n, i := range events {
		if h.places[i].event != messageUpdate {
			continue
		}
		j.expect(sameStreamEvent(h.event(i).StreamEvent, ev), entry, i, "a message_update does not carry the stream event that is due")
		return events[n+1:]
	}
	if to < len(h.entries) {
		j.expect(false, entry, to, "a stream event gives no message_update")
	}
	return nil
}

func sameStreamEvent(a, b *trace.StreamEvent) bool {
	return a != nil && a.Type == b.Type && a.Delta == b.Delta && a.Content == b.Content
}

// result is what the stream of a request came to; nil if it has not ended well.
func (h *history) result(c *callback) (m *trace.Message, ended bool) {
	if c.settle == never || c.throws || c.answer == nil {
		return nil, false
	}
	if c.answer.Final != nil {
		return c.answer.Final, c.answer.Ends
	}
	h.stream(c, func(ev *trace.StreamEvent, _ int) {
		switch ev.Type {
		case trace.StreamDone:
			m = ev.Message
		case trace.StreamError:
			m = ev.Error
		}
	})
	return m, c.answer.Ends
}

func msg4(h *history, j *judge) { h.expectResults(j, false) }
func msg6(h *history, j *judge) { h.expectResults(j, true) }

// expectResults expects that each assistant message is the result of its stream,
// of those that simply end or of those that do not.
func (h *history) expectResults(j *judge, silent bool) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.request == none {
			continue
		}
		c := h.cb(t.request)
		m, ended := h.result(c)
		if m == nil || ended != silent {
			continue
		}
		if t.message == nil {
			if t.end != never {
				j.expect(false, c.settle, t.end, "the stream has ended, and its message is missing")
			}
			continue
		}
		same := sameTag(t.message, m) && t.message.ErrorMessage == m.ErrorMessage && sameContent(t.message.Content, m.Content)
		j.expect(same, c.settle, t.answered, "message_end does not carry the result of the stream")
	}
}

func msg5(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.request == none || !h.isBare(t) {
			continue
		}
		// Other events are none of this rule's business: a late update is UPD-2's.
		from, to := h.updatesOf(t)
		started := false
		for _, i := range h.eventsIn(from, to) {
			started = started || h.places[i].event == messageStart
			if h.places[i].event == messageUpdate {
				j.expect(false, from, i, "a stream that goes straight to its end gives a message_update")
			}
		}
		if t.answered != never {
			j.expect(started, from, t.answered, "a stream that goes straight to its end gives no message_start")
		}
	}
}

// isBare reports whether the stream of a turn's request goes straight to its end.
func (h *history) isBare(t *turn) (bare bool) {
	first := true
	h.stream(h.cb(t.request), func(ev *trace.StreamEvent, _ int) {
		bare = bare || first && endsStream(ev)
		first = false
	})
	return bare
}

func msg7(h *history, j *judge) {
	h.expectKept(j, func(kind eventType) bool { return kind.isMessage() || kind == turnEnd }, "the message of an event was changed after it had been handed out")
}

// expectKept expects that nothing was changed of what listeners kept of events
// of some type.
func (h *history) expectKept(j *judge, of func(eventType) bool, text string) {
	for k := range h.runs {
		if over := h.over(&h.runs[k]); over != never {
			j.expect(true, over, none, "")
		}
	}
	for i := range h.entries {
		if h.entries[i].Kind != trace.KindRetained {
			continue
		}
		for _, n := range h.entries[i].Changed {
			if at := h.eventNumbered(&trace.Payload{Event: &n}); at != none && of(h.places[at].event) {
				j.expect(false, at, i, text)
			}
		}
	}
}

func msg8(h *history, j *judge) {
	for k := range h.runs {
		r := &h.runs[k]
		if r.user == none || h.users[r.user].kind != userPrompt || r.turns[0] == r.turns[1] {
			continue
		}
		request := h.turns[r.turns[0]].request
		if request == none {
			continue
		}
		h.expectPrompted(j, r, h.cb(request).begin)
	}
}

func (h *history) expectPrompted(j *judge, r *run, request int) {
	a := h.entries[r.action].Answer
	if a == nil {
		return
	}
	want := len(a.Messages)
	if want == 0 && (a.Text != "" || len(a.Images) > 0) {
		want = 1
	}
	started, ended := 0, 0
	for _, i := range h.eventsIn(r.begin, request) {
		switch h.places[i].event {
		case messageStart:
			started++
		case messageEnd:
			ended++
		default:
		}
	}
	if want > 0 {
		j.expect(started >= want && ended >= want, r.action, request, "a request is made before every prompt has started and ended")
	}
}

func msg9(h *history, j *judge) {
	busy := 0 // gated listener callbacks that have not settled
	open := none
	for i := range h.entries {
		e := &h.entries[i]
		k := h.places[i].callback
		if k == none {
			continue
		}
		c := &h.callbacks[k]
		switch {
		case c.kind == callListener && e.Kind == trace.KindCall && c.settle > i:
			busy++
			open = i
		case c.kind == callListener && c.settle == i && e.Kind == trace.KindAction:
			busy--
		case e.Kind == trace.KindRead:
			j.expect(busy == 0, open, i, "the stream is read while a listener is busy")
			j.expect(h.readable(c, e.N), c.begin, i, "the stream is read after its end")
		}
	}
}

// readable reports whether a stream may be read for its event number n: none
// has ended it before.
func (h *history) readable(c *callback, n int) bool {
	delivered, ended := 0, false
	h.stream(c, func(ev *trace.StreamEvent, _ int) {
		delivered++
		ended = ended || endsStream(ev)
	})
	return !ended || n < delivered
}
