package conformance

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// expectations are what the agent's transcript, its queues and the context of
// its requests should have been, worked out from what the surroundings did and
// from the messages that the loop emitted.
type expectations struct {
	contexts []context    // by callback
	polls    [][]*message // by callback: what a poll should drain
	skipped  []bool       // by callback: a poll that a continue lets the run skip
	resumes  []resume     // by user action, of a continue while no run is active
}

type message = trace.Message

// context is what a callback should have been given.
type context struct {
	known    bool
	messages []*message
	model    string
	level    string // empty means none
	prompt   string
}

// resume is what a continue has to go on from.
type resume struct {
	empty   bool // nothing to continue from
	last    string
	drained []*message // messages that should start the run
	steered bool       // they are steering messages
}

// expect works them out when it is first asked for them.
func (h *history) expect() *expectations {
	e := &h.expecter
	if !h.expected {
		h.expected = true
		e.begin(h)
		e.walk()
	}
	return &e.expectations
}

// expecter walks a trace and keeps what an agent would have to keep.
type expecter struct {
	*history
	expectations
	user, run int // next user action; next run

	transcript []*message
	context               // of the loop
	held       []*message // results of a batch that is not over
	sent       []*message // what transformContext and convertToLlm made of the context
	prepared   bool       // sent is set

	steering, followUp []*message
}

// begin takes in a trace, in the place of the one before.
func (e *expecter) begin(h *history) {
	*e = expecter{history: h, transcript: e.transcript[:0], expectations: expectations{
		contexts: zeroed(e.contexts, len(h.callbacks)),
		polls:    zeroed(e.polls, len(h.callbacks)),
		skipped:  zeroed(e.skipped, len(h.callbacks)),
		resumes:  zeroed(e.resumes, len(h.users)),
	}}
}

// zeroed is a slice of n zeros, in the memory of another one if that is enough.
func zeroed[T any](old []T, n int) []T {
	s := slices.Grow(old[:0], n)[:n]
	clear(s)
	return s
}

func (e *expecter) walk() {
	e.transcript = append(e.transcript, e.initial()...)
	for i := range e.entries {
		if e.run < len(e.runs) && e.runs[e.run].begin == i {
			e.open()
		}
		switch e.entries[i].Kind {
		case trace.KindAction:
			e.action(i)
		case trace.KindEvent:
			e.see(i)
		case trace.KindCall:
			k := int(e.places[i].callback)
			e.called(k)
			e.settledAt(k, i)
		case trace.KindRead, trace.KindCancelled, trace.KindSettled, trace.KindRetained, trace.KindEnd:
		default:
		}
	}
}

// keepsSystem reports whether system messages stand in the transcript.
func (h *history) keepsSystem() bool { return h.since("0.86.0") }

func (e *expecter) initial() []*message {
	config := &e.tr.Header.Config
	first := len(config.Messages) > 0 && config.Messages[0].Role == trace.RoleSystem
	if !e.keepsSystem() || first || config.SystemPrompt == "" && len(config.Tools) == 0 {
		return config.Messages[:len(config.Messages):len(config.Messages)]
	}
	return append([]*message{{Role: trace.RoleSystem}}, config.Messages...)
}

func (e *expecter) open() {
	e.run++
	config := &e.tr.Header.Config
	e.context = context{known: true, messages: e.transcript[:len(e.transcript):len(e.transcript)], model: config.Model, level: config.Level, prompt: config.SystemPrompt}
	if e.context.model == "" {
		e.context.model = "scripted-1"
	}
	if e.context.level == "off" {
		e.context.level = ""
	}
	e.held, e.prepared = nil, false
}

func (e *expecter) action(i int) {
	if e.user < len(e.users) && e.users[e.user].entry == i {
		e.user++
		e.userAction(e.user-1, e.entries[i].Answer)
		return
	}
	if k := e.places[i].callback; k != none && e.callbacks[k].settle == i {
		e.settledAt(int(k), i)
	}
}

func (e *expecter) userAction(index int, a *trace.Answer) {
	u := &e.users[index]
	switch u.kind {
	case userSteer:
		e.steering = enqueue(e.steering, a)
	case userFollowUp:
		e.followUp = enqueue(e.followUp, a)
	case userClearQueue:
		e.steering, e.followUp = nil, nil
	case userReset:
		if u.active == none && u.outcome != trace.OutcomeRefused {
			e.reset()
		}
	case userContinue:
		if u.active == none {
			e.resume(index)
		}
	default:
	}
}

func enqueue(queue []*message, a *trace.Answer) []*message {
	if a == nil {
		return queue
	}
	return append(queue, a.Messages...)
}

func (e *expecter) reset() {
	e.steering, e.followUp = nil, nil
	kept := []*message{}
	if e.keepsSystem() && len(e.transcript) > 0 && e.transcript[0].Role == trace.RoleSystem {
		kept = append(kept, e.transcript[0])
	}
	e.transcript = kept
}

func (e *expecter) resume(index int) {
	r := &e.resumes[index]
	r.empty = true
	for _, m := range e.transcript {
		r.empty = r.empty && m != nil && m.Role == trace.RoleSystem
	}
	if len(e.transcript) > 0 && e.transcript[len(e.transcript)-1] != nil {
		r.last = e.transcript[len(e.transcript)-1].Role
	}
	if r.empty || r.last != trace.RoleAssistant || e.form != trace.FormAgent {
		return
	}
	config := &e.tr.Header.Config
	if r.steered = len(e.steering) > 0; r.steered {
		r.drained, e.steering = drain(e.steering, config.SteeringMode)
		return
	}
	r.drained, e.followUp = drain(e.followUp, config.FollowUpMode)
}

func drain(queue []*message, mode string) (drained, left []*message) {
	n := len(queue)
	if mode != "all" {
		n = min(n, 1)
	}
	return queue[:n:n], queue[n:]
}

func (e *expecter) see(i int) {
	ev := e.event(i)
	switch e.places[i].event {
	case messageEnd:
		if ev.Message != nil {
			e.added(i, ev.Message)
		}
	case turnEnd:
		e.release()
	default:
	}
}

func (e *expecter) added(i int, m *message) {
	e.transcript = append(e.transcript, m)
	t := e.places[i].turn
	if t != none && e.turns[t].doubled {
		e.known = false
	}
	if m.Role == trace.RoleToolResult && t != none && e.turns[t].answered < i {
		e.held = append(e.held, m)
		return
	}
	e.messages = append(e.messages, m)
}

// release puts the results of a batch into the context, which gets them only
// once the batch is over.
func (e *expecter) release() {
	e.messages = append(e.messages, e.held...)
	e.held = nil
}

func (e *expecter) called(k int) {
	c := &e.callbacks[k]
	switch c.kind {
	case callFinishTurn:
		e.release()
	case callConvert, callModel:
		e.contexts[k] = e.context
		e.contexts[k].messages = e.outgoing(c.kind)
		return
	case callSteering:
		e.poll(k)
	case callFollowUp:
		e.polls[k], e.followUp = drain(e.followUp, e.tr.Header.Config.FollowUpMode)
	default:
	}
	e.contexts[k] = e.context
	e.contexts[k].messages = e.messages[:len(e.messages):len(e.messages)]
}

func (e *expecter) poll(k int) {
	c := &e.callbacks[k]
	if e.mayBeSkipped(c) && (c.answer == nil || len(c.answer.Messages) == 0) {
		e.skipped[k] = true
		return
	}
	e.polls[k], e.steering = drain(e.steering, e.tr.Header.Config.SteeringMode)
}

// mayBeSkipped reports whether a poll is the first of a run that a continue
// began with steering messages.
func (e *expecter) mayBeSkipped(c *callback) bool {
	return c.run != none && c.turn != none && c.turn == e.runs[c.run].turns[0] &&
		e.startedBySteering(&e.runs[c.run]) && (e.turns[c.turn].request == none || e.cb(e.turns[c.turn].request).begin > c.begin)
}

func (e *expecter) startedBySteering(r *run) bool {
	return r.user != none && e.users[r.user].kind == userContinue && e.resumes[r.user].steered
}

// outgoing is what the loop sends on: to convertToLlm what transformContext
// made of the context, to the model what convertToLlm made of that.
func (e *expecter) outgoing(kind callbackKind) []*message {
	messages := e.messages[:len(e.messages):len(e.messages)]
	if e.prepared {
		messages = e.sent
	}
	if kind == callModel {
		if !e.hooked(trace.HookConvertToLlm) {
			messages = e.forTheModel(messages)
		}
		e.prepared = false
	}
	return messages
}

func (e *expecter) forTheModel(messages []*message) []*message {
	kept := make([]*message, 0, len(messages))
	for _, m := range messages {
		if m == nil {
			continue
		}
		switch m.Role {
		case trace.RoleUser, trace.RoleAssistant, trace.RoleToolResult, trace.RoleSystem:
			kept = append(kept, m)
		}
	}
	return kept
}

// settledAt takes in the answer of a callback that settles at an entry.
func (e *expecter) settledAt(k, i int) {
	c := &e.callbacks[k]
	if c.settle != i || c.throws || c.answer == nil || c.answer.Hook == nil {
		return
	}
	a := c.answer.Hook
	switch c.kind {
	case callTransform:
		e.sent, e.prepared = edited(e.contexts[k].messages, a), true
	case callConvert:
		e.sent, e.prepared = without(e.contexts[k].messages, a.Without), true
	case callPrepareNext, callPrepareRequest:
		e.replace(a)
	default:
	}
}

func edited(messages []*message, a *trace.HookAnswer) []*message {
	if a.Drop <= 0 && len(a.Append) == 0 {
		return messages
	}
	rest := messages[min(max(a.Drop, 0), len(messages)):]
	return append(rest[:len(rest):len(rest)], a.Append...)
}

func without(messages []*message, roles []string) []*message {
	if len(roles) == 0 {
		return messages
	}
	kept := make([]*message, 0, len(messages))
next:
	for _, m := range messages {
		for _, role := range roles {
			if m != nil && m.Role == role {
				continue next
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// replace takes in what a hook put in place of context, model and level.
func (e *expecter) replace(a *trace.HookAnswer) {
	e.messages = edited(e.messages[:len(e.messages):len(e.messages)], a)
	if a.SystemPrompt != nil {
		e.context.prompt = *a.SystemPrompt
		if e.keepsSystem() && !hasSystem(e.messages) {
			e.messages = append([]*message{{Role: trace.RoleSystem}}, e.messages...)
		}
	}
	if a.Model != "" {
		e.context.model = a.Model
	}
	switch a.Level {
	case "":
	case "off":
		e.context.level = ""
	default:
		e.context.level = a.Level
	}
}

func hasSystem(messages []*message) bool {
	for _, m := range messages {
		if m != nil && m.Role == trace.RoleSystem {
			return true
		}
	}
	return false
}

// holds reports whether tags are those of the messages, in order. System
// messages are left out of account: how they are told to the model is the
// loop's business.
func holds(tags []string, messages []*message) bool {
	for _, m := range messages {
		if m == nil || m.Role == trace.RoleSystem {
			continue
		}
		tags = skipSystem(tags)
		if len(tags) == 0 || !hasTag(tags[0], m) {
			return false
		}
		tags = tags[1:]
	}
	return len(skipSystem(tags)) == 0
}

func skipSystem(tags []string) []string {
	for len(tags) > 0 && strings.HasPrefix(tags[0], trace.RoleSystem+":") {
		tags = tags[1:]
	}
	return tags
}
