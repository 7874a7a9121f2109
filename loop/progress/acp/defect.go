package acp

import (
	"slices"

	"github.com/pi-conform/pi-conform/loop/defect"
)

// Defect is the name of one way in which the bridge can be made to break the
// contract.
type Defect string

// The defects.
const (
	AnnouncedLate       Defect = "card-announced-with-progress"
	KindInProgress      Defect = "progress-carries-kind"
	SentTwice           Defect = "progress-update-twice"
	SessionsByCallID    Defect = "sessions-share-call-ids"
	UpdateAfterTerminal Defect = "card-touched-after-end"
	FailuresNotClosed   Defect = "failed-card-left-open"
	FixedContentWiped   Defect = "progress-wipes-diff"
	TitleAlwaysReplaced Defect = "progress-replaces-label"
	ProgressReplayed    Defect = "progress-replayed"
	ReplayLeavesOpen    Defect = "replay-leaves-cards-open"
	ClosedSessionFed    Defect = "closed-session-fed"
	ToolKnownByName     Defect = "bridge-knows-a-tool"
	EverySecondDropped  Defect = "progress-throttled"
	LastViewLost        Defect = "last-view-lost"
	NestedAnnounced     Defect = "nested-progress-on-wire"
	DisposeLeaks        Defect = "disposed-bridge-listens"
)

// Defects are the defects that are switched on; nil, as it should be, is none.
type Defects []Defect

// Has reports whether d is switched on.
func (ds Defects) Has(d Defect) bool { return slices.Contains(ds, d) }

// Mutant is the bridge with one defect.
type Mutant = defect.Mutant[Defect]

// Mutants are all mutants, in a fixed order.
func Mutants() []Mutant {
	return defect.Named([]Mutant{
		{Defect: AnnouncedLate, Rule: "BRIDGE-1", Story: "A tool that reports nothing has no card, and its end belongs to none."},
		{Defect: KindInProgress, Rule: "BRIDGE-2", Story: "Progress says what kind of card it is on, and may be wrong about it."},
		{Defect: SentTwice, Rule: "BRIDGE-2", Story: "Every step is sent twice over a slow line."},
		{Defect: SessionsByCallID, Rule: "BRIDGE-3", Story: "Two sessions whose models number their calls alike draw on each other's cards."},
		{Defect: UpdateAfterTerminal, Rule: "BRIDGE-4", Story: "A card that was closed opens again."},
		{Defect: FailuresNotClosed, Rule: "BRIDGE-5", Story: "The card of a tool that failed spins for ever."},
		{Defect: FixedContentWiped, Rule: "BRIDGE-6", Story: "The diff that the user was reading is replaced by a line of progress."},
		{Defect: TitleAlwaysReplaced, Rule: "BRIDGE-6", Story: "The card that said which file is edited says «42 %»."},
		{Defect: ProgressReplayed, Rule: "BRIDGE-7", Story: "A session that is opened again shows tools at work that ended yesterday."},
		{Defect: ReplayLeavesOpen, Rule: "BRIDGE-7", Story: "After loading a session all its cards are pending."},
		{Defect: ClosedSessionFed, Rule: "BRIDGE-8", Story: "A client is told of a session that it has closed."},
		{Defect: ToolKnownByName, Rule: "BRIDGE-9", Story: "A tool loses its progress by being renamed."},
		{Defect: EverySecondDropped, Rule: "BRIDGE-10", Story: "Some steps are never shown, and no setting says so."},
		{Defect: LastViewLost, Rule: "BRIDGE-10", Story: "A card ends at 98 %."},
		{Defect: DisposeLeaks, Rule: "FLOW-8", Story: "A bridge that was taken down goes on listening, and each new one adds another."},
		{Defect: NestedAnnounced, Rule: "PROG-11", Story: "An update arrives for a card that does not exist."},
	})
}
