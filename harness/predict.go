package harness

import (
	"context"
	"errors"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// RunPredicted runs a scenario on a subject of which the oracle is expected to
// know what it will wait for after each action. A driver that is a [Pipeliner]
// then gets the whole case at once, which saves a round trip for every
// action. Where the subject goes another way, the same schedule is replayed step
// by step, and only that recording counts.
//
// The prediction has no say in what is recorded: it only decides when the
// harness waits for an answer.
func RunPredicted(ctx context.Context, d, oracle Driver, sc *Scenario, p Policy, lim Limits) (*Recording, error) {
	return newPredictedRunner(newRunner(d, lim), newRunner(oracle, lim)).Run(ctx, sc, p)
}

// PredictedRunner is [RunPredicted] for those who run very many cases: like a
// [Runner] it keeps its memory from one to the next.
//
// A subject in a process gets through more cases if it need not wait for the
// harness after each. So a case can be handed over with Begin, and read with Finish
// when others have been begun on other runners of the same subject.
type PredictedRunner struct {
	subject, oracle *Runner

	// of the case that was begun
	ctx       context.Context
	sc        *Scenario
	predicted *Recording // nil if it could not be: then the case was run at once
	playing   Playing
	run       *Recording
	err       error
}

// NewPredictedRunner gives a runner of cases on the driver, predicted by the oracle.
func NewPredictedRunner(d, oracle Driver, lim Limits) *PredictedRunner {
	return newPredictedRunner(NewRunner(d, lim), NewRunner(oracle, lim))
}

func newPredictedRunner(subject, oracle *Runner) *PredictedRunner {
	oracle.predicts = true
	return &PredictedRunner{subject: subject, oracle: oracle}
}

// Close gives up the memory. The subject and the oracle stay.
func (r *PredictedRunner) Close() error { return errors.Join(r.subject.Close(), r.oracle.Close()) }

// Keep lets what Run gave last hold for good.
func (r *PredictedRunner) Keep() {
	r.subject.Keep()
	r.oracle.Keep() // whose answers the recording has
}

// Run is [RunPredicted]. What it gives holds until the next call, or for good once
// Keep was called.
func (r *PredictedRunner) Run(ctx context.Context, sc *Scenario, p Policy) (*Recording, error) {
	r.Begin(ctx, sc, p)
	return r.Finish()
}

// Begin hands a case over. Finish has to follow. The policy is not asked after
// that.
func (r *PredictedRunner) Begin(ctx context.Context, sc *Scenario, p Policy) {
	r.ctx, r.sc, r.predicted, r.playing = ctx, sc, nil, nil
	predicted, err := r.oracle.Run(ctx, sc, p)
	if err != nil || len(predicted.actions) != len(predicted.Schedule) {
		r.run, r.err = r.subject.Run(ctx, sc, p)
		return
	}
	r.predicted = predicted
	r.playing, r.err = r.subject.play(ctx, sc, predicted)
}

// Finish waits for the end of the case that was begun, and gives what Run would.
func (r *PredictedRunner) Finish() (*Recording, error) {
	if r.predicted == nil {
		return r.run, r.err
	}
	rec, err := (*Recording)(nil), r.err
	if err == nil {
		rec, err = r.subject.readPlayed(r.playing, r.predicted)
	}
	fault, faulty := errors.AsType[*SubjectError](err)
	if !faulty && !errors.Is(err, ErrMispredicted) {
		return rec, err
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	again, err := r.stepwise()
	if faulty && again != nil {
		again.brokeDown(fault)
	}
	return again, err
}

// stepwise runs the case again, step by step and alone: at every step it would have
// to wait for what others have begun.
func (r *PredictedRunner) stepwise() (*Recording, error) {
	alone := newRunner(r.subject.driver, r.subject.limits)
	defer alone.shutGate()()
	return alone.replay(r.ctx, Case{Scenario: r.sc, Schedule: r.predicted.Schedule})
}

// brokeDown notes that the subject died or hung when it was first given the case.
// The case was run again, step by step, so that the trace ends at the action that
// did it; but a subject that gets through the second time has died all the same.
func (r *Recording) brokeDown(fault *SubjectError) {
	end := &r.Trace.Entries[len(r.Trace.Entries)-1]
	if end.Outcome == trace.OutcomeComplete || end.Outcome == trace.OutcomeDeadlock {
		end.Outcome = fault.Outcome
		end.Message = fault.Message + "; run again, step by step, the case came to its end"
	}
}

// play hands over the predicted actions in one go.
func (r *Runner) play(ctx context.Context, sc *Scenario, predicted *Recording) (Playing, error) {
	if err := r.prepare(sc); err != nil {
		return nil, err
	}
	pipeline, ok := r.driver.(Pipeliner)
	if !ok {
		return nil, ErrMispredicted
	}
	defer r.atGate()()
	playing, err := pipeline.Play(ctx, &r.prepared, predicted.actions, predicted.waiting)
	return playing, unplayed(err)
}

// unplayed is the error for a case that has to be run step by step, unless it is
// the subject's fault.
func unplayed(err error) error {
	if _, faulty := errors.AsType[*SubjectError](err); faulty || err == nil {
		return err
	}
	return errors.Join(ErrMispredicted, err)
}

// readPlayed records what came of the predicted actions.
func (r *Runner) readPlayed(playing Playing, predicted *Recording) (*Recording, error) {
	r.begin(nil, nil)
	wake, err := playing.Read(func(e *trace.Entry) {
		r.catchUp(predicted.actions, e.Step)
		r.record(e)
	})
	if err != nil {
		return nil, unplayed(err)
	}
	r.catchUp(predicted.actions, len(predicted.actions))
	r.sleeps(wake)
	if len(r.world.enabled()) > 0 {
		return nil, ErrMispredicted
	}
	end := r.atRest()
	r.record(&end)
	return r.rec, nil
}

// catchUp notes the actions up to that step.
func (r *Runner) catchUp(actions []*Action, step int) {
	for r.step < step {
		a := actions[r.step]
		r.step++
		r.rec.Schedule = append(r.rec.Schedule, a.Label)
		r.act(a)
	}
}
