// Package doctor examines an adapter: it talks to the process in small steps,
// from its start to its end, and names what is wrong by a code, with the likely
// cause and the cure. It judges the adapter and not the loop.
package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/pi-conform/pi-conform/harness/protocol"
)

// Options say how an adapter is examined.
type Options struct {
	Command protocol.Command
	// TimeoutScale multiplies the patience for one answer, 5 s; 0 means 1.
	TimeoutScale float64
	// Stage, if not nil, is told of every stage when it is over.
	Stage func(Stage)
}

const patience = 5 * time.Second

// Result is what came of one stage.
type Result string

// The results.
const (
	OK       Result = "ok"
	Failed   Result = "failed"
	NotTried Result = "not tried" // as an earlier stage failed
	Skipped  Result = "skipped"   // as the subject does not declare what it is about
)

// Stage is one stage of an examination.
type Stage struct {
	Name   string   `json:"name"`
	Result Result   `json:"result"`
	Code   Code     `json:"code,omitempty"`
	Sign   string   `json:"sign,omitempty"`
	Cause  string   `json:"cause,omitempty"`
	Cure   string   `json:"cure,omitempty"`
	Detail string   `json:"detail,omitempty"`
	Stderr []string `json:"stderr,omitzero"` // the last lines
}

// trouble is a code with what was seen.
type trouble struct {
	code   Code
	detail string
}

func (t *trouble) Error() string { return string(t.code) + ": " + t.detail }

func found(code Code, detail string) error { return &trouble{code, detail} }

// because is the code, unless what broke the conversation off has one of its own.
func because(code Code, err error) error {
	if _, ok := errors.AsType[*trouble](err); ok {
		return err
	}
	if n, ok := errors.AsType[*noise](err); ok {
		return found("noise", n.Error())
	}
	return found(code, err.Error())
}

var errSkipped = errors.New("not declared")

// Examine goes through all stages. After the first one that fails the others
// are not tried, but for the last, which has a process of its own.
func Examine(ctx context.Context, o Options) []Stage {
	e := &examination{o: o, limit: patience}
	if o.TimeoutScale > 0 {
		e.limit = time.Duration(o.TimeoutScale * float64(patience))
	}
	defer e.stop()
	steps := []struct {
		name string
		do   func() error
	}{
		{StageStart, e.start},
		{StageSpeak, e.speak},
		{StageUnknown, e.unknown},
		{StageLines, e.lines},
		{StageOpen, e.ofLoop(e.open)},
		{StageBarrier, e.ofLoop(e.rest)},
		{StageNames, e.ofLoop(e.names)},
		{StageAnswer, e.ofLoop(e.answer)},
		{StageAbort, e.ofLoop(e.abort)},
		{StageUpdate, e.ofLoop(e.lateUpdate)},
		{StageSettle, e.ofLoop(e.settle)},
		{StageAgain, e.ofLoop(e.again)},
		{StageShow, e.show},
		{StageBye, e.bye},
	}
	for _, step := range steps {
		e.stage(ctx, step.name, step.do, e.failed)
	}
	e.stop()
	e.stage(ctx, StageEnd, e.inputEnds, !e.spoke)
	return e.stages
}

// examination is one examination of one adapter.
type examination struct {
	o      Options
	limit  time.Duration
	stages []Stage
	failed bool
	spoke  bool // hello was answered rightly

	t       *talk
	hello   *message
	deaf    error // why hello was not answered
	session string
	rested  *message // the latest synced
}

func (e *examination) stage(ctx context.Context, name string, do func() error, skip bool) {
	s := Stage{Name: name, Result: NotTried}
	if !skip && ctx.Err() == nil {
		s = e.examine(name, do)
	}
	e.stages = append(e.stages, s)
	if e.o.Stage != nil {
		e.o.Stage(s)
	}
}

func (e *examination) examine(name string, do func() error) Stage {
	err := do()
	switch {
	case err == nil:
		return Stage{Name: name, Result: OK}
	case errors.Is(err, errSkipped):
		return Stage{Name: name, Result: Skipped}
	}
	e.failed = true
	t, _ := errors.AsType[*trouble](because("dies", err))
	a := ailment(t.code)
	s := Stage{Name: name, Result: Failed, Code: t.code, Sign: a.Sign, Cause: a.Cause, Cure: a.Cure, Detail: t.detail}
	if e.t != nil {
		e.t.exitsWithin(e.limit / 16) // what it wrote last may still be on its way
		s.Stderr = e.t.said.last()
	}
	return s
}

func (e *examination) stop() {
	if e.t != nil {
		e.t.end()
		e.t = nil
	}
}
