package conformance

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

var listenerRules = []Rule{
	{
		ID: "LIS-1", Family: FamilyListener, Level: Must, Source: "U12", Needs: evidence{needL, needE}, Edges: []int{2, 11, 14}, check: lis1,
		Sentence: "For each event the listeners are called in order of registration, each awaited before the next.",
		Why:      "A listener that stores what happened has to be done before the one that acts on what is stored.",
	},
	{
		ID: "LIS-2", Family: FamilyListener, Level: Must, Source: "K, R", Needs: evidence{needL, needE}, Edges: []int{2, 5, 11, 13}, check: lis2,
		Sentence: "Events are numbered in the order of emission, and of one call each listener sees start, updates, end.",
		Why:      "A listener that sees the end of a card before its start cannot show it.",
	},
	{
		ID: "LIS-3", Family: FamilyListener, Level: Must, Source: "K, R", Needs: evidence{needL, needA, needE}, Edges: onFailures, check: lis3,
		Sentence: "After unsubscribe a listener sees nothing more, also if it is removed during a dispatch that has not reached it; one added during dispatch is called.",
		Why:      "A view that has been closed must not be drawn into, and one that has just been opened must not miss the end.",
	},
	{
		ID: "LIS-4", Family: FamilyListener, Level: Must, Source: "K", Needs: evidence{needL}, Edges: onFailures, check: lis4,
		Sentence: "Each listener call gets the run's signal.",
		Why:      "A listener that waits for something has to be able to stop waiting when the user aborts.",
	},
	{
		ID: "LIS-5", Family: FamilyListener, Level: Must, Source: "U3", Forms: inStream, Needs: evidence{needC, needA}, Edges: []int{2, 10, 11}, check: lis5,
		Sentence: "In the plain event-stream form a slow consumer does not hold the loop back.",
		Why:      "That form is chosen where nobody has to keep up: a log that is slow to write must not slow the agent.",
	},
	{
		ID: "LIS-6", Family: FamilyListener, Level: Must, Source: "U3, K", From: "0.65.0", Needs: evidence{needL, needC, needE}, Edges: []int{2, 11, 13}, check: lis6,
		Sentence: "Apart from overlapping deliveries, every listener has finished with an event before the loop's next step.",
		Why:      "Sessions are written by listeners; the loop must not act on what is not yet written.",
	},
	{
		ID: "LIS-7", Family: FamilyListener, Level: Must, Source: "K", Needs: evidence{needL, needA, needE}, Edges: onFailures, check: lis7,
		Sentence: "The same listener subscribed twice counts once.",
		Why:      "A view that is opened twice would show everything twice.",
	},
}

// registration keeps who is subscribed, in which order, as a trace goes on.
type registration struct {
	h     *history
	user  int   // next user action
	order []int // listeners, in the order of registration
}

func (h *history) registration() registration {
	r := registration{h: h}
	for i := range h.tr.Header.Config.Listeners {
		if !h.tr.Header.Config.Listeners[i].Late {
			r.order = append(r.order, i)
		}
	}
	return r
}

// until takes in the subscriptions before an entry.
func (r *registration) until(entry int) {
	for ; r.user < len(r.h.users) && r.h.users[r.user].entry < entry; r.user++ {
		u := &r.h.users[r.user]
		i := r.h.listenerOf(u)
		switch at := r.place(i); {
		case i == none:
		case u.kind == userSubscribe && at == none:
			r.order = append(r.order, i)
		case u.kind == userUnsubscribe && at != none:
			r.order = append(r.order[:at], r.order[at+1:]...)
		}
	}
}

func (r *registration) place(listener int) int {
	for k, i := range r.order {
		if i == listener {
			return k
		}
	}
	return none
}

// listenerOf is the listener that a user action subscribes or unsubscribes.
func (h *history) listenerOf(u *user) int {
	a := h.entries[u.entry].Answer
	if a == nil || a.Listener == nil || u.kind != userSubscribe && u.kind != userUnsubscribe {
		return none
	}
	return *a.Listener
}

// changesListeners reports whether anybody was subscribed or unsubscribed
// between two entries.
func (h *history) changesListeners(from, to int) bool {
	for k := range h.users {
		if u := &h.users[k]; u.entry > from && u.entry < to && h.listenerOf(u) != none {
			return true
		}
	}
	return false
}

func lis1(h *history, j *judge) {
	subscribed := h.registration()
	for _, i := range h.events {
		subscribed.until(i)
		h.expectDispatch(j, &subscribed, i)
	}
}

// expectDispatch expects that an event is brought to the listeners one after the
// other, in order, and to all of them.
func (h *history) expectDispatch(j *judge, subscribed *registration, event int) {
	if len(subscribed.order) == 0 {
		return
	}
	until := min(h.delivered(event), len(h.entries))
	if until == none {
		until = event
	}
	if h.changesListeners(event, until) {
		return
	}
	called, last, throws := 0, none, false
	for k := int(h.places[event].first); k != none; k = h.callbacks[k].next {
		c := &h.callbacks[k]
		if last != none {
			before := &h.callbacks[last]
			j.expect(before.settle < c.begin, before.begin, c.begin, "a listener is called before the one before it has finished")
			j.expect(subscribed.place(before.listener) <= subscribed.place(c.listener), before.begin, c.begin, "listeners are called in another order than they were registered")
		}
		last = k
		called++
		throws = throws || c.throws
	}
	if throws || h.delivered(event) == never || h.outcome != trace.OutcomeComplete {
		return
	}
	j.expect(called >= len(subscribed.order), event, until, "a listener is not called for an event")
}

func lis2(h *history, j *judge) {
	for n, i := range h.events {
		if n > 0 {
			j.expect(h.entries[i].N == h.entries[h.events[n-1]].N+1, h.events[n-1], i, "events are not seen in the order of their emission")
		}
	}
	for _, i := range h.events {
		if h.places[i].event != toolUpdate && h.places[i].event != toolEnd || !h.hasCall(i) || !h.callAt(i).alone {
			continue
		}
		for k := int(h.places[i].first); k != none; k = h.callbacks[k].next {
			h.expectSeenInOrder(j, h.callAt(i), i, &h.callbacks[k])
		}
	}
}

// expectSeenInOrder expects that a listener which is told of an update or the
// end of a call has been told of its start, and not yet of its end.
func (h *history) expectSeenInOrder(j *judge, c *call, event int, cb *callback) {
	if start := h.toldOf(c.start, cb.listener); start != none {
		j.expect(h.cb(start).begin < cb.begin, cb.begin, h.cb(start).begin, "a listener is told of a call before its start")
	}
	if h.places[event].event == toolEnd {
		return
	}
	if end := h.toldOf(c.end, cb.listener); end != none {
		j.expect(cb.begin < h.cb(end).begin, h.cb(end).begin, cb.begin, "a listener is told of an update after the end of the call")
	}
}

// toldOf is the callback by which a listener was told of an event, or none.
func (h *history) toldOf(event, listener int) int {
	if event == never {
		return none
	}
	for k := int(h.places[event].first); k != none; k = h.callbacks[k].next {
		if h.callbacks[k].listener == listener {
			return k
		}
	}
	return none
}

func lis3(h *history, j *judge) {
	subscribed := h.registration()
	for k := range h.users {
		u := &h.users[k]
		listener := h.listenerOf(u)
		if listener == none {
			continue
		}
		subscribed.until(u.entry)
		h.expectOthers(j, &subscribed, u.entry)
		switch {
		case u.kind == userUnsubscribe && subscribed.place(listener) != none:
			h.expectSilence(j, u.entry, listener)
		case u.kind == userSubscribe && subscribed.place(listener) == none:
			h.expectCalled(j, u.entry, listener)
		}
	}
}

// expectSilence expects that a listener is not called from an entry on until it
// is subscribed again.
func (h *history) expectSilence(j *judge, from, listener int) {
	until := len(h.entries)
	for k := range h.users {
		if u := &h.users[k]; u.entry > from && u.kind == userSubscribe && h.listenerOf(u) == listener {
			until = u.entry
			break
		}
	}
	j.expect(true, from, none, "")
	for k := range h.callbacks {
		if c := &h.callbacks[k]; c.kind == callListener && c.listener == listener && c.begin > from && c.begin < until {
			j.expect(false, from, c.begin, "a listener is called after it was unsubscribed")
			return
		}
	}
}

// expectOthers expects that the listeners which nobody subscribes or
// unsubscribes during a dispatch are told of its event, whatever happens to the
// others at an entry.
func (h *history) expectOthers(j *judge, subscribed *registration, at int) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind != callListener || !c.pendingAt(at) || c.event == none || h.thrownAt(c.event) {
			continue
		}
		until := h.delivered(c.event)
		if until == never || h.nextEvent(c.event) == never {
			continue
		}
		for _, i := range subscribed.order {
			if !h.changes(i, c.event, until) {
				j.expect(h.toldOf(c.event, i) != none, at, until, "a listener misses an event, because another one was subscribed or unsubscribed meanwhile")
			}
		}
	}
}

// changes reports whether a listener was subscribed or unsubscribed between two
// entries.
func (h *history) changes(listener, from, to int) bool {
	for k := range h.users {
		if u := &h.users[k]; u.entry > from && u.entry < to && h.listenerOf(u) == listener {
			return true
		}
	}
	return false
}

// expectCalled expects that a listener which is added while an event is being
// dispatched is called for that event.
func (h *history) expectCalled(j *judge, from, listener int) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind != callListener || !c.pendingAt(from) || c.event == none || c.settle == never || c.throws {
			continue
		}
		if h.changesListeners(from, h.delivered(c.event)) || h.delivered(c.event) == never {
			continue
		}
		told := h.toldOf(c.event, listener)
		if told == none && h.thrownAt(c.event) {
			continue
		}
		j.expect(told != none, from, c.settle, "a listener that was added during a dispatch is not called")
	}
}

func (h *history) thrownAt(event int) bool {
	for k := int(h.places[event].first); k != none; k = h.callbacks[k].next {
		if h.callbacks[k].throws {
			return true
		}
	}
	return false
}

func lis4(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind != callListener {
			continue
		}
		if signal := h.payload(c).Signal; signal != nil {
			j.expect(*signal, none, c.begin, "a listener is not given the run's signal")
		}
	}
}

func lis5(h *history, j *judge) {
	for k := range h.callbacks {
		c := &h.callbacks[k]
		if c.kind != callListener || c.settle == never || h.entries[c.settle].Kind != trace.KindAction {
			continue
		}
		held := none
		for i := c.settle + 1; i < len(h.entries) && h.step(i) == h.step(c.settle); i++ {
			if p := h.places[i].callback; h.entries[i].Kind == trace.KindCall && p != none && h.callbacks[p].kind != callListener {
				held = i
				break
			}
		}
		j.expect(held == none, c.settle, max(held, c.settle), "the loop goes on only once its consumer has caught up")
	}
}

func lis6(h *history, j *judge) {
	busy, open := 0, none
	for i := range h.entries {
		e := &h.entries[i]
		k := h.places[i].callback
		switch {
		case e.Kind == trace.KindEvent && e.Event != nil:
			j.expect(busy == 0, open, i, "an event is emitted while a listener is busy with an earlier one")
		case k == none:
		case h.callbacks[k].kind != callListener:
			if e.Kind == trace.KindCall {
				j.expect(busy == 0, open, i, "the loop calls out while a listener is busy with an event")
			}
		case h.mayOverlap(&h.callbacks[k]):
		case e.Kind == trace.KindCall && h.callbacks[k].settle > i:
			busy++
			open = i
		case e.Kind == trace.KindAction && h.callbacks[k].settle == i:
			busy--
		}
	}
}

// mayOverlap reports whether a listener callback is a delivery that others may
// overlap: of an update, or of the end of a parallel call.
func (h *history) mayOverlap(c *callback) bool {
	if c.event == none {
		return true
	}
	switch h.places[c.event].event {
	case toolUpdate:
		return true
	case toolEnd:
		t := h.places[c.event].turn
		return t == none || h.parallel(&h.turns[t])
	default:
	}
	return false
}

func lis7(h *history, j *judge) {
	subscribed := h.registration()
	for k := range h.users {
		u := &h.users[k]
		listener := h.listenerOf(u)
		if listener == none {
			continue
		}
		subscribed.until(u.entry)
		if u.kind != userSubscribe || subscribed.place(listener) == none {
			continue
		}
		j.expect(true, u.entry, none, "")
		for _, i := range h.eventsIn(u.entry, len(h.entries)) {
			h.expectToldOnce(j, i, listener)
		}
	}
}

func (h *history) expectToldOnce(j *judge, event, listener int) {
	first := none
	for k := int(h.places[event].first); k != none; k = h.callbacks[k].next {
		c := &h.callbacks[k]
		if c.listener != listener {
			continue
		}
		if first != none && !h.removed(listener, h.cb(first).begin, c.begin) {
			j.expect(false, h.cb(first).begin, c.begin, "a listener that was subscribed twice is called twice")
			return
		}
		first = k
	}
}

// removed reports whether the listener was unsubscribed between two entries: once it
// is back it is one that was added during the dispatch.
func (h *history) removed(listener, from, to int) bool {
	return slices.ContainsFunc(h.users, func(u user) bool {
		return u.kind == userUnsubscribe && from < u.entry && u.entry < to && h.listenerOf(&u) == listener
	})
}
