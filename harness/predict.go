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
type PredictedRunner struct{ subject, oracle *Runner }

// NewPredictedRunner gives a runner of cases on the driver, predicted by the oracle.
func NewPredictedRunner(d, oracle Driver, lim Limits) *PredictedRunner {
	return newPredictedRunner(NewRunner(d, lim), NewRunner(oracle, lim))
}

func newPredictedRunner(subject, oracle *Runner) *PredictedRunner {
	oracle.predicts = true
	return &PredictedRunner{subject, oracle}
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
	predicted, err := r.oracle.Run(ctx, sc, p)
	if err != nil || len(predicted.actions) != len(predicted.Schedule) {
		return r.subject.Run(ctx, sc, p)
	}
	rec, err := r.subject.play(ctx, sc, predicted)
	fault, faulty := errors.AsType[*SubjectError](err)
	if !faulty && !errors.Is(err, ErrMispredicted) {
		return rec, err
	}
	again, err := RunCase(ctx, r.subject.driver, Case{Scenario: sc, Schedule: predicted.Schedule}, r.subject.limits)
	if faulty && again != nil {
		again.brokeDown(fault)
	}
	return again, err
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

// play runs the predicted actions in one go.
func (r *Runner) play(ctx context.Context, sc *Scenario, predicted *Recording) (*Recording, error) {
	if err := r.prepare(sc); err != nil {
		return nil, err
	}
	pipeline, ok := r.driver.(Pipeliner)
	if !ok {
		return nil, ErrMispredicted
	}
	r.begin(nil, nil)
	wake, err := pipeline.Play(ctx, &r.prepared, predicted.actions, predicted.waiting, func(e *trace.Entry) {
		r.catchUp(predicted.actions, e.Step)
		r.record(e)
	})
	if _, faulty := errors.AsType[*SubjectError](err); faulty {
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(ErrMispredicted, err)
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
