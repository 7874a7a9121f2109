package httpmodel

import "github.com/pi-conform/pi-conform/harness/trace"

// m is a JSON object.
type m = map[string]any

// chat speaks as OpenAI's chat completions do.
type chat struct{}

var usage = m{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

func (chat) chunk(a *answer, delta m, finish any) string {
	return "data: " + text(m{
		"id": a.id, "object": "chat.completion.chunk", "created": 0, "model": a.model,
		"choices": []m{{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func (c chat) begin(a *answer) []string {
	return []string{c.chunk(a, m{"role": "assistant", "content": ""}, nil)}
}

func (c chat) piece(a *answer, p *piece) []string {
	switch p.kind {
	case thinkingPiece:
		return []string{c.chunk(a, m{"reasoning_content": p.text}, nil)}
	case textPiece:
		return []string{c.chunk(a, m{"content": p.text}, nil)}
	case callPiece:
		call := &a.turn.Calls[p.call]
		return []string{c.chunk(a, m{"tool_calls": []m{{
			"index": p.call, "id": call.ID, "type": "function", "function": m{"name": call.Name, "arguments": ""},
		}}}, nil)}
	case argumentsPiece:
		return []string{c.chunk(a, m{"tool_calls": []m{{"index": p.call, "function": m{"arguments": p.text}}}}, nil)}
	case endPiece:
		return []string{
			c.chunk(a, m{}, chatStop(a.turn)),
			"data: " + text(m{"id": a.id, "object": "chat.completion.chunk", "created": 0, "model": a.model, "choices": []m{}, "usage": usage}),
			"data: [DONE]",
		}
	}
	return nil
}

func chatStop(t *Turn) string {
	switch t.stop() {
	case trace.StopToolUse:
		return "tool_calls"
	case trace.StopLength:
		return "length"
	}
	return "stop"
}

func (c chat) whole(a *answer) any {
	message := m{"role": "assistant", "content": a.turn.Text}
	if a.turn.Thinking != "" {
		message["reasoning_content"] = a.turn.Thinking
	}
	var calls []m
	for i := range a.turn.Calls {
		call := &a.turn.Calls[i]
		calls = append(calls, m{"id": call.ID, "type": "function", "function": m{"name": call.Name, "arguments": call.arguments()}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return m{
		"id": a.id, "object": "chat.completion", "created": 0, "model": a.model, "usage": usage,
		"choices": []m{{"index": 0, "message": message, "finish_reason": chatStop(a.turn)}},
	}
}

func (chat) fault(kind, message string) any { return m{"error": m{"message": message, "type": kind}} }
