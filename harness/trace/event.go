package trace

// The types of events that the contract names, in the order of a run.
const (
	AgentStart          = "agent_start"
	TurnStart           = "turn_start"
	MessageStart        = "message_start"
	MessageUpdate       = "message_update"
	MessageEnd          = "message_end"
	ToolExecutionStart  = "tool_execution_start"
	ToolExecutionUpdate = "tool_execution_update"
	ToolExecutionEnd    = "tool_execution_end"
	TurnEnd             = "turn_end"
	AgentEnd            = "agent_end"
)

// The types of events that a session adds, about what it does after a run. What
// they carry is in Extra.
const (
	AutoRetryStart  = "auto_retry_start" // attempt, maxAttempts, delayMs, errorMessage
	AutoRetryEnd    = "auto_retry_end"   // success, attempt, finalError
	CompactionStart = "compaction_start" // reason
	CompactionEnd   = "compaction_end"   // reason, aborted, willRetry, errorMessage
	AgentSettled    = "agent_settled"    // aborted
)

// PromptReturned is the type of the one thing that a user interface's reducer
// is given besides the events of a loop: the promise of a run has settled.
const PromptReturned = "prompt_returned"

// Event is one event of a loop, as its first listener sees it. Which fields
// are meaningful depends on Type.
type Event struct {
	Type string `json:"type"`

	// Of message_start, message_update, message_end; of turn_end the
	// assistant message of the turn.
	Message *Message `json:"message,omitzero"`
	// Of message_update: the stream event that caused it.
	StreamEvent *StreamEvent `json:"assistantMessageEvent,omitzero"`

	// Of turn_end: the tool result messages that the loop made in the turn.
	// Present (perhaps empty) on every turn_end.
	ToolResults []*Message `json:"toolResults,omitzero"`
	// Of agent_end: the messages that the run added.
	Messages []*Message `json:"messages,omitzero"`

	// Of the tool_execution events.
	ToolCallID    string  `json:"toolCallId,omitempty"`
	ToolName      string  `json:"toolName,omitempty"`
	Args          Value   `json:"args,omitzero"`          // start and update: the model's raw arguments
	PartialResult *Result `json:"partialResult,omitzero"` // update
	Result        *Result `json:"result,omitzero"`        // end
	IsError       *bool   `json:"isError,omitzero"`       // end
	DurationMs    *int64  `json:"durationMs,omitzero"`    // end, from edition 1.1.0

	Extra Value `json:",embed"`
}

// Result is what a tool gives, finally or as a partial result.
type Result struct {
	Content   Content `json:"content,omitzero"`
	Details   Value   `json:"details,omitzero"`
	Usage     Value   `json:"usage,omitzero"`
	Terminate *bool   `json:"terminate,omitzero"` // ask the loop to end the tool cycle
	IsError   *bool   `json:"isError,omitzero"`   // honoured from edition 0.99
	Extra     Value   `json:",embed"`
}

// The types of model stream events that the contract names.
const (
	StreamStart         = "start"
	StreamTextStart     = "text_start"
	StreamTextDelta     = "text_delta"
	StreamTextEnd       = "text_end"
	StreamThinkingStart = "thinking_start"
	StreamThinkingDelta = "thinking_delta"
	StreamThinkingEnd   = "thinking_end"
	StreamToolCallStart = "toolcall_start"
	StreamToolCallDelta = "toolcall_delta"
	StreamToolCallEnd   = "toolcall_end"
	StreamDone          = "done"
	StreamError         = "error"
)

// StreamEvent is one event of the model's stream. Every event between start
// and done carries the complete partial message so far, so that nobody has to
// put deltas together.
type StreamEvent struct {
	Type         string   `json:"type"`
	ContentIndex *int     `json:"contentIndex,omitzero"`
	Delta        string   `json:"delta,omitempty"`
	Content      string   `json:"content,omitempty"` // of text_end and thinking_end
	ToolCall     *Block   `json:"toolCall,omitzero"` // of toolcall_end
	Partial      *Message `json:"partial,omitzero"`  // of every event before the end
	Reason       string   `json:"reason,omitempty"`  // of done and error
	Message      *Message `json:"message,omitzero"`  // of done
	Error        *Message `json:"error,omitzero"`    // of error
	Extra        Value    `json:",embed"`
}

// IsDelta reports whether the event is one of the nine that a loop passes on
// as a message_update.
func (e *StreamEvent) IsDelta() bool {
	switch e.Type {
	case StreamTextStart, StreamTextDelta, StreamTextEnd,
		StreamThinkingStart, StreamThinkingDelta, StreamThinkingEnd,
		StreamToolCallStart, StreamToolCallDelta, StreamToolCallEnd:
		return true
	}
	return false
}

// State is the agent's own state at the moment when the first listener sees an
// event.
type State struct {
	IsStreaming bool     `json:"isStreaming"`
	Pending     []string `json:"pendingToolCalls"`    // in the order in which they were added
	Messages    int      `json:"messages"`            // length of the transcript
	Last        string   `json:"last,omitempty"`      // tag of the transcript's last message
	Streaming   string   `json:"streaming,omitempty"` // role of the streaming message, empty if unset
	Error       string   `json:"errorMessage,omitempty"`
}
