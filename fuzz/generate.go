// Package fuzz makes cases that nobody thought of.
//
// [Scenario] draws the surroundings of a loop from a [Chooser]; a policy of
// package harness then draws the order. Both are given before the run begins:
// nothing is drawn while a subject runs, so a case is known by what was drawn
// for it.
//
// [Explore] does so for a budget, judges every run by the rules, and says what it
// has established. Of everything that is wrong it gives the smallest case that
// shows it, and saves it.
package fuzz

import (
	"fmt"
	"strconv"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// Size bounds what is drawn, and says which features may be.
type Size struct {
	Turns   int // assistant turns with tool calls, at most
	Calls   int // tool calls of a turn, at most
	Updates int // progress updates of a call, at most
	Prompts int // runs on one agent, at most

	Late      bool // updates after the tool has settled
	Hooks     bool // hooks of every kind
	Listeners bool // slow listeners
	User      bool // steering, follow-ups, aborts
	Streams   bool // all ways to stream and to end
	Length    bool // turns cut off by the token limit
	Errors    bool // tools and hooks that fail, unknown tools, invalid arguments
	// Rare is what few cases need: listeners that come and go, reset and clearQueue,
	// callbacks that abort, prompts of several messages, a transcript to begin with,
	// results without content.
	Rare bool
	// Faults lets streams fail outside the protocol (edge e11), where a loop
	// promises less.
	Faults bool
	// Throws lets listeners fail (edge e2). What calls that run in parallel still
	// do in the step of such a failure depends on the loop alone.
	Throws bool
	// Duplicates lets two calls have one id (edge e5).
	Duplicates bool
}

// Usual is everything but what brings edges about.
func Usual() Size {
	return Size{
		Turns: 2, Calls: 3, Updates: 2, Prompts: 2,
		Late: true, Hooks: true, Listeners: true, User: true, Streams: true, Length: true, Errors: true,
	}
}

// Wide is everything that there is but what brings edges about.
func Wide() Size {
	s := Usual()
	s.Rare = true
	return s
}

// Scenario draws a scenario for an edition. Each feature is switched on or off
// for the whole scenario first, so that rare combinations are not drowned by
// everything happening at once.
func Scenario(c Chooser, e edition.Edition, size Size) *harness.Scenario {
	g := &generator{
		c: c, size: size,
		sc: &harness.Scenario{Edition: e, Calls: map[string]harness.ToolScript{}, Hooks: map[string]harness.HookScript{}},
	}
	g.switchOff()
	g.config()
	for range 1 + g.upTo("turns", size.Turns) {
		g.turn()
	}
	if g.size.Hooks {
		g.hooks()
	}
	if g.size.Listeners {
		g.listeners()
	}
	g.user()
	if g.size.Rare {
		g.rare()
	}
	g.sc.Complete()
	return g.sc
}

type generator struct {
	c    Chooser
	size Size
	sc   *harness.Scenario
	ids  []string
}

func (g *generator) upTo(label string, n int) int { return g.c.Choose(label, n+1) }

// one reports true about once in n times.
func (g *generator) one(label string, n int) bool { return g.c.Choose(label, n) == n-1 }

func (g *generator) switchOff() {
	for _, f := range []struct {
		label string
		on    *bool
	}{
		{"late", &g.size.Late},
		{"hooks", &g.size.Hooks},
		{"listeners", &g.size.Listeners},
		{"user", &g.size.User},
		{"streams", &g.size.Streams},
		{"length", &g.size.Length},
		{"errors", &g.size.Errors},
		{"rare", &g.size.Rare},
		{"faults", &g.size.Faults},
		{"throws", &g.size.Throws},
		{"duplicates", &g.size.Duplicates},
	} {
		if *f.on {
			*f.on = g.one(f.label, 2)
		}
	}
}

var numberSchema = trace.Value(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`)

func (g *generator) config() {
	cfg := &g.sc.Config
	cfg.SystemPrompt = "be brief"
	cfg.Tools = []trace.Tool{{Name: "a"}, {Name: "b"}, {Name: "v", Parameters: numberSchema}}
	if g.one("sequential", 4) {
		cfg.ToolExecution = "sequential"
	}
	if g.one("sequential tool", 5) {
		cfg.Tools[1].ExecutionMode = "sequential"
	}
	if g.size.Hooks && g.one("prepareArguments", 3) {
		cfg.Tools[2].PrepareArguments = true
	}
	if g.one("steering mode", 2) {
		cfg.SteeringMode = "all"
	}
	if g.one("follow-up mode", 2) {
		cfg.FollowUpMode = "all"
	}
}

func (g *generator) turn() {
	t := scriptedmodel.Turn{Gate: g.one("gated model", 2)}
	for range g.upTo("calls", g.size.Calls) {
		t.Calls = append(t.Calls, g.call())
	}
	if len(t.Calls) == 0 || g.one("text", 3) {
		t.Text = "turn " + strconv.Itoa(len(g.sc.Model))
	}
	if g.size.Streams {
		g.stream(&t)
	}
	switch {
	case g.size.Length && g.one("length", 3):
		t.Stop = trace.StopLength
	case g.size.Errors && g.one("error turn", 12):
		t.Stop, t.Error = trace.StopError, "the model failed"
	}
	g.sc.Model = append(g.sc.Model, t)
}

func (g *generator) stream(t *scriptedmodel.Turn) {
	t.Stream = []scriptedmodel.Stream{
		scriptedmodel.StreamShort, scriptedmodel.StreamBare, scriptedmodel.StreamDeltas, scriptedmodel.StreamOdd,
	}[g.c.Choose("stream", 4)]
	if g.one("thinking", 4) {
		t.Thinking = "hm"
	}
	switch g.c.Choose("end", 8) {
	case 6:
		t.End = scriptedmodel.EndSilent
	case 7:
		t.Result = "what it came to"
	}
	if !g.size.Faults {
		return
	}
	switch g.c.Choose("stream fault", 6) {
	case 4:
		t.End, t.Throw = scriptedmodel.EndThrows, "the stream broke"
	case 5:
		t.End, t.Throw = scriptedmodel.EndRefuses, "no connection"
	}
}

func (g *generator) call() scriptedmodel.Call {
	id, key := g.id()
	call := scriptedmodel.Call{ID: id, Name: []string{"a", "b", "v"}[g.c.Choose("tool", 3)]}
	if call.Name == "v" {
		call.Args = trace.Value(`{"n":1}`)
	}
	if g.size.Errors {
		switch g.c.Choose("bad call", 8) {
		case 6:
			call.Name = "nope"
		case 7:
			call.Name, call.Args = "v", trace.Value(`{"n":"many"}`)
		}
	}
	g.script(id, key)
	return call
}

// id draws the id of the next call, and the name that its execution has if every
// call before it is executed.
func (g *generator) id() (id, key string) {
	id = "c" + strconv.Itoa(len(g.ids)+1)
	if g.size.Duplicates && len(g.ids) > 0 && g.one("duplicate", 2) {
		id = g.ids[g.c.Choose("which id", len(g.ids))]
	}
	key = id
	repeats := 0
	for _, used := range g.ids {
		if used == id {
			repeats++
			key = id + "~" + strconv.Itoa(repeats)
		}
	}
	g.ids = append(g.ids, id)
	return id, key
}

// script says what the execution of the call does.
func (g *generator) script(id, key string) {
	// What two calls of one id do within one step cannot be told apart, so where
	// ids are shared every tool is gated.
	s := harness.ToolScript{Gate: g.size.Duplicates || !g.one("automatic tool", 4)}
	text := func(kind string, n int) *trace.Result {
		return &trace.Result{Content: trace.TextContent(fmt.Sprintf("%s %s %d", id, kind, n))}
	}
	if !g.size.Duplicates && g.one("sync update", 2) {
		s.Sync = append(s.Sync, text("sync", 0))
	}
	if s.Gate {
		for n := range g.upTo("updates", g.size.Updates) {
			s.Updates = append(s.Updates, text("update", n))
		}
		if g.size.Late && g.one("late", 2) {
			s.Late = append(s.Late, text("late", 0))
		}
		s.Notice = g.one("notices abort", 3)
	}
	g.outcome(id, &s)
	g.sc.Calls[key] = s
}

func (g *generator) outcome(id string, s *harness.ToolScript) {
	if g.size.Errors && g.one("throws", 5) {
		message := id + " failed"
		s.Throw = &message
		return
	}
	s.Return = &trace.Result{Content: trace.TextContent("r" + id)}
	if g.one("terminates", 4) {
		yes := true
		s.Return.Terminate = &yes
	}
	if g.one("details", 4) {
		s.Return.Details = trace.Value(`{"from":"tool","deep":{"kept":true}}`)
	}
}

// hooks draws which hooks there are and what they answer.
func (g *generator) hooks() {
	if g.one("beforeToolCall", 2) {
		g.sc.Hooks[trace.HookBeforeToolCall] = g.callHook("before", g.before)
	}
	if g.one("afterToolCall", 2) {
		g.sc.Hooks[trace.HookAfterToolCall] = g.callHook("after", g.after)
	}
	if g.sc.Config.Tools[2].PrepareArguments {
		prepare := g.callHook("prepare", g.prepare)
		prepare.Gate = false
		g.sc.Hooks[trace.HookPrepareArguments] = prepare
	}
	if g.one("transformContext", 4) {
		g.sc.Hooks[trace.HookTransformContext] = harness.HookScript{Gate: g.one("gated", 3)}
	}
	if g.one("convertToLlm", 4) {
		g.sc.Hooks[trace.HookConvertToLlm] = harness.HookScript{Gate: g.one("gated", 3)}
	}
	if g.one("getApiKey", 4) {
		g.sc.Hooks[trace.HookGetAPIKey] = harness.HookScript{Else: harness.HookReply{Value: trace.HookAnswer{Key: "k"}}}
	}
	g.turnHooks()
}

// turnHooks draws the hooks around a turn's end, as the edition has them.
func (g *generator) turnHooks() {
	if g.one("prepareNextTurn", 3) {
		g.sc.Hooks[trace.HookPrepareNextTurn] = harness.HookScript{
			Gate:    g.one("gated", 2),
			Answers: map[string]harness.HookReply{"0": {Value: g.nextTurn()}},
		}
	}
	if !g.sc.Edition.AtLeast("0.87") {
		if g.one("shouldStopAfterTurn", 3) {
			stop := strconv.Itoa(g.c.Choose("stop after", 3))
			g.sc.Hooks[trace.HookShouldStopAfterTurn] = harness.HookScript{
				Gate:    g.one("gated", 2),
				Answers: map[string]harness.HookReply{stop: {Value: trace.HookAnswer{Stop: true}}},
			}
		}
		return
	}
	if g.one("finishTurn", 3) {
		action := []string{"", "end", "continue"}[g.c.Choose("action", 3)]
		g.sc.Hooks[trace.HookFinishTurn] = harness.HookScript{
			Gate:    g.one("gated", 2),
			Answers: map[string]harness.HookReply{strconv.Itoa(g.c.Choose("act after", 2)): {Value: trace.HookAnswer{Action: action}}},
		}
	}
	if g.one("prepareRequest", 3) {
		g.sc.Hooks[trace.HookPrepareRequest] = harness.HookScript{Gate: g.one("gated", 2)}
	}
}

func (g *generator) nextTurn() trace.HookAnswer {
	switch g.c.Choose("next turn", 4) {
	case 1:
		return trace.HookAnswer{Model: "scripted-2"}
	case 2:
		return trace.HookAnswer{Level: "high"}
	case 3:
		return trace.HookAnswer{Append: []*trace.Message{{Role: trace.RoleUser, Content: trace.TextContent("a hint")}}}
	}
	return trace.HookAnswer{}
}

// callHook is a hook that belongs to calls: one answer for each.
func (g *generator) callHook(label string, reply func(id string) harness.HookReply) harness.HookScript {
	h := harness.HookScript{Gate: g.one("gated "+label, 2), Answers: map[string]harness.HookReply{}}
	for _, id := range g.ids {
		h.Answers[id] = reply(id)
	}
	return h
}

func (g *generator) before(id string) harness.HookReply {
	yes := true
	switch g.c.Choose("before", 8) {
	case 4:
		return harness.HookReply{Value: trace.HookAnswer{Block: true, Reason: "not " + id}}
	case 5:
		return harness.HookReply{Value: trace.HookAnswer{Block: true}}
	case 6:
		return harness.HookReply{Value: trace.HookAnswer{Block: true, Reason: "end it", Terminate: &yes}}
	case 7:
		return g.fails("before " + id)
	}
	return harness.HookReply{}
}

func (g *generator) after(id string) harness.HookReply {
	yes, no := true, false
	content := trace.TextContent("after " + id)
	switch g.c.Choose("after", 9) {
	case 3:
		return harness.HookReply{Value: trace.HookAnswer{Content: &content}}
	case 4:
		return harness.HookReply{Value: trace.HookAnswer{Details: trace.Value(`{"from":"hook"}`)}}
	case 5:
		return harness.HookReply{Value: trace.HookAnswer{IsError: &yes}}
	case 6:
		return harness.HookReply{Value: trace.HookAnswer{Terminate: &yes}}
	case 7:
		return harness.HookReply{Value: trace.HookAnswer{IsError: &no, Terminate: &no}}
	case 8:
		return g.fails("after " + id)
	}
	return harness.HookReply{}
}

func (g *generator) prepare(id string) harness.HookReply {
	switch g.c.Choose("prepare", 4) {
	case 1:
		return harness.HookReply{Value: trace.HookAnswer{Args: trace.Value(`{"n":2}`)}}
	case 2:
		return harness.HookReply{Value: trace.HookAnswer{Args: trace.Value(`{"n":"many"}`)}}
	case 3:
		return g.fails("prepare " + id)
	}
	return harness.HookReply{}
}

func (g *generator) fails(what string) harness.HookReply {
	if !g.size.Errors {
		return harness.HookReply{}
	}
	message := what + " failed"
	return harness.HookReply{Throw: &message}
}

// deliveries are the events at which a listener may be slow.
var deliveries = []string{
	trace.ToolExecutionUpdate, trace.ToolExecutionEnd, trace.ToolExecutionStart, trace.MessageEnd + "/assistant",
	trace.MessageEnd + "/toolResult", trace.TurnEnd, trace.AgentEnd, trace.MessageStart + "/assistant", trace.TurnStart,
	trace.AgentStart, trace.MessageUpdate, trace.MessageEnd + "/user",
}

func (g *generator) listeners() {
	for range 1 + g.upTo("listeners", 1) {
		l := trace.ListenerConfig{}
		for range 1 + g.upTo("gates", 1) {
			l.Gate = append(l.Gate, deliveries[g.c.Choose("slow at", len(deliveries))])
		}
		if g.size.Throws && g.one("listener throws", 2) {
			at := []string{trace.ToolExecutionEnd, trace.MessageEnd, trace.TurnEnd, trace.AgentEnd, trace.ToolExecutionStart}
			l.Throw = map[string]string{at[g.c.Choose("throws at", len(at))]: "the listener failed"}
		}
		g.sc.Config.Listeners = append(g.sc.Config.Listeners, l)
	}
}

func (g *generator) user() {
	say := func(kind harness.UserKind, text string) {
		g.sc.User = append(g.sc.User, harness.UserAction{Kind: kind, Answer: trace.Answer{Text: text}})
	}
	say(harness.UserPrompt, "go")
	if g.size.User && g.one("busy prompt", 5) {
		g.sc.User = append(g.sc.User, harness.UserAction{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "too soon"}, Busy: true})
	}
	if g.size.Prompts > 1 && g.one("second prompt", 3) {
		say(harness.UserPrompt, "again")
	}
	if !g.size.User {
		return
	}
	for n := range g.upTo("steer", 2) {
		say(harness.UserSteer, "steer "+strconv.Itoa(n))
	}
	for n := range g.upTo("follow-up", 2) {
		say(harness.UserFollowUp, "follow up "+strconv.Itoa(n))
	}
	for range g.c.Choose("aborts", 3) {
		say(harness.UserAbort, "")
	}
	if g.one("wait", 5) {
		say(harness.UserWaitForIdle, "")
	}
	if g.one("continue", 5) {
		say(harness.UserContinue, "")
	}
}

// rare changes what was drawn in one or two places.
func (g *generator) rare() {
	changes := []func(){
		g.comeAndGo, g.forget, g.abortingTool, g.abortingHook, g.manyMessages, g.begun, g.oddResult, g.repaired, g.shared,
		g.comeAndGo, g.failingListener,
	}
	for range 1 + g.upTo("rare changes", 1) {
		changes[g.c.Choose("rare", len(changes))]()
	}
}

// comeAndGo lets a listener be subscribed or unsubscribed at any time.
func (g *generator) comeAndGo() {
	listeners := &g.sc.Config.Listeners
	if len(*listeners) == 0 || g.one("late listener", 2) {
		late := trace.ListenerConfig{Late: g.one("late", 3)}
		if !g.one("fast", 3) {
			late.Gate = []string{deliveries[g.c.Choose("slow at", len(deliveries))]}
		}
		*listeners = append(*listeners, late, trace.ListenerConfig{})
	}
	i := g.c.Choose("which listener", len(*listeners))
	kinds := []harness.UserKind{harness.UserUnsubscribe, harness.UserSubscribe}
	if (*listeners)[i].Late {
		kinds = []harness.UserKind{harness.UserSubscribe, harness.UserUnsubscribe}
	}
	for _, kind := range kinds[:1+g.upTo("and back", 1)] {
		g.sc.User = append(g.sc.User, harness.UserAction{Kind: kind, Answer: trace.Answer{Listener: &i}})
	}
}

// failingListener lets a listener fail at a progress update.
func (g *generator) failingListener() {
	if g.size.Throws {
		throw := map[string]string{trace.ToolExecutionUpdate: "the listener failed"}
		g.sc.Config.Listeners = append(g.sc.Config.Listeners, trace.ListenerConfig{Throw: throw})
	}
}

// forget lets the user reset the agent, also while it works, or clear its queues.
func (g *generator) forget() {
	a := harness.UserAction{Kind: harness.UserClearQueue}
	if g.one("reset", 2) {
		a = harness.UserAction{Kind: harness.UserReset, Busy: g.one("busy", 2)}
	}
	g.sc.User = append(g.sc.User, a)
}

// abortingTool lets a tool abort the run by itself.
func (g *generator) abortingTool() {
	if len(g.ids) == 0 {
		return
	}
	id := g.ids[g.c.Choose("which call", len(g.ids))]
	script, ok := g.sc.Calls[id]
	if !ok {
		return
	}
	g.sc.Calls[id] = harness.ToolScript{Sync: script.Sync, Return: script.Return, Throw: script.Throw, Abort: true}
}

// abortingHook lets a hook that belongs to calls abort the run by itself.
func (g *generator) abortingHook() {
	name := []string{trace.HookBeforeToolCall, trace.HookAfterToolCall}[g.c.Choose("which hook", 2)]
	if len(g.ids) == 0 {
		return
	}
	hook := g.sc.Hooks[name]
	if hook.Answers == nil {
		hook.Answers = map[string]harness.HookReply{}
	}
	id := g.ids[g.c.Choose("which call", len(g.ids))]
	reply := hook.Answers[id]
	reply.Abort = true
	hook.Gate, hook.Answers[id] = false, reply
	g.sc.Hooks[name] = hook
}

// manyMessages makes a prompt of several messages.
func (g *generator) manyMessages() {
	for i := range g.sc.User {
		if a := &g.sc.User[i]; a.Kind == harness.UserPrompt {
			a.Answer = trace.Answer{Messages: []*trace.Message{said("first"), said("second")}}
			return
		}
	}
}

// begun begins with a transcript.
func (g *generator) begun() {
	answer := scriptedmodel.Turn{Text: "hello"}
	g.sc.Config.Messages = []*trace.Message{said("hi"), answer.Message()}
	g.sc.Config.Level = []string{"", "low"}[g.c.Choose("level", 2)]
}

func said(text string) *trace.Message {
	return &trace.Message{Role: trace.RoleUser, Content: trace.TextContent(text)}
}

// oddResult lets a tool say that it failed, or say nothing.
func (g *generator) oddResult() {
	if len(g.ids) == 0 {
		return
	}
	id := g.ids[g.c.Choose("which call", len(g.ids))]
	script, ok := g.sc.Calls[id]
	if !ok {
		return
	}
	yes := true
	script.Throw = nil
	script.Return = &trace.Result{Content: trace.TextContent("r" + id), IsError: &yes}
	if g.one("nothing", 2) {
		script.Return = &trace.Result{Details: trace.Value(`{"from":"tool"}`)}
	}
	g.sc.Calls[id] = script
}

// repaired lets prepareArguments make valid what the model got wrong, or spoil
// what it got right.
func (g *generator) repaired() {
	if len(g.ids) == 0 {
		return
	}
	g.sc.Config.Tools[2].PrepareArguments = true
	hook := harness.HookScript{Answers: map[string]harness.HookReply{}}
	for i := range g.sc.Model {
		for k := range g.sc.Model[i].Calls {
			call := &g.sc.Model[i].Calls[k]
			if call.Name == "nope" {
				continue
			}
			wrong, right := trace.Value(`{"n":"many"}`), trace.Value(`{"n":2}`)
			if g.one("spoiled", 4) {
				wrong, right = right, wrong
			}
			call.Name, call.Args = "v", wrong
			hook.Answers[call.ID] = harness.HookReply{Value: trace.HookAnswer{Args: right}}
		}
	}
	g.sc.Hooks[trace.HookPrepareArguments] = hook
}

// shared lets every call be one of the same tool.
func (g *generator) shared() {
	for i := range g.sc.Model {
		for k := range g.sc.Model[i].Calls {
			if call := &g.sc.Model[i].Calls[k]; call.Name != "nope" {
				call.Name, call.Args = "a", nil
			}
		}
	}
}
