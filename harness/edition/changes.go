package edition

import "slices"

// Change is one way in which a release behaves otherwise than the one before it.
type Change struct {
	Since Edition // the first release with the new behaviour
	About string  // what it is about, in a word or two
	Was   string  // what older releases do
	Is    string  // what this release and newer ones do
	// Rules are those that tell the two apart: an older release breaks them if it
	// is judged as a newer one, or the other way round.
	Rules   []string
	Reports []string // where people told of what was wrong with the old behaviour
}

// Changes are all that were measured, oldest first.
func Changes() []Change { return slices.Clone(changes) }

// Between are the changes from one release to a newer one: those that from does
// not have and to has.
func Between(from, to Edition) []Change {
	var between []Change
	for _, c := range changes {
		if !from.AtLeast(c.Since) && to.AtLeast(c.Since) {
			between = append(between, c)
		}
	}
	return between
}

// Explains are the changes for which a release may break the rule when it is
// judged by the edition, whichever of the two is the newer one.
func Explains(release, judged Edition, rule string) []Change {
	from, to := release, judged
	if release.AtLeast(judged) {
		from, to = judged, release
	}
	return slices.DeleteFunc(Between(from, to), func(c Change) bool { return !slices.Contains(c.Rules, rule) })
}

var changes = []Change{
	{
		Since: "0.58.0", About: "batches",
		Was:   "The calls of a message run one after the other.",
		Is:    "They run together, unless a setting or a tool says otherwise; each is prepared in turn, with a hook before and one after it.",
		Rules: []string{"PAR-1", "PAR-2"},
	},
	{
		Since: "0.58.4", About: "steering",
		Was:     "Steering that arrives while calls run skips those that have not begun.",
		Is:      "Every call is run and answered, and the steering comes after the results.",
		Rules:   []string{"QUE-3", "TOOL-1"},
		Reports: []string{"earendil-works/pi#1883"},
	},
	{
		Since: "0.65.0", About: "listeners",
		Was: "Listeners are called and not waited for, and get no signal; the agent counts as idle before those of agent_end are called.",
		Is:  "Each listener is waited for before the next one and before the loop goes on, and gets the run's signal; the agent is idle once those of agent_end have finished.",
		Rules: []string{
			"RUN-5", "RUN-14", "MSG-9", "TOOL-3", "PAR-3", "UPD-3", "UPD-8", "STATE-7", "LIS-1", "LIS-3", "LIS-4", "LIS-6",
		},
		Reports: []string{"earendil-works/pi#1717"},
	},
	{
		Since: "0.67.68", About: "sequential tools",
		Was:   "A tool that asks to be run alone does not make its batch sequential.",
		Is:    "One such tool makes the whole batch sequential.",
		Rules: []string{"PAR-7"},
	},
	{
		Since: "0.67.68", About: "a hook that throws",
		Was:     "An afterToolCall that throws ends the run inside its turn, with calls unanswered.",
		Is:      "It gives an error result for its call, and nothing else is lost.",
		Rules:   []string{"RUN-3", "RUN-14", "TURN-1", "TOOL-12"},
		Reports: []string{"earendil-works/pi#3084"},
	},
	{
		Since: "0.68.1", About: "order of results",
		Was:     "A call's end is held back until those before it have ended, and its result follows at once; the results of calls that were refused come first.",
		Is:      "Ends come as calls finish; then all results, in the order of the calls.",
		Rules:   []string{"TOOL-15", "PAR-3", "PAR-4", "PAR-5"},
		Reports: []string{"earendil-works/pi#3503", "earendil-works/pi#3468"},
	},
	{
		Since: "0.69.0", About: "terminate",
		Was:   "A result cannot end the run.",
		Is:    "The run ends after a batch whose results all say terminate.",
		Rules: []string{"TURN-7", "TOOL-10"},
	},
	{
		Since: "0.72.1", About: "shouldStopAfterTurn",
		Was:   "Nothing outside can stop a run between two turns.",
		Is:    "A hook is asked after every turn.",
		Rules: []string{"TURN-8"},
	},
	{
		Since: "0.74.1", About: "failed runs",
		Was:   "A run that fails outside the protocol adds an error message to the transcript that no event tells of, and ends with agent_end alone.",
		Is:    "It ends with message_start, message_end, turn_end and agent_end of the failure message.",
		Rules: []string{"RUN-7", "STATE-5", "CTX-2"},
	},
	{
		Since: "0.74.1", About: "prepareNextTurn",
		Was:   "Nothing outside can change the next turn.",
		Is:    "A hook is asked directly after turn_end, before shouldStopAfterTurn, and after the last turn too.",
		Rules: []string{"TURN-9", "TURN-10", "TURN-11"},
	},
	{
		Since: "0.75.4", About: "abort in a batch",
		Was:     "Calls that come after an abort are still prepared and executed, and one that was blocked meanwhile counts as blocked.",
		Is:      "No call is begun after an abort; those that were not begun get neither start nor result, and the one that was being prepared gets an aborted one.",
		Rules:   []string{"TOOL-8", "ABRT-2", "ABRT-3", "ABRT-6"},
		Reports: []string{"earendil-works/pi#4276"},
	},
	{
		Since: "0.79.2", About: "late updates",
		Was:     "A tool that reports progress after it has returned makes an event, in whatever turn or run that falls.",
		Is:      "Nothing comes of it.",
		Rules:   []string{"UPD-2", "UPD-4"},
		Reports: []string{"earendil-works/pi#5573", "can1357/oh-my-pi#12875"},
	},
	{
		Since: "0.80.4", About: "truncated messages",
		Was:     "The calls of a message that hit the output limit are run, though their arguments may have been cut off.",
		Is:      "Each gets an error result that names its tool; none is prepared or executed.",
		Rules:   []string{"LEN-1", "LEN-2", "LEN-3", "LEN-4", "LEN-5"},
		Reports: []string{"earendil-works/pi#6284"},
	},
	{
		Since: "0.81.0", About: "usage of a tool",
		Was:   "What a tool says of its own usage stays in the end event as the tool gave it: afterToolCall cannot replace it, and the result message is without it.",
		Is:    "The hook can replace it, and the result message carries it.",
		Rules: []string{"TOOL-10", "TOOL-13"},
	},
	{
		Since: "0.84.1", About: "blocked calls",
		Was:     "A call that was blocked can't say terminate.",
		Is:      "It terminates if the hook that blocked it says so.",
		Rules:   []string{"TOOL-8"},
		Reports: []string{"earendil-works/pi#7715"},
	},
	{
		Since: "0.84.1", About: "reset",
		Was:     "A reset during a run empties transcript and state under the run, which goes on and writes into them.",
		Is:      "It is refused and changes nothing.",
		Rules:   []string{"RUN-13", "STATE-3", "STATE-5", "STATE-7"},
		Reports: []string{"earendil-works/pi#7703"},
	},
	{
		Since: "0.84.4", About: "prepareNextTurn",
		Was:     "It is asked directly after turn_end, on the last turn too; steering is polled once.",
		Is:      "It is asked only if another turn follows, after shouldStopAfterTurn and the poll, and steering is polled once more after it.",
		Rules:   []string{"TURN-9", "TURN-10", "TURN-11", "QUE-2"},
		Reports: []string{"earendil-works/pi#6879"},
	},
	{
		Since: "0.85.0", About: "abort in a batch",
		Was:     "A call that was prepared when the preparation of a later one aborted is executed, with a signal that has fired.",
		Is:      "It is not executed and gets an error result, after the starts of the calls that were prepared.",
		Rules:   []string{"PAR-6", "ABRT-2"},
		Reports: []string{"earendil-works/pi#8935"},
	},
	{
		Since: "0.86.0", About: "system messages",
		Was:   "Prompt and tools go with the context, beside the messages.",
		Is:    "They stand in the transcript as system messages with events of their own; reset keeps them, and a hook that takes them out of the context takes prompt and tools out of the request.",
		Rules: []string{"RUN-13", "TURN-9", "CTX-2", "CTX-6"},
	},
	{
		Since: "0.87.0", About: "hooks around a turn",
		Was:   "shouldStopAfterTurn is asked after turn_end.",
		Is:    "It is gone: finishTurn is asked before turn_end and may end or continue the run, and prepareRequest before each request.",
		Rules: []string{"TURN-8", "TURN-11", "TURN-12"},
	},
	{
		Since: "0.99.0", About: "a tool's own error",
		Was:   "isError in what a tool returns is ignored, and a tool that returns nothing at all fails the run.",
		Is:    "isError is honoured, and nothing at all gives an error result.",
		Rules: []string{"TOOL-10", "TOOL-19"},
	},
	{
		Since: "1.1.0", About: "durationMs",
		Was:   "Nobody says how long a call took.",
		Is:    "The end event says it for executed calls, from 1.3.0 on the result message too.",
		Rules: []string{"TOOL-19"},
	},
	{
		Since: "1.6.0", About: "abort in a batch",
		Was:     "Calls after an abort are left without start and result.",
		Is:      "Each gets a start, an end with an error, and a result that says that the operation was aborted; no hook is asked.",
		Rules:   []string{"ABRT-5", "ABRT-6", "CTX-5"},
		Reports: []string{"earendil-works/pi#9986", "earendil-works/pi#3344", "earendil-works/pi#4189"},
	},
}
