package faulty

import (
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop"
)

// What the rules find that the mutants above leave to others.
var more = []Mutant{
	mutant(loop.DurationOfRefused, "TOOL-19", "A refused command is shown with the time that it took, as if it had been run.").inEdition(edition.V16),

	mutant(loop.CallsBegunFromTheEnd, "PAR-1", "The user is asked about the last command of a list first, and about the first one last."),
	mutant(loop.UpdateKeyedByTool, "PAR-8", "Two searches at once: their progress is filed under the tool's name, and appears on neither card."),
	mutant(loop.FailureHidesReason, "PAR-9", "After one command has failed, the model no longer learns what was wrong with the next."),

	mutant(loop.UpdateAfterEnd, "UPD-4", "Progress that is held back for a moment opens a card that is finished by then."),
	mutant(loop.EarlyUpdateLost, "UPD-5", "What a tool says before it waits for anything is never shown."),
	mutant(loop.SlowUpdateLosesCall, "UPD-6", "Stopped while a slow view is busy with progress, a command that has run is never heard of again."),
	mutant(loop.UpdateWhenRefused, "UPD-7", "The card of a refused command shows progress, as if it had been run."),
	mutant(loop.AfterHookBeforeUpdates, "UPD-8", "A slow view writes an older line over what a hook has made of the result."),

	mutant(loop.TruncatedUnnamed, "LEN-3", "The model is told that a call was cut off, but not which tool it was for."),
	mutant(loop.TruncatedNotAskedAgain, "LEN-3s", "The model takes a call that was cut off for done, and never repeats it."),
	mutant(loop.TruncatedAnswerContinued, "LEN-5", "An answer that hits the output limit is followed by another one that nobody asked for."),

	mutant(loop.AbortedCallNotError, "ABRT-3", "A command that the user stopped while asked about it is shown as done."),
	mutant(loop.AbortedCallsLeftOut, "ABRT-4", "A command that was stopped before it ran has a card and no place in the history."),
	mutant(loop.AbortHangsOnModel, "ABRT-7", "Stopping an answer leaves the session busy for ever."),
	mutant(loop.AbortKeptForNextRun, "ABRT-8", "Escape pressed once too often kills the next question."),
	mutant(loop.SecondAbortDropsTool, "ABRT-9", "Whoever presses stop twice never sees what the running command has done."),

	mutant(loop.LastPollMissing, "QUE-2", "What the user typed while the last answer came in is left lying."),
	mutant(loop.QueuesClearedAtEnd, "QUE-6", "What the user typed at the very end of a run is gone in the next."),
	mutant(loop.SteeringBeforePrompts, "QUE-7", "The model reads the correction before what it corrects."),

	mutant(loop.MessagesAfterListeners, "STATE-1", "A view that draws from the state shows the conversation without its last message."),
	mutant(loop.PendingClearedByAnyEnd, "STATE-3", "When the first of two commands is done, both are shown as done."),
	mutant(loop.StreamingKeptAfterEnd, "STATE-4", "Every message is seen twice: in the history, and below it as still being written."),
	mutant(loop.ResultsStoredTwice, "STATE-5", "Every result stands in the transcript a second time, and no event has told of it."),
	mutant(loop.IdleDuringAgentEnd, "STATE-7", "What the user types while the session is being saved is sent as a prompt, and refused."),
	mutant(loop.PendingChangedInPlace, "STATE-8", "A view that compares the pending calls with those it has drawn never sees a change."),

	mutant(loop.StartToldLate, "LIS-2", "A view hears of the end of a command before its start, and opens a card that never closes."),
	mutant(loop.StreamHeldByReader, "LIS-5", "A log that is slow to write holds up the agent."),
	mutant(loop.TurnEndNotAwaited, "LIS-6", "The loop takes what is queued while the turn before is still being saved."),
	mutant(loop.SubscribedTwice, "LIS-7", "A view that is opened twice shows everything twice."),

	mutant(loop.KeyLookedUpOnce, "CTX-1", "A key that expires during a long run is used until the provider refuses it."),
	mutant(loop.ConfiguredKeyWins, "CTX-4", "The renewed key is looked up, and the old one is sent."),
	mutant(loop.FailedResultsNotTold, "CTX-5", "After a failed command the provider refuses the request: its call has no result there.").inEdition(edition.V16),
	mutant(loop.ToolsForgotten, "CTX-6", "After its first command the model has no tools any more."),
}
