package progress

import (
	"slices"

	"github.com/pi-conform/pi-conform/loop/defect"
)

// Defect is the name of one way in which the registry can be made to break the
// contract.
type Defect string

// The defects.
const (
	ViewNotCopied           Defect = "progress-view-not-copied"
	CopySharedByObservers   Defect = "progress-copy-shared"
	DispatchedTwice         Defect = "progress-dispatched-twice"
	FinalizeDoesNotWait     Defect = "finalize-does-not-wait"
	AcceptedAfterFinalize   Defect = "progress-accepted-after-finalize"
	GateCheckedTooEarly     Defect = "progress-gate-checked-too-early"
	PanicEndsRound          Defect = "observer-panic-ends-round"
	ObserverErrorFailsTool  Defect = "observer-error-fails-tool"
	IdentityFromView        Defect = "identity-from-view"
	ScopeIgnored            Defect = "observer-scope-ignored"
	UnknownMembersIgnored   Defect = "view-members-ignored"
	ProgressStored          Defect = "progress-stored"
	ProgressInResult        Defect = "progress-in-result"
	InvalidViewCloses       Defect = "invalid-view-closes"
	AcceptedBeforeItsCall   Defect = "progress-before-call"
	NestedUnderParentsAgent Defect = "nested-call-is-durable"
)

// Defects are the defects that are switched on; nil, as it should be, is none.
type Defects []Defect

// Has reports whether d is switched on.
func (ds Defects) Has(d Defect) bool { return slices.Contains(ds, d) }

// Mutant is the registry with one defect.
type Mutant = defect.Mutant[Defect]

// Mutants are all mutants, in a fixed order.
func Mutants() []Mutant {
	return defect.Named([]Mutant{
		{Defect: ViewNotCopied, Rule: "PROG-1", Story: "A view that was kept to be drawn later shows what the tool did afterwards."},
		{Defect: CopySharedByObservers, Rule: "PROG-2", Story: "An observer that shortens a text shortens it for everybody."},
		{Defect: DispatchedTwice, Rule: "PROG-3", Story: "Every step of progress is shown twice."},
		{Defect: FinalizeDoesNotWait, Rule: "PROG-3", Story: "The card is closed while half of the observers still wait for a view."},
		{Defect: AcceptedAfterFinalize, Rule: "PROG-4", Story: "A timer that was forgotten goes on reporting on a tool that has ended."},
		{Defect: GateCheckedTooEarly, Rule: "PROG-5", Story: "Once in a while a view overtakes the end of its tool."},
		{Defect: PanicEndsRound, Rule: "PROG-6", Story: "A broken panel blinds all panels behind it."},
		{Defect: ObserverErrorFailsTool, Rule: "PROG-6", Story: "A full disk of the progress recorder makes the tool fail."},
		{Defect: IdentityFromView, Rule: "PROG-7", Story: "A tool writes on the card of another one."},
		{Defect: ScopeIgnored, Rule: "PROG-8", Story: "One session shows what another one is doing."},
		{Defect: UnknownMembersIgnored, Rule: "PROG-9", Story: "A tool believes that it has changed its card's kind, and nobody tells it otherwise."},
		{Defect: ProgressStored, Rule: "PROG-10", Story: "The session file grows with every line of progress."},
		{Defect: ProgressInResult, Rule: "PROG-10", Story: "The model reads the progress bar."},
		{Defect: NestedUnderParentsAgent, Rule: "PROG-11", Story: "The steps inside a tool bring up cards of their own."},
		{Defect: InvalidViewCloses, Rule: "PROG-12", Story: "One view that is too long ends the progress of its tool."},
		{Defect: AcceptedBeforeItsCall, Rule: "PROG-12", Story: "There is progress of a call that was never announced."},
	})
}
