package httpmodel

import "github.com/pi-conform/pi-conform/harness/trace"

// messages speaks as Anthropic's messages do.
type messages struct{}

func event(kind string, body m) string {
	body["type"] = kind
	return "event: " + kind + "\ndata: " + text(body)
}

func (messages) begin(a *answer) []string {
	return []string{event("message_start", m{"message": m{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": []m{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": m{"input_tokens": 10, "output_tokens": 1},
	}})}
}

// block opens a content block, and closes the one before.
func (w messages) block(a *answer, kind pieceKind, content m) []string {
	events := w.close(a)
	a.open++
	a.kind = kind
	a.items = []any{true} // a block is open
	return append(events, event("content_block_start", m{"index": a.open, "content_block": content}))
}

func (messages) close(a *answer) []string {
	if a.items == nil {
		return nil
	}
	a.items = nil
	return []string{event("content_block_stop", m{"index": a.open})}
}

func (messages) delta(a *answer, delta m) string {
	return event("content_block_delta", m{"index": a.open, "delta": delta})
}

func (w messages) piece(a *answer, p *piece) []string {
	fresh := a.items == nil || a.kind != p.kind
	switch p.kind {
	case thinkingPiece:
		var events []string
		if fresh {
			events = w.block(a, p.kind, m{"type": "thinking", "thinking": "", "signature": ""})
			events = append(events, w.delta(a, m{"type": "signature_delta", "signature": "c2lnbmVk"}))
		}
		return append(events, w.delta(a, m{"type": "thinking_delta", "thinking": p.text}))
	case textPiece:
		var events []string
		if fresh {
			events = w.block(a, p.kind, m{"type": "text", "text": ""})
		}
		return append(events, w.delta(a, m{"type": "text_delta", "text": p.text}))
	case callPiece:
		call := &a.turn.Calls[p.call]
		return w.block(a, p.kind, m{"type": "tool_use", "id": call.ID, "name": call.Name, "input": m{}})
	case argumentsPiece:
		return []string{w.delta(a, m{"type": "input_json_delta", "partial_json": p.text})}
	case endPiece:
		events := w.close(a)
		return append(events,
			event("message_delta", m{"delta": m{"stop_reason": messagesStop(a.turn), "stop_sequence": nil}, "usage": m{"output_tokens": 5}}),
			event("message_stop", m{}))
	}
	return nil
}

func messagesStop(t *Turn) string {
	switch t.stop() {
	case trace.StopToolUse:
		return "tool_use"
	case trace.StopLength:
		return "max_tokens"
	}
	return "end_turn"
}

func (messages) whole(a *answer) any {
	content := []m{}
	if a.turn.Thinking != "" {
		content = append(content, m{"type": "thinking", "thinking": a.turn.Thinking, "signature": "c2lnbmVk"})
	}
	if a.turn.Text != "" {
		content = append(content, m{"type": "text", "text": a.turn.Text})
	}
	for i := range a.turn.Calls {
		call := &a.turn.Calls[i]
		content = append(content, m{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object(call.arguments())})
	}
	return m{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": content, "stop_reason": messagesStop(a.turn),
		"stop_sequence": nil, "usage": m{"input_tokens": 10, "output_tokens": 5},
	}
}

func (messages) fault(kind, message string) any {
	return m{"type": "error", "error": m{"type": kind, "message": message}}
}
