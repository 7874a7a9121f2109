package matrix

import (
	"strings"

	"github.com/pi-conform/pi-conform/harness/edition"
)

// why is what is known of a rule that a subject breaks in an edition. A release of
// the npm loop does it because it behaves as an older or newer edition; a fork
// because its authors chose so.
func why(subject, judged, rule string) []Why {
	kind, version, _ := strings.Cut(subject, "@")
	var all []Why
	switch kind {
	case "pi":
		for _, c := range edition.Explains(edition.Edition(version), edition.Edition(judged), rule) {
			text := "older than " + string(c.Since) + ": " + c.Was
			if edition.Edition(version).AtLeast(c.Since) {
				text = "since " + string(c.Since) + ": " + c.Is
			}
			all = append(all, Why{Text: text, Reports: c.Reports})
		}
	case "oh-my-pi":
		for _, choice := range forked {
			for id := range strings.FieldsSeq(choice.rules) {
				if id == rule {
					all = append(all, Why{Text: choice.text, Reports: choice.reports})
				}
			}
		}
	}
	return all
}

// forked is what oh-my-pi 18.2 does otherwise than the contract, as its source
// shows.
var forked = []struct {
	rules, text string
	reports     []string
}{
	{
		rules: "RUN-5 RUN-14 MSG-9 TOOL-3 PAR-3 UPD-3 UPD-8 LIS-1 LIS-3 LIS-6",
		text:  "Listeners are fed by a stream of events; they are called and not waited for.",
	},
	{rules: "ABRT-1 LIS-4", text: "Listeners are given the event alone, and no signal."},
	{rules: "RUN-7", text: "A listener that throws is written to the log, and the run goes on."},
	{
		rules: "RUN-14 MSG-4",
		text:  "An abort ends the run at once with a message of the loop's own, whatever the model's stream would still say.",
	},
	{
		rules: "MSG-4",
		text:  "A message that ends in an error or abort keeps only the calls whose end was streamed.",
	},
	{
		rules: "RUN-3 TURN-2 MSG-6",
		text:  "A stream that ends silently before its start makes a message that agent_end holds and no other event tells of.",
	},
	{
		rules:   "RUN-9",
		text:    "continue with an empty transcript delivers what is queued, instead of being refused.",
		reports: []string{"can1357/oh-my-pi#6344"},
	},
	{rules: "RUN-13 STATE-3 STATE-5", text: "A reset during a run is not refused: it empties transcript and state under the run."},
	{
		rules: "TOOL-3",
		text:  "beforeToolCall is asked before the assistant's message_end, so that what it makes of the arguments stands in the message already.",
	},
	{rules: "TOOL-7", text: "afterToolCall is asked about calls that were blocked, and about those whose beforeToolCall threw."},
	{rules: "TOOL-10", text: "terminate and usage in what a tool or hook returns are dropped: a result cannot end the run."},
	{
		rules: "TOOL-15 PAR-4 PAR-5",
		text:  "Each result follows the end of its call at once, so results come in the order in which calls finish, in the next request too.",
	},
	{rules: "TOOL-18", text: "Errors that the loop makes for calls it did not run have details that say so."},
	{rules: "TOOL-10 TOOL-19", text: "A tool's own isError is honoured, as in the contract from 0.99."},
	{rules: "PAR-6", text: "All calls are prepared before any is started, so one that was refused ends after the starts of the others."},
	{rules: "PAR-7", text: "An exclusive tool runs alone, but the shared ones of its batch still run together."},
	{
		rules:   "UPD-2 UPD-4",
		text:    "A tool that reports progress after it has returned makes an event, as long as the run goes on.",
		reports: []string{"can1357/oh-my-pi#12875"},
	},
	{rules: "LEN-3", text: "The result of a truncated call says what happened, but not to which tool."},
	{
		rules: "ABRT-2 ABRT-3 ABRT-6",
		text:  "All hooks are asked before any call runs, also after an abort; then every call is answered with an error, as in the contract from 1.6.",
	},
	{rules: "STATE-7", text: "isStreaming is false already when the listeners of agent_end are called."},
	{
		rules: "CTX-2",
		text:  "A request is prepared before its turn opens: transformContext and convertToLlm see messages of which no event has told yet.",
	},
}
