// Package acp judges recorded logs of the Agent Client Protocol, version 1: the
// JSON-RPC lines that an agent and its client exchanged.
//
// A log may hold both sides, with or without marks of who sent a line, or the
// agent's side alone; then what depends on the client is not applicable. Members
// are looked at as they were written: absent, null and empty differ.
package acp

import "github.com/pi-conform/pi-conform/conformance"

// Profile says by how much a log is judged.
type Profile string

// The profiles.
const (
	// Spec judges by what the protocol itself demands; what only the note on
	// progress demands is reported a level below.
	Spec Profile = "spec"
	// Seed judges by both.
	Seed Profile = "seed"
)

// Rule is one rule about a log.
type Rule struct {
	ID       string
	Tier     Profile // who demands it
	Sentence string
	Why      string
}

var rules = [...]Rule{
	{"ACP-1", Spec, "Each line is one JSON-RPC object; each request is answered once, with a result or an error, under a known id.", "A client that cannot tell which request was answered waits for ever."},
	{"ACP-2", Seed, "tool_call_update comes after the tool_call of the same session and id.", "There is no card yet on which to show it."},
	{"ACP-3", Seed, "Nothing follows completed or failed, outside a replay.", "A card that is closed opens again, and nothing will ever close it."},
	{"ACP-4", Seed, "Every announced call has exactly one terminal status before its prompt's response.", "A card that is left open spins for ever."},
	{"ACP-5", Seed, "A status never goes back; a tool_call is not sent twice for a live id.", "A card that falls back, or is there twice, misleads whoever watches."},
	{"ACP-6", Spec, "After session/cancel the prompt is answered with stopReason cancelled, never an error, and after that there is no update of the turn.", "The user has asked for silence; an error would be shown as a failure of the agent."},
	{"ACP-7", Seed, "No turn content comes after a prompt's ordinary response.", "It is shown below the answer to which it belongs, or in the next one."},
	{"ACP-8", Seed, "No update for a session comes before the response that creates it; replay updates come before the load response.", "The client does not know the session yet, or takes old messages for new ones."},
	{"ACP-9", Spec, "Paths in diffs and locations are absolute; no file or terminal request is made without the client's capability.", "An editor cannot open a path when it does not know from where it counts."},
	{"ACP-10", Seed, "A permission request names an announced call, and that call is not in_progress until it is answered.", "The user would be asked about something that is not shown, or already under way."},
	{"ACP-11", Seed, "The same id in two sessions is two calls: each session shows what it would show alone.", "Sessions that share calls by id close each other's cards."},
	{"ACP-12", Seed, "A replay holds only pairs of a call and its end, and folds to the same cards as the live log.", "A session that is opened again must look as it did."},
}

// Rules are all rules, in the order of their numbers.
func Rules() []Rule { return append([]Rule(nil), rules[:]...) }

// level is what it means in a profile that a rule is broken.
func (p Profile) level(r *Rule) conformance.Level {
	if r.Tier == Seed && p != Seed {
		return conformance.Should
	}
	return conformance.Must
}

// Finding is one place where a log breaks a rule.
type Finding struct {
	Rule    string
	Level   conformance.Level
	Message string
	Lines   []int // that clash, in rising order; at the last it became evident
}
