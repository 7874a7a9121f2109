// Package harness runs cases on a subject and records what it does. It has no
// opinion: what a trace is worth is for package conformance to say.
//
// A [Scenario] says what the surroundings of a loop will do: prompts, the model's
// script, tools, hooks, listeners. It fixes no order among things that may happen
// at the same time. That is done by a schedule, a list of labels such as
// tool/c2/return; a [Case] is both together, and a [CaseFile] is a case as it is
// kept in a file, with its story.
//
// # The step
//
// [Run] lists what could happen now, lets a [Policy] choose, does that one action
// ([Session.Do]), and lets the subject run until it has nothing left to do
// ([Session.Settle]). So the order of two actions is known, and the same schedule
// gives the same trace again.
//
//	rec, err := harness.Run(ctx, driver, scenario, harness.NewRandom(7), harness.Limits{})
//	rec.Schedule // what was done, to be replayed by harness.NewReplay
//	rec.Trace    // everything that happened
//
// # Subjects
//
// A [Driver] joins a subject: a loop on coroutines (harness/coro), any Go loop in a
// bubble (harness/bubble), or a process in any language (harness/protocol). A loop
// in process meets its [Surroundings], which do what an adapter library does in
// another language: make the names of callbacks, answer at once what is not gated,
// hold back what is, and note everything.
package harness
