package trace

import "slices"

// Format is the name and version of the trace format.
const Format = "pi-conform/trace/1"

// Header says what the surroundings of a run were, so that a trace can be
// judged without anything else.
type Header struct {
	Format  string `json:"format"`
	Case    string `json:"case,omitempty"` // name of the case
	Edition string `json:"edition"`        // the edition that the subject was asked for
	Form    Form   `json:"form"`
	Config  Config `json:"config"`
	// Evidence lists what the recording can show. A rule that needs more is
	// not applicable.
	Evidence []Evidence `json:"evidence"`
	// Capabilities of the subject, as it declared them.
	Capabilities []string `json:"capabilities,omitzero"`
	// Tags of the case: which edges it brings about on purpose.
	Tags []string `json:"tags,omitzero"`
}

// Form says which of its forms a loop was run in.
type Form string

// The forms.
const (
	FormAgent  Form = "agent"  // the agent: state, queues, listeners
	FormLoop   Form = "loop"   // the low-level run with an awaited sink
	FormStream Form = "stream" // the plain event stream, without back pressure
	// FormSession is the agent with the layer around it that retries, compacts and
	// goes on with queued messages after a run.
	FormSession Form = "session"
)

// Evidence is one kind of thing that a trace may show.
type Evidence string

// The kinds of evidence.
const (
	EvidenceEvents    Evidence = "E"     // events, as the first listener sees them
	EvidenceState     Evidence = "S"     // the agent's state at each event
	EvidenceListeners Evidence = "L"     // the calls of every listener
	EvidenceCallbacks Evidence = "C"     // callbacks of the loop and their answers
	EvidenceRequests  Evidence = "R"     // model requests with what the model sees
	EvidenceActions   Evidence = "A"     // actions from outside and how they settled
	EvidenceKept      Evidence = "K"     // kept references compared after the run
	EvidenceViews     Evidence = "V"     // views of a user interface reducer
	EvidenceTwin      Evidence = "T"     // a twin run to compare with
	EvidencePolls     Evidence = "polls" // polls of the queues
	EvidenceReads     Evidence = "reads" // reads of the model stream
)

// Config is what the subject was opened with.
type Config struct {
	SystemPrompt  string `json:"systemPrompt,omitempty"`
	Model         string `json:"model,omitempty"`         // id; its provider is «scripted»
	Level         string `json:"thinkingLevel,omitempty"` // off if empty
	APIKey        string `json:"apiKey,omitempty"`        // configured key, of the low-level forms
	ToolExecution string `json:"toolExecution,omitempty"` // parallel (also if empty) or sequential
	SteeringMode  string `json:"steeringMode,omitempty"`  // one-at-a-time (also if empty) or all
	FollowUpMode  string `json:"followUpMode,omitempty"`
	Tools         []Tool `json:"tools,omitzero"`
	// Hooks that are configured, by name. A hook that is not here is absent.
	Hooks map[string]Mode `json:"hooks,omitzero"`
	// Listeners of the scenario, in the order of registration, after the one
	// that records.
	Listeners []ListenerConfig `json:"listeners,omitzero"`
	// Messages of the transcript before the first run.
	Messages []*Message `json:"messages,omitzero"`
	// Session is set in the form session alone.
	Session *SessionConfig `json:"session,omitzero"`
}

// SessionConfig is what a session is to do after a run.
type SessionConfig struct {
	MaxRetries  int   `json:"maxRetries,omitzero"`  // of one failure; 0 means that nothing is retried
	BaseDelayMs int64 `json:"baseDelayMs,omitzero"` // before the first retry; doubled for each further one
	// Retryable are texts, any of which in an error message makes the error one
	// that is retried.
	Retryable []string `json:"retryable,omitzero"`
	// Compact says for each look at the transcript after a run, in order, for
	// what reason it is to be compacted: overflow, threshold, or empty for not.
	// It needs the hook compact.
	Compact []string `json:"compact,omitzero"`
}

// Mode says whether a callback waits.
type Mode string

// The modes of a callback.
const (
	ModeGate Mode = "gate" // waits until the surroundings answer
	ModeAuto Mode = "auto" // answered at once
)

// Tool is one tool as the loop is told of it.
type Tool struct {
	Name             string `json:"name"`
	Parameters       Value  `json:"parameters,omitzero"`       // JSON Schema
	ExecutionMode    string `json:"executionMode,omitempty"`   // sequential, parallel, or empty
	PrepareArguments bool   `json:"prepareArguments,omitzero"` // the tool prepares its arguments
}

// ListenerConfig is one listener of the scenario.
type ListenerConfig struct {
	// Gate lists the deliveries at which the listener waits, as patterns over
	// event type and subject: "turn_end", "tool_execution_end/c1",
	// "message_end/assistant", "*".
	Gate []string `json:"gate,omitzero"`
	// Throw maps a pattern to the message of the error that the listener
	// throws there.
	Throw map[string]string `json:"throw,omitzero"`
	// Late listeners are subscribed by an action, not before the run.
	Late bool `json:"late,omitzero"`
}

// Trace is the record of one case.
type Trace struct {
	Header  Header
	Entries []Entry
}

// Has reports whether the trace holds the evidence.
func (t *Trace) Has(e Evidence) bool {
	return slices.Contains(t.Header.Evidence, e)
}
