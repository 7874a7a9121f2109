package loop

import "slices"

// Defect is the name of one way in which the loop can be made to break the
// contract. Each stands at exactly the place where a loop could go wrong there,
// so that the harness can be seen to find it. Package faulty tells the story of
// each, and names the rule that finds it.
type Defect string

// Runs and streams.
const (
	AgentStartMissing        Defect = "agent-start-missing-from-continuation"
	TranscriptAtEnd          Defect = "whole-transcript-at-agent-end"
	IdleWaitHangs            Defect = "wait-for-idle-hangs-when-idle"
	FailureUntold            Defect = "failure-untold"
	ContinueAfterAnswer      Defect = "continue-after-answer-accepted"
	ContinuePollsAtOnce      Defect = "continue-polls-steering-at-once"
	ContinuationRepeats      Defect = "continuation-repeats-last-message"
	ImagesDropped            Defect = "images-dropped-from-prompt"
	ResetDuringRun           Defect = "reset-during-run-accepted"
	OnlyFirstPromptTold      Defect = "only-first-prompt-told"
	ThinkingNotPassedOn      Defect = "thinking-not-passed-on"
	LastEventKept            Defect = "last-event-kept"
	BareAnswerUpdated        Defect = "bare-answer-updated"
	SilentEndKeepsDraft      Defect = "silent-end-keeps-draft"
	StreamReadAhead          Defect = "stream-read-ahead"
	StartBeforeMessageEnd    Defect = "start-before-message-end"
	ProgressAsMessageUpdate  Defect = "progress-as-message-update"
	TurnEndBeforeResults     Defect = "turn-end-before-results"
	ThinkingAskedAgain       Defect = "thinking-alone-asked-again"
	FinishContinueIgnored    Defect = "finish-turn-continue-ignored"
	StopReasonBelieved       Defect = "stop-reason-believed"
	RawArgumentsExecuted     Defect = "raw-arguments-executed"
	ResultUnderToolName      Defect = "result-under-tool-name"
	ResultsReversedInContext Defect = "results-reversed-in-context"
	ErrorsWithDetails        Defect = "errors-with-details"
)

// Order and batches.
const (
	ResultsInCompletionOrder     Defect = "results-in-completion-order"
	EndsInSourceOrder            Defect = "ends-in-source-order"
	TurnResultsSwapped           Defect = "turn-results-swapped"
	BeginsBeforeAllPrepared      Defect = "begins-before-all-are-prepared"
	ParallelOneByOne             Defect = "parallel-one-by-one"
	SequentialSettingIgnored     Defect = "sequential-setting-ignored"
	SequentialToolIgnored        Defect = "sequential-tool-ignored"
	OnlyFirstModeLookedAt        Defect = "only-first-mode-looked-at"
	FirstFailureEndsBatch        Defect = "first-failure-ends-batch"
	ResultsKeyedByTool           Defect = "results-keyed-by-tool"
	ResultsKeyedByID             Defect = "results-keyed-by-id"
	ResultEndTwice               Defect = "message-end-twice-for-result"
	MessageStartMissing          Defect = "message-start-missing-without-stream-start"
	TurnStartMissing             Defect = "turn-start-missing-from-second-turn"
	LastResultMissingFromTurnEnd Defect = "last-result-missing-from-turn-end"
	EndBeforeAfterHook           Defect = "end-before-after-hook"
	HookChangeMissingFromMessage Defect = "hook-change-missing-from-message"
	ResultBeforeBatchOver        Defect = "result-before-batch-is-over"
	StartAgainAfterHook          Defect = "start-again-after-hook"
	PreparedBeforeListeners      Defect = "prepared-before-listeners-are-done"
	StartAfterPreparation        Defect = "start-after-preparation"
	StartWithPreparedArguments   Defect = "start-with-prepared-arguments"
	UpdateWithPreparedArguments  Defect = "update-with-prepared-arguments"
	FailureEndHeldBack           Defect = "failure-end-held-back"
)

// Updates.
const (
	LateUpdateAccepted      Defect = "late-update-accepted"
	GateOpenAfterThrow      Defect = "gate-open-after-throw"
	OneGateForBatch         Defect = "one-gate-for-batch"
	OneThrottleBuffer       Defect = "one-throttle-buffer"
	UpdateUnderLastID       Defect = "update-under-last-id"
	FirstUpdateSwallowed    Defect = "first-update-swallowed"
	UpdatesReversed         Defect = "updates-reversed"
	UpdateNotAwaited        Defect = "update-not-awaited-before-end"
	LateUpdateInNextRun     Defect = "late-update-in-next-run"
	UpdateDroppedAfterAbort Defect = "update-dropped-after-abort"
	UpdateErrorBreaksRun    Defect = "update-error-breaks-run"
)

// Truncation.
const (
	TruncatedExecuted     Defect = "truncated-executed"
	OnlyLastCallTruncated Defect = "only-last-call-truncated"
	TruncatedUnanswered   Defect = "truncated-unanswered"
	TruncatedEndsRun      Defect = "truncated-ends-run"
	TruncatedNotErrors    Defect = "truncated-not-errors"
	TruncatedHooked       Defect = "truncated-hooked"
)

// Abort.
const (
	SequentialAbortUnanswered  Defect = "sequential-abort-unanswered"
	ParallelAbortUnanswered    Defect = "parallel-abort-unanswered"
	AbortIgnoredBeforeExecute  Defect = "abort-ignored-before-execution"
	AbortLeavesBatchRunning    Defect = "abort-leaves-batch-running"
	NoAbortCheckAfterHook      Defect = "no-abort-check-after-hook"
	NoAbortCheckWhenBegun      Defect = "no-abort-check-when-begun"
	AbortedMessageCalls        Defect = "aborted-message-calls-executed"
	AbortTurnEndMissing        Defect = "abort-turn-end-missing"
	AbortAgentEndMissing       Defect = "abort-agent-end-missing"
	AbortEndsRunAtOnce         Defect = "abort-ends-run-at-once"
	AbortHangsOnTool           Defect = "abort-hangs-on-tool"
	AbortDropsTool             Defect = "abort-drops-tool"
	SecondEndingAfterAbort     Defect = "second-ending-after-abort"
	SteeringDrainedByDyingRun  Defect = "steering-drained-by-dying-run"
	SecondAbortPanics          Defect = "second-abort-panics"
	LeakAfterAbort             Defect = "leak-after-abort"
	SignalMissingFromListeners Defect = "signal-missing-from-listeners"
	SignalMissingFromHooks     Defect = "signal-missing-from-hooks"
	SignalMissingFromTools     Defect = "signal-missing-from-tools"
	SignalMissingFromModel     Defect = "signal-missing-from-model"
)

// Errors, hooks, ending.
const (
	ThrownNotError            Defect = "thrown-not-error"
	ToolIsErrorIgnored        Defect = "tool-is-error-ignored"
	NoEndForThrowingTool      Defect = "no-end-for-throwing-tool"
	ErrorMessageCallsExecuted Defect = "error-message-calls-executed"
	NoEndForUnknownTool       Defect = "no-end-for-unknown-tool"
	BlockedCallExecutes       Defect = "blocked-call-executes"
	AfterHookForUnexecuted    Defect = "after-hook-for-unexecuted"
	AfterHookErrorIgnored     Defect = "after-hook-error-ignored"
	AfterHookDropsTerminate   Defect = "after-hook-drops-terminate"
	AfterHookMergesDetails    Defect = "after-hook-merges-details"
	TerminateIfAny            Defect = "terminate-if-any"
	TerminateIgnored          Defect = "terminate-ignored"
	ErrorTerminates           Defect = "error-terminates"
	BlockedTerminates         Defect = "blocked-terminates"
	ToolErrorBreaksRun        Defect = "tool-error-breaks-run"
	NoContentBreaksRun        Defect = "no-content-breaks-run"
	RawArgumentsValidated     Defect = "raw-arguments-validated"
	HookSeesStaleContext      Defect = "hook-sees-stale-context"
	StopHookBeforeTurnEnd     Defect = "stop-hook-before-turn-end"
	PolledAfterStop           Defect = "polled-after-stop"
	NextTurnModelForgotten    Defect = "next-turn-model-forgotten"
)

// Queues, context, state.
const (
	EarlySteeringLost            Defect = "early-steering-lost"
	QueuedTwiceInContext         Defect = "queued-twice-in-context"
	TwoAtATime                   Defect = "two-at-a-time"
	SteeringBeforeResults        Defect = "steering-before-results"
	SteeringDuringBatch          Defect = "steering-during-batch"
	SteeringSkipsBatch           Defect = "steering-skips-batch"
	FollowUpDropped              Defect = "follow-up-dropped"
	FollowUpBeforeResults        Defect = "follow-up-before-results"
	LastResultMissingFromContext Defect = "last-result-missing-from-context"
	ContextAliased               Defect = "context-aliased"
	UpdateSnapshotChanges        Defect = "update-snapshot-changes"
	ConcurrentPromptAccepted     Defect = "concurrent-prompt-accepted"
	BusyPromptQueued             Defect = "busy-prompt-queued"
	IdleBeforeListeners          Defect = "idle-before-agent-end-listeners"
	PendingAfterListeners        Defect = "pending-not-updated-before-listener"
	PendingKeptAfterFailure      Defect = "pending-kept-after-failure"
	ErrorKeptByNextRun           Defect = "error-kept-by-next-run"
	UnsubscribeSkipsNext         Defect = "unsubscribe-skips-next"
	ListenersAtOnce              Defect = "listeners-at-once"
	CallersMessagesChanged       Defect = "callers-messages-changed"
	WallClockUsed                Defect = "wall-clock-used"
	MapOrderDecides              Defect = "map-order-decides"
	RaceOnResults                Defect = "race-on-results"
)

var knownDefects = []Defect{
	AgentStartMissing, TranscriptAtEnd, IdleWaitHangs, FailureUntold, ContinueAfterAnswer, ContinuePollsAtOnce,
	ContinuationRepeats, ImagesDropped, ResetDuringRun, OnlyFirstPromptTold, ThinkingNotPassedOn, LastEventKept,
	BareAnswerUpdated, SilentEndKeepsDraft, StreamReadAhead, StartBeforeMessageEnd, ProgressAsMessageUpdate,
	TurnEndBeforeResults, ThinkingAskedAgain, FinishContinueIgnored, StopReasonBelieved, RawArgumentsExecuted,
	ResultUnderToolName, ResultsReversedInContext, ErrorsWithDetails,

	ResultsInCompletionOrder, EndsInSourceOrder, TurnResultsSwapped, BeginsBeforeAllPrepared, ParallelOneByOne,
	SequentialSettingIgnored, SequentialToolIgnored, OnlyFirstModeLookedAt, FirstFailureEndsBatch,
	ResultsKeyedByTool, ResultsKeyedByID, ResultEndTwice, MessageStartMissing, TurnStartMissing,
	LastResultMissingFromTurnEnd, EndBeforeAfterHook, HookChangeMissingFromMessage, ResultBeforeBatchOver,
	StartAgainAfterHook, PreparedBeforeListeners, StartAfterPreparation, StartWithPreparedArguments,
	UpdateWithPreparedArguments, FailureEndHeldBack,

	LateUpdateAccepted, GateOpenAfterThrow, OneGateForBatch, OneThrottleBuffer, UpdateUnderLastID,
	FirstUpdateSwallowed, UpdatesReversed, UpdateNotAwaited, LateUpdateInNextRun, UpdateDroppedAfterAbort,
	UpdateErrorBreaksRun,

	TruncatedExecuted, OnlyLastCallTruncated, TruncatedUnanswered, TruncatedEndsRun, TruncatedNotErrors,
	TruncatedHooked,

	SequentialAbortUnanswered, ParallelAbortUnanswered, AbortIgnoredBeforeExecute, AbortLeavesBatchRunning,
	NoAbortCheckAfterHook, NoAbortCheckWhenBegun, AbortedMessageCalls, AbortTurnEndMissing, AbortAgentEndMissing,
	AbortEndsRunAtOnce, AbortHangsOnTool, AbortDropsTool, SecondEndingAfterAbort, SteeringDrainedByDyingRun,
	SecondAbortPanics, LeakAfterAbort, SignalMissingFromListeners, SignalMissingFromHooks, SignalMissingFromTools,
	SignalMissingFromModel,

	ThrownNotError, ToolIsErrorIgnored, NoEndForThrowingTool, ErrorMessageCallsExecuted, NoEndForUnknownTool,
	BlockedCallExecutes, AfterHookForUnexecuted, AfterHookErrorIgnored, AfterHookDropsTerminate,
	AfterHookMergesDetails, TerminateIfAny, TerminateIgnored, ErrorTerminates, BlockedTerminates,
	ToolErrorBreaksRun, NoContentBreaksRun, RawArgumentsValidated, HookSeesStaleContext, StopHookBeforeTurnEnd,
	PolledAfterStop, NextTurnModelForgotten,

	EarlySteeringLost, QueuedTwiceInContext, TwoAtATime, SteeringBeforeResults, SteeringDuringBatch, SteeringSkipsBatch,
	FollowUpDropped, FollowUpBeforeResults, LastResultMissingFromContext, ContextAliased, UpdateSnapshotChanges,
	ConcurrentPromptAccepted, BusyPromptQueued, IdleBeforeListeners, PendingAfterListeners, PendingKeptAfterFailure,
	ErrorKeptByNextRun, UnsubscribeSkipsNext, ListenersAtOnce, CallersMessagesChanged, WallClockUsed,
	MapOrderDecides, RaceOnResults,
}

// KnownDefects are all defects that can be switched on.
func KnownDefects() []Defect { return slices.Concat(knownDefects, moreDefects) }

// Defects are the defects that are switched on; nil, as it should be, is none.
type Defects []Defect

// Has reports whether d is switched on.
func (ds Defects) Has(d Defect) bool { return len(ds) > 0 && slices.Contains(ds, d) }
