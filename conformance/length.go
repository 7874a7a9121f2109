package conformance

import "strings"

var lengthRules = []Rule{
	{
		ID: "LEN-1", Family: FamilyLength, Level: Must, Source: "K", From: "0.80.4", Needs: evidence{needE, needC}, Edges: onFailures, check: len1,
		Sentence: "With stopReason length no call of the message is prepared, hooked or executed, however complete it looks.",
		Why:      "Arguments that were cut off can still be valid: half a file would be written, or the wrong folder deleted.",
	},
	{
		ID: "LEN-2", Family: FamilyLength, Level: Must, Source: "K", From: "0.80.4", Needs: evidence{needE}, Edges: onFailures, check: len2,
		Sentence: "Each call of a length message gets, in source order and in either mode, start, end with isError and its result message before the next call's start.",
		Why:      "A call without a result makes the next request invalid, and one that is shown as a success misleads.",
	},
	{
		ID: "LEN-3", Family: FamilyLength, Level: Must, Source: "K", From: "0.80.4", Needs: evidence{needE}, Edges: onFailures, check: len3,
		Sentence: "The text of a truncated call's result names the tool.",
		Why:      "The model has to know which of its calls did not happen.",
	},
	{
		ID: "LEN-3s", Family: FamilyLength, Level: Should, Source: "K", From: "0.80.4", Needs: evidence{needE}, Edges: onFailures, check: len3s,
		Sentence: "The text of a truncated call's result says that the call was not executed and is to be issued again.",
		Why:      "A model that is told so repeats the call; one that is not may take it for done.",
	},
	{
		ID: "LEN-4", Family: FamilyLength, Level: Must, Source: "K, R", From: "0.80.4", Needs: evidence{needE, needR}, Edges: onFailures, check: len4,
		Sentence: "After a length message with calls the run goes on with a further request, unless a hook stops it.",
		Why:      "Otherwise the work stops in the middle and the user has to notice it.",
	},
	{
		ID: "LEN-5", Family: FamilyLength, Level: Must, Source: "K", From: "0.80.4", Forms: inAwaited, Needs: evidence{needE}, Edges: onFailures, check: len5,
		Sentence: "A length message without calls ends like an answer.",
		Why:      "There is nothing to run; a loop that goes on by itself may never stop.",
	},
}

// truncatedTurns gives each turn whose message was cut off and holds calls.
func (h *history) truncatedTurns(yield func(index int, t *turn)) {
	for k := range h.turns {
		if t := &h.turns[k]; t.ran() && t.truncated() {
			yield(k, t)
		}
	}
}

func len1(h *history, j *judge) {
	h.truncatedTurns(func(index int, t *turn) {
		j.expect(true, t.answered, none, "")
		for k := range h.callbacks {
			c := &h.callbacks[k]
			if c.turn == index && c.begin > t.answered && (c.kind.isOfTool() || c.kind == callAfter) {
				j.expect(false, t.answered, c.begin, "a call of a truncated message is prepared, hooked or executed")
			}
		}
	})
}

func len2(h *history, j *judge) {
	h.truncatedTurns(func(_ int, t *turn) {
		last := t.answered
		for k := t.calls[0]; k < t.calls[1]; k++ {
			c := &h.calls[k]
			if c.resultEnd == never || c.end == never || c.start == never {
				if t.end != never {
					j.expect(false, last, t.end, "a call of a truncated message is not answered")
				}
				continue
			}
			j.expect(isTrue(h.event(c.end).IsError), c.start, c.end, "a call of a truncated message does not end with an error")
			inOrder := last < c.start && c.start < c.end && c.end < c.resultStart && c.resultStart < c.resultEnd
			j.expect(inOrder, last, max(c.start, c.end, c.resultEnd), "the calls of a truncated message are not answered one after the other")
			last = c.resultEnd
		}
	})
}

// truncatedTexts gives the text with which each call of a truncated message
// ended.
func (h *history) truncatedTexts(yield func(c *call, text string)) {
	h.truncatedTurns(func(_ int, t *turn) {
		for k := t.calls[0]; k < t.calls[1]; k++ {
			if c := &h.calls[k]; c.end != never {
				text, _ := h.endText(c)
				yield(c, text)
			}
		}
	})
}

func len3(h *history, j *judge) {
	h.truncatedTexts(func(c *call, text string) {
		j.expect(ownText(text) || strings.Contains(text, c.block.Name), c.start, c.end, "the result of a truncated call does not name the tool")
	})
}

func len3s(h *history, j *judge) {
	h.truncatedTexts(func(c *call, text string) {
		if ownText(text) {
			return
		}
		said := strings.ToLower(text)
		again := strings.Contains(said, "again") || strings.Contains(said, "re-issue") || strings.Contains(said, "reissue") || strings.Contains(said, "retry")
		j.expect(strings.Contains(said, "not executed") && again, c.start, c.end, "the result of a truncated call does not say that it was not executed and is to be issued again")
	})
}

func len4(h *history, j *judge) {
	h.truncatedTurns(func(index int, t *turn) {
		if t.end != never {
			h.expectRequest(j, index)
		}
	})
}

func len5(h *history, j *judge) {
	for k := range h.turns {
		t := &h.turns[k]
		if t.end != never && t.plain() && t.truncated() {
			h.expectAnswered(j, k)
		}
	}
}
