// Package progress is a reference of the channel on which a running tool shows
// how far it has come. Comments name the rule that a line keeps, as in (PROG-4).
//
//	prepare ─► durable tool/call ─► dispatch ─► the tool's body ─► boundary ─► hook ─► observers of the result ─► durable tool/result
//	                                                │
//	                                          ReportProgress ─► one round: every observer whose scope matches, a copy each
//
// A [Registry] owns the executions of tools. Progress is for whoever watches: it
// is neither stored nor shown to the model. Once the boundary is crossed, no view
// gets through, whoever reports it.
//
// Everything may be called from any goroutine. Observers are called on the
// goroutine that reports, so one observer may be called by several at a time.
package progress
