package harness

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// Driver runs cases on one subject. Its methods may be called from several
// goroutines.
type Driver interface {
	// Info says what the subject is and what a recording of it can show. It
	// may start the subject to find out; if that fails, Open says why.
	Info() SubjectInfo
	// Open begins one case.
	Open(ctx context.Context, sc *Scenario) (Session, error)
	// Close ends the subject.
	Close() error
}

// SubjectInfo is what a subject says of itself.
type SubjectInfo struct {
	Name         string
	Version      string
	Language     string
	Editions     []string // that it can be run in; empty means any
	Capabilities []string
	Barrier      string // BarrierQuiescent or BarrierNone
	Evidence     []trace.Evidence
}

// Declares reports whether the subject has a capability. One that declares nothing at
// all is taken to have everything.
func (i *SubjectInfo) Declares(capability string) bool {
	return len(i.Capabilities) == 0 || slices.Contains(i.Capabilities, capability)
}

// What a subject can say about being at rest.
const (
	BarrierQuiescent = "quiescent" // after Settle every task waits for an answer, or has ended
	BarrierNone      = "none"      // schedules are approximate
)

// Session is one case on a subject, used by one goroutine.
type Session interface {
	// Do hands over one action.
	Do(a *Action) error
	// Settle lets the subject run until it has nothing left to do and passes
	// what it did to out, in order. The entries have no step: whoever did the
	// action knows it. An entry is out's own until out returns.
	Settle(out func(*trace.Entry)) error
	// Close gives up whatever is still open. It does not report it.
	Close() error
}

// Recycler is a driver that one goroutine can have to itself.
type Recycler interface {
	Driver
	// Recycled gives the driver to one goroutine, so that each case uses the memory
	// of the one before. It ends with the driver that it is from.
	Recycled() Recycled
}

// Recycled is such a driver. What a case recorded holds until the next one is
// opened, or for good once Keep was called. Close gives up its memory alone.
type Recycled interface {
	Driver
	Keep()
}

// Direct is a session that can write what its subject does into the recording
// itself, in Do and Settle, in the place of passing it on.
type Direct interface {
	RecordInto(entries *[]trace.Entry)
}

// Sleeper is a session that knows for how long its subject sleeps. Then the
// clock is one more thing that the surroundings may move.
type Sleeper interface {
	// NextWake is the virtual time until the first sleeper wakes; ok is false if
	// none sleeps. It is asked after Settle.
	NextWake() (d time.Duration, ok bool)
}

// NextWake is that of a session, if it is a [Sleeper].
func NextWake(s Session) (d time.Duration, ok bool) {
	if sleeper, is := s.(Sleeper); is {
		return sleeper.NextWake()
	}
	return 0, false
}

// Pipeliner is a driver that can be given a whole case at once, for which it has
// to be known which callbacks wait after each action.
type Pipeliner interface {
	// Play begins to open a case, to do the actions in order, to settle after each,
	// and to close it. Several cases may be under way; each has to be read.
	Play(ctx context.Context, sc *Prepared, actions []*Action, expect [][]string) (Playing, error)
}

// Playing is a case that was handed over at once.
type Playing interface {
	// Read waits for the end of the case. The entries that it passes to out carry as
	// Step the number of the action that they follow, from 1. If the callbacks that
	// wait after action i are not those of expect[i], in any order, the error is
	// [ErrMispredicted]; what was passed to out before any error means nothing. Wake
	// is what [Sleeper.NextWake] would say in the end, 0 if nothing sleeps.
	Read(out func(*trace.Entry)) (wake time.Duration, err error)
}

// Prepared is a scenario that may be run many times, and is not changed meanwhile.
type Prepared struct {
	Scenario *Scenario
	Made     any // what a driver made of it, for the next time
}

// ErrMispredicted says that the subject did not go where it was expected to.
// It is no fault of the subject: the case is to be run step by step.
var ErrMispredicted = errors.New("the subject waits for other callbacks than predicted")

// ErrElsewhere says that the subject broke down over another case that was under
// way, before it came to this one. It is to be run again.
var ErrElsewhere = errors.New("the subject broke down over another case")

// Blameless reports whether an error, or none, says nothing against the subject: the
// case is to be run again, or the run was given up.
func Blameless(err error) bool {
	return err == nil || errors.Is(err, ErrMispredicted) || errors.Is(err, ErrElsewhere) || errors.Is(err, context.Canceled)
}

// Shared is a driver whose cases can keep each other from their end.
type Shared interface {
	// Gate is locked by whoever wants to be alone with the subject, and locked for
	// reading while a case is begun. Cases that are under way go on.
	Gate() *sync.RWMutex
}

// Action is one thing that the surroundings do.
type Action struct {
	Label   string // names the action in a schedule
	Name    string // the callback that it answers, or the label of a user action
	Kind    ActionKind
	User    UserKind      // of a user action
	Answer  *trace.Answer // of an answer; of a user action what it carries, or nil
	Advance time.Duration // of the clock

	rank  int        // place in the canonical order
	call  *openCall  // of an answer
	queue *userQueue // of a user action
}

// ActionKind says what an action is done to.
type ActionKind string

// The kinds of actions.
const (
	ActionUser   ActionKind = "user"   // the user does something
	ActionAnswer ActionKind = "answer" // a callback is answered
	ActionClock  ActionKind = "clock"  // virtual time passes
)

// SubjectError says that the subject died or did not come to rest. A session
// returns it from Do and Settle; the recording ends with its outcome.
type SubjectError struct {
	Outcome trace.Outcome // crashed or hung
	Message string        // one line, ready to be shown
	Open    string        // what the subject had not answered, if anything
	Exit    int           // exit code of a process that ended by itself, else -1
	Signal  string        // the signal that ended a process, or empty
	Stderr  []string      // the last lines that it wrote
}

func (e *SubjectError) Error() string { return e.Message }

// Script says how the callbacks of a case answer, in the form in which a
// subject gets it. Gated callbacks are only marked: their answers are actions.
type Script struct {
	Model     []ModelScript          `json:"model,omitzero"` // by turn
	ModelElse ModelScript            `json:"modelElse"`      // past the end of Model
	Tools     map[string]CallScript  `json:"tools,omitzero"` // by the name of the call without tool/
	Hooks     map[string]HookAnswers `json:"hooks,omitzero"` // by the hook's name; only hooks that are configured
}

// ModelScript is one turn of the model.
type ModelScript struct {
	Gate  bool            `json:"gate,omitzero"`
	Steps []*trace.Answer `json:"steps,omitzero"`
}

// CallScript is one execution of a tool. A tool without any returns the text
// "r<id>" at once.
type CallScript struct {
	Gate   bool            `json:"gate,omitzero"`
	Sync   []*trace.Result `json:"sync,omitzero"` // updates made before execute first yields
	Result *trace.Result   `json:"result,omitzero"`
	Throw  *string         `json:"throw,omitzero"`
	Abort  bool            `json:"abort,omitzero"` // the tool aborts the run, first thing
}

// HookAnswers are the answers of one hook.
type HookAnswers struct {
	Gate    bool                 `json:"gate,omitzero"`
	Answers map[string]HookValue `json:"answers,omitzero"` // by the last part of the callback's name
	Else    HookValue            `json:"else,omitzero"`
}

// HookValue is one answer of a hook; with neither Value nor Throw it returns
// nothing.
type HookValue struct {
	Value *trace.HookAnswer `json:"value,omitzero"`
	Throw *string           `json:"throw,omitzero"`
	Abort bool              `json:"abort,omitzero"` // the hook aborts the run, first thing
}

// ScriptOf is the scenario's script.
func ScriptOf(sc *Scenario) *Script {
	script := &Script{ModelElse: modelScript(&plainStop)}
	for i := range sc.Model {
		script.Model = append(script.Model, modelScript(&sc.Model[i]))
	}
	for name, call := range sc.Calls {
		if script.Tools == nil {
			script.Tools = map[string]CallScript{}
		}
		script.Tools[name] = callScript(name, call)
	}
	for name := range sc.Config.Hooks {
		script.answer(name, sc.Hooks[name])
	}
	if prepare, ok := sc.Hooks[trace.HookPrepareArguments]; ok {
		script.answer(trace.HookPrepareArguments, prepare)
	}
	return script
}

func (s *Script) answer(hook string, h HookScript) {
	if s.Hooks == nil {
		s.Hooks = map[string]HookAnswers{}
	}
	s.Hooks[hook] = hookAnswers(h)
}

// Surround fills in what the surroundings answer from a script: it is the
// reverse of [ScriptOf]. Past the end of the script the model says what it
// always says there.
func (s *Script) Surround(sc *Scenario) {
	for _, m := range s.Model {
		sc.Model = append(sc.Model, m.turn())
	}
	sc.Calls = map[string]ToolScript{}
	for name, c := range s.Tools {
		sc.Calls[name] = ToolScript{Gate: c.Gate, Sync: c.Sync, Return: c.Result, Throw: c.Throw, Abort: c.Abort}
	}
	sc.Hooks = map[string]HookScript{}
	for name, h := range s.Hooks {
		hook := HookScript{Gate: h.Gate, Else: h.Else.reply(), Answers: map[string]HookReply{}}
		for key, value := range h.Answers {
			hook.Answers[key] = value.reply()
		}
		sc.Hooks[name] = hook
	}
}

func (m ModelScript) turn() scriptedmodel.Turn {
	if m.Gate {
		return scriptedmodel.Turn{Gate: true}
	}
	steps := []scriptedmodel.Step{}
	for _, a := range m.Steps {
		step := scriptedmodel.Step{Event: a.Event, Final: a.Final, Ends: a.Ends}
		if a.Throw != nil {
			step.Throws, step.Throw = true, *a.Throw
		}
		steps = append(steps, step)
	}
	return scriptedmodel.Turn{Steps: steps}
}

func (v HookValue) reply() HookReply {
	r := HookReply{Throw: v.Throw, Abort: v.Abort}
	if v.Value != nil {
		r.Value = *v.Value
	}
	return r
}

func modelScript(t *scriptedmodel.Turn) ModelScript {
	if t.Gate {
		return ModelScript{Gate: true}
	}
	steps := []*trace.Answer{}
	for _, step := range t.Plan() {
		steps = append(steps, stepAnswer(step))
	}
	return ModelScript{Steps: steps}
}

func stepAnswer(s scriptedmodel.Step) *trace.Answer {
	a := &trace.Answer{Event: s.Event, Final: s.Final, Ends: s.Ends}
	if s.Throws {
		a.Throw = &s.Throw
	}
	return a
}

func callScript(name string, c ToolScript) CallScript {
	if c.Gate {
		return CallScript{Gate: true, Sync: c.Sync}
	}
	s := CallScript{Sync: c.Sync, Result: c.Return, Throw: c.Throw, Abort: c.Abort}
	if s.Result == nil && s.Throw == nil {
		s.Result = defaultResult(callID(name))
	}
	return s
}

// callID is the tool call id in the name of an execution: what stands before
// the ~1, ~2 of a repeated id.
func callID(name string) string {
	i := strings.LastIndexByte(name, '~')
	if i < 0 {
		return name
	}
	if _, err := strconv.Atoi(name[i+1:]); err != nil {
		return name
	}
	return name[:i]
}

func hookAnswers(h HookScript) HookAnswers {
	a := HookAnswers{Gate: h.Gate}
	if h.Gate {
		return a
	}
	a.Else = hookValue(h.Else)
	for key, reply := range h.Answers {
		if a.Answers == nil {
			a.Answers = map[string]HookValue{}
		}
		a.Answers[key] = hookValue(reply)
	}
	return a
}

func hookValue(r HookReply) HookValue {
	if r.Throw != nil {
		return HookValue{Throw: r.Throw, Abort: r.Abort}
	}
	return HookValue{Value: &r.Value, Abort: r.Abort}
}
