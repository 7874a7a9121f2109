package acp

import (
	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
)

// The kinds of updates and the statuses of a card.
const (
	kindCall   = "tool_call"
	kindUpdate = "tool_call_update"

	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
	failed     = "failed"
)

// update is what a notification session/update says of a card.
type update struct {
	Update     string        `json:"sessionUpdate"`
	ToolCallID string        `json:"toolCallId"`
	Title      string        `json:"title,omitempty"`
	Kind       string        `json:"kind,omitempty"`
	Status     string        `json:"status"`
	RawInput   trace.Value   `json:"rawInput,omitzero"`
	Locations  trace.Value   `json:"locations,omitzero"`
	Content    []trace.Value `json:"content,omitzero"` // replaces what was there
}

type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  params `json:"params"`
}

type params struct {
	Session string `json:"sessionId"`
	Update  update `json:"update"`
}

// line is the update as one line of JSON-RPC, without its end.
func line(session string, u update) ([]byte, error) {
	return json.Marshal(notification{"2.0", "session/update", params{session, u}}, json.Deterministic(true))
}

type block struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
}

type item struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
}

// itemOf is a block as an item of a card's content.
func itemOf(b block) trace.Value {
	text, err := json.Marshal(item{"content", b}, json.Deterministic(true))
	if err != nil {
		return trace.Value("null")
	}
	return text
}

// shown is the content of a card that shows blocks. The diffs and terminals of
// the card stay, as content replaces all that was there (BRIDGE-6).
func shown(fixed []trace.Value, blocks []block) []trace.Value {
	content := append([]trace.Value{}, fixed...)
	for _, b := range blocks {
		content = append(content, itemOf(b))
	}
	return content
}

func viewBlocks(v progress.View) []block {
	var blocks []block
	for _, b := range v.Content {
		blocks = append(blocks, block{b.Type, b.Text, b.Data, b.MimeType})
	}
	return blocks
}

func resultBlocks(r *trace.Result) []block {
	if r == nil {
		return nil
	}
	if r.Content.IsText {
		return []block{{Type: trace.BlockText, Text: r.Content.Text}}
	}
	var blocks []block
	for _, b := range r.Content.Blocks {
		if b.Type == trace.BlockText || b.Type == trace.BlockImage {
			blocks = append(blocks, block{b.Type, b.Text, b.Data, b.MimeType})
		}
	}
	return blocks
}

// announcement is the first line of a card.
func announcement(d progress.Durable) update {
	card := cardOf(d)
	u := update{
		Update: kindCall, ToolCallID: d.Call, Title: card.Title, Kind: card.Kind, Status: pending, RawInput: d.Args, Locations: card.Locations,
	}
	if card.Fixed != nil {
		u.Content = shown(card.Fixed, nil)
	}
	return u
}

// ending is the last line of a card. It says the label again, which progress may
// have replaced, and all of the content.
func ending(call, result progress.Durable) update {
	card := cardOf(call)
	u := update{
		Update: kindUpdate, ToolCallID: call.Call, Title: card.Title, Status: completed, Content: shown(card.Fixed, resultBlocks(result.Result)),
	}
	if result.IsError {
		u.Status = failed
	}
	return u
}

func cardOf(d progress.Durable) progress.Card {
	if d.Card == nil {
		return progress.Card{Title: d.Tool, Generic: true}
	}
	return *d.Card
}
