package conformance

import (
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

var contextRules = []Rule{
	{
		ID: "CTX-1", Family: FamilyContext, Level: Must, Source: "K", Needs: evidence{needR, needC}, Edges: onFailures, check: ctx1,
		Sentence: "Each request passes transformContext, convertToLlm, the key look-up and the stream function, in that order, each once.",
		Why:      "A request that passes one of them by sends what should have been taken out, or goes out without a valid key.",
	},
	{
		ID: "CTX-2", Family: FamilyContext, Level: Must, Source: "K", Forms: inAgent, Needs: evidence{needR, needC, needE, needA}, Edges: []int{2, 11, 15}, check: ctx2,
		Sentence: "A request's messages are the transcript so far as those steps made it (or the context that a hook put in its place): nothing missing, doubled or out of order.",
		Why:      "The model answers to what it is shown; a message that is missing has never been said.",
	},
	{
		ID: "CTX-3", Family: FamilyContext, Level: Must, Source: "K", Forms: inAgent, Needs: evidence{needK, needE, needS}, Edges: []int{16}, check: ctx3,
		Sentence: "The caller's list of messages is not changed.",
		Why:      "A program that prompts twice with one list would send its messages twice.",
	},
	{
		ID: "CTX-4", Family: FamilyContext, Level: Must, Source: "K", Needs: evidence{needR, needC}, Edges: onFailures, check: ctx4,
		Sentence: "The key from the look-up wins over the configured one (where the form has one).",
		Why:      "Keys that expire are renewed by the look-up; the old one would be refused.",
	},
	{
		ID: "CTX-5", Family: FamilyContext, Level: Must, MustFrom: "1.6", Source: "R", Needs: evidence{needR, needE}, Edges: []int{1, 2, 11}, check: ctx5,
		Sentence: "No request holds a call without its result.",
		Why:      "Providers refuse such a request, and every later one of the session.",
	},
	{
		ID: "CTX-6", Family: FamilyContext, Level: Must, Source: "K", Forms: inAgent, Needs: evidence{needR}, Edges: onFailures, check: ctx6,
		Sentence: "Every request carries the current system prompt, tools, model, level and signal; the key is looked up for that model's provider.",
		Why:      "A request that has lost them is answered by another model, without tools, or cannot be stopped.",
	},
}

// makers are the steps that make a request, in order.
var makers = [...]struct {
	kind callbackKind
	hook string
}{
	{callTransform, trace.HookTransformContext},
	{callConvert, trace.HookConvertToLlm},
	{callKey, trace.HookGetAPIKey},
}

func ctx1(h *history, j *judge) {
	from := [...]int{0, 0, 0} // where the search for each step begins
	for k := range h.callbacks {
		m := h.cb(k)
		if m.kind != callModel || m.run == none {
			continue
		}
		last := none
		for n, step := range makers {
			if h.hooked(step.hook) {
				last = h.expectStep(j, step.kind, from[n], k, last)
			}
			from[n] = k + 1
		}
	}
}

// expectStep expects one callback of a kind between two callbacks, begun after
// another has settled; it gives the one that was found.
func (h *history) expectStep(j *judge, kind callbackKind, from, request, after int) int {
	m := h.cb(request)
	found, count := none, 0
	for k := from; k < request; k++ {
		if c := h.cb(k); c.kind == kind && c.run == m.run {
			found = k
			count++
		}
	}
	if count != 1 {
		j.expect(false, none, m.begin, "a request does not pass each of its steps once")
		return after
	}
	c := h.cb(found)
	j.expect(c.settle < m.begin && (after == none || h.settles(after) < c.begin), c.begin, m.begin, "the steps of a request come in another order")
	return found
}

func ctx2(h *history, j *judge) {
	for k := range h.callbacks {
		c := h.cb(k)
		if c.kind != callModel && c.kind != callTransform && c.kind != callConvert || c.run == none {
			continue
		}
		if want := &h.expect().contexts[k]; want.known {
			j.expect(holds(h.payload(c).Messages, want.messages), h.lastMessage(c.begin), c.begin, "the messages are not the transcript so far")
		}
	}
}

// lastMessage is the latest message_end before an entry, or none.
func (h *history) lastMessage(before int) int {
	for k := h.eventIndex(before) - 1; k >= 0; k-- {
		if h.places[h.events[k]].event == messageEnd {
			return h.events[k]
		}
	}
	return none
}

// callersList is the number that stands in a retained entry for the list that
// the caller gave, which is the message list of no event.
const callersList = -1

func ctx3(h *history, j *judge) {
	for k := range h.runs {
		if over := h.over(&h.runs[k]); over != never {
			j.expect(true, over, none, "")
		}
	}
	for i := range h.entries {
		for _, n := range h.entries[i].Changed {
			if n == callersList {
				j.expect(false, none, i, "the caller's list of messages was changed")
			}
		}
	}
}

func ctx4(h *history, j *judge) {
	key, found := "", none
	for k := range h.callbacks {
		c := h.cb(k)
		switch c.kind {
		case callKey:
			key, found = h.hookAnswer(k).Key, k
		case callModel:
			if found != none && h.cb(found).run == c.run {
				if key == "" && h.form != trace.FormAgent {
					key = h.tr.Header.Config.APIKey
				}
				j.expect(h.payload(c).Key == key, h.cb(found).begin, c.begin, "the key of the request is not the one that was looked up")
			}
			key, found = "", none
		default:
		}
	}
}

func ctx5(h *history, j *judge) {
	for k := range h.callbacks {
		c := h.cb(k)
		if c.kind != callModel || c.run == none || h.failedBefore(c.begin) || h.editsContext(c.run) {
			continue
		}
		if tags := h.payload(c).Messages; tags != nil {
			h.expectAllAnswered(j, c, tags)
		}
	}
}

// expectAllAnswered expects that each call made before a request, and shown in
// it, has its result there.
func (h *history) expectAllAnswered(j *judge, c *callback, tags []string) {
	for k := range h.turns {
		t := &h.turns[k]
		if !t.ran() || t.answered > c.begin || t.run > c.run || !contains(tags, t.message) {
			continue
		}
		for i := t.calls[0]; i < t.calls[1]; i++ {
			j.expect(holdsResult(tags, h.calls[i].block.ID), t.answered, c.begin, "a request holds a call without its result")
		}
	}
}

func holdsResult(tags []string, id string) bool {
	for _, tag := range tags {
		if role, rest, _ := strings.Cut(tag, " "); role == trace.RoleToolResult && strings.HasPrefix(rest, id) && resultID(rest) == id {
			return true
		}
	}
	return false
}

func ctx6(h *history, j *judge) {
	for k := range h.callbacks {
		c := h.cb(k)
		switch {
		case c.run == none:
		case c.kind == callKey:
			j.expect(h.payload(c).Provider == "scripted", none, c.begin, "the key is not looked up for the model's provider")
		case c.kind == callModel:
			h.expectRequestOf(j, k)
		}
	}
}

func (h *history) expectRequestOf(j *judge, k int) {
	c, want := h.cb(k), &h.expect().contexts[k]
	p := h.payload(c)
	j.expect(p.Model == want.model && h.level(p) == want.level, none, c.begin, "the request is not made with the current model and level")
	j.expect(p.Signal == nil || *p.Signal, none, c.begin, "the request is made without the run's signal")
	if h.keepsSystem() {
		return // prompt and tools are told to the model by system messages
	}
	j.expect(p.SystemPrompt == want.prompt, none, c.begin, "the request is not made with the current system prompt")
	tools := h.tr.Header.Config.Tools
	same := len(tools) == len(p.Tools)
	for i := 0; same && i < len(tools); i++ {
		same = tools[i].Name == p.Tools[i]
	}
	j.expect(same, none, c.begin, "the request is not made with the current tools")
}
