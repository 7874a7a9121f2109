// Package dialect reads logs that somebody else recorded, and judges them by the
// rules of the contract.
//
//	log, err := dialect.Open(file, dialect.Auto)
//	report, err := dialect.Judge(log, dialect.Options{})
//	for _, f := range report.Findings {
//		fmt.Println(f.Lines, f.Rule, f.Message)
//	}
//
// # What a log shows
//
// A log is read once, a run at a time: what it takes in memory is one run, with
// long texts put in short (see [condense]). No dialect but our own shows what
// the loop called out for, so a rule that needs more than events is not
// applicable, and says why.
//
// What a log does not say but lets one see is added to the trace of a run: its
// beginning, where it was over, and that it was aborted, as early as that can
// have been.
//
// # Dialects
//
// A log of [ACP] holds another protocol and is judged by rules of its own: see
// the package acp below this one.
package dialect
