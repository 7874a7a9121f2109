// Package loop is the reference loop: a pi-style agent loop, written to be read
// next to the contract. Comments name the rule that a line keeps, as in
// (PAR-3), and the edges of the npm loop that it reproduces, as in (edge 9).
//
// # One run, from top to bottom
//
//	Agent.Prompt ─► run.prompt ─► run.turns ─┬─► run.openTurn    queued messages join the transcript
//	                                         ├─► run.request     the model answers, event by event
//	                                         ├─► run.batch       its tool calls, in parallel or one by one
//	                                         ├─► run.closeTurn   turn_end and the hooks around it
//	                                         └─► run.goOn        what is queued? another turn, or agent_end
//
// The files follow that order: agent.go, run.go, turn.go, request.go, batch.go,
// call.go, update.go. The differences between editions are the fields of one
// struct in behaviour.go.
//
// # Three forms
//
// [Agent] keeps state, queues and listeners. [Run] and [Continue] are the bare
// loop, whose sink is waited for. [Events] is the same without back pressure.
//
// # Loop code
//
// Everything in this package runs as tasks of a [Runtime]. Only one task runs
// loop code at a time, so nothing in here needs a lock against another task;
// whatever may take long (a tool, a hook, the model) is wrapped in
// [Await], and other tasks go on meanwhile. That is how JavaScript runs
// the npm loop, and it is what makes a run under a scripted runtime one
// deterministic sequence.
//
// # What is left out
//
// The npm loop coerces arguments before it validates them (the string "1"
// where a number is wanted). This loop only validates: arguments reach a tool
// as they are, or not at all. Nor does it know the named sections that a system
// prompt may have in newer releases.
package loop
