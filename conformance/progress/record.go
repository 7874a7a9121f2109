package progress

import "github.com/pi-conform/pi-conform/harness/trace"

// Kind is the kind of an entry.
type Kind string

// The kinds of entries. Behind each stands which members of [Entry] it has,
// besides the identity of the execution that it is about.
const (
	Prepared    Kind = "prepared"    // Session, if one shows the agent
	Observers   Kind = "observers"   // an observer was registered: Observer, Scope
	Durable     Kind = "durable"     // stored: Stored, Value (the whole entry), Card for a call, Error for a result that is one
	Dispatched  Kind = "dispatched"  // the tool's body is entered
	Report      Kind = "report"      // a report begins: Report, By, View, Invalid
	Observed    Kind = "observed"    // an observer is told: Report, Observer, Scope, View; the identity is what it was told
	Broke       Kind = "broke"       // an observer fails: Report, Observer
	Logged      Kind = "logged"      // a failure was logged: Error
	Returned    Kind = "returned"    // a report is over: Report, Accepted, Error
	Kept        Kind = "kept"        // what an observer that keeps views has of a report at the end: Report, Observer, View
	Closing     Kind = "closing"     // somebody ends the execution: from here on its boundary may be crossed
	Boundary    Kind = "boundary"    // finalize has begun
	Outcome     Kind = "outcome"     // the tool's result as the model gets it: Value, Error if it is one
	Parsed      Kind = "parsed"      // the JSON form of a view was read: Value, Error
	Wire        Kind = "wire"        // a line was sent: Session, Value, Report if it is because of one, Replay
	Response    Kind = "response"    // the prompt of a session is answered: Session
	Leaving     Kind = "leaving"     // a session is about to be closed: Session
	Closed      Kind = "closed"      // a session was closed: Session
	Imports     Kind = "imports"     // packages on which the bridge depends: Names
	Listening   Kind = "listening"   // a capture was opened
	Unlistening Kind = "unlistening" // it was closed
	Entered     Kind = "entered"     // the engine's Start is entered
	Started     Kind = "started"     // it gave a run: Run
	NotStarted  Kind = "notStarted"  // it failed: Error
	Emitted     Kind = "emitted"     // the engine emits: Event
	Heard       Kind = "heard"       // the same event, as the listener behind the producer gets it: Event
	RunResult   Kind = "runResult"   // of a run: Value
	Happened    Kind = "happened"    // something from outside, in the middle of a workflow: By
	Probed      Kind = "probed"      // Probe; the first is the baseline, the last is at the very end
)

// Entry is one thing that happened. Which members are meaningful depends on Kind.
type Entry struct {
	Kind   Kind   `json:"kind"`
	Agent  string `json:"agent,omitempty"`
	Call   string `json:"call,omitempty"`
	Token  uint64 `json:"token,omitzero"` // of the execution
	Parent uint64 `json:"parent,omitzero"`

	Report   int         `json:"report,omitzero"` // number of the report, from 1
	By       string      `json:"by,omitempty"`    // who reports: body, timer, thread, hook, observer, result, producer
	View     trace.Value `json:"view,omitzero"`
	Invalid  bool        `json:"invalid,omitzero"` // the view is invalid
	Accepted bool        `json:"accepted,omitzero"`
	Error    string      `json:"error,omitempty"`
	Observer string      `json:"observer,omitempty"`
	Scope    string      `json:"scope,omitempty"` // agent of a scoped observer

	Stored  string      `json:"stored,omitempty"` // kind of a durable entry
	Card    *Card       `json:"card,omitempty"`
	Value   trace.Value `json:"value,omitzero"`
	Session string      `json:"session,omitempty"`
	Replay  bool        `json:"replay,omitzero"`
	Names   []string    `json:"names,omitzero"`

	Run   string `json:"run,omitempty"`
	Event *Event `json:"event,omitempty"`
	Probe *Probe `json:"probe,omitempty"`
}

// Card is what a durable call says of how it is shown.
type Card struct {
	Title     string        `json:"title"`
	Kind      string        `json:"kind,omitempty"`
	RawInput  trace.Value   `json:"rawInput,omitzero"`
	Locations trace.Value   `json:"locations,omitzero"`
	Fixed     []trace.Value `json:"fixed,omitempty"`
	Generic   bool          `json:"generic,omitzero"`
}

// Event is an event of a workflow.
type Event struct {
	Run     string `json:"run"`
	Kind    string `json:"kind"`
	Phase   string `json:"phase,omitempty"`
	Log     string `json:"log,omitempty"`
	Seq     int    `json:"seq,omitzero"`
	Label   string `json:"label,omitempty"`
	Child   string `json:"child,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Stop    string `json:"stop,omitempty"`
	Error   string `json:"error,omitempty"`
	Started int    `json:"started,omitzero"`
}

// Probe are counts of what is held.
type Probe struct {
	Executions int `json:"executions"`
	Observers  int `json:"observers"`
	Captures   int `json:"captures"`
	Candidates int `json:"candidates"`
	Listeners  int `json:"listeners"` // of the engine
	Active     int `json:"active"`    // children
	Retained   int `json:"retained"`  // things kept of runs
}

// Record is all that was seen of one run, and of its twins.
type Record struct {
	Every   int     `json:"every,omitzero"` // each how many-th view the bridge lets through; 0 is all
	Entries []Entry `json:"entries"`
	// Quiet is the same run without reports and without observers that fail.
	Quiet []Entry `json:"quiet,omitempty"`
	// Renamed is the same run in which the tools have another name.
	Renamed []Entry `json:"renamed,omitempty"`
	// Bare is the same workflow without the producer.
	Bare []Entry `json:"bare,omitempty"`
}
