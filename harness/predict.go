package harness

import (
	"context"
	"errors"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// RunPredicted runs a scenario on a subject of which the oracle is expected to
// know what it will wait for after each action. A session that is a [Pipeliner]
// then gets the whole schedule at once, which saves a round trip for every
// action. Where the subject goes another way, the same schedule is replayed step
// by step, and only that recording counts.
//
// The prediction has no say in what is recorded: it only decides when the
// harness waits for an answer.
func RunPredicted(ctx context.Context, d, oracle Driver, sc *Scenario, p Policy, lim Limits) (*Recording, error) {
	foretell := NewRunner(oracle, lim)
	foretell.predicts = true
	predicted, err := foretell.Run(ctx, sc, p)
	if err != nil || len(predicted.actions) != len(predicted.Schedule) {
		return Run(ctx, d, sc, p, lim)
	}
	rec, err := play(ctx, d, sc, predicted)
	fault, faulty := errors.AsType[*SubjectError](err)
	if !faulty && !errors.Is(err, ErrMispredicted) {
		return rec, err
	}
	again, err := RunCase(ctx, d, Case{Scenario: sc, Schedule: predicted.Schedule}, lim)
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
func play(ctx context.Context, d Driver, sc *Scenario, predicted *Recording) (*Recording, error) {
	r := NewRunner(d, Limits{})
	if err := r.prepare(sc); err != nil {
		return nil, err
	}
	session, err := d.Open(ctx, sc)
	if err != nil {
		return nil, err
	}
	r.begin(session, nil)
	err = r.playOn(predicted)
	closing := session.Close()
	if err != nil {
		return nil, err
	}
	if closing != nil {
		r.rec.leaked(closing)
	}
	return r.rec, nil
}

func (r *Runner) playOn(predicted *Recording) error {
	pipeline, ok := r.session.(Pipeliner)
	if !ok {
		return ErrMispredicted
	}
	err := pipeline.Play(predicted.actions, predicted.waiting, func(e *trace.Entry) {
		r.catchUp(predicted.actions, e.Step)
		r.record(e)
	})
	if _, faulty := errors.AsType[*SubjectError](err); faulty {
		return err
	}
	if err != nil {
		return errors.Join(ErrMispredicted, err)
	}
	r.catchUp(predicted.actions, len(predicted.actions))
	r.lookAtClock()
	if len(r.world.enabled()) > 0 {
		return ErrMispredicted
	}
	end := r.atRest()
	r.record(&end)
	return nil
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
