package loop

import "slices"

// Defect is the name of one way in which the loop can be made to break the
// contract. Each stands at exactly the place where a loop could go wrong there,
// so that the harness can be seen to find it.
type Defect string

// The defects.
const (
	ResultsInCompletionOrder  Defect = "results-in-completion-order"         // PAR-4
	EndsInSourceOrder         Defect = "ends-in-source-order"                // PAR-3
	LateUpdateAccepted        Defect = "late-update-accepted"                // UPD-2
	TruncatedExecuted         Defect = "truncated-executed"                  // LEN-1
	AbortIgnoredBeforeExecute Defect = "abort-ignored-before-execution"      // ABRT-2, ABRT-3
	AbortLeavesBatchRunning   Defect = "abort-leaves-batch-running"          // ABRT-6
	ErrorMessageCallsExecuted Defect = "error-message-calls-executed"        // TURN-5
	UpdateNotAwaited          Defect = "update-not-awaited-before-end"       // UPD-3
	StartAfterPreparation     Defect = "start-after-preparation"             // TOOL-4
	ResultEndTwice            Defect = "message-end-twice-for-result"        // MSG-1
	IdleBeforeListeners       Defect = "idle-before-agent-end-listeners"     // RUN-5
	PendingAfterListeners     Defect = "pending-not-updated-before-listener" // STATE-1, STATE-2
)

// KnownDefects are all defects that can be switched on.
func KnownDefects() []Defect {
	return []Defect{
		ResultsInCompletionOrder, EndsInSourceOrder, LateUpdateAccepted, TruncatedExecuted,
		AbortIgnoredBeforeExecute, AbortLeavesBatchRunning, ErrorMessageCallsExecuted,
		UpdateNotAwaited, StartAfterPreparation, ResultEndTwice, IdleBeforeListeners,
		PendingAfterListeners,
	}
}

// Defects are the defects that are switched on; nil, as it should be, is none.
type Defects []Defect

// Has reports whether d is switched on.
func (ds Defects) Has(d Defect) bool { return len(ds) > 0 && slices.Contains(ds, d) }
