package httpmodel

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Shown are the tags of the messages that a request shows to the model, as far as
// providers are told them: a stop reason is guessed from the calls. It is nil for
// OpenAI responses, where programs give calls other ids.
func (r *Request) Shown() []string {
	var body struct {
		Messages []shown `json:"messages"`
	}
	if r.Endpoint == "responses" || json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	tags := []string{}
	for i := range body.Messages {
		for _, m := range body.Messages[i].messages() {
			tags = append(tags, m.Tag())
		}
	}
	return tags
}

// shown is a message of either of the other two providers.
type shown struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	ToolCallID string         `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// part is a block of a message's content.
type part struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	ID        string         `json:"id"`
	ToolUseID string         `json:"tool_use_id"`
	IsError   bool           `json:"is_error"`
	Content   jsontext.Value `json:"content"`
}

func (s *shown) messages() []*trace.Message {
	parts := partsOf(s.Content)
	switch s.Role {
	case "tool":
		return []*trace.Message{{Role: trace.RoleToolResult, ToolCallID: s.ToolCallID, Content: contentOf(parts)}}
	case "assistant":
		return []*trace.Message{s.assistant(parts)}
	case "user":
	default:
		return []*trace.Message{{Role: trace.RoleSystem}}
	}
	var all []*trace.Message
	var said []part
	for _, p := range parts {
		if p.Type == "tool_result" {
			all = append(all, &trace.Message{
				Role: trace.RoleToolResult, ToolCallID: p.ToolUseID, IsError: p.IsError, Content: contentOf(partsOf(p.Content)),
			})
			continue
		}
		said = append(said, p)
	}
	if len(said) > 0 {
		all = append(all, &trace.Message{Role: trace.RoleUser, Content: contentOf(said)})
	}
	return all
}

func (s *shown) assistant(parts []part) *trace.Message {
	m := &trace.Message{Role: trace.RoleAssistant, StopReason: trace.StopStop, Content: contentOf(parts)}
	add := func(id string) {
		m.Content.Blocks = append(m.Content.Blocks, trace.Block{Type: trace.BlockToolCall, ID: id})
		m.StopReason = trace.StopToolUse
	}
	for _, p := range parts {
		if p.Type == "tool_use" {
			add(p.ID)
		}
	}
	for _, c := range s.ToolCalls {
		add(c.ID)
	}
	return m
}

// partsOf reads a content that is a text or a list of blocks.
func partsOf(content jsontext.Value) []part {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []part{{Type: "text", Text: text}}
	}
	var parts []part
	_ = json.Unmarshal(content, &parts) // anything else has no text
	return parts
}

func contentOf(parts []part) trace.Content {
	content := trace.Content{Blocks: []trace.Block{}}
	for _, p := range parts {
		if p.Type == "text" && p.Text != "" {
			content.Blocks = append(content.Blocks, trace.Block{Type: trace.BlockText, Text: p.Text})
		}
	}
	return content
}
