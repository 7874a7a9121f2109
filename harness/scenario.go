package harness

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// Scenario is what the surroundings of a loop will say. It fixes no order among
// things that may happen at the same time; a [Case] adds that.
//
// Nothing waits unless the scenario gates it: a callback that is not gated is
// answered at once.
type Scenario struct {
	Name    string
	Edition edition.Edition
	Form    trace.Form
	Config  trace.Config // without Hooks and Listeners modes: see below

	Model []scriptedmodel.Turn
	// Calls says what tool executions answer, by the last part of the callback's
	// name: the tool call id, or id~1 for the second execution under one id.
	Calls map[string]ToolScript
	// Hooks says what hooks answer, by the hook's name.
	Hooks map[string]HookScript
	// User is what the user may do, in order within each kind.
	User []UserAction
	Tags []string
	// Keep lets a loop in process be watched for what it changes of what it has
	// handed out, as far as it declares «retained». It is no part of a case file.
	Keep bool
}

// ToolScript is what one execution of a tool does.
type ToolScript struct {
	// Gate makes the tool wait for its actions. Updates, Late and Notice need it.
	Gate bool
	// Sync are updates made before execute first yields.
	Sync []*trace.Result
	// Updates are progress updates, each an action of its own, made while the
	// tool runs.
	Updates []*trace.Result
	// Late are updates made after the tool has settled.
	Late []*trace.Result
	// Return is what the tool returns; nil means text "r<id>".
	Return *trace.Result
	// Throw, if not nil, is the message of the error that the tool throws.
	Throw *string
	// Notice lets the tool give up, with an error, once it has been cancelled.
	Notice bool
	// Abort: an automatic tool aborts the run before it answers.
	Abort bool
}

// HookScript is what one hook answers.
type HookScript struct {
	Gate bool
	// Answers by the last part of the callback's name: tool call id or number.
	Answers map[string]HookReply
	// Else is the answer where Answers has none.
	Else HookReply
}

// HookReply is one answer of a hook.
type HookReply struct {
	Value trace.HookAnswer
	Throw *string
	Abort bool // the hook aborts the run before it answers
}

// UserAction is one thing that the user may do.
type UserAction struct {
	Kind UserKind
	// Answer is what the action carries: messages, text and images, a listener.
	Answer trace.Answer
	// Busy lets a prompt, continue or reset happen while a run is active, where
	// it has to be refused. Other kinds may always happen.
	Busy bool
}

// UserKind is a kind of user action. Its first action of a kind has the label
// kind/0, except that the first abort is just «abort».
type UserKind string

// The kinds of user actions.
const (
	UserPrompt      UserKind = "prompt"
	UserContinue    UserKind = "continue"
	UserSteer       UserKind = "steer"
	UserFollowUp    UserKind = "followUp"
	UserAbort       UserKind = "abort"
	UserReset       UserKind = "reset"
	UserClearQueue  UserKind = "clearQueue"
	UserWaitForIdle UserKind = "waitForIdle"
	UserSubscribe   UserKind = "subscribe"
	UserUnsubscribe UserKind = "unsubscribe"
)

// Case is a scenario and the order in which its actions are to be done.
type Case struct {
	Scenario *Scenario
	Schedule []string // labels
}

// Complete fills in what follows from the rest of the scenario: the defaults,
// the modes of the hooks, and the gates that scripts need. It is idempotent;
// [Run] calls it.
func (sc *Scenario) Complete() {
	if sc.Edition == "" {
		sc.Edition = edition.Default
	}
	if sc.Form == "" {
		sc.Form = trace.FormAgent
	}
	if sc.Config.Model == "" {
		sc.Config.Model = "scripted-1"
	}
	if s := sc.Config.Session; s != nil && len(s.Retryable) == 0 {
		s.Retryable = []string{defaultRetryable}
	}
	for i := range sc.Model {
		if sc.Model[i].End == scriptedmodel.EndStalls {
			sc.Model[i].Gate = true
		}
	}
	for name, call := range sc.Calls {
		if len(call.Updates)+len(call.Late) > 0 || call.Notice {
			call.Gate = true
			sc.Calls[name] = call
		}
	}
	for i := range sc.User {
		sc.User[i].complete()
	}
	sc.completeHooks()
}

// defaultRetryable is the text that a retryable error has if the scenario does not
// say otherwise: one that real sessions retry as well.
const defaultRetryable = "overloaded"

// complete makes a user message of the text that is queued: only a prompt may
// be given as plain text.
func (a *UserAction) complete() {
	queued := a.Kind == UserSteer || a.Kind == UserFollowUp
	if queued && len(a.Answer.Messages) == 0 {
		a.Answer = trace.Answer{Messages: []*trace.Message{{Role: trace.RoleUser, Content: trace.TextContent(a.Answer.Text)}}}
	}
}

// completeHooks notes in the configuration which hooks there are: those of the
// scenario that the edition has. Whether a tool prepares its arguments is said by
// the tool.
func (sc *Scenario) completeHooks() {
	if len(sc.Hooks) == 0 {
		return
	}
	modes := map[string]trace.Mode{}
	for name, hook := range sc.Hooks {
		if name == trace.HookPrepareArguments || !sc.Edition.HasHook(name) {
			continue
		}
		modes[name] = trace.ModeAuto
		if hook.Gate {
			modes[name] = trace.ModeGate
		}
	}
	sc.Config.Hooks = modes
}

// toolScript is what the execution of that name does.
func (sc *Scenario) toolScript(name string) ToolScript { return sc.toolScriptOr(name, defaultResult) }

// toolScriptOr is what the execution of that name does; if the scenario does not say
// what it returns, that is the other result, by call id.
func (sc *Scenario) toolScriptOr(name string, other func(id string) *trace.Result) ToolScript {
	script := sc.Calls[name]
	if script.Return == nil && script.Throw == nil {
		script.Return = other(callID(name))
	}
	return script
}

// defaultResult is what a tool returns of which the scenario says nothing.
func defaultResult(id string) *trace.Result {
	return &trace.Result{Content: trace.TextContent("r" + id)}
}

// hookReply is what the hook answers when it is called by that key.
func (sc *Scenario) hookReply(hook, key string) HookReply {
	script := sc.Hooks[hook]
	if reply, ok := script.Answers[key]; ok {
		return reply
	}
	return script.Else
}

// plainStop is what the model says past the end of its script.
var plainStop = scriptedmodel.Turn{Text: "(end of script)"}

// modelPlan is the stream of script turn number n, from 0.
func (sc *Scenario) modelPlan(n int) []scriptedmodel.Step {
	return sc.planIn(&scriptedmodel.Memory{}, n)
}

// planIn is that plan, made in a memory.
func (sc *Scenario) planIn(m *scriptedmodel.Memory, n int) []scriptedmodel.Step {
	if n >= len(sc.Model) {
		return plainStop.PlanIn(m)
	}
	return sc.Model[n].PlanIn(m)
}

// listenerAt says whether a listener waits at a delivery and what it throws
// there. A delivery is an event type and what it is about, such as turn_end/0 or
// tool_execution_end/c1/0, with its count.
func listenerAt(l *trace.ListenerConfig, delivery string) (gate bool, throw string, throws bool) {
	about, _, _ := cutLast(delivery, "/")
	eventType, _, _ := strings.Cut(about, "/")
	matches := func(pattern string) bool {
		return pattern == "*" || pattern == eventType || pattern == about
	}
	for pattern, message := range l.Throw {
		if matches(pattern) {
			throw, throws = message, true
		}
	}
	return slices.ContainsFunc(l.Gate, matches), throw, throws
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
