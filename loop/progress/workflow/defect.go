package workflow

import (
	"slices"

	"github.com/pi-conform/pi-conform/loop/defect"
)

// Defect is the name of one way in which the producer can be made to break the
// contract.
type Defect string

// The defects.
const (
	CaptureLate         Defect = "capture-opened-late"
	EarlyEventsLost     Defect = "early-events-lost"
	CandidatesReported  Defect = "candidates-reported"
	OtherRunsReported   Defect = "other-runs-reported"
	CandidatesKept      Defect = "candidates-kept"
	FailedStartReported Defect = "failed-start-reported"
	LatestChildFirst    Defect = "latest-child-first"
	LogsNotReported     Defect = "logs-not-reported"
	EveryLogKept        Defect = "every-log-kept"
	UnpairedEndCounted  Defect = "unpaired-end-counted"
	CaptureLeaks        Defect = "capture-leaks"
	CancelledLeaks      Defect = "cancelled-capture-leaks"
	EventsChanged       Defect = "workflow-events-changed"
)

// Defects are the defects that are switched on; nil, as it should be, is none.
type Defects []Defect

// Has reports whether d is switched on.
func (ds Defects) Has(d Defect) bool { return slices.Contains(ds, d) }

// Mutant is the producer with one defect.
type Mutant = defect.Mutant[Defect]

// Mutants are all mutants, in a fixed order.
func Mutants() []Mutant {
	return defect.Named([]Mutant{
		{Defect: CaptureLate, Rule: "FLOW-1", Story: "What a fast workflow does at once is never shown."},
		{Defect: EarlyEventsLost, Rule: "FLOW-2", Story: "A workflow that begins at once seems to have no phase and no children."},
		{Defect: CandidatesReported, Rule: "FLOW-2", Story: "A card shows for a moment what another workflow is doing."},
		{Defect: OtherRunsReported, Rule: "FLOW-3", Story: "Two workflows at once write on each other's cards."},
		{Defect: CandidatesKept, Rule: "FLOW-3", Story: "Each workflow keeps something of all that ran while it started."},
		{Defect: FailedStartReported, Rule: "FLOW-4", Story: "A workflow that was refused shows progress."},
		{Defect: LatestChildFirst, Rule: "FLOW-5", Story: "The list of children jumps with each that begins."},
		{Defect: LogsNotReported, Rule: "FLOW-5", Story: "A workflow without children seems to hang."},
		{Defect: EveryLogKept, Rule: "FLOW-6", Story: "A workflow that runs for days eats the memory."},
		{Defect: UnpairedEndCounted, Rule: "FLOW-7", Story: "More children are done than were ever begun."},
		{Defect: CaptureLeaks, Rule: "FLOW-8", Story: "Each workflow leaves a listener behind."},
		{Defect: CancelledLeaks, Rule: "FLOW-8", Story: "A session that was disposed in the middle of a workflow stays in memory."},
		{Defect: EventsChanged, Rule: "FLOW-9", Story: "A workflow's log is another one when somebody watches."},
	})
}
