package loop

import (
	"context"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Model names a model.
type Model struct {
	ID       string
	Provider string
	API      string
}

// Request is what the model is asked.
type Request struct {
	Model Model
	Level string // thinking level; empty means none
	Key   string // API key
	// SystemPrompt and Tools are those of the context, or, in editions where
	// the transcript holds them, what the system messages in Messages say.
	SystemPrompt string
	Tools        []*Tool
	Messages     []*trace.Message
}

// StreamFunc asks the model. It should not fail: an error of a request belongs
// into the stream, as an error event. If it does, the run fails (RUN-7).
type StreamFunc func(ctx context.Context, request *Request) (Stream, error)

// Stream is the answer of a model while it comes in.
type Stream interface {
	// Next waits for the next event. It is ok=false after the last.
	Next() (event *trace.StreamEvent, ok bool, err error)
	// Result waits for the complete message. It is asked once, after the event
	// done or error, or after the end of a stream that has neither.
	Result() (*trace.Message, error)
}

// Tool is something that the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  trace.Value // JSON Schema of the arguments; absent allows anything
	// ExecutionMode «sequential» makes every batch in which the tool is called
	// run one by one (PAR-7).
	ExecutionMode string
	// PrepareArguments, if not nil, gives the arguments to validate and use in
	// place of the model's. It is loop code and should be quick.
	PrepareArguments func(call *trace.Block) (trace.Value, error)
	// Execute runs the tool. onUpdate reports progress; it may be called from
	// any goroutine, and does nothing once Execute has returned (UPD-2).
	Execute func(ctx context.Context, call Execution, onUpdate func(partial *trace.Result)) (*trace.Result, error)
}

// Execution is one execution of a tool.
type Execution struct {
	ID   string
	Args trace.Value  // prepared and validated
	Call *trace.Block // as the model gave it
}

// The modes of Options.ToolExecution, Config.ToolExecution and Tool.ExecutionMode.
const (
	Parallel   = "parallel"
	Sequential = "sequential"
)

// The modes of a queue.
const (
	OneAtATime = "one-at-a-time"
	All        = "all"
)

// Context is what the loop knows when it asks the model. The loop appends to
// Messages; it never changes a message.
type Context struct {
	SystemPrompt string
	Messages     []*trace.Message
	Tools        []*Tool
}

// Hooks are the places where the surroundings take part in a run. A nil hook is
// absent. The tool hooks may fail: that becomes the error result of their call.
// If any other hook fails, the run fails (RUN-7).
type Hooks struct {
	// TransformContext gives the messages of the next request, in place of the
	// context's. It must not change the list that it gets.
	TransformContext func(ctx context.Context, messages []*trace.Message) ([]*trace.Message, error)
	// ConvertToLlm gives those messages that the model gets to see. Without it
	// the model sees the roles of the contract.
	ConvertToLlm func(messages []*trace.Message) ([]*trace.Message, error)
	// GetAPIKey gives the key for a provider, or nothing.
	GetAPIKey func(provider string) (string, error)

	// BeforeToolCall may block a call whose arguments are valid.
	BeforeToolCall func(ctx context.Context, call BeforeToolCallContext) (*BeforeToolCallResult, error)
	// AfterToolCall may change the outcome of a call that was executed.
	AfterToolCall func(ctx context.Context, call AfterToolCallContext) (*AfterToolCallResult, error)

	// PrepareNextTurn may change what the next turn works with.
	PrepareNextTurn func(ctx context.Context, turn TurnContext) (*TurnUpdate, error)
	// ShouldStopAfterTurn may end the run. Until edition 0.86.
	ShouldStopAfterTurn func(ctx context.Context, turn TurnContext) (bool, error)
	// FinishTurn may end or continue the run. From edition 0.87.
	FinishTurn func(ctx context.Context, turn TurnContext) (Decision, error)
	// PrepareRequest may change what the next request, and those after it, work
	// with. From edition 0.87.
	PrepareRequest func(ctx context.Context, request RequestContext) (*RequestUpdate, error)
}

// BeforeToolCallContext is what is known of a call before it is executed.
type BeforeToolCallContext struct {
	Assistant *trace.Message // the message that asked for the call
	Call      *trace.Block   // as the model gave it
	Args      trace.Value    // prepared and validated
	Context   *Context       // as it is now; not to be changed
}

// BeforeToolCallResult says whether a call may run.
type BeforeToolCallResult struct {
	Block     bool
	Reason    string // text of the error result; a default if empty
	Terminate bool   // the blocked call asks to end the tool cycle
}

// AfterToolCallContext is what is known of a call that was executed.
type AfterToolCallContext struct {
	BeforeToolCallContext
	Result  *trace.Result
	IsError bool
}

// AfterToolCallResult replaces parts of an outcome, each as a whole (TOOL-10).
// What is nil stays as it is, and so does what is the JSON null.
type AfterToolCallResult struct {
	Content   *trace.Content
	Details   trace.Value
	Usage     trace.Value
	IsError   *bool
	Terminate *bool
}

// TurnContext is a turn that has been completed.
type TurnContext struct {
	Message     *trace.Message   // the assistant's
	ToolResults []*trace.Message // in source order
	Context     *Context         // both included; not to be changed
	Added       []*trace.Message // what the run has added so far
}

// TurnUpdate changes what the next turn works with. What is nil stays.
type TurnUpdate struct {
	Context  *Context
	Messages []*trace.Message // to be emitted and appended; from edition 0.87
	Model    *Model
	Level    *string // "off" or empty means none
}

// Decision is the answer of FinishTurn; empty leaves the run alone.
type Decision string

// The decisions.
const (
	DecisionEnd      Decision = "end"      // the run ends after turn_end
	DecisionContinue Decision = "continue" // there will be one more request
)

// RequestContext is what the next request is going to be made of.
type RequestContext struct {
	Context *Context
	Model   Model
	Level   string // empty means none
}

// RequestUpdate changes what the next request is made of. What is nil stays.
type RequestUpdate struct {
	Context *Context
	Model   *Model
	Level   *string // "off" or empty means none
}

// Config is what the bare loop runs with.
type Config struct {
	Edition       edition.Edition // empty means the default one
	Model         Model
	Level         string // thinking level; empty or "off" means none
	Stream        StreamFunc
	Hooks         Hooks
	ToolExecution string // Parallel if empty
	APIKey        string // used if GetAPIKey gives none (CTX-4)
	// Steering and FollowUp, if not nil, take messages from the queues. They are
	// loop code.
	Steering, FollowUp func() ([]*trace.Message, error)
	Memory             *Memory // a new one if nil
	Defects            Defects

	// What only defects ask for.
	steered func() bool     // whether steering is queued
	hurried context.Context // done once the run has been aborted twice
}
