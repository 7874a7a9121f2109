package fuzz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Options say how a subject is explored. The zero value is two thousand runs of the
// automatic mixture in the default edition, judged by all MUST rules.
type Options struct {
	Edition edition.Edition
	Rules   []conformance.Rule // nil means those of the level MUST
	// Size of the scenarios that are drawn; the zero value means [Everything]. Hooks
	// and forms that the subject has not declared are left out in any case.
	Size Size
	// Policy by which they are run; the zero value means auto: small scenarios are
	// exhausted, those that are too big within rising departures from the default
	// order, and then larger ones are sampled by a mixture of policies.
	Policy harness.PolicySpec
	Seed   uint64
	// Runs and Time bound the exploration; 0 means no bound, and if both are 0 there
	// are two thousand runs. Shrinking comes on top.
	Runs int
	Time time.Duration
	// Jobs are the cases that are run at a time; at least 1. With the same seed and
	// number of runs the result does not depend on it.
	Jobs int
	// Scenario, if not nil, is the only one that is explored. Auto exhausts it.
	Scenario *harness.Scenario

	// Oracle predicts what the subject will wait for, so that a process can be given
	// a schedule at once; nil means step by step. With Differential its normal form
	// is also what the subject has to give.
	Oracle       harness.Driver
	Differential bool
	// Repeat is the number of times that every schedule is replayed to see that the
	// subject is deterministic. What was found is replayed in any case.
	Repeat int
	// Stop ends the exploration after so many kinds of findings; 0 means never.
	Stop int
	// ShrinkRuns bound the runs of the minimiser for each finding; 0 means 2,000.
	ShrinkRuns int
	// SaveDir is where shrunk cases are saved, and where saved cases are read from to
	// be run first; empty means nowhere.
	SaveDir string
	// Subject is the subject's name in saved cases; empty means as it calls itself.
	Subject string
	// Progress, if not nil, is told how far the exploration has come, by one
	// goroutine at a time.
	Progress func(Progress)
	Limits   harness.Limits
}

// Progress says how far an exploration has come.
type Progress struct {
	Phase   string // saved, exhaust, sample, shrink
	Runs    int
	Shapes  int
	Found   []string // kinds of what was found
	Elapsed time.Duration
}

const (
	defaultRuns       = 2000
	defaultShrinkRuns = 2000
	// exhaustLimit is the number of schedules up to which a given scenario is
	// exhausted.
	exhaustLimit = 200_000
	// roundSize is the number of runs after which what is new is taken in.
	roundSize = 128
)

// Explore looks for schedules in which the subject is wrong. Everything about run
// i is drawn from the seed and i, and, for variations of earlier cases, from what
// was new in the rounds before.
//
// If ctx ends early the result is partial, and the error is nil. An error means
// that the subject could not be run, or that a saved case could not be read.
func Explore(ctx context.Context, subject harness.Driver, o Options) (*Result, error) {
	x := newExplorer(subject, o)
	defer x.seats.clear()
	work, cancel := x.bounded(ctx)
	defer cancel()
	err := x.explore(work)
	if err == nil || ctx.Err() != nil {
		err = x.finish(ctx)
	}
	x.result.Elapsed = time.Since(x.began)
	x.result.Partial = ctx.Err() != nil
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return x.result, nil
}

type explorer struct {
	o       Options
	able    able
	court   court
	began   time.Time
	runs    atomic.Int64
	stopped atomic.Bool
	seen    *novelty
	seats   seats
	pace    atomic.Int32 // cases that one worker begins before it finishes the first

	result *Result
	mu     sync.Mutex // guards Progress and the result while findings are shrunk
}

func newExplorer(subject harness.Driver, o Options) *explorer {
	if o.Edition == "" {
		o.Edition = edition.Default
	}
	if o.Rules == nil {
		o.Rules = mustRules(o.Edition)
	}
	if o.Size == (Size{}) {
		o.Size = Everything()
	}
	able := able{subject.Info()}
	o.Size.Agent = o.Size.Agent && able.form(trace.FormAgent)
	o.Size.Loop = o.Size.Loop && able.form(trace.FormLoop)
	o.Size.Stream = o.Size.Stream && able.form(trace.FormStream)
	if o.Policy.Kind == "" {
		o.Policy.Kind = harness.PolicyAuto
	}
	if o.Runs == 0 && o.Time == 0 {
		o.Runs = defaultRuns
	}
	if o.Subject == "" {
		o.Subject = subject.Info().Name
	}
	o.Jobs = max(o.Jobs, 1)
	o.ShrinkRuns = cmp.Or(o.ShrinkRuns, defaultShrinkRuns)
	x := &explorer{
		o: o, able: able, began: time.Now(), seen: newNovelty(),
		court: court{
			driver: subject, oracle: o.Oracle, differential: o.Differential && o.Oracle != nil,
			rules: o.Rules, limits: o.Limits,
		},
		result: &Result{Seed: o.Seed, Policy: o.Policy},
	}
	x.pace.Store(1)
	return x
}

func mustRules(e edition.Edition) []conformance.Rule {
	return slices.DeleteFunc(conformance.Catalogue(), func(r conformance.Rule) bool { return r.LevelIn(e) != conformance.Must })
}

func (x *explorer) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.o.Time == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, x.o.Time)
}

// explore goes through the phases.
func (x *explorer) explore(ctx context.Context) error {
	if err := x.saved(ctx); err != nil {
		return err
	}
	kind := x.o.Policy.Kind
	all := kind == harness.PolicyAuto || kind == harness.PolicyExhaustive
	switch {
	case x.o.Scenario != nil && all:
		return x.exhaustGiven(ctx)
	case kind == harness.PolicyExhaustive:
		return x.exhaustDrawn(ctx, 1)
	case kind == harness.PolicyAuto:
		if err := x.exhaustDrawn(ctx, exhaustShare); err != nil {
			return err
		}
	}
	return x.sample(ctx)
}

// left reports whether another schedule may be run, and counts it.
func (x *explorer) left(ctx context.Context) bool {
	if ctx.Err() != nil || x.stopped.Load() {
		return false
	}
	n := x.runs.Add(1)
	if x.o.Runs == 0 || n <= int64(x.o.Runs) {
		return true
	}
	x.runs.Add(-1)
	return false
}

// seats are those that nobody sits on.
type seats struct {
	sync.Mutex
	free []*seat
}

// clear gives up the memory of all of them.
func (s *seats) clear() {
	s.Lock()
	defer s.Unlock()
	for _, seat := range s.free {
		_ = seat.runner.Close()
	}
	s.free = nil
}

// sit gives a seat, and stand gives it back.
func (x *explorer) sit() *seat {
	x.seats.Lock()
	defer x.seats.Unlock()
	n := len(x.seats.free)
	if n == 0 {
		return x.court.open()
	}
	s := x.seats.free[n-1]
	x.seats.free = x.seats.free[:n-1]
	return s
}

func (x *explorer) stand(s *seat) {
	x.seats.Lock()
	defer x.seats.Unlock()
	x.seats.free = append(x.seats.free, s)
}

// outcome is what came of one run.
type outcome struct {
	ran         bool
	schedule    []string
	wrong       *wrong
	rec         *harness.Recording // if something is wrong
	look        look
	unsupported bool
	count       int // how often else the same came of other schedules
}

// run runs and judges one schedule.
func (x *explorer) run(ctx context.Context, sc *harness.Scenario, p harness.Policy) (outcome, error) {
	return x.begin(ctx, sc, p)()
}

// begin begins one schedule, and gives what waits for its end and judges it.
func (x *explorer) begin(ctx context.Context, sc *harness.Scenario, p harness.Policy) (finish func() (outcome, error)) {
	s := x.sit()
	s.runner.Begin(ctx, sc, p)
	return func() (outcome, error) {
		defer x.stand(s)
		rec, err := s.runner.Finish()
		out, err := x.conclude(ctx, s, sc, rec, err)
		if out.ran {
			out.look = x.seen.look(rec.Trace)
		}
		return out, err
	}
}

// conclude judges a recording, and keeps it if something is wrong.
func (x *explorer) conclude(ctx context.Context, s *seat, sc *harness.Scenario, rec *harness.Recording, err error) (outcome, error) {
	if err != nil {
		switch {
		case unsupported(err):
			return outcome{unsupported: true}, nil
		case ctx.Err() != nil:
			return outcome{}, nil
		}
		return outcome{}, err
	}
	w, err := s.judge(ctx, sc, rec)
	if err == nil {
		w, err = x.repeated(ctx, sc, rec, w)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = nil
		}
		return outcome{}, err
	}
	out := outcome{ran: true, wrong: w, schedule: slices.Clone(rec.Schedule)}
	if w != nil {
		s.runner.Keep()
		out.rec = rec
	}
	return out, nil
}

// repeated replays a schedule if that was asked for.
func (x *explorer) repeated(ctx context.Context, sc *harness.Scenario, rec *harness.Recording, w *wrong) (*wrong, error) {
	if x.o.Repeat == 0 {
		return w, nil
	}
	return x.replayed(ctx, sc, rec, w, x.o.Repeat)
}

// replayed replays a schedule. That a subject is not deterministic goes before
// anything else that is wrong with it.
func (x *explorer) replayed(ctx context.Context, sc *harness.Scenario, rec *harness.Recording, w *wrong, n int) (*wrong, error) {
	varies, err := Repeat(ctx, x.court.driver, sc, rec, n, x.o.Limits)
	if varies == nil || err != nil {
		return w, err
	}
	message := fmt.Sprintf("replay %d of %d went another way: %s", varies.Replay, n, varies.Difference)
	return &wrong{kind: NotDeterministic, message: message}, nil
}

// Findings are reported in the order in which cases are run: saved ones first,
// then those of which all schedules are run, then those that are sampled.
const (
	savedFirst     = 1 << 30
	exhaustedFirst = 1 << 29
)

// note takes in what came of a run. Order is the place in which findings are
// reported; of one kind the first stays.
func (x *explorer) note(sc *harness.Scenario, out *outcome, order int, origin func() string) {
	if out.unsupported {
		x.result.Unsupported++
	}
	if !out.ran {
		return
	}
	if x.seen.add(out.look) {
		x.seen.keep(sample{scenario: sc, schedule: out.schedule})
	}
	if out.wrong != nil {
		x.found(&Finding{
			Kind: out.wrong.kind, Level: out.wrong.level, Message: out.wrong.message, Entries: out.wrong.entries, Also: out.wrong.also,
			Original: harness.Case{Scenario: sc, Schedule: out.schedule}, Recording: out.rec, Origin: origin(),
			Count: 1 + out.count, order: order,
		})
	}
}

func (x *explorer) found(f *Finding) {
	i := slices.IndexFunc(x.result.Findings, func(have *Finding) bool { return have.Kind == f.Kind })
	if i < 0 {
		x.result.Findings = append(x.result.Findings, f)
	} else {
		have := x.result.Findings[i]
		f.Count += have.Count
		if have.order <= f.order {
			have.Count, f = f.Count, have
		}
		x.result.Findings[i] = f
	}
	if x.o.Stop > 0 && len(x.result.Findings) >= x.o.Stop {
		x.stopped.Store(true)
	}
}

// tell reports the progress.
func (x *explorer) tell(phase string) {
	if x.o.Progress == nil {
		return
	}
	p := Progress{Phase: phase, Runs: int(x.runs.Load()), Shapes: len(x.seen.shapes), Elapsed: time.Since(x.began)}
	for _, f := range x.result.Findings {
		p.Found = append(p.Found, f.Kind)
	}
	x.o.Progress(p)
}

// each calls do for 0 to n-1, several at a time, until one fails.
func (x *explorer) each(n int, do func(i int) error) error {
	return x.eachAhead(n, 1, func(i int) func() error { return func() error { return do(i) } })
}

// eachAhead calls begin for 0 to n-1, and later what that gave, until one fails:
// several at a time, and each worker has so many begun.
func (x *explorer) eachAhead(n, ahead int, begin func(i int) (finish func() error)) error {
	var next atomic.Int64
	work := func() error {
		under := x.window(ahead)
		for under.failed == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				break
			}
			under.add(begin(i))
		}
		if err := under.close(); err != nil {
			next.Store(int64(n))
			return err
		}
		return nil
	}
	if x.o.Jobs == 1 {
		return work()
	}
	var group errgroup.Group
	for range min(x.o.Jobs, n) {
		group.Go(work)
	}
	return group.Wait()
}

// window is what one worker has begun. What was begun is finished in any case.
type window struct {
	most   int           // that may be begun at a time
	size   *atomic.Int32 // that are, at the pace of the subject
	begun  []func() error
	failed error // the first error
}

func (x *explorer) window(most int) window { return window{most: most, size: &x.pace} }

// A subject that is quick is given more to do, and one that is slow less: it gains
// nothing by it, and all that has been begun has to be waited for in the end.
const quick, slow = 50 * time.Millisecond, 200 * time.Millisecond

// add begins one more, and finishes half of them if that are enough: the other half
// is under way meanwhile.
func (w *window) add(finish func() error) {
	w.begun = append(w.begun, finish)
	if w.most == 1 {
		w.finish(1)
		return
	}
	size := int(w.size.Load())
	if len(w.begun) < size {
		return
	}
	began := time.Now()
	w.finish((len(w.begun) + 1) / 2)
	switch took := time.Since(began); {
	case took > slow:
		size = max(size/2, 1)
	case took < quick:
		size = min(2*size, w.most)
	}
	w.size.Store(int32(size))
}

func (w *window) finish(n int) {
	for _, finish := range w.begun[:n] {
		if err := finish(); err != nil && w.failed == nil {
			w.failed = err
		}
	}
	w.begun = slices.Delete(w.begun, 0, n)
}

// close finishes what is left, and gives the first error of all.
func (w *window) close() error {
	w.finish(len(w.begun))
	return w.failed
}

// saved runs the cases that were saved before.
func (x *explorer) saved(ctx context.Context) error {
	if x.o.SaveDir == "" {
		return nil
	}
	cases, err := Saved(x.o.SaveDir)
	if err != nil {
		return err
	}
	for _, c := range cases {
		if c.Case.Scenario.Edition != x.o.Edition || !x.left(ctx) {
			continue
		}
		if err := x.savedCase(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (x *explorer) savedCase(ctx context.Context, c *harness.CaseFile) error {
	c.Case.Scenario.Keep = true
	out, err := x.run(ctx, c.Case.Scenario, harness.NewReplay(c.Case.Schedule))
	if err != nil {
		return fmt.Errorf("saved case %s: %w", c.Name, err)
	}
	x.result.Scenarios++
	known := len(x.result.Findings)
	x.note(c.Case.Scenario, &out, -savedFirst, func() string { return "saved case " + c.Name })
	if len(x.result.Findings) > known {
		f := x.result.Findings[known]
		f.File, f.Saved = fileOf(x.o.SaveDir, c.Name), true
		f.Case = c.Case
	}
	x.tell("saved")
	return nil
}

// finish shrinks and saves what was found.
func (x *explorer) finish(ctx context.Context) error {
	r := x.result
	r.Runs, r.Shapes, r.ShapesMore = int(x.runs.Load()), len(x.seen.shapes), x.seen.capped
	slices.SortStableFunc(r.Findings, func(a, b *Finding) int { return a.order - b.order })
	err := x.each(len(r.Findings), func(i int) error { return x.shrink(ctx, r.Findings[i]) })
	r.dropRepeated()
	if err != nil || x.o.SaveDir == "" {
		return err
	}
	for _, f := range r.Findings {
		if f.File == "" {
			err = errors.Join(err, f.save(x.o.SaveDir, x.o.Subject))
		}
	}
	return err
}

// replays is the number of times that a finding is replayed before it is
// believed.
const replays = 2

func (x *explorer) shrink(ctx context.Context, f *Finding) error {
	if f.Saved {
		return nil
	}
	f.Case = f.Original
	f.Cost = Cost{Size: sizeOf(f.Case.Scenario), Labels: len(f.Case.Schedule), Length: len(f.Case.Schedule)}
	if f.Kind == NotDeterministic {
		return nil
	}
	w, err := x.replayed(ctx, f.Original.Scenario, f.Recording, nil, replays)
	if err != nil || w != nil {
		x.varies(f, w)
		return contextless(ctx, err)
	}
	seat := x.sit()
	defer x.stand(seat)
	s := seat.minimise(ctx, f.Original, f.Kind, x.o.ShrinkRuns)
	if s == nil {
		return nil
	}
	f.take(s)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.result.ShrinkRuns += s.Runs
	x.tell("shrink")
	return nil
}

// varies turns a finding into one of a subject that is not deterministic.
func (x *explorer) varies(f *Finding, w *wrong) {
	if w != nil {
		f.Kind, f.Level, f.Message, f.Entries = w.kind, w.level, w.message, w.entries
	}
}

func contextless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
