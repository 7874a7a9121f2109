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
	"slices"
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
	// callbacks that abort, prompts of several messages or with images, a transcript
	// to begin with, results without content, turns of nothing but thinking.
	Rare bool
	// Agent, Loop and Stream are the forms in which the loop may be run: as an agent,
	// bare with a sink that it waits for, and bare as a plain stream of events. None
	// means as an agent.
	Agent, Loop, Stream bool
	// Faults lets streams fail outside the protocol (edge e11), where a loop
	// promises less.
	Faults bool
	// Throws lets listeners fail (edge e2).
	Throws bool
	// Duplicates lets two calls have one id (edge e5).
	Duplicates bool
}

// Usual is everything but what brings edges about.
func Usual() Size {
	return Size{
		Turns: 2, Calls: 3, Updates: 2, Prompts: 2, Agent: true,
		Late: true, Hooks: true, Listeners: true, User: true, Streams: true, Length: true, Errors: true,
	}
}

// Wide is everything that there is but what brings edges about.
func Wide() Size {
	s := Usual()
	s.Rare = true
	return s
}

// Everything is everything that there is.
func Everything() Size {
	s := Wide()
	s.Loop, s.Stream, s.Faults, s.Throws, s.Duplicates = true, true, true, true, true
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
	g.form()
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
	} {
		if *f.on {
			*f.on = g.one(f.label, 2)
		}
	}
	// An edge takes most rules out of what follows it, so most scenarios have none.
	for _, f := range []struct {
		label string
		on    *bool
	}{
		{"faults", &g.size.Faults},
		{"throws", &g.size.Throws},
		{"duplicates", &g.size.Duplicates},
	} {
		if *f.on {
			*f.on = g.one(f.label, 4)
		}
	}
}

// form draws in which form the loop is run: mostly as an agent, which has most to
// be wrong.
func (g *generator) form() {
	s := &g.size
	switch {
	case s.Loop && (g.one("loop form", 4) || !s.Agent && !s.Stream):
		g.sc.Form = trace.FormLoop
	case s.Stream && (g.one("stream form", 6) || !s.Agent):
		g.sc.Form = trace.FormStream
		// A reader of the plain stream that fails sees no further events, so nothing
		// tells which texts of later requests the loop worded itself. Nor is it told,
		// of calls with one id, which of them a slow reader hears of.
		s.Throws, s.Duplicates = false, false
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
	if g.bare() && g.one("configured key", 2) {
		cfg.APIKey = "configured"
	}
	g.sc.Keep = g.one("kept", 4)
}

// bare reports whether the loop is run without an agent around it.
func (g *generator) bare() bool { return g.sc.Form == trace.FormLoop || g.sc.Form == trace.FormStream }

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
	s := harness.ToolScript{Gate: g.oneAtATime() || !g.one("automatic tool", 4)}
	text := func(kind string, n int) *trace.Result {
		return &trace.Result{Content: trace.TextContent(fmt.Sprintf("%s %s %d", id, kind, n))}
	}
	if g.one("sync update", 2) && !g.oneAtATime() {
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

// oneAtATime reports whether every tool is gated, so that no two do anything in one
// step: what calls of one id do there cannot be told apart, and what others still do
// in the step of a listener's failure is up to the loop's tasks.
func (g *generator) oneAtATime() bool { return g.size.Duplicates || g.size.Throws }

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
	if g.one("usage", 8) {
		s.Return.Usage = trace.Value(`{"totalTokens":5}`)
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
	g.requestHooks()
	g.turnHooks()
}

// requestHooks draws the hooks on the way to the model. One that throws fails the
// run outside the protocol.
func (g *generator) requestHooks() {
	if g.one("transformContext", 4) {
		g.sc.Hooks[trace.HookTransformContext] = g.requestHook("transform", trace.HookAnswer{Drop: 1, Append: []*trace.Message{said("only for you")}})
	}
	if g.one("convertToLlm", 4) {
		g.sc.Hooks[trace.HookConvertToLlm] = g.requestHook("convert", trace.HookAnswer{Without: []string{trace.RoleToolResult}})
	}
	if g.one("getApiKey", 4) {
		key := []string{"k", ""}[g.c.Choose("key", 2)]
		g.sc.Hooks[trace.HookGetAPIKey] = harness.HookScript{Else: harness.HookReply{Value: trace.HookAnswer{Key: key}}}
	}
}

// requestHook is a hook that changes nothing, or one request, or all, or fails.
func (g *generator) requestHook(label string, change trace.HookAnswer) harness.HookScript {
	h := harness.HookScript{Gate: g.one("gated "+label, 3)}
	reply := harness.HookReply{Value: change}
	if g.size.Faults && g.one(label+" throws", 3) {
		message := label + " failed"
		reply = harness.HookReply{Throw: &message}
	}
	switch g.c.Choose(label, 4) {
	case 2:
		h.Answers = map[string]harness.HookReply{strconv.Itoa(g.c.Choose(label+" at", 2)): reply}
	case 3:
		h.Else = reply
	}
	return h
}

// turnHooks draws the hooks around a turn's end, as the edition has them.
func (g *generator) turnHooks() {
	if g.one("prepareNextTurn", 3) {
		g.sc.Hooks[trace.HookPrepareNextTurn] = harness.HookScript{
			Gate:    g.one("gated prepareNextTurn", 2),
			Answers: map[string]harness.HookReply{"0": {Value: g.nextTurn()}},
		}
	}
	if !g.sc.Edition.AtLeast("0.87") {
		if g.one("shouldStopAfterTurn", 3) {
			stop := strconv.Itoa(g.c.Choose("stop after", 3))
			g.sc.Hooks[trace.HookShouldStopAfterTurn] = harness.HookScript{
				Gate:    g.one("gated shouldStop", 2),
				Answers: map[string]harness.HookReply{stop: {Value: trace.HookAnswer{Stop: true}}},
			}
		}
		return
	}
	if g.one("finishTurn", 3) {
		action := []string{"", "end", "continue"}[g.c.Choose("action", 3)]
		g.sc.Hooks[trace.HookFinishTurn] = harness.HookScript{
			Gate:    g.one("gated finishTurn", 2),
			Answers: map[string]harness.HookReply{strconv.Itoa(g.c.Choose("act after", 2)): {Value: trace.HookAnswer{Action: action}}},
		}
	}
	if g.one("prepareRequest", 3) {
		g.sc.Hooks[trace.HookPrepareRequest] = harness.HookScript{
			Gate:    g.one("gated prepareRequest", 2),
			Answers: map[string]harness.HookReply{strconv.Itoa(g.c.Choose("prepare request", 2)): {Value: g.nextTurn()}},
		}
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
	switch g.c.Choose("after", 10) {
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
		return harness.HookReply{Value: trace.HookAnswer{Usage: trace.Value(`{"totalTokens":9}`)}}
	case 9:
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
	trace.AgentStart, trace.MessageUpdate, trace.MessageEnd + "/user", trace.AgentEnd,
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
		g.comeAndGo, g.failingListener, g.pictured, g.speechless, g.misleading,
	}
	for range 1 + g.upTo("rare changes", 2) {
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

// someScript gives the script of one of the calls; false if there is none.
func (g *generator) someScript() (id string, script harness.ToolScript, ok bool) {
	if len(g.ids) == 0 {
		return "", script, false
	}
	id = g.ids[g.c.Choose("which call", len(g.ids))]
	script, ok = g.sc.Calls[id]
	return id, script, ok
}

// abortingTool lets a tool abort the run by itself, and answer at once.
func (g *generator) abortingTool() {
	if id, script, ok := g.someScript(); ok && !g.oneAtATime() && g.sc.Form != trace.FormStream {
		g.apart()
		g.sc.Calls[id] = harness.ToolScript{Sync: script.Sync, Return: script.Return, Throw: script.Throw, Abort: true}
	}
}

// apart lets calls run one by one. What others still do in the step in which a
// running call aborts is up to the loop's tasks, and may differ from run to run. So
// is how far the reader of a plain stream has come, where nothing is drawn to abort.
func (g *generator) apart() { g.sc.Config.ToolExecution = "sequential" }

// abortingHook lets a hook that belongs to calls abort the run by itself.
func (g *generator) abortingHook() {
	name := []string{trace.HookBeforeToolCall, trace.HookAfterToolCall}[g.c.Choose("which hook", 2)]
	if len(g.ids) == 0 || g.sc.Form == trace.FormStream {
		return
	}
	hook := g.sc.Hooks[name]
	if hook.Answers == nil {
		hook.Answers = map[string]harness.HookReply{}
	}
	id := g.ids[g.c.Choose("which call", len(g.ids))]
	reply := hook.Answers[id]
	reply.Abort = true
	if name == trace.HookAfterToolCall {
		g.apart()
	}
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
	if g.one("continued", 2) {
		g.continued()
	}
}

// continued lets the user go on with the transcript instead of a prompt, after what
// was typed meanwhile or, if the last word is the user's, without it.
func (g *generator) continued() {
	goOn := []harness.UserAction{{Kind: harness.UserContinue}}
	switch g.c.Choose("go on after", 4) {
	case 0:
		g.sc.Config.Messages = g.sc.Config.Messages[:1]
	case 1, 2:
		goOn = append(queued(harness.UserSteer), goOn...)
	case 3:
		goOn = append(queued(harness.UserFollowUp), goOn...)
	}
	g.sc.User = append(goOn, slices.DeleteFunc(g.sc.User, func(a harness.UserAction) bool {
		return a.Kind == harness.UserPrompt || a.Kind == goOn[0].Kind
	})...)
}

func queued(kind harness.UserKind) []harness.UserAction {
	text := func(s string) harness.UserAction {
		return harness.UserAction{Kind: kind, Answer: trace.Answer{Text: s}}
	}
	return []harness.UserAction{text("one more thing"), text("and another")}
}

// pictured puts images into a prompt.
func (g *generator) pictured() {
	for i := range g.sc.User {
		if a := &g.sc.User[i].Answer; g.sc.User[i].Kind == harness.UserPrompt && a.Messages == nil {
			a.Images = []trace.Block{{Type: trace.BlockImage, Data: "Y2F0", MimeType: "image/png"}}
			return
		}
	}
}

// speechless ends the script with a turn of nothing but thinking.
func (g *generator) speechless() {
	g.sc.Model = append(g.sc.Model, scriptedmodel.Turn{Thinking: "nothing to say", Gate: g.one("gated thinking", 2)})
}

// misleading lets a turn with calls say that it just stopped.
func (g *generator) misleading() {
	for i := range g.sc.Model {
		if t := &g.sc.Model[i]; len(t.Calls) > 0 && t.Stop == "" {
			t.Stop = trace.StopStop
			return
		}
	}
}

func said(text string) *trace.Message {
	return &trace.Message{Role: trace.RoleUser, Content: trace.TextContent(text)}
}

// oddResult lets a tool say that it failed, or say nothing.
func (g *generator) oddResult() {
	id, script, ok := g.someScript()
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
