package httpmodel

import (
	"maps"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// responses speaks as OpenAI's responses do.
type responses struct{}

func (responses) response(a *answer, status string) m {
	r := m{
		"id": a.id, "object": "response", "created_at": 0, "model": a.model, "status": status, "output": append([]any{}, a.items...),
		"usage": m{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": m{"cached_tokens": 0}, "output_tokens_details": m{"reasoning_tokens": 0}},
	}
	if status == "incomplete" {
		r["incomplete_details"] = m{"reason": "max_output_tokens"}
	}
	return r
}

func responsesStatus(t *Turn) string {
	if t.stop() == trace.StopLength {
		return "incomplete"
	}
	return "completed"
}

func (w responses) begin(a *answer) []string {
	return []string{event("response.created", m{"response": w.response(a, "in_progress")})}
}

// itemID is the id of the output item that is open.
func (responses) itemID(a *answer) string { return a.id + "_item_" + strconv.Itoa(a.open) }

func (w responses) item(a *answer, kind pieceKind, text string, call *Call) m {
	switch kind {
	case thinkingPiece:
		summary := []m{}
		if text != "" {
			summary = append(summary, m{"type": "summary_text", "text": text})
		}
		return m{"type": "reasoning", "id": w.itemID(a), "summary": summary}
	case callPiece, argumentsPiece:
		return m{"type": "function_call", "id": w.itemID(a), "call_id": call.ID, "name": call.Name, "arguments": text, "status": "completed"}
	case textPiece, endPiece:
	}
	content := []m{}
	if text != "" {
		content = append(content, m{"type": "output_text", "text": text, "annotations": []m{}})
	}
	return m{"type": "message", "id": w.itemID(a), "role": "assistant", "status": "completed", "content": content}
}

// add opens an output item, after the last was closed.
func (w responses) add(a *answer, kind pieceKind, call *Call) []string {
	a.open++
	a.kind, a.text = kind, ""
	return []string{event("response.output_item.added", m{"output_index": a.open, "item": w.item(a, kind, "", call)})}
}

// done closes the output item that is open.
func (w responses) done(a *answer, call *Call) []string {
	if a.open < 0 || len(a.items) > a.open {
		return nil
	}
	at := m{"item_id": w.itemID(a), "output_index": a.open}
	with := func(kind string, more m) string {
		maps.Copy(more, at)
		return event(kind, more)
	}
	var events []string
	switch a.kind {
	case thinkingPiece:
		part := m{"type": "summary_text", "text": a.text}
		events = []string{
			with("response.reasoning_summary_text.done", m{"summary_index": 0, "text": a.text}),
			with("response.reasoning_summary_part.done", m{"summary_index": 0, "part": part}),
		}
	case textPiece:
		part := m{"type": "output_text", "text": a.text, "annotations": []m{}}
		events = []string{
			with("response.output_text.done", m{"content_index": 0, "text": a.text}),
			with("response.content_part.done", m{"content_index": 0, "part": part}),
		}
	case callPiece, argumentsPiece:
		events = []string{with("response.function_call_arguments.done", m{"arguments": a.text})}
	case endPiece:
	}
	item := w.item(a, a.kind, a.text, call)
	a.items = append(a.items, item)
	return append(events, event("response.output_item.done", m{"output_index": a.open, "item": item}))
}

func (w responses) piece(a *answer, p *piece) []string {
	isOpen := a.open >= 0 && len(a.items) == a.open
	delta := func(kind string, more m) string {
		more["item_id"], more["output_index"], more["delta"] = w.itemID(a), a.open, p.text
		a.text += p.text
		return event(kind, more)
	}
	switch p.kind {
	case thinkingPiece:
		var events []string
		if !isOpen {
			events = append(w.add(a, p.kind, nil), event("response.reasoning_summary_part.added", m{
				"item_id": w.itemID(a), "output_index": a.open, "summary_index": 0, "part": m{"type": "summary_text", "text": ""},
			}))
		}
		return append(events, delta("response.reasoning_summary_text.delta", m{"summary_index": 0}))
	case textPiece:
		var events []string
		if !isOpen || a.kind != textPiece {
			events = append(w.done(a, nil), w.add(a, p.kind, nil)...)
			events = append(events, event("response.content_part.added", m{
				"item_id": w.itemID(a), "output_index": a.open, "content_index": 0, "part": m{"type": "output_text", "text": "", "annotations": []m{}},
			}))
		}
		return append(events, delta("response.output_text.delta", m{"content_index": 0}))
	case callPiece:
		events := w.done(a, w.before(a, p))
		return append(events, w.add(a, p.kind, &a.turn.Calls[p.call])...)
	case argumentsPiece:
		return []string{delta("response.function_call_arguments.delta", m{})}
	case endPiece:
		events := w.done(a, w.last(a))
		status := responsesStatus(a.turn)
		return append(events, event("response."+status, m{"response": w.response(a, status)}))
	}
	return nil
}

// before is the call before one that begins; nil if it is the first.
func (responses) before(a *answer, p *piece) *Call {
	if p.call == 0 {
		return nil
	}
	return &a.turn.Calls[p.call-1]
}

func (responses) last(a *answer) *Call {
	if n := len(a.turn.Calls); n > 0 {
		return &a.turn.Calls[n-1]
	}
	return nil
}

func (w responses) whole(a *answer) any {
	for _, p := range a.turn.pieces() {
		w.piece(a, &p)
	}
	return w.response(a, responsesStatus(a.turn))
}

func (responses) fault(kind, message string) any {
	return m{"error": m{"message": message, "type": kind, "code": kind}}
}

// object is a text as a JSON object; one without members if it is none.
func object(text string) any {
	value := jsontext.Value(text)
	if !value.IsValid() || value.Kind() != '{' {
		return m{}
	}
	return value
}
