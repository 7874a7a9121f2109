package trace

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Value is any JSON value, kept as it was written. The zero Value stands for
// an absent member.
type Value = jsontext.Value

// The roles that the contract names. A subject may have others; they are kept.
const (
	RoleUser       = "user"
	RoleAssistant  = "assistant"
	RoleToolResult = "toolResult"
	RoleSystem     = "system"
)

// The stop reasons of an assistant message that the contract names.
const (
	StopStop    = "stop"
	StopToolUse = "toolUse"
	StopLength  = "length"
	StopError   = "error"
	StopAborted = "aborted"
)

// Message is one message of a transcript. Which fields are meaningful depends
// on Role. A Message that has been handed to anybody else is never changed.
type Message struct {
	Role    string  `json:"role"`
	Content Content `json:"content,omitzero"`

	// Of an assistant message.
	API          string `json:"api,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	StopReason   string `json:"stopReason,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`

	// Of a tool result message.
	ToolCallID string `json:"toolCallId,omitempty"`
	ToolName   string `json:"toolName,omitempty"`
	Details    Value  `json:"details,omitzero"`
	IsError    bool   `json:"isError,omitzero"`

	Usage     Value `json:"usage,omitzero"`
	Timestamp int64 `json:"timestamp,omitzero"` // milliseconds since 1970

	// Extra holds the members that are not named above, as one JSON object.
	Extra Value `json:",embed"`
}

// Content is the content of a message: plain text, or a list of blocks. An
// empty list of blocks is told apart from no content at all.
type Content struct {
	Text   string  // meaningful if Blocks is nil and IsText is set
	IsText bool    // the content is one JSON string
	Blocks []Block // nil if IsText
}

// The types of blocks that the contract names.
const (
	BlockText     = "text"
	BlockThinking = "thinking"
	BlockToolCall = "toolCall"
	BlockImage    = "image"
)

// Block is one piece of a message's content.
type Block struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Thinking  string `json:"thinking,omitempty"`
	ID        string `json:"id,omitempty"`       // of a toolCall
	Name      string `json:"name,omitempty"`     // of a toolCall
	Arguments Value  `json:"arguments,omitzero"` // of a toolCall, as the model gave them
	Data      string `json:"data,omitempty"`     // of an image, base64
	MimeType  string `json:"mimeType,omitempty"` // of an image
	Extra     Value  `json:",embed"`
}

// TextContent is content of one text block.
func TextContent(text string) Content {
	return Content{Blocks: []Block{{Type: BlockText, Text: text}}}
}

// IsZero reports whether there is no content at all.
func (c Content) IsZero() bool { return !c.IsText && c.Blocks == nil }

// PlainText is the text of all text blocks, joined by newlines.
func (c Content) PlainText() string {
	if c.IsText {
		return c.Text
	}
	if len(c.Blocks) == 1 && c.Blocks[0].Type == BlockText {
		return c.Blocks[0].Text
	}
	var texts []string
	for i := range c.Blocks {
		if c.Blocks[i].Type == BlockText {
			texts = append(texts, c.Blocks[i].Text)
		}
	}
	return strings.Join(texts, "\n")
}

// MarshalJSONTo writes a string, or an array of blocks.
func (c Content) MarshalJSONTo(enc *jsontext.Encoder) error {
	if c.IsText {
		return enc.WriteToken(jsontext.String(c.Text))
	}
	return json.MarshalEncode(enc, c.Blocks)
}

var errContentForm = errors.New("message content must be a string or an array of blocks")

// UnmarshalJSONFrom reads a string, or an array of blocks.
func (c *Content) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		_, err := dec.ReadToken()
		*c = Content{}
		return err
	case '"':
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		*c = Content{Text: tok.String(), IsText: true}
		return nil
	case '[':
		blocks := []Block{}
		if err := json.UnmarshalDecode(dec, &blocks); err != nil {
			return err
		}
		*c = Content{Blocks: blocks}
		return nil
	default:
	}
	return errContentForm
}

// ToolCalls are the tool call blocks of the message, in source order.
func (m *Message) ToolCalls() []*Block {
	var calls []*Block
	for i := range m.Content.Blocks {
		if m.Content.Blocks[i].Type != BlockToolCall {
			continue
		}
		if calls == nil {
			calls = make([]*Block, 0, len(m.Content.Blocks)-i)
		}
		calls = append(calls, &m.Content.Blocks[i])
	}
	return calls
}

// Tag is a short description of a message that is the same in every language:
// the form in which a transcript stands in the payload of a callback.
//
//	user: go
//	assistant toolUse [c1 c2]: let me look
//	toolResult c1: found it
//	toolResult c2 error: no such file
func (m *Message) Tag() string {
	var room [128]byte
	return string(m.appendTag(room[:0]))
}

func (m *Message) appendTag(tag []byte) []byte {
	tag = append(tag, m.Role...)
	switch m.Role {
	case RoleAssistant:
		tag = append(tag, ' ')
		tag = append(tag, m.StopReason...)
		tag = append(m.appendCallIDs(append(tag, " ["...)), ']')
	case RoleToolResult:
		tag = append(tag, ' ')
		tag = append(tag, m.ToolCallID...)
		if m.IsError {
			tag = append(tag, " error"...)
		}
	}
	tag = append(tag, ": "...)
	return append(tag, m.Content.PlainText()...)
}

func (m *Message) appendCallIDs(tag []byte) []byte {
	first := len(tag)
	for i := range m.Content.Blocks {
		if m.Content.Blocks[i].Type != BlockToolCall {
			continue
		}
		if len(tag) > first {
			tag = append(tag, ' ')
		}
		tag = append(tag, m.Content.Blocks[i].ID...)
	}
	return tag
}

// Tags are the tags of all messages, in order.
func Tags(messages []*Message) []string {
	tags := make([]string, len(messages))
	for i, m := range messages {
		tags[i] = m.Tag()
	}
	return tags
}
