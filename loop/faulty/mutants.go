package faulty

import (
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop"
)

// Runs and streams.
var runsAndStreams = []Mutant{
	mutant(loop.AgentStartMissing, "RUN-1", "A retry happens on a screen that still shows the last run as finished."),
	mutant(loop.TranscriptAtEnd, "RUN-3", "Whoever stores what a run has added stores the whole conversation once more after each prompt."),
	mutant(loop.IdleWaitHangs, "RUN-6", "A program that waits before it goes on, while nothing runs, waits for ever."),
	mutant(loop.FailureUntold, "RUN-7", "A run that breaks just stops, and nothing says why there is no answer."),
	mutant(loop.ContinueAfterAnswer, "RUN-9", "Pressing continue after an answer asks the model to answer itself."),
	mutant(loop.ContinuePollsAtOnce, "RUN-10", "Two messages that were typed too late arrive together, although they were meant one by one."),
	mutant(loop.ContinuationRepeats, "RUN-11", "After a retry the user's message stands there twice."),
	mutant(loop.ImagesDropped, "RUN-12", "The user asks what is in a picture, and the model never sees it."),
	mutant(loop.ResetDuringRun, "RUN-13", "A transcript that is cleared under a running loop begins with an answer to nothing."),
	mutant(loop.OnlyFirstPromptTold, "MSG-8", "Of several messages that are sent together only the first is shown and stored, and the model answers all."),
	mutant(loop.ThinkingNotPassedOn, "MSG-3", "While the model thinks nothing moves, and the user takes it for dead."),
	mutant(loop.LastEventKept, "MSG-4", "What is stored is what the last event of the stream held, and not the answer that the provider stands by."),
	mutant(loop.BareAnswerUpdated, "MSG-5", "An answer that came in one piece is shown twice by whoever appends what is streamed."),
	mutant(loop.SilentEndKeepsDraft, "MSG-6", "A provider closes the connection without a last event, and the end of its answer is lost."),
	mutant(loop.StreamReadAhead, "MSG-9", "A slow terminal does not hold the stream back, and text piles up in memory."),
	mutant(loop.StartBeforeMessageEnd, "TOOL-2", "A card shows a command before the message that asks for it is stored."),
	mutant(loop.ProgressAsMessageUpdate, "MSG-2", "The output of a tool is written into what the model says."),
	mutant(loop.TurnEndBeforeResults, "TURN-3", "A turn that is shown as finished gains results afterwards."),
	mutant(loop.ThinkingAskedAgain, "TURN-10", "A model that has nothing to say is asked again and again, and every time is paid for."),
	mutant(loop.FinishContinueIgnored, "TURN-12", "A program says that the work is not done yet, and the run ends.").inEdition(edition.V16),
	mutant(loop.StopReasonBelieved, "TURN-13", "A provider gives the wrong stop reason, and the calls of its answer are never run."),
	mutant(loop.RawArgumentsExecuted, "TOOL-6", "The user allows one command, and another is run."),
	mutant(loop.ResultUnderToolName, "TOOL-14", "A result names the tool in the place of the call, and the provider refuses the next request."),
	mutant(loop.ResultsReversedInContext, "TOOL-15", "A provider that wants results in the order of the calls refuses the request."),
	mutant(loop.ErrorsWithDetails, "TOOL-18", "A card that draws the details of a tool stumbles over those of an error that the loop made."),
}

// Order and batches.
var order = []Mutant{
	mutant(loop.ResultsInCompletionOrder, "PAR-4", "The transcript depends on which tool was quicker, so that caches miss and stored sessions differ."),
	mutant(loop.EndsInSourceOrder, "PAR-3", "A quick tool that is done is shown as running until the slowest one has finished."),
	mutant(loop.TurnResultsSwapped, "TURN-4", "Whoever stores a turn from turn_end stores the answers to its calls in the wrong order."),
	mutant(loop.BeginsBeforeAllPrepared, "PAR-2", "The first command already runs while the user is still asked about the second."),
	mutant(loop.ParallelOneByOne, "PAR-2", "Five slow look-ups take five times as long, and calls that wait for each other hang."),
	mutant(loop.SequentialSettingIgnored, "PAR-7", "Tools run together although the user has set them to run one by one, and destroy each other's work."),
	mutant(loop.SequentialToolIgnored, "PAR-7", "A tool that has to run alone runs together with others on the same files."),
	mutant(loop.OnlyFirstModeLookedAt, "PAR-7", "A tool that has to run alone does so only if the model happens to name it first."),
	mutant(loop.FirstFailureEndsBatch, "TOOL-1", "One failing tool makes the loop turn its back on its siblings, whose cards spin for ever."),
	mutant(loop.ResultsKeyedByTool, "TOOL-13", "Two searches at once: the model gets the result of the second for both."),
	mutant(loop.ResultsKeyedByID, "TOOL-1", "A model that gives two calls one id gets one result, and the provider refuses the next request."),
	mutant(loop.ResultEndTwice, "MSG-1", "Every result is stored twice."),
	mutant(loop.MessageStartMissing, "MSG-1", "A short or failed answer has no bubble to be shown in."),
	mutant(loop.TurnStartMissing, "TURN-1", "Everything from the second answer on is shown as part of the first turn."),
	mutant(loop.LastResultMissingFromTurnEnd, "TURN-4", "Whoever stores a turn from turn_end loses its last result."),
	mutant(loop.EndBeforeAfterHook, "PAR-3", "A card shows what a tool gave before a hook could take the secrets out."),
	mutant(loop.HookChangeMissingFromMessage, "TOOL-13", "A hook takes a secret out of a result; the card hides it and the model is told it all the same."),
	mutant(loop.ResultBeforeBatchOver, "PAR-5", "The history shows a finished batch while one of its cards is still running."),
	mutant(loop.StartAgainAfterHook, "TOOL-1", "A call that the user has allowed gets a second card, and the first one spins for ever."),
	mutant(loop.PreparedBeforeListeners, "TOOL-3", "The user is asked about a command that the stored session does not hold yet."),
	mutant(loop.StartAfterPreparation, "TOOL-4", "The user is asked about a command of which no card can be seen."),
	mutant(loop.StartWithPreparedArguments, "TOOL-4", "To show the prepared arguments on a card, the loop prepares a call before anybody has heard of it."),
	mutant(loop.UpdateWithPreparedArguments, "TOOL-5", "With the first line of progress a card shows other arguments than the model gave."),
	mutant(loop.FailureEndHeldBack, "PAR-6", "A refused command goes on spinning as if it were being run."),
}

// Updates.
var updates = []Mutant{
	mutant(loop.LateUpdateAccepted, "UPD-2", "A tool that kept its callback opens a finished card again."),
	mutant(loop.GateOpenAfterThrow, "UPD-2", "A tool that has failed still writes on its card."),
	mutant(loop.OneGateForBatch, "UPD-1", "When the first tool of a batch is done, the others fall silent."),
	mutant(loop.OneThrottleBuffer, "UPD-1", "Of two tools at work only the one that spoke last is heard, and only when one of them ends."),
	mutant(loop.UpdateUnderLastID, "UPD-1", "The progress of every tool appears on the card that was opened last."),
	mutant(loop.FirstUpdateSwallowed, "UPD-1", "The line in which a tool says what it is about to do is never shown."),
	mutant(loop.UpdatesReversed, "UPD-1", "Progress runs backwards."),
	mutant(loop.UpdateNotAwaited, "UPD-3", "A slow view gets progress for a card that is finished, and opens it again."),
	mutant(loop.LateUpdateInNextRun, "UPD-2", "A tool of the last run writes into the next one."),
	mutant(loop.UpdateDroppedAfterAbort, "UPD-1", "After the stop button the user no longer sees what a tool is still doing."),
	mutant(loop.UpdateErrorBreaksRun, "UPD-6", "A view that fails on one line of progress ends the whole run.").
		equivalent("every release fails the run when a listener throws on an update (edge 14), and what follows such a failure is not judged: this only does so earlier"),
}

// Truncation.
var truncation = []Mutant{
	mutant(loop.TruncatedExecuted, "LEN-1", "Half a file is written, because the arguments were cut off and still parsed."),
	mutant(loop.OnlyLastCallTruncated, "LEN-1", "The calls before the last one run, although the model has not come to the end of what it wanted."),
	mutant(loop.TruncatedUnanswered, "LEN-2", "The provider refuses the next request, because a call in it has no result."),
	mutant(loop.TruncatedEndsRun, "LEN-4", "The work stops in the middle, and the user has to notice it."),
	mutant(loop.TruncatedNotErrors, "LEN-2", "A call that was never made is shown as a success."),
	mutant(loop.TruncatedHooked, "LEN-1", "The user is asked whether half a command may run."),
}

// Abort.
var abort = []Mutant{
	mutant(loop.SequentialAbortUnanswered, "ABRT-5", "After the stop button the session is unusable: its last message holds calls without results.").inEdition(edition.V16),
	mutant(loop.ParallelAbortUnanswered, "ABRT-5", "Stopped while a hook thinks about one of several calls, the session holds calls without results.").inEdition(edition.V16),
	mutant(loop.AbortIgnoredBeforeExecute, "ABRT-2", "The user presses stop while asked about a command, and it runs."),
	mutant(loop.AbortLeavesBatchRunning, "ABRT-6", "The user presses stop, and the rest of the calls are begun one after the other."),
	mutant(loop.NoAbortCheckAfterHook, "ABRT-2", "Stopped while a hook thinks about a call, a loop that runs calls one by one runs this one still."),
	mutant(loop.NoAbortCheckWhenBegun, "ABRT-2", "Stopped while the second call is prepared, the loop still begins the first.").inEdition(edition.V16),
	mutant(loop.AbortedMessageCalls, "TURN-5", "The user stops an answer that is still coming in, and the commands in it run."),
	mutant(loop.AbortTurnEndMissing, "TURN-1", "The turn that the user stopped stays open on the screen."),
	mutant(loop.AbortAgentEndMissing, "RUN-2", "After the stop button the session is neither stored nor shown as finished."),
	mutant(loop.AbortEndsRunAtOnce, "TURN-6", "After the stop button there is no message that says the run was aborted."),
	mutant(loop.AbortHangsOnTool, "ABRT-10", "A tool that ignores the stop button makes the run hang for ever."),
	mutant(loop.AbortDropsTool, "TOOL-10", "A tool that was at work when the user pressed stop has changed files, and its result says that it was not executed."),
	mutant(loop.SecondEndingAfterAbort, "RUN-2", "Pressing stop while the session is being saved ends the run a second time."),
	mutant(loop.SteeringDrainedByDyingRun, "TURN-14", "What the user typed just before the stop button is swallowed."),
	mutant(loop.SecondAbortPanics, "RUN-2", "Pressing the stop button twice crashes the run, which then has no end."),
	mutant(loop.LeakAfterAbort, "RUN-14", "Each press of the stop button leaves a task behind, until memory runs out."),
	mutant(loop.SignalMissingFromListeners, "LIS-4", "A listener that is busy with a slow upload cannot be stopped."),
	mutant(loop.SignalMissingFromHooks, "ABRT-1", "A question to the user stays on the screen after the stop button."),
	mutant(loop.SignalMissingFromTools, "ABRT-1", "A running command goes on after the stop button."),
	mutant(loop.SignalMissingFromModel, "ABRT-1", "The model goes on writing, and costing, after the stop button."),
}

// Errors, hooks, ending.
var errorsAndHooks = []Mutant{
	mutant(loop.ThrownNotError, "TOOL-11", "A command that failed is shown as a success."),
	mutant(loop.ToolIsErrorIgnored, "TOOL-10", "A tool that reports its failure without throwing is shown as a success.").inEdition(edition.V16),
	mutant(loop.NoEndForThrowingTool, "TOOL-9", "The card of a command that failed spins for ever."),
	mutant(loop.ErrorMessageCallsExecuted, "TURN-5", "The half-written commands of an answer that broke off are run."),
	mutant(loop.NoEndForUnknownTool, "TOOL-9", "The card of a tool that does not exist spins for ever."),
	mutant(loop.BlockedCallExecutes, "TOOL-7", "What the user has forbidden happens."),
	mutant(loop.AfterHookForUnexecuted, "TOOL-7", "A hook that cleans up after commands is told of one that never ran."),
	mutant(loop.AfterHookErrorIgnored, "TOOL-12", "The hook that takes secrets out of results fails, and the result goes out as it was."),
	mutant(loop.AfterHookDropsTerminate, "TOOL-10", "A tool that hands over to the user is followed by one more answer, because a hook shortened its output."),
	mutant(loop.AfterHookMergesDetails, "TOOL-10", "What a hook took out of the details of a result comes back."),
	mutant(loop.TerminateIfAny, "TURN-7", "One tool that is done ends the run, and the model never sees what the others found."),
	mutant(loop.TerminateIgnored, "TURN-7", "A tool hands over to the user, and the model goes on talking."),
	mutant(loop.ErrorTerminates, "TURN-6", "A command that failed ends the run, and the model cannot try again."),
	mutant(loop.BlockedTerminates, "TOOL-8", "The user says no to a command, and the model is not told why."),
	mutant(loop.ToolErrorBreaksRun, "TURN-2", "One tool that fails takes the whole run with it."),
	mutant(loop.NoContentBreaksRun, "TURN-2", "A tool that has nothing to say takes the whole run with it."),
	mutant(loop.RawArgumentsValidated, "TOOL-7", "A tool that mends the model's arguments is told that they are invalid."),
	mutant(loop.HookSeesStaleContext, "TOOL-17", "A hook that decides whether a command is safe does not see why the model asked for it."),
	mutant(loop.StopHookBeforeTurnEnd, "TURN-8", "A program stops the loop to compact the transcript, before the turn is stored."),
	mutant(loop.PolledAfterStop, "TURN-8", "A program stops the loop, and what the user typed meanwhile is swallowed."),
	mutant(loop.NextTurnModelForgotten, "TURN-9", "A program moves to a cheaper model, and the dear one is asked."),
}

// Queues, context, state.
var queuesAndState = []Mutant{
	mutant(loop.EarlySteeringLost, "QUE-1", "What the user typed while the run was about to begin is lost."),
	mutant(loop.QueuedTwiceInContext, "CTX-2", "The model reads every correction twice."),
	mutant(loop.TwoAtATime, "QUE-5", "Messages that were meant one by one arrive two at a time."),
	mutant(loop.SteeringBeforeResults, "CTX-2", "A correction stands between a call and its result, and the provider refuses the request."),
	mutant(loop.SteeringDuringBatch, "TURN-11", "A correction is put into the middle of a turn, before the results of its calls."),
	mutant(loop.SteeringSkipsBatch, "QUE-3", "A correction leaves half a batch undone, and files half changed."),
	mutant(loop.FollowUpDropped, "QUE-1", "What the user queued for later is taken, and never answered."),
	mutant(loop.FollowUpBeforeResults, "QUE-4", "What the user queued for later interrupts the work."),
	mutant(loop.LastResultMissingFromContext, "CTX-2", "The model is not told what its last command gave."),
	mutant(loop.ContextAliased, "CTX-2", "A hook that appends to the list it was given writes into the loop's own.").
		equivalent("a Go slice has its own length: what is appended to one is never seen through another, unless a hook appends to the list that it was given, which it must not"),
	mutant(loop.UpdateSnapshotChanges, "MSG-7", "A view that kept a message to draw it later finds another one there."),
	mutant(loop.ConcurrentPromptAccepted, "RUN-4", "Two runs on one transcript interleave their messages."),
	mutant(loop.BusyPromptQueued, "RUN-4", "A second prompt is reported as done, and is answered some time later."),
	mutant(loop.IdleBeforeListeners, "RUN-5", "A program that exits once prompt has returned cuts off the listener that saves the session."),
	mutant(loop.PendingAfterListeners, "STATE-2", "A view that draws from the state is always one call behind."),
	mutant(loop.PendingKeptAfterFailure, "RUN-8", "After a failed run a command is shown as running for the rest of the session."),
	mutant(loop.ErrorKeptByNextRun, "STATE-6", "A good answer is shown as a failure, because of an old error."),
	mutant(loop.UnsubscribeSkipsNext, "LIS-3", "A view that closes makes another one miss an event."),
	mutant(loop.ListenersAtOnce, "LIS-1", "A view is drawn before the listener that stores the session has finished."),
	mutant(loop.CallersMessagesChanged, "CTX-3", "A program finds its own messages changed after it has passed them to the agent."),
	mutant(loop.WallClockUsed, "TOOL-19", "What happened in a test depends on how fast the machine is.").
		equivalent("no rule reads times, and the normal form leaves them out, as no contract fixes them"),
	mutant(loop.MapOrderDecides, "PAR-4", "The transcript of one and the same run is another one each time."),
	mutant(loop.RaceOnResults, "", "Two tools that finish together lose one of their results, once in a while.").inBubble(),
}
