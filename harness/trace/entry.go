package trace

// Kind says what an entry records.
type Kind string

// The kinds of entries.
const (
	KindAction    Kind = "action"    // the surroundings did something: Label, and Answer if it answers a call
	KindEvent     Kind = "event"     // the loop's first listener saw an event: N, Event, State
	KindCall      Kind = "call"      // the loop called out: Name, Payload; Auto with Answer if it did not have to wait
	KindRead      Kind = "read"      // the loop asked the model stream Name for its event number N
	KindCancelled Kind = "cancelled" // the abort signal of the pending call Name fired
	KindSettled   Kind = "settled"   // the user action Name (prompt/0, waitForIdle/0 …) finished: Outcome, Message
	KindRetained  Kind = "retained"  // after a run: what a listener kept and the loop changed later, by event number
	KindView      Kind = "view"      // what a user interface's reducer made of event N: View
	KindEnd       Kind = "end"       // the last entry: Outcome says how the recording ended
)

// Entry is one thing that happened.
type Entry struct {
	Step int   `json:"step"`       // number of actions done so far, this one included; the first is 1
	Time int64 `json:"t,omitzero"` // virtual milliseconds since the case began
	Kind Kind  `json:"kind"`

	Label string `json:"label,omitempty"` // action: its label, such as tool/c1/return
	Name  string `json:"name,omitempty"`  // call, read, cancelled: the callback; settled: the user action
	N     int    `json:"n,omitzero"`      // event, read: its number, from 0

	Event *Event `json:"event,omitzero"`
	State *State `json:"state,omitzero"` // absent where the subject has none (the low-level loop)

	Auto    bool     `json:"auto,omitzero"`    // call: answered at once, by Answer
	Aborted bool     `json:"aborted,omitzero"` // call: its signal had fired before it began
	Payload *Payload `json:"payload,omitzero"` // call: what it was given
	Answer  *Answer  `json:"answer,omitzero"`  // call if Auto; action if it answers a call

	Outcome Outcome  `json:"outcome,omitempty"` // settled, end
	Message string   `json:"message,omitempty"` // settled: the error's message; end: what ran out or broke
	Changed []int    `json:"changed,omitzero"`  // retained
	Pending []string `json:"pending,omitzero"`  // end: callbacks and user actions that are still open
	View    *View    `json:"view,omitzero"`     // view
}

// View is one application of a user interface's reducer.
type View struct {
	State Value `json:"state"` // the view that it gave
	// Input is what it was given where that is no event of the loop:
	// [PromptReturned], or a probe. What it gives for a probe is not kept.
	Input *Event `json:"input,omitzero"`
	Probe bool   `json:"probe,omitzero"`
	// Again is what it gave for the same once more, if that differs.
	Again Value `json:"again,omitzero"`
	// Before is what became of the view that it was given, if it changed that.
	Before Value `json:"before,omitzero"`
	// InputChanged says that it changed the event that it was given.
	InputChanged bool `json:"inputChanged,omitzero"`
}

// Outcome says how a user action, or the whole recording, came to its end.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"      // settled: fulfilled
	OutcomeError   Outcome = "error"   // settled: rejected after it had been accepted
	OutcomeRefused Outcome = "refused" // settled: refused at once, nothing was begun

	OutcomeComplete  Outcome = "complete"  // end: nothing is left to do
	OutcomeDeadlock  Outcome = "deadlock"  // end: a run is active, and nothing that the surroundings could still do
	OutcomeTruncated Outcome = "truncated" // end: a bound of the harness was reached
	OutcomeCrashed   Outcome = "crashed"   // end: the subject died
	OutcomeHung      Outcome = "hung"      // end: the subject did not come to rest in time
	OutcomeLeaked    Outcome = "leaked"    // end: tasks of the loop go on after every callback was answered
)

// Payload is what a callback was given, so far as a rule needs it. Which
// fields are present depends on the kind of callback.
type Payload struct {
	// model
	Model        string   `json:"model,omitempty"` // the model's id
	Level        string   `json:"level,omitempty"` // thinking level; absent means none
	Key          string   `json:"key,omitempty"`   // the API key that goes with the request
	SystemPrompt string   `json:"systemPrompt,omitempty"`
	Tools        []string `json:"tools,omitzero"`    // names, in order
	Messages     []string `json:"messages,omitzero"` // tags; also of transformContext and convertToLlm

	// tool, prepareArguments, beforeToolCall, afterToolCall
	ToolCallID string  `json:"toolCallId,omitempty"`
	ToolName   string  `json:"toolName,omitempty"`
	RawArgs    Value   `json:"rawArgs,omitzero"` // hooks: as the model gave them
	Args       Value   `json:"args,omitzero"`    // prepared and validated; prepareArguments: raw
	Result     *Result `json:"result,omitzero"`  // afterToolCall
	IsError    *bool   `json:"isError,omitzero"` // afterToolCall

	// beforeToolCall, afterToolCall, prepareNextTurn, shouldStopAfterTurn,
	// finishTurn, prepareRequest
	Assistant string   `json:"assistant,omitempty"` // tag of the turn's assistant message
	Results   []string `json:"results,omitzero"`    // ids of the turn's results, in order
	Context   []string `json:"context,omitzero"`    // tags of the context's messages

	Provider string `json:"provider,omitempty"` // getApiKey
	Event    *int   `json:"event,omitzero"`     // listener: number of the event that it is called for
	Signal   *bool  `json:"signal,omitzero"`    // whether an abort signal was passed, where one should be
}

// Answer is what a callback was answered, or what a user action carried.
type Answer struct {
	Event   *StreamEvent  `json:"event,omitzero"`   // model: the next event of the stream
	Events  []StreamEvent `json:"events,omitzero"`  // model, automatic: all events of the stream
	Final   *Message      `json:"final,omitzero"`   // model: the stream's result, if it is not the one of done or error
	Ends    bool          `json:"ends,omitzero"`    // model: the stream ends without done; its result is Final
	Throw   *string       `json:"throw,omitzero"`   // any callback: it throws an error with this message
	Partial *Result       `json:"partial,omitzero"` // tool: a progress update
	Sync    []*Result     `json:"sync,omitzero"`    // tool: updates made before execute first yields
	Result  *Result       `json:"result,omitzero"`  // tool: it returns
	Hook    *HookAnswer   `json:"hook,omitzero"`    // a hook returns
	Abort   bool          `json:"abort,omitzero"`   // the callback aborts the run before it answers

	Messages []*Message `json:"messages,omitzero"` // prompt, steer, followUp
	Text     string     `json:"text,omitempty"`    // prompt given as plain text
	Images   []Block    `json:"images,omitzero"`   // prompt: images that go with Text
	Listener *int       `json:"listener,omitzero"` // subscribe, unsubscribe
}

// HookAnswer is what a hook returns; the zero value is «nothing».
type HookAnswer struct {
	// beforeToolCall
	Block  bool   `json:"block,omitzero"`
	Reason string `json:"reason,omitempty"`
	// beforeToolCall, afterToolCall
	Terminate *bool `json:"terminate,omitzero"`
	// afterToolCall: each replaces the whole of what the tool gave
	Content *Content `json:"content,omitzero"`
	Details Value    `json:"details,omitzero"`
	Usage   Value    `json:"usage,omitzero"`
	IsError *bool    `json:"isError,omitzero"`
	// prepareArguments
	Args Value `json:"args,omitzero"`
	// transformContext, prepareNextTurn, prepareRequest, compact: how the context
	// that the hook was given is changed; first Drop messages are taken off its
	// front, then Append is added
	Drop   int        `json:"drop,omitzero"`
	Append []*Message `json:"append,omitzero"`
	// convertToLlm: roles that the model does not get to see
	Without []string `json:"without,omitzero"`
	// prepareNextTurn, prepareRequest
	SystemPrompt *string `json:"systemPrompt,omitzero"`
	Model        string  `json:"model,omitempty"`
	Level        string  `json:"level,omitempty"`
	// prepareNextTurn, from edition 0.87: messages to be emitted and appended
	Messages []*Message `json:"messages,omitzero"`
	// shouldStopAfterTurn
	Stop bool `json:"stop,omitzero"`
	// finishTurn: end, continue, or nothing
	Action string `json:"action,omitempty"`
	// getApiKey
	Key string `json:"key,omitempty"`
	// compact, of a session: ask the model once more
	Continue bool `json:"continue,omitzero"`
}

// The hooks, by the names that the contract gives them.
const (
	HookPrepareArguments    = "prepareArguments"
	HookBeforeToolCall      = "beforeToolCall"
	HookAfterToolCall       = "afterToolCall"
	HookTransformContext    = "transformContext"
	HookConvertToLlm        = "convertToLlm"
	HookGetAPIKey           = "getApiKey"
	HookPrepareNextTurn     = "prepareNextTurn"
	HookShouldStopAfterTurn = "shouldStopAfterTurn"
	HookFinishTurn          = "finishTurn"
	HookPrepareRequest      = "prepareRequest"
	HookCompact             = "compact"             // of a session
	HookPollSteering        = "getSteeringMessages" // seen, never gated
	HookPollFollowUp        = "getFollowUpMessages" // seen, never gated
)

// Hooks are the hooks that a loop or a session may ask, without the polls, which
// are only seen.
func Hooks() []string {
	return []string{
		HookPrepareArguments, HookBeforeToolCall, HookAfterToolCall, HookTransformContext, HookConvertToLlm, HookGetAPIKey,
		HookPrepareNextTurn, HookShouldStopAfterTurn, HookFinishTurn, HookPrepareRequest, HookCompact,
	}
}
