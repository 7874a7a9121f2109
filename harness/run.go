package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Limits bound a run.
type Limits struct {
	Steps int // actions done at most; 0 means 10,000
}

const defaultSteps = 10_000

// Recording is what came of running a case.
type Recording struct {
	Trace *trace.Trace
	// Schedule is what was done, in order.
	Schedule []string
	// Skipped are labels of a replayed schedule that were not enabled when
	// their turn came.
	Skipped []string

	actions []*Action  // what was done
	waiting [][]string // after each of them, the callbacks that waited
}

// Run runs a scenario on a subject: it does one action, lets the subject settle,
// records what it did, and asks the policy for the next action, until nothing
// is left to do.
//
// A subject that dies or hangs still gives a recording, whose last entry says
// so. An error means that there is none.
func Run(ctx context.Context, d Driver, sc *Scenario, p Policy, lim Limits) (*Recording, error) {
	sc.Complete()
	if err := unsupported(sc, d.Info()); err != nil {
		return nil, err
	}
	session, err := d.Open(ctx, sc)
	if err != nil {
		return nil, err
	}
	r := &runner{world: newWorld(sc), session: session, policy: p, rec: &Recording{Trace: &trace.Trace{
		Header:  header(sc, d.Info()),
		Entries: make([]trace.Entry, 0, 8+usualEntries.Load()),
	}}}
	if p, ok := p.(beginner); ok {
		p.begin(r.world)
	}
	steps := lim.Steps
	if steps == 0 {
		steps = defaultSteps
	}
	end, err := r.run(ctx, steps)
	closing := session.Close()
	if err != nil {
		return nil, err
	}
	r.record(end)
	usualEntries.Store(int64(len(r.rec.Trace.Entries)))
	if closing != nil {
		r.rec.leaked(closing)
	}
	return r.rec, nil
}

// leaked notes in the last entry of an otherwise complete trace that the subject
// left something behind.
func (r *Recording) leaked(leak error) {
	end := &r.Trace.Entries[len(r.Trace.Entries)-1]
	if end.Outcome == trace.OutcomeComplete {
		end.Outcome, end.Message = outcomeOf(leak)
	}
}

// RunCase replays a case.
func RunCase(ctx context.Context, d Driver, c Case, lim Limits) (*Recording, error) {
	replay := NewReplay(c.Schedule)
	rec, err := Run(ctx, d, c.Scenario, replay, lim)
	if rec != nil {
		rec.Skipped = replay.Skipped()
	}
	return rec, err
}

// usualEntries is the length of the last trace: what the next one is likely to
// need, as cases of one kind are run in a row. It only saves copying.
var usualEntries atomic.Int64

// UnsupportedError says that a subject lacks something that a scenario needs, so
// that the case says nothing about it.
type UnsupportedError struct{ Needs string }

func (e *UnsupportedError) Error() string {
	return "the subject does not support what the case needs: " + e.Needs
}

// unsupported compares what the scenario needs with what the subject declared. Only
// a subject that declares nothing at all is taken to have everything.
func unsupported(sc *Scenario, info SubjectInfo) error {
	if len(info.Capabilities) == 0 {
		return nil
	}
	needs := []string{"forms:" + string(sc.Form)}
	for name := range sc.Config.Hooks {
		needs = append(needs, "hooks:"+name)
	}
	for _, tool := range sc.Config.Tools {
		if tool.PrepareArguments {
			needs = append(needs, "hooks:"+trace.HookPrepareArguments)
		}
	}
	slices.Sort(needs)
	for _, need := range needs {
		if !slices.Contains(info.Capabilities, need) {
			return &UnsupportedError{Needs: need}
		}
	}
	return nil
}

func header(sc *Scenario, info SubjectInfo) trace.Header {
	return trace.Header{
		Format:       trace.Format,
		Case:         sc.Name,
		Edition:      string(sc.Edition),
		Form:         sc.Form,
		Config:       sc.Config,
		Evidence:     evidence(&info, sc),
		Capabilities: info.Capabilities,
		Tags:         sc.Tags,
	}
}

// evidence leaves out what the form does not have: the low-level forms have no
// state of their own, and their sink is one listener that the adapter wrote.
func evidence(info *SubjectInfo, sc *Scenario) []trace.Evidence {
	have := info.Evidence
	keeps := slices.Contains(have, trace.EvidenceKept)
	if sc.Keep && !keeps && slices.Contains(info.Capabilities, "retained") {
		have = append(slices.Clone(have), trace.EvidenceKept)
	}
	if sc.Form == trace.FormAgent || sc.Form == trace.FormSession {
		return have
	}
	return slices.DeleteFunc(slices.Clone(have), func(e trace.Evidence) bool {
		return e == trace.EvidenceState || e == trace.EvidenceListeners || e == trace.EvidenceKept
	})
}

// runner runs one case.
type runner struct {
	world   *world
	session Session
	policy  Policy
	rec     *Recording
	step    int
	now     time.Duration // virtual, since the case began
}

// run does actions until nothing is left to do. It returns the entry that ends
// the trace.
func (r *runner) run(ctx context.Context, steps int) (trace.Entry, error) {
	for {
		if err := ctx.Err(); err != nil {
			return trace.Entry{}, err
		}
		enabled := r.world.enabled()
		if len(enabled) == 0 {
			return r.atRest(), nil
		}
		if r.step >= steps {
			return r.ending(trace.OutcomeTruncated, fmt.Sprintf("%d steps were done and more could be", steps)), nil
		}
		action := enabled[r.policy.Choose(enabled)]
		if err := r.do(&action); err != nil {
			var fault *SubjectError
			if !errors.As(err, &fault) {
				return trace.Entry{}, err
			}
			return r.ending(fault.Outcome, fault.Message), nil
		}
	}
}

func (r *runner) do(a *Action) error {
	r.step++
	r.rec.Schedule = append(r.rec.Schedule, a.Label)
	r.act(a)
	if err := r.session.Do(a); err != nil {
		return errors.Join(err, r.session.Settle(r.record))
	}
	if err := r.session.Settle(r.record); err != nil {
		return err
	}
	r.lookAtClock()
	r.rec.actions = append(r.rec.actions, a)
	r.rec.waiting = append(r.rec.waiting, r.world.waiting())
	return nil
}

// act notes an action as done.
func (r *runner) act(a *Action) {
	r.now += a.Advance
	r.world.did(a)
	r.record(trace.Entry{Kind: trace.KindAction, Label: a.Label, Name: a.Name, Answer: a.Answer})
}

// forEver is longer than any script waits: whoever sleeps so long waits for
// something else.
const forEver = 365 * 24 * time.Hour

// lookAtClock asks a subject that has come to rest for how long it sleeps.
func (r *runner) lookAtClock() {
	r.world.wake = 0
	if sleeper, ok := r.session.(Sleeper); ok {
		r.world.wake, _ = sleeper.NextWake()
	}
	if r.world.wake > forEver {
		r.world.wake = 0
	}
}

func (r *runner) record(e trace.Entry) {
	e.Step, e.Time = r.step, r.now.Milliseconds()
	r.rec.Trace.Entries = append(r.rec.Trace.Entries, e)
	r.world.observe(&r.rec.Trace.Entries[len(r.rec.Trace.Entries)-1])
}

// atRest says why nothing is left to do. A script that stalls the model is not
// the loop's fault, so it is no deadlock.
func (r *runner) atRest() trace.Entry {
	if len(r.world.open) > 0 && !r.world.stalled() {
		return r.ending(trace.OutcomeDeadlock, "a run is active, and there is nothing left that the surroundings could do")
	}
	return r.ending(trace.OutcomeComplete, "")
}

func (r *runner) ending(outcome trace.Outcome, message string) trace.Entry {
	return trace.Entry{Kind: trace.KindEnd, Outcome: outcome, Message: message, Pending: r.world.pending()}
}

func outcomeOf(err error) (trace.Outcome, string) {
	var fault *SubjectError
	if errors.As(err, &fault) {
		return fault.Outcome, fault.Message
	}
	return trace.OutcomeCrashed, err.Error()
}
