package view

import (
	"slices"

	"github.com/pi-conform/pi-conform/loop/defect"
)

// Defect is the name of one way in which the reducer can be made to break the
// contract.
type Defect string

// The defects.
const (
	ToolsKeptByName        Defect = "tools-kept-by-name"
	UnknownUpdateMakesCard Defect = "unknown-update-makes-card"
	TurnsShareBubble       Defect = "turns-share-bubble"
	FinalTextIgnored       Defect = "final-text-ignored"
	InputChanged           Defect = "view-changed-in-place"
	ResultMakesCard        Defect = "result-makes-card"
	IdleAtAgentEnd         Defect = "idle-at-agent-end"
	ThinkingShown          Defect = "thinking-shown-as-text"
	TurnsCountedByRun      Defect = "turns-counted-by-run"
	ToolsInOrderOfEnd      Defect = "tools-in-order-of-end"
)

// Defects are the defects that are switched on; nil, as it should be, is none.
type Defects []Defect

// Has reports whether d is switched on.
func (ds Defects) Has(d Defect) bool { return slices.Contains(ds, d) }

// Mutant is the reducer with one defect.
type Mutant = defect.Mutant[Defect]

// Mutants are all mutants, in a fixed order.
func Mutants() []Mutant {
	return defect.Named([]Mutant{
		{Defect: ToolsKeptByName, Rule: "VIEW-2", Story: "Two calls of one tool share a card, and one of them is never shown."},
		{Defect: UnknownUpdateMakesCard, Rule: "VIEW-3", Story: "A late update after the view was cleared brings up a card that never ends."},
		{Defect: TurnsShareBubble, Rule: "VIEW-4", Story: "The second answer overwrites the first."},
		{Defect: FinalTextIgnored, Rule: "VIEW-4", Story: "What was streamed stays on the screen, though the message says something else."},
		{Defect: InputChanged, Rule: "VIEW-1", Story: "The old view is changed in place, so the screen is not drawn anew."},
		{Defect: ResultMakesCard, Rule: "VIEW-6", Story: "Every tool has two cards as soon as its result is in the transcript."},
		{Defect: IdleAtAgentEnd, Rule: "VIEW-5", Story: "The input is free before the session has been saved."},
		{Defect: ThinkingShown, Rule: "VIEW-8", Story: "Thoughts and half-written arguments stand in the answer."},
		{Defect: TurnsCountedByRun, Rule: "VIEW-9", Story: "Turn 1 of the second run looks like turn 1 of the first."},
		{Defect: ToolsInOrderOfEnd, Rule: "VIEW-7", Story: "Cards jump about as tools end, and a replay shows another screen than the run did."},
	})
}
