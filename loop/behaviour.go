package loop

import "github.com/pi-conform/pi-conform/harness/edition"

// behaviour is where the editions differ: the only thing that the loop ever
// asks of its edition.
type behaviour struct {
	// prepareNextTurn is asked directly after every turn_end, the last one
	// included, and shouldStopAfterTurn after it. Later editions ask it only
	// when another turn follows, and look for steering once more after it.
	preparesAfterEveryTurn bool
	// finishTurn is asked before turn_end and prepareRequest before each
	// request (TURN-12); shouldStopAfterTurn is gone.
	finishesTurns bool
	// The system prompt and the tools stand in the transcript as system messages.
	systemMessages bool
	// The first call that an abort keeps from running ends its batch; later
	// calls stay unanswered (ABRT-6). Later editions answer every call (ABRT-5).
	abortEndsBatch bool
	// Calls that were prepared when an abort came are still executed. Later
	// editions give them an error result (ABRT-2).
	executesPreparedAfterAbort bool
	// A tool's own isError counts (TOOL-19).
	toolSaysIsError bool
	// Executed calls carry durationMs (TOOL-19).
	durations bool
	// Assistant messages carry the thinking level that was asked for.
	recordsLevel bool
	// A result's structuredContent goes if a hook replaces the content.
	structuredContent bool
	// A result's addedToolNames are copied to its message.
	addedToolNames bool
	// A tool that returns nothing fails the run (edge 15). Later editions give
	// an error result.
	emptyResultFailsRun bool
}

// behaviours are those of the complete editions, and of none given.
var behaviours = func() map[edition.Edition]behaviour {
	known := map[edition.Edition]behaviour{"": derived(edition.Default)}
	for _, e := range edition.Known() {
		known[e] = derived(e)
	}
	return known
}()

func behaviourOf(e edition.Edition) behaviour {
	if b, ok := behaviours[e]; ok {
		return b
	}
	return derived(e)
}

func derived(e edition.Edition) behaviour {
	return behaviour{
		preparesAfterEveryTurn:     !e.AtLeast("0.84.4"),
		finishesTurns:              e.AtLeast("0.87"),
		systemMessages:             e.AtLeast("0.86"),
		abortEndsBatch:             !e.AtLeast("1.6"),
		executesPreparedAfterAbort: !e.AtLeast("0.85"),
		toolSaysIsError:            e.AtLeast("0.99"),
		durations:                  e.AtLeast("1.1"),
		recordsLevel:               e.AtLeast("1.6"),
		structuredContent:          e.AtLeast("0.99"),
		addedToolNames:             !e.AtLeast("0.86"),
		emptyResultFailsRun:        !e.AtLeast("0.99"),
	}
}
