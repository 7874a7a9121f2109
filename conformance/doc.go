// Package conformance judges a recorded trace by the rules of the contract. It
// never runs a subject, prints, or reads the clock, and no rule asks which
// subject or which driver made the trace.
//
//	verdict := conformance.Check(tr, conformance.Catalogue())
//	if first := verdict.First(); first != nil {
//		fmt.Println(first.Rule, first.Message, first.Entries)
//	}
//
// # Terms
//
// A run is what one accepted prompt or continue brings about. A turn is one
// assistant response with the tool calls that it asked for; a batch is those
// calls. A callback is one outward call of the loop, from its beginning until
// it has been answered, which is when it settles.
//
// A rule that the trace gave no occasion to keep or to break is not exercised;
// a rule that needs evidence which the trace lacks, or that belongs to another
// edition or form, is not applicable. Neither ever counts as passed.
//
// # Edges
//
// Some things every release of the original loop does, so that they are never
// a violation: they are the numbered edges of a rule. The most common are e2, a
// listener that throws, and e11, a run that fails outside the protocol: from
// that moment on the run is judged only by the rules that speak of failures,
// and where a tool of the failed run is still busy, so is the rest of the
// trace, for its events may turn up in the runs that follow.
package conformance
