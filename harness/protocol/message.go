package protocol

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Version is the version of the protocol.
const Version = 1

// Name is the name of the protocol with its version.
const Name = "pi-conform/1"

// The types of messages to a subject.
const (
	TypeHello    = "hello"
	TypeOpen     = "open"
	TypeUser     = "user"
	TypeAnswer   = "answer"
	TypeSync     = "sync"
	TypeClock    = "clock"
	TypeReduce   = "reduce"
	TypeProgress = "progress" // an output has this type too
	TypeClose    = "close"
	TypeBye      = "bye"
)

// The types of replies of a subject. All others are outputs: the kinds of trace
// entries that are not the harness's own, and TypeLog.
const (
	TypeHelloOK = "helloOk"
	TypeOK      = "ok"
	TypeError   = "error"
	TypeSynced  = "synced"
	TypeReduced = "reduced"
	TypeLog     = "log"
)

// The codes of error replies that the harness knows.
const (
	CodeUnsupported = "unsupported" // the type of message, the form or the edition is not known
	CodeVersion     = "version"     // none of the protocol versions is spoken
	CodeMalformed   = "malformed"   // the message is not as it should be
	CodeSession     = "session"     // there is no such session, or there already is
	CodeCall        = "call"        // no such callback waits
	CodeFailed      = "failed"      // the subject could not do it
	CodeCrashed     = "crashed"     // the subject broke, though its process lives
	CodeHung        = "hung"        // the subject does not come to rest
	CodeLeaked      = "leaked"      // to close: tasks of the loop go on
)

// Request is a message to a subject. Which members are present depends on Type.
type Request struct {
	Type string `json:"type"`
	ID   int64  `json:"id"` // rises from 1

	// hello
	Protocol []int    `json:"protocol,omitzero"`
	Harness  string   `json:"harness,omitempty"`
	Editions []string `json:"editions,omitzero"`
	Nonce    string   `json:"nonce,omitempty"`

	// of a session
	Session string `json:"session,omitempty"`

	// open
	Form    trace.Form      `json:"form,omitempty"`
	Edition string          `json:"edition,omitempty"`
	Config  *trace.Config   `json:"config,omitzero"`
	Script  *harness.Script `json:"script,omitzero"`

	// user
	Name string           `json:"name,omitempty"`
	Kind harness.UserKind `json:"kind,omitempty"`

	// answer; user, if it carries something
	Call   string        `json:"call,omitempty"`
	Answer *trace.Answer `json:"answer,omitzero"`

	// clock
	AdvanceMs int64 `json:"advanceMs,omitzero"`

	// reduce
	View  trace.Value  `json:"view,omitzero"`
	Event *trace.Event `json:"event,omitzero"`

	// progress
	Act *Act `json:"act,omitzero"`

	// members, if not nil, are all others but Type, ID and Session, written before.
	members []byte
}

// Reply is a message from a subject: a reply, or an output, whose members are
// those of a [trace.Entry]. Which are present depends on Type.
type Reply struct {
	Type string `json:"type"`
	Re   int64  `json:"re,omitzero"` // id of the request that it answers

	// helloOk
	Protocol     int      `json:"protocol,omitzero"`
	Nonce        string   `json:"nonce,omitempty"`
	Subject      *Subject `json:"subject,omitzero"`
	Editions     []string `json:"editions,omitzero"`
	Barrier      string   `json:"barrier,omitempty"`
	Capabilities []string `json:"capabilities,omitzero"`

	// error
	Code  string `json:"code,omitempty"`
	Stack string `json:"stack,omitempty"`

	// synced
	Idle      *bool    `json:"idle,omitzero"`      // no run is active
	WaitingOn []string `json:"waitingOn,omitzero"` // callbacks that wait, in the order in which they began
	Events    *int     `json:"events,omitzero"`    // number of events so far
	WakeMs    int64    `json:"wakeMs,omitzero"`    // until the subject wakes, if it sleeps

	// reduced
	View       trace.Value  `json:"view,omitzero"`
	Before     trace.Value  `json:"before,omitzero"`     // the view that it was given, if it changed that
	EventAfter *trace.Event `json:"eventAfter,omitzero"` // the event that it was given, if it changed that

	// outputs
	Session string         `json:"session,omitempty"`
	Name    string         `json:"name,omitempty"`
	N       *int           `json:"n,omitzero"`
	Event   *trace.Event   `json:"event,omitzero"`
	State   *trace.State   `json:"state,omitzero"`
	Payload *trace.Payload `json:"payload,omitzero"`
	Auto    bool           `json:"auto,omitzero"`
	Aborted bool           `json:"aborted,omitzero"`
	Answer  *trace.Answer  `json:"answer,omitzero"`
	Outcome trace.Outcome  `json:"outcome,omitempty"`
	Changed []int          `json:"changed,omitzero"`
	Text    string         `json:"text,omitempty"` // log
	Entry   trace.Value    `json:"entry,omitzero"` // progress

	Message string `json:"message,omitempty"` // error, settled

	line   int   // where it stood, from 1
	offset int64 // of its first byte
}

// Subject is how a subject names itself.
type Subject struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Language string `json:"language,omitempty"`
}

// The capabilities that mean something to the harness. Besides there are
// «hooks:NAME» and «forms:FORM».
const (
	CapState     = "state"             // events come with the agent's state
	CapPolls     = "polls"             // polls of the queues are reported
	CapReads     = "reads"             // reads of the model stream are reported
	CapListeners = "listeners"         // there can be listeners besides the first
	CapSignals   = "signals"           // cancelled signals of pending callbacks are reported
	CapRetained  = "retained"          // kept events are compared after each run
	CapClock     = "clock"             // time is virtual
	CapReducer   = "reducer"           // there is a reducer of views; it needs no session
	CapProgress  = "progress"          // there is a channel of progress, which has sessions of its own
	CapBridge    = "progress:bridge"   // and it has a bridge to the Agent Client Protocol
	CapThrottle  = "progress:throttle" // which has a setting for how many views it lets through
	CapAnnounce  = "progress:announce" // a call can be stored without being dispatched
)

// EvidenceOf is what a recording of a subject with these capabilities can show.
func EvidenceOf(capabilities []string) []trace.Evidence {
	evidence := []trace.Evidence{
		trace.EvidenceEvents, trace.EvidenceCallbacks, trace.EvidenceRequests, trace.EvidenceActions,
	}
	for _, c := range []struct {
		capability string
		evidence   trace.Evidence
	}{
		{CapState, trace.EvidenceState},
		{CapListeners, trace.EvidenceListeners},
		{CapRetained, trace.EvidenceKept},
		{CapPolls, trace.EvidencePolls},
		{CapReads, trace.EvidenceReads},
	} {
		if slices.Contains(capabilities, c.capability) {
			evidence = append(evidence, c.evidence)
		}
	}
	return evidence
}

// capabilitiesOf is the reverse of EvidenceOf, for a driver that lists no
// capabilities of its own.
func capabilitiesOf(evidence []trace.Evidence) []string {
	capabilities := []string{}
	for _, c := range []string{CapState, CapListeners, CapRetained, CapPolls, CapReads} {
		if added := EvidenceOf([]string{c}); slices.Contains(evidence, added[len(added)-1]) {
			capabilities = append(capabilities, c)
		}
	}
	return capabilities
}

// isOutput reports whether the message is something that the subject did.
func (r *Reply) isOutput() bool {
	switch trace.Kind(r.Type) {
	case trace.KindEvent, trace.KindCall, trace.KindRead, trace.KindCancelled, trace.KindSettled, trace.KindRetained:
		return true
	case trace.KindAction, trace.KindEnd:
	default:
	}
	return r.Type == TypeLog || r.Type == TypeProgress
}

// entry is an output as an entry of a trace.
func (r arrival) entry() trace.Entry {
	e := trace.Entry{
		Kind: trace.Kind(r.Type), Name: r.Name, Event: r.Event, State: r.State,
		Auto: r.Auto, Aborted: r.Aborted, Payload: r.Payload, Answer: r.Answer,
		Outcome: r.Outcome, Message: r.Message, Changed: r.Changed,
	}
	if r.N != nil {
		e.N = *r.N
	}
	return e
}

// output is an entry of a trace as a message.
func output(session string, e *trace.Entry) *Reply {
	r := &Reply{
		Type: string(e.Kind), Session: session, Name: e.Name, Event: e.Event, State: e.State,
		Auto: e.Auto, Aborted: e.Aborted, Payload: e.Payload, Answer: e.Answer,
		Outcome: e.Outcome, Message: e.Message, Changed: e.Changed,
	}
	switch e.Kind {
	case trace.KindEvent, trace.KindRead:
		r.N = &e.N
	case trace.KindCall:
		if r.Payload == nil {
			r.Payload = &trace.Payload{}
		}
	case trace.KindRetained:
		if r.Changed == nil {
			r.Changed = []int{}
		}
	case trace.KindAction, trace.KindCancelled, trace.KindSettled, trace.KindEnd:
	default:
	}
	return r
}

// ends reports whether the answer settles the callback, so that it no longer
// waits.
func ends(call string, a *trace.Answer) bool {
	switch {
	case strings.HasPrefix(call, "model/"):
		return a.Throw != nil || a.Ends ||
			a.Event != nil && (a.Event.Type == trace.StreamDone || a.Event.Type == trace.StreamError)
	case strings.HasPrefix(call, "tool/"):
		return a.Partial == nil
	}
	return true
}
