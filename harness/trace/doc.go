// Package trace holds what happened in one run of an agent loop: a [Header]
// that says what the surroundings were set up to do, then the [Entry] values
// in the order in which they happened.
//
// A trace is self-contained. Whoever judges it needs nothing else: no
// scenario file, no subject, no clock. It does not say, and no rule may ask,
// which driver or which loop made it.
//
// # Inputs and outputs
//
// Some entries are inputs, things that the surroundings did to the loop:
// [KindAction] (a prompt, an abort, the answer to a callback). The others are
// outputs, things that the loop did: [KindEvent], [KindCall] (an outward call:
// the model, a tool, a hook, a listener), [KindRead] (the loop asks the model
// stream for its next event), [KindCancelled] (the abort signal of a pending
// call fired) and [KindSettled] (a prompt, continue or waitForIdle finished).
// After a run there may be [KindRetained] (what a listener kept and the loop
// changed later), and if a user interface's reducer watched, [KindView]. The
// last entry is always [KindEnd].
//
// Exactly one action is done at a step; everything between two actions
// happened before the loop came to rest again. So the order of two entries of
// different steps was forced by the surroundings, while two entries of one
// step were ordered by the loop alone.
//
// # Forms
//
// [Write] and [Decode] keep a trace as JSON lines ([Writer] and [Reader] one
// entry at a time), strictly: a duplicate key, bad UTF-8 or an entry that the
// harness does not know is an error that names line and offset, while event
// types, roles and fields of the subject that are not known here are kept.
// [Normalize] gives the form in which two runs of the same case must agree,
// [Hash] its digest, and [FirstDiff] the first place where two traces part.
// [Project] leaves out what another recording cannot show. [Text] is a form to
// read, [Line] that of one entry.
package trace
