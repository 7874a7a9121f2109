// Package workflow is a reference of a tool that runs a workflow and reports how
// far it has come. The engine's events carry the id of a run and nothing else
// that would tell whose they are, and some may be emitted before Start has said
// which run it has begun:
//
//	listen ─► Start ─ events of any run: candidates ─► correlation: one of them is ours ─► each event: reduce, report ─► end
package workflow

import "context"

// Kind is the kind of an event.
type Kind string

// The kinds.
const (
	Start      Kind = "start"
	Phase      Kind = "phase"
	Log        Kind = "log"
	AgentStart Kind = "agent-start"
	AgentEnd   Kind = "agent-end"
	End        Kind = "end"
)

// Outcome is what became of a child.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Event is something that happened in a run. Which fields are meaningful depends
// on Kind. An event that was emitted is never changed.
type Event struct {
	Run     string  `json:"run"`
	Kind    Kind    `json:"kind"`
	Phase   string  `json:"phase,omitempty"`   // of phase, perhaps of agent-start
	Log     string  `json:"log,omitempty"`     // one line
	Seq     int     `json:"seq,omitzero"`      // of agent-start and agent-end: the child's number in its run
	Label   string  `json:"label,omitempty"`   // of agent-start
	Child   string  `json:"child,omitempty"`   // of agent-start: id of the child
	Outcome Outcome `json:"outcome,omitempty"` // of agent-end
	Stop    string  `json:"stop,omitempty"`    // of end: the reason
	Error   string  `json:"error,omitempty"`   // of end
	Started int     `json:"started,omitzero"`  // of end: how many children there were
}

// Job is what a workflow is to do.
type Job struct {
	Script string
}

// Result is what a run has given.
type Result struct {
	Text  string
	Error string // empty if the run has succeeded
}

// Engine runs workflows. Events of one run are emitted one after the other; the
// engine emits to its listeners in the order in which they were registered.
type Engine interface {
	// Listen registers a listener for the events of all runs, until stop is called.
	Listen(l func(*Event)) (stop func())
	// Start begins a run and gives its id. Events may be emitted before it returns.
	Start(ctx context.Context, job Job) (run string, err error)
	// Wait waits for the end of a run. If ctx is done first, the run is cancelled
	// and ctx's error returned.
	Wait(ctx context.Context, run string) (Result, error)
}
