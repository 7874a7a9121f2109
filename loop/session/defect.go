package session

import (
	"slices"

	"github.com/pi-conform/pi-conform/loop/defect"
)

// Defect is the name of one way in which the session can be made to break the
// contract.
type Defect string

// The defects.
const (
	RetryCounterNotReset   Defect = "retry-counter-not-reset"
	RetryDelayIgnoresAbort Defect = "retry-delay-ignores-abort"
	FailedMessageSentAgain Defect = "failed-message-sent-again"
	RetryEndTwice          Defect = "retry-end-reported-twice"
	CompactsBeforeRetry    Defect = "compaction-before-retry"
	QueueForgotten         Defect = "queue-forgotten-after-run"
	ContinuesWithoutAnswer Defect = "continues-without-answer"
)

// Defects are the defects that are switched on; nil, as it should be, is none.
type Defects []Defect

// Has reports whether d is switched on.
func (ds Defects) Has(d Defect) bool { return slices.Contains(ds, d) }

// Mutant is the session with one defect.
type Mutant = defect.Mutant[Defect]

// Mutants are all mutants, in a fixed order.
func Mutants() []Mutant {
	return defect.Named([]Mutant{
		{Defect: RetryCounterNotReset, Rule: "SESS-2", Story: "After a retry that succeeded the attempts go on counting, so a later failure is given up too early."},
		{Defect: RetryDelayIgnoresAbort, Rule: "SESS-3", Story: "The user aborts while the session waits for the next attempt, and it goes on waiting."},
		{Defect: FailedMessageSentAgain, Rule: "SESS-4", Story: "The empty failed answer stays in the transcript and is sent with the retry."},
		{Defect: RetryEndTwice, Rule: "SESS-1", Story: "The end of retrying is reported twice, and a user interface shows the error twice."},
		{Defect: CompactsBeforeRetry, Rule: "SESS-1", Story: "The transcript is compacted before a failed request is retried."},
		{Defect: QueueForgotten, Rule: "SESS-1", Story: "A message that was queued as the run ended waits until the user writes again."},
		{Defect: ContinuesWithoutAnswer, Rule: "SESS-5", Story: "A run that brought no answer at all is continued all the same."},
	})
}
