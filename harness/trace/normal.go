package trace

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Normalize gives the normal form of a trace: the form in which two runs of
// one case must agree. It forgives what one step leaves unordered and what no
// contract fixes, and nothing else; the input is not changed.
//
//   - Within a step, cancelled entries come directly after the action.
//   - Within a step, a run of consecutive entries that belong to tool calls and
//     that no gate put in order (beginnings of callbacks, updates, ends) is
//     sorted by the calls' source order; event numbers follow. Everything else
//     stays where it is and bounds the run. Calls that share an id cannot be told
//     apart by their events, so theirs are sorted by what they are.
//   - Where a running call aborts the run by itself, whether what other calls begin
//     in that step comes before or after is left open, and so is their aborted mark.
//   - In the plain event stream nobody waits for the reader, so within a step its
//     events come first, then what the loop called.
//   - Views are left out: they follow from the events.
//   - Timestamps and durationMs are left out, null is absent, JSON is canonical
//     (RFC 8785).
//   - A text that the loop itself wrote becomes <not-found>, <invalid>,
//     <blocked>, <truncated> or <aborted>; the message of a settled entry that
//     the surroundings did not give is left out, and so is that of an end which
//     tells how a subject crashed, hung or leaked.
//
// The normal form of a normal form is itself. The header stays as it is.
func Normalize(t *Trace) *Trace {
	t = withoutViews(t)
	entries := slices.Clone(t.Entries)
	order := sourceOrder(entries)
	for first := 0; first < len(entries); {
		last := first + 1
		for last < len(entries) && entries[last].Step == entries[first].Step {
			last++
		}
		if t.Header.Form == FormStream {
			eventsFirst(entries[first:last])
		}
		order.step(entries[first:last])
		first = last
	}
	renumber(t.Entries, entries)
	c := newCleaner(t)
	if t.Header.Form == FormStream {
		c.lookAhead(entries)
	}
	for i := range entries {
		c.entry(&entries[i])
	}
	return &Trace{Header: t.Header, Entries: entries}
}

// withoutViews leaves out what follows from the events, so that a trace is the
// same whether or not a reducer watched it.
func withoutViews(t *Trace) *Trace {
	isView := func(e Entry) bool { return e.Kind == KindView }
	if !slices.ContainsFunc(t.Entries, isView) {
		return t
	}
	return &Trace{Header: t.Header, Entries: slices.DeleteFunc(slices.Clone(t.Entries), isView)}
}

// order is the source order of the tool calls of a trace.
type order struct {
	first  map[string]int  // place of an id among all tool calls, where it first occurs
	shared map[string]bool // ids that more than one call has
}

func sourceOrder(entries []Entry) order {
	o := order{first: map[string]int{}}
	o.collect(entries, MessageEnd)
	o.collect(entries, MessageStart) // for messages that have no end
	return o
}

func (o *order) collect(entries []Entry, eventType string) {
	for i := range entries {
		e := entries[i].Event
		if e == nil || e.Type != eventType || e.Message == nil || e.Message.Role != RoleAssistant {
			continue
		}
		for _, call := range e.Message.ToolCalls() {
			o.add(call.ID, eventType)
		}
	}
}

func (o *order) add(id, eventType string) {
	if _, known := o.first[id]; !known {
		o.first[id] = len(o.first)
		return
	}
	if eventType != MessageEnd {
		return // the start of a message that has been seen by its end
	}
	if o.shared == nil {
		o.shared = map[string]bool{}
	}
	o.shared[id] = true
}

// compare puts calls that no message holds last, by id.
func (o order) compare(a, b string) int {
	if byIndex := cmp.Compare(o.index(a), o.index(b)); byIndex != 0 {
		return byIndex
	}
	return strings.Compare(a, b)
}

func (o order) index(id string) int {
	if i, known := o.first[id]; known {
		return i
	}
	return math.MaxInt
}

// step sorts the entries of one step in place.
func (o order) step(entries []Entry) {
	o.cancelledFirst(entries)
	if slices.ContainsFunc(entries, abortsBesideOthers) {
		forgetAborted(entries)
	}
	for first := 0; first < len(entries); {
		last := first
		for last < len(entries) && entries[last].movable() {
			last++
		}
		if last > first+1 {
			o.run(entries[first:last])
		}
		first = last + 1
	}
}

// eventsFirst parts what the reader of a plain event stream did from what the
// loop did, in place, each in its own order, after the action.
func eventsFirst(entries []Entry) {
	rank := func(e *Entry) int {
		switch {
		case e.Kind == KindAction || e.Kind == KindCancelled:
			return 0
		case e.Kind == KindEvent || strings.HasPrefix(e.Name, "listener/"):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return rank(&a) - rank(&b) })
}

func (o order) cancelledFirst(entries []Entry) {
	if entries[0].Kind == KindAction {
		entries = entries[1:]
	}
	var cancelled, others []Entry
	for i := range entries {
		if entries[i].Kind == KindCancelled {
			cancelled = append(cancelled, entries[i])
		}
	}
	if cancelled == nil {
		return
	}
	for i := range entries {
		if entries[i].Kind != KindCancelled {
			others = append(others, entries[i])
		}
	}
	slices.SortStableFunc(cancelled, func(a, b Entry) int {
		return cmp.Or(
			cmp.Compare(kindRank(a.Name), kindRank(b.Name)),
			o.compare(nameCall(a.Name), nameCall(b.Name)),
			strings.Compare(a.Name, b.Name))
	})
	copy(entries[copy(entries, cancelled):], others)
}

func kindRank(name string) int {
	kind, _, _ := strings.Cut(name, "/")
	return slices.Index([]string{"model", "tool", "hook", "listener"}, kind)
}

// run sorts entries that no gate put in order, by the call that they belong to.
func (o order) run(entries []Entry) {
	o.forgetPending(entries)
	byCall := func(a, b Entry) int {
		if order := o.compare(a.call(), b.call()); order != 0 || !o.shared[a.call()] {
			return order
		}
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.look(), b.look()))
	}
	if !slices.IsSortedFunc(entries, byCall) {
		slices.SortStableFunc(entries, byCall)
	}
}

// abortsBesideOthers reports whether a callback aborts the run by itself while
// other calls may be on their way. Calls are prepared one after the other, so what
// a hook aborts before a call is executed has its place.
func abortsBesideOthers(e Entry) bool {
	aborts := e.Kind == KindCall && e.Auto && e.Answer != nil && e.Answer.Abort
	return aborts && (strings.HasPrefix(e.Name, "tool/") || strings.HasPrefix(e.Name, "hook/"+HookAfterToolCall+"/"))
}

// forgetAborted drops the aborted marks of what belongs to tool calls.
func forgetAborted(entries []Entry) {
	for i := range entries {
		if entries[i].movable() {
			entries[i].Aborted = false
		}
	}
}

// forgetPending drops the pending calls from the states of a run in which they
// depend on the order that the run leaves open.
func (o order) forgetPending(entries []Entry) {
	calls := map[string]bool{}
	shared := false
	for i := range entries {
		if entries[i].Kind == KindEvent {
			calls[entries[i].call()] = true
			shared = shared || o.shared[entries[i].call()]
		}
	}
	if len(calls) < 2 && !shared {
		return
	}
	for i := range entries {
		if s := entries[i].State; s != nil {
			state := *s
			state.Pending = nil
			entries[i].State = &state
		}
	}
}

// rank is the place of a movable entry in the life of its call.
func (e *Entry) rank() int {
	if e.Kind == KindEvent {
		return slices.Index(callLife, e.Event.Type)
	}
	return slices.IndexFunc(callLife, func(part string) bool { return strings.Contains(e.Name, part) })
}

var callLife = []string{
	"hook/" + HookPrepareArguments, "hook/" + HookBeforeToolCall, "tool/", ToolExecutionUpdate,
	"hook/" + HookAfterToolCall, ToolExecutionEnd,
}

// look is what is to be seen of an entry, without the numbers that the order gives
// it, and without the text of an error, which the loop may have worded itself.
func (e *Entry) look() string {
	bare := *e
	bare.N, bare.State = 0, nil
	if bare.Event != nil && bare.Event.Result != nil && bare.Event.IsError != nil && *bare.Event.IsError {
		event := *bare.Event
		event.Result = nil
		bare.Event = &event
	}
	return string(entryJSON(&bare))
}

// movable reports whether an entry belongs to one tool call and has no fixed
// place among those of other calls.
func (e *Entry) movable() bool {
	switch e.Kind {
	case KindEvent:
		return e.Event != nil && (e.Event.Type == ToolExecutionUpdate || e.Event.Type == ToolExecutionEnd)
	case KindCall:
		_, ok := callOf(e.Name)
		return ok
	default:
	}
	return false
}

// call is the id of the tool call that a movable entry belongs to.
func (e *Entry) call() string {
	if e.Kind == KindEvent {
		return e.Event.ToolCallID
	}
	if e.Payload != nil && e.Payload.ToolCallID != "" {
		return e.Payload.ToolCallID
	}
	return nameCall(e.Name)
}

func nameCall(name string) string {
	id, _ := callOf(name)
	return id
}

// callOf is the tool call id in the name of a callback; false if the callback
// does not belong to one, or starts something. An id may hold slashes.
func callOf(name string) (string, bool) {
	kind, rest, _ := strings.Cut(name, "/")
	switch kind {
	case "tool":
		return withoutRepeat(rest), true
	case "hook":
		hook, id, _ := strings.Cut(rest, "/")
		switch hook {
		case HookPrepareArguments, HookBeforeToolCall, HookAfterToolCall:
			return withoutRepeat(id), true
		}
	case "listener":
		_, rest, _ = strings.Cut(rest, "/")
		event, rest, _ := strings.Cut(rest, "/")
		if event == ToolExecutionUpdate || event == ToolExecutionEnd {
			return rest[:max(0, strings.LastIndexByte(rest, '/'))], true
		}
	}
	return "", false
}

// withoutRepeat takes off the ~1, ~2 … of a name that was used before.
func withoutRepeat(id string) string {
	i := strings.LastIndexByte(id, '~')
	if i < 0 || i == len(id)-1 || strings.Trim(id[i+1:], "0123456789") != "" {
		return id
	}
	return id[:i]
}

// renumber gives the sorted events the numbers of the recording in their old
// order, so that gaps stay, and lets all references follow.
func renumber(before, after []Entry) {
	var numbers []int
	for i := range before {
		if before[i].Kind == KindEvent {
			numbers = append(numbers, before[i].N)
		}
	}
	moved := map[int]int{}
	for i, k := 0, 0; i < len(after); i++ {
		if after[i].Kind != KindEvent {
			continue
		}
		if after[i].N != numbers[k] {
			moved[after[i].N] = numbers[k]
			after[i].N = numbers[k]
		}
		k++
	}
	if len(moved) == 0 {
		return
	}
	for i := range after {
		after[i].follow(moved)
	}
}

func (e *Entry) follow(moved map[int]int) {
	if e.Payload != nil && e.Payload.Event != nil {
		if n, ok := moved[*e.Payload.Event]; ok {
			payload := *e.Payload
			payload.Event = &n
			e.Payload = &payload
		}
	}
	if e.Changed == nil {
		return
	}
	changed := slices.Clone(e.Changed)
	for i, n := range changed {
		if to, ok := moved[n]; ok {
			changed[i] = to
		}
	}
	slices.Sort(changed)
	e.Changed = changed
}
