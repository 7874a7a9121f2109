package loop

import (
	"context"
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// turn is one response of the model and the results of the calls in it.
type turn struct {
	message *trace.Message
	results []*trace.Message // in source order; never nil
	// unanswered: the model has not seen the results yet, so it is asked again,
	// unless they all said terminate (TURN-6, TURN-7).
	unanswered bool
}

// turns runs turn after turn until nothing asks for another one.
func (r *run) turns() error {
	queued, err := r.poll(r.firstSteering()) // typed while the run was about to begin (QUE-2)
	if err != nil {
		return err
	}
	if r.has(EarlySteeringLost) {
		queued = nil
	}
	var last *turn
	for {
		if err := r.openTurn(last, queued); err != nil {
			return err
		}
		if last, err = r.oneTurn(); err != nil {
			return err
		}
		again := false
		if queued, again, err = r.goOn(last); err != nil || !again {
			return err
		}
	}
}

// poll takes messages from a queue.
func (r *run) poll(queue func() ([]*trace.Message, error)) ([]*trace.Message, error) {
	if queue == nil {
		return nil, nil
	}
	return attempt(queue)
}

// openTurn starts a turn, and queued messages join the transcript in it. The
// first turn has been started with the run.
func (r *run) openTurn(last *turn, queued []*trace.Message) error {
	var prepared []*trace.Message
	if last != nil {
		var err error
		if prepared, queued, err = r.betweenTurns(last, queued); err != nil {
			return err
		}
		if err := r.emitTurnStart(); err != nil {
			return err
		}
	}
	for _, m := range r.declareTools(joined(prepared, queued)) {
		if err := r.emitMessage(m); err != nil {
			return err // what was drained is lost (edge 11)
		}
		if r.has(SteeringBeforeResults) {
			r.addBeforeResults(m)
			continue
		}
		r.add(m)
		if r.has(QueuedTwiceInContext) {
			r.context.Messages = append(r.context.Messages, m)
		}
	}
	return nil
}

func (r *run) emitTurnStart() error {
	if r.has(TurnStartMissing) {
		return nil
	}
	return r.emit(r.event(trace.TurnStart))
}

// betweenTurns is where later editions prepare a turn. As that can take long, it
// is followed by one more look for steering; not if there is some already, or
// one-at-a-time would become two (QUE-5).
func (r *run) betweenTurns(last *turn, queued []*trace.Message) (prepared, steered []*trace.Message, err error) {
	if r.is.preparesAfterEveryTurn {
		return nil, queued, nil
	}
	if prepared, err = r.prepareNextTurn(last); err != nil {
		return nil, nil, err
	}
	if len(queued) == 0 {
		queued, err = r.poll(r.config.Steering)
	}
	return prepared, queued, err
}

func joined(a, b []*trace.Message) []*trace.Message {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return append(a[:len(a):len(a)], b...)
}

// oneTurn asks the model and runs the calls of its answer. They run because
// they are there, whatever the stop reason says (TURN-13), except that a failed
// message's calls get nothing at all (TURN-5, edge 1).
func (r *run) oneTurn() (*turn, error) {
	if err := r.prepareRequest(); err != nil {
		return nil, err
	}
	message, err := r.request()
	if err != nil {
		return nil, err
	}
	r.added = append(r.added, message)
	t := &turn{message: message, results: []*trace.Message{}}
	calls := r.believed(message)
	if len(calls) == 0 || r.failed(t) {
		return t, nil
	}
	if r.has(SteeringDuringBatch) {
		if err := r.steerNow(); err != nil {
			return nil, err
		}
	}
	results, terminate, err := r.batch(message, calls)
	if err != nil {
		return nil, err
	}
	t.results, t.unanswered = results, !terminate
	r.add(results...)
	r.reorder(len(results))
	return t, nil
}

// failed reports whether the message ends the run, come what may (TURN-5).
func (r *run) failed(t *turn) bool {
	if r.executesCallsOfFailed(t) {
		return false
	}
	return t.message.StopReason == trace.StopError || t.message.StopReason == trace.StopAborted
}

// goOn closes a turn and says whether there is another one, and which queued
// messages go into it. Steering comes before follow-ups, and those are only
// taken if there is nothing else to do (QUE-4).
func (r *run) goOn(t *turn) (queued []*trace.Message, again bool, err error) {
	decision, err := r.closeTurn(t)
	if err != nil || decision == DecisionEnd {
		r.pollInVain(t)
		return nil, false, err
	}
	if r.breaksOff(t) {
		return nil, false, nil
	}
	if queued, err = r.poll(r.steeringAfter(t)); err != nil {
		return nil, false, err
	}
	if r.has(FollowUpBeforeResults) && len(queued) == 0 {
		queued, err = r.poll(r.config.FollowUp)
		return queued, t.unanswered || len(queued) > 0, err
	}
	if t.unanswered || len(queued) > 0 || r.thinksOn(t) || r.writesOn(t) { // also if all results terminate (edge 7)
		return queued, true, nil
	}
	if queued, err = r.poll(r.config.FollowUp); err != nil || r.has(FollowUpDropped) {
		return nil, false, err
	}
	return queued, len(queued) > 0 || decision == DecisionContinue && !r.has(FinishContinueIgnored), nil
}

// closeTurn emits turn_end, with the hooks around it in the edition's order
// (TURN-11). After a failed message only finishTurn is asked, and its answer is
// ignored (TURN-14).
func (r *run) closeTurn(t *turn) (decision Decision, err error) {
	if r.is.finishesTurns {
		if decision, err = r.finishTurn(t); err != nil {
			return "", err
		}
	}
	if r.has(StopHookBeforeTurnEnd) && !r.failed(t) {
		if decision, err = r.shouldStop(t); err != nil {
			return "", err
		}
	}
	if err := r.emitTurnEnd(t); err != nil {
		return "", err
	}
	if r.failed(t) {
		return DecisionEnd, nil
	}
	if r.is.preparesAfterEveryTurn {
		if _, err := r.prepareNextTurn(t); err != nil {
			return "", err
		}
	}
	if !r.is.finishesTurns && !r.has(StopHookBeforeTurnEnd) {
		return r.shouldStop(t)
	}
	return decision, nil
}

func (r *run) emitTurnEnd(t *turn) error {
	if r.has(AbortTurnEndMissing) && t.message.StopReason == trace.StopAborted {
		return nil
	}
	ev := r.about(t.message, trace.TurnEnd)
	ev.ToolResults = r.turnResults(t)
	if err := r.emit(ev); err != nil {
		return err
	}
	return r.tellLateResults()
}

func (r *run) contextOf(t *turn) TurnContext {
	return TurnContext{Message: t.message, ToolResults: t.results, Context: r.context, Added: slices.Clip(r.added)}
}

func (r *run) finishTurn(t *turn) (Decision, error) {
	return askAboutTurn(r, r.config.Hooks.FinishTurn, t)
}

// shouldStop asks whether the run ends here, without a look at the queues (TURN-8).
func (r *run) shouldStop(t *turn) (Decision, error) {
	stop, err := askAboutTurn(r, r.config.Hooks.ShouldStopAfterTurn, t)
	if stop {
		return DecisionEnd, err
	}
	return "", err
}

// prepareNextTurn lets the hook change what the next turn works with (TURN-9).
func (r *run) prepareNextTurn(t *turn) (messages []*trace.Message, err error) {
	update, err := askAboutTurn(r, r.config.Hooks.PrepareNextTurn, t)
	if err != nil || update == nil {
		return nil, err
	}
	if r.has(NextTurnModelForgotten) {
		update.Model, update.Level = nil, nil
	}
	r.replace(update.Context, update.Model, update.Level)
	return update.Messages, nil
}

// prepareRequest is the last chance to change what a request is made of (TURN-12).
func (r *run) prepareRequest() error {
	hook := r.config.Hooks.PrepareRequest
	if hook == nil || !r.is.finishesTurns {
		return nil
	}
	update, err := ask(r, func() (*RequestUpdate, error) {
		return hook(r.hookSignal(), RequestContext{Context: r.context, Model: r.model, Level: r.level})
	})
	if err == nil && update != nil {
		r.replace(update.Context, update.Model, update.Level)
	}
	return err
}

// replace puts what a hook gave in the place of what there was; it lasts until
// the end of the run.
func (r *run) replace(c *Context, model *Model, level *string) {
	if c != nil {
		r.context = c
	}
	if model != nil {
		r.model = *model
	}
	if level != nil {
		r.level = levelOf(*level)
	}
}

// askAboutTurn calls a hook that gets the completed turn; an absent one answers
// nothing.
func askAboutTurn[T any](r *run, hook func(context.Context, TurnContext) (T, error), t *turn) (answer T, err error) {
	if hook == nil {
		return answer, nil
	}
	return ask(r, func() (T, error) { return hook(r.hookSignal(), r.contextOf(t)) })
}
