package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

	predicted
}

// predicted is what whoever plays a recorded schedule at once has to know besides.
type predicted struct {
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
	return newRunner(d, lim).Run(ctx, sc, p)
}

// Runner runs one case after the other on a subject. It keeps its memory from one
// to the next, which is for those who run very many. It is used by one goroutine
// at a time, and a scenario must not be changed once it has been run.
type Runner struct {
	driver   Driver
	limits   Limits
	predicts bool          // somebody else plays what is recorded
	gate     *sync.RWMutex // nil if the subject is not shared
	alone    bool          // has locked it

	header   trace.Header // of the scenario that was run last
	prepared Prepared     // that scenario
	world    world
	session  Session
	policy   Policy
	rec      *Recording
	step     int
	now      time.Duration // virtual, since the case began

	recorder func(*trace.Entry) // record
	direct   bool               // the session writes into the recording
}

// NewRunner gives a runner of cases on the subject.
func NewRunner(d Driver, lim Limits) *Runner {
	if recycler, ok := d.(Recycler); ok {
		d = recycler.Recycled()
	}
	return newRunner(d, lim)
}

func newRunner(d Driver, lim Limits) *Runner {
	if lim.Steps == 0 {
		lim.Steps = defaultSteps
	}
	r := &Runner{driver: d, limits: lim, rec: emptyRecording()}
	if shared, ok := d.(Shared); ok {
		r.gate = shared.Gate()
	}
	r.recorder = r.record
	return r
}

// usual is room for the entries of a usual case.
const usual = 64

func emptyRecording() *Recording {
	return &Recording{Trace: &trace.Trace{Entries: make([]trace.Entry, 0, usual)}}
}

// Close gives up the memory. The subject stays.
func (r *Runner) Close() error {
	if recycled, ok := r.driver.(Recycled); ok {
		return recycled.Close()
	}
	return nil
}

// Keep lets what Run gave last hold for good.
func (r *Runner) Keep() {
	r.rec = emptyRecording()
	if recycled, ok := r.driver.(Recycled); ok {
		recycled.Keep()
	}
}

// Run is [Run]. What it gives holds until the next call, or for good once Keep was
// called.
func (r *Runner) Run(ctx context.Context, sc *Scenario, p Policy) (*Recording, error) {
	if err := r.prepare(sc); err != nil {
		return nil, err
	}
	for tries := 1; ; tries++ {
		rec, err := r.once(ctx, p)
		if !errors.Is(err, ErrElsewhere) || tries == mostTries {
			return rec, err
		}
		if done := r.rec.Schedule; len(done) > 0 {
			p = resumed{NewReplay(slices.Clone(done)).Then(p), p}
		}
		if tries == triesAmongOthers {
			defer r.shutGate()()
		}
	}
}

// atGate waits until nobody else is alone with the subject; what is begun then has
// to leave.
func (r *Runner) atGate() (leave func()) {
	if r.gate == nil || r.alone {
		return func() {}
	}
	r.gate.RLock()
	return r.gate.RUnlock
}

// shutGate makes the runner alone with the subject.
func (r *Runner) shutGate() (open func()) {
	if r.gate == nil || r.alone {
		return func() {}
	}
	r.gate.Lock()
	r.alone = true
	return func() { r.alone = false; r.gate.Unlock() }
}

func (r *Runner) open(ctx context.Context) (Session, error) {
	defer r.atGate()()
	return r.driver.Open(ctx, r.world.sc)
}

// A case of which others keep the subject is run so often among them, and no more
// than that alone.
const triesAmongOthers, mostTries = 3, 100

// resumed goes on with a policy where a case was cut off.
type resumed struct {
	*Replay
	then Policy
}

func (r resumed) begin(w *world) {
	if then, ok := r.then.(beginner); ok {
		then.begin(w)
	}
}

// once runs the case that is prepared.
func (r *Runner) once(ctx context.Context, p Policy) (*Recording, error) {
	r.rec.Schedule = r.rec.Schedule[:0]
	session, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	r.begin(session, p)
	end, err := r.run(ctx)
	closing := session.Close()
	if err != nil {
		return nil, err
	}
	r.record(&end)
	if closing != nil {
		r.rec.leaked(closing)
	}
	return r.rec, nil
}

// prepare makes the scenario the one that is run, if it is not the last one again.
func (r *Runner) prepare(sc *Scenario) error {
	if r.world.sc == sc {
		return nil
	}
	sc.Complete()
	info := r.driver.Info()
	if err := unsupported(sc, info); err != nil {
		return err
	}
	r.header = header(sc, info)
	r.prepared = Prepared{Scenario: sc}
	r.world = world{sc: sc, scripts: map[string]*toolPlan{}}
	return nil
}

// begin takes up a case of which nothing has happened.
func (r *Runner) begin(session Session, p Policy) {
	r.world.begin()
	r.session, r.policy, r.step, r.now = session, p, 0, 0
	t := r.rec.Trace
	*t = trace.Trace{Header: r.header, Entries: t.Entries[:0]}
	*r.rec = Recording{Trace: t, Schedule: r.rec.Schedule[:0]}
	if p, ok := p.(beginner); ok {
		p.begin(&r.world)
	}
	direct, ok := session.(Direct)
	if r.direct = ok; ok {
		direct.RecordInto(&r.rec.Trace.Entries)
	}
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
	return newRunner(d, lim).replay(ctx, c)
}

func (r *Runner) replay(ctx context.Context, c Case) (*Recording, error) {
	replay := NewReplay(c.Schedule)
	rec, err := r.Run(ctx, c.Scenario, replay)
	if rec != nil {
		rec.Skipped = replay.Skipped()
	}
	return rec, err
}

// UnsupportedError says that a subject lacks something that a scenario needs, so
// that the case says nothing about it.
type UnsupportedError struct{ Needs string }

func (e *UnsupportedError) Error() string {
	return "the subject does not support what the case needs: " + e.Needs
}

// unsupported compares what the scenario needs with what the subject declared.
func unsupported(sc *Scenario, info SubjectInfo) error {
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
		if !info.Declares(need) {
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

// run does actions until nothing is left to do. It returns the entry that ends
// the trace.
func (r *Runner) run(ctx context.Context) (trace.Entry, error) {
	for {
		if err := ctx.Err(); err != nil {
			return trace.Entry{}, err
		}
		enabled := r.world.enabled()
		if len(enabled) == 0 {
			return r.atRest(), nil
		}
		if r.step >= r.limits.Steps {
			return r.ending(trace.OutcomeTruncated, fmt.Sprintf("%d steps were done and more could be", r.limits.Steps)), nil
		}
		if err := r.do(&enabled[r.policy.Choose(enabled)]); err != nil {
			var fault *SubjectError
			if !errors.As(err, &fault) {
				return trace.Entry{}, err
			}
			return r.ending(fault.Outcome, fault.Message), nil
		}
	}
}

func (r *Runner) do(a *Action) error {
	r.step++
	r.rec.Schedule = append(r.rec.Schedule, a.Label)
	if r.predicts {
		done := *a
		r.rec.actions = append(r.rec.actions, &done)
	}
	r.act(a)
	if err := r.answer(a); err != nil {
		return err
	}
	r.lookAtClock()
	if r.predicts {
		r.rec.waiting = append(r.rec.waiting, r.world.waiting())
	}
	return nil
}

// answer hands over an action and records what the subject does.
func (r *Runner) answer(a *Action) error {
	before := len(r.rec.Trace.Entries)
	err := r.session.Do(a)
	if settled := r.session.Settle(r.recorder); err != nil || settled != nil {
		err = errors.Join(err, settled)
	}
	if r.direct {
		r.takeIn(r.rec.Trace.Entries[before:])
	}
	return err
}

// takeIn takes in what the session has written.
func (r *Runner) takeIn(entries []trace.Entry) {
	at := r.now.Milliseconds()
	for i := range entries {
		e := &entries[i]
		e.Step, e.Time = r.step, at
		r.world.observe(e)
	}
}

// act notes an action as done.
func (r *Runner) act(a *Action) {
	r.now += a.Advance
	r.world.did(a)
	r.record(&trace.Entry{Kind: trace.KindAction, Label: a.Label, Name: a.Name, Answer: a.Answer})
}

// forEver is longer than any script waits: whoever sleeps so long waits for
// something else.
const forEver = 365 * 24 * time.Hour

// lookAtClock asks a subject that has come to rest for how long it sleeps.
func (r *Runner) lookAtClock() {
	wake, _ := NextWake(r.session)
	r.sleeps(wake)
}

func (r *Runner) sleeps(wake time.Duration) {
	if wake > forEver {
		wake = 0
	}
	r.world.wake = wake
}

func (r *Runner) record(e *trace.Entry) {
	e.Step, e.Time = r.step, r.now.Milliseconds()
	r.rec.Trace.Entries = append(r.rec.Trace.Entries, *e)
	r.world.observe(e)
}

// atRest says why nothing is left to do. A script that stalls the model is not
// the loop's fault, so it is no deadlock.
func (r *Runner) atRest() trace.Entry {
	if len(r.world.open) > 0 && !r.world.stalled() {
		return r.ending(trace.OutcomeDeadlock, "a run is active, and there is nothing left that the surroundings could do")
	}
	return r.ending(trace.OutcomeComplete, "")
}

func (r *Runner) ending(outcome trace.Outcome, message string) trace.Entry {
	return trace.Entry{Kind: trace.KindEnd, Outcome: outcome, Message: message, Pending: r.world.pending()}
}

func outcomeOf(err error) (trace.Outcome, string) {
	var fault *SubjectError
	if errors.As(err, &fault) {
		return fault.Outcome, fault.Message
	}
	return trace.OutcomeCrashed, err.Error()
}
