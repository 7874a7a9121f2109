package progress

import "github.com/pi-conform/pi-conform/harness/trace"

// The kinds of durable entries.
const (
	ToolCall   = "tool/call"
	ToolResult = "tool/result"
)

// Durable is an entry of the durable log. An execution with an agent and without
// a parent has two: its call, written before the tool's body is entered, and its
// result, written last.
type Durable struct {
	Kind    string        `json:"kind"`
	Agent   string        `json:"agent"`
	Call    string        `json:"call"`
	Tool    string        `json:"tool,omitempty"`
	Args    trace.Value   `json:"args,omitzero"`
	Card    *Card         `json:"card,omitempty"` // of a call
	Result  *trace.Result `json:"result,omitempty"`
	IsError bool          `json:"isError,omitzero"`
}

// Card is how a call is shown, as its arguments alone decide.
type Card struct {
	Title     string        `json:"title"`
	Kind      string        `json:"kind,omitempty"`
	Locations trace.Value   `json:"locations,omitzero"`
	Fixed     []trace.Value `json:"fixed,omitempty"`  // diffs and terminals, which stay as long as the card does
	Generic   bool          `json:"generic,omitzero"` // it says no more than the tool's name
}

// DurableLog stores entries. An error of a call's entry keeps the tool from being
// run. One of a result's entry is logged.
type DurableLog func(Durable) error

// Outcome is what became of an execution.
type Outcome struct {
	Result  *trace.Result
	IsError bool
}

// Failure is the outcome of an execution that came to nothing.
func Failure(text string) Outcome {
	return Outcome{Result: &trace.Result{Content: trace.TextContent(text)}, IsError: true}
}
