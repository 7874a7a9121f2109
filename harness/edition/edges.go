package edition

import "slices"

// Edge is something that every release does since listeners are waited for,
// however odd: it never counts as a violation. A rule names the edges under
// which it does not apply, and a case that brings one about carries its tag, e1
// to e16.
type Edge struct {
	Number int
	Text   string
}

// Edges are all of them, by number.
func Edges() []Edge { return slices.Clone(edges) }

var edges = []Edge{
	{1, "The calls of a message that stopped with error or aborted get nothing: no start, no end, no result."},
	{2, "A listener that throws at tool_execution_end fails the run. The other calls of the batch stay unanswered, and one that still runs finishes later."},
	{3, "A listener that throws at agent_end brings about a second agent_end."},
	{4, "A stream that throws after its start leaves a message_start without its message_end; the failure's own message follows."},
	{5, "Calls of one message with the same id give two starts, two ends and two results of that id, and pendingToolCalls is empty after the first end."},
	{6, "Steering that a listener of agent_end queues is not delivered by that run; it waits for continue."},
	{7, "All results say terminate and steering is queued: the loop goes on."},
	{8, "In 0.84.3 and in 1.6 steering that is queued when an aborted batch ends is drained into the turn that is about to die."},
	{9, "An update in the same tick as the tool's return, just after it, or a microtask later is still an event: the gate closes only when the loop goes on."},
	{10, "The plain event stream never ends for its reader if the stream function or convertToLlm throws."},
	{11, "A run that fails outside the protocol closes with message_start, message_end, turn_end and agent_end of a failure message alone, and what was open before stays open. If a listener throws at that too there is no agent_end, and prompt fails. What had been drained from a queue is lost."},
	{12, "A request that is made with a signal that has fired is answered by aborted: that is how the turn after an aborted batch comes about."},
	{13, "Deliveries may overlap. While a listener is busy with an update, or with an end in parallel mode, it can be called with the next one, a later listener can see the two in the other order, and the state that it sees can be ahead."},
	{14, "After a listener's error a call that still runs makes its update and end after agent_end, or inside the next run. Listeners behind the one that threw never see that event. One that throws at an update is a rejection that nobody handles, and its call gets no end."},
	{15, "A second start in one stream gives a second message_start and doubles the context. Arguments that a hook changes in place show through. Before 0.99 a tool that returns nothing at all fails the run."},
	{16, "The low-level continue grows the list that its caller gave it; if convertToLlm returns its own argument, a request's list gains the answer."},
}
