// Package session is the layer around an agent that looks after its runs: what
// happens between the end of a run and the moment when the user's prompt has
// been dealt with.
//
//	Session.BeginPrompt ─► Agent.BeginPrompt ─► the run ends
//	        ▲                                        │
//	        │            aborted, or no answer ──────┼──► settled
//	  BeginContinue ◄─── retry after a delay ◄───────┤    (agent_settled)
//	        ▲                                        │
//	        ├─────────── compaction asks for it ◄────┤
//	        └─────────── messages are queued ◄───────┘
//
// A run that fails with an error which may go away is retried after a delay that
// doubles with each attempt; the failed message leaves the transcript before the
// model is asked again. Then the transcript is compacted if need be, and queued
// messages go on. Comments name the rule that a line keeps, as in (SESS-3).
//
// Everything runs as tasks of the agent's runtime, like the loop itself.
package session

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
)

// Options are what a [Session] is made of. Agent and Runtime are required.
type Options struct {
	Agent   *loop.Agent
	Runtime loop.Runtime // the agent's
	Retry   Retry
	// Compaction, if not nil, keeps the transcript short.
	Compaction *Compaction
	// Tell, if not nil, is told of what the session does, as events of its own. It
	// is loop code and must not wait.
	Tell    func(*trace.Event)
	Defects Defects
}

// Retry says what is done about an error that may go away.
type Retry struct {
	Max       int           // retries of one failure; 0 means none
	BaseDelay time.Duration // before the first; doubled for each further one
	// Retryable are texts, any of which in an error message makes it such an error.
	Retryable []string
}

// The reasons for compaction.
const (
	Overflow  = "overflow"  // the context did not fit
	Threshold = "threshold" // it soon will not
)

// Compaction makes a transcript shorter.
type Compaction struct {
	// Due says for what reason the transcript is to be compacted now, and nothing
	// if it is not. It is asked after every run that is not retried.
	Due func(last *trace.Message) (reason string)
	// Compact gives the new transcript, and whether the model is to be asked once
	// more. It may take long; ctx is done when the user aborts.
	Compact func(ctx context.Context, messages []*trace.Message) (compacted []*trace.Message, again bool, err error)
}

// Session looks after the runs of an agent. Its methods may be called from
// anywhere.
type Session struct {
	Options

	mu     sync.Mutex
	active *activity // nil if idle

	// Only loop code uses what follows.
	attempt int            // retries since something last went well, or was given up
	last    *trace.Message // the assistant's last message in the current run
}

// activity is one prompt, from its acceptance until the session has settled.
type activity struct {
	ctx     context.Context
	cancel  context.CancelFunc
	done    func(error)
	waiters []func()
}

func (a *activity) aborted() bool { return a.ctx.Err() != nil }

// New makes a session. It listens to the agent from now on, after the listeners
// that are there already.
func New(o Options) *Session {
	s := &Session{Options: o}
	if s.Tell == nil {
		s.Tell = func(*trace.Event) {}
	}
	s.Agent.Subscribe(s.listen)
	return s
}

// BeginPrompt prompts the agent and looks after all that follows. It refuses with
// [loop.ErrBusy] as long as an earlier prompt has not settled. Done, if not nil,
// is called as loop code once the session has settled.
func (s *Session) BeginPrompt(messages []*trace.Message, done func(error)) error {
	a := &activity{done: done}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	if !s.activate(a) {
		return loop.ErrBusy
	}
	err := s.Agent.BeginPrompt(messages, s.afterRun(a)) // may run to its end at once
	if err != nil {
		s.deactivate()
	}
	return err
}

func (s *Session) activate(a *activity) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active != nil {
		return false
	}
	s.active = a
	return true
}

func (s *Session) deactivate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = nil
}

// Abort ends the active run and whatever the session does after it; without a
// prompt that has not settled it does nothing.
func (s *Session) Abort() {
	s.mu.Lock()
	a := s.active
	s.mu.Unlock()
	if a != nil {
		a.cancel()
		s.Agent.Abort()
	}
}

// BeginWaitForIdle calls done as loop code as soon as nothing goes on.
func (s *Session) BeginWaitForIdle(done func()) {
	s.mu.Lock()
	a := s.active
	if a != nil {
		a.waiters = append(a.waiters, done)
	}
	s.mu.Unlock()
	if a == nil {
		s.Runtime.Post(done)
	}
}

// Reset clears transcript and queues. While a prompt has not settled it is refused.
func (s *Session) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active != nil {
		return loop.ErrBusy
	}
	return s.Agent.Reset()
}

// listen takes note of the assistant's messages. The first that is not an error
// ends the retrying (SESS-2).
func (s *Session) listen(_ context.Context, ev *trace.Event) error {
	m := ev.Message
	if ev.Type != trace.MessageEnd || m.Role != trace.RoleAssistant {
		return nil
	}
	s.last = m
	if m.StopReason == trace.StopError || s.attempt == 0 {
		return nil
	}
	s.Tell(event(trace.AutoRetryEnd, "success", true, "attempt", s.attempt))
	if !s.Defects.Has(RetryCounterNotReset) {
		s.attempt = 0
	}
	return nil
}

// afterRun gives what is to be done when a run has ended. It gets a task of its
// own: the one that the run ended in may have calls left that wait for it.
func (s *Session) afterRun(a *activity) func(error) {
	return func(failed error) {
		s.Runtime.Post(func() {
			if s.goesOn(a, failed) {
				refused := s.Agent.BeginContinue(s.afterRun(a))
				if refused == nil {
					return
				}
				s.giveUp(refused.Error()) // such as when a hook had asked for one more answer
			}
			s.settle(a, failed)
		})
	}
}

// goesOn does what there is to do after a run and says whether the agent is to
// continue (SESS-1). A run of which nobody could be told that it failed, or
// without an assistant message, is the end (SESS-5).
func (s *Session) goesOn(a *activity, failed error) bool {
	last := s.last
	s.last = nil
	switch {
	case a.aborted():
		s.giveUp(cancelled)
		return false
	case failed != nil || last == nil:
		s.giveUp("the run failed")
		return s.Defects.Has(ContinuesWithoutAnswer) && s.Agent.HasQueued()
	}
	compacted := s.Defects.Has(CompactsBeforeRetry) && s.compacts(a, last)
	if s.mayRetry(last) {
		return s.retries(a, last)
	}
	if last.StopReason == trace.StopError {
		s.giveUp(last.ErrorMessage)
	}
	if compacted || !s.Defects.Has(CompactsBeforeRetry) && s.compacts(a, last) {
		return true
	}
	return !a.aborted() && s.Agent.HasQueued() && !s.Defects.Has(QueueForgotten)
}

func (s *Session) mayRetry(m *trace.Message) bool {
	return m.StopReason == trace.StopError && s.attempt < s.Retry.Max &&
		slices.ContainsFunc(s.Retry.Retryable, func(text string) bool { return strings.Contains(m.ErrorMessage, text) })
}

// retries waits until it is time for the next attempt; false if the user aborts
// meanwhile.
func (s *Session) retries(a *activity, failed *trace.Message) bool {
	s.attempt++
	delay := s.Retry.BaseDelay << (s.attempt - 1)
	s.Tell(event(trace.AutoRetryStart, "attempt", s.attempt, "maxAttempts", s.Retry.Max,
		"delayMs", delay.Milliseconds(), "errorMessage", failed.ErrorMessage))
	s.omit(failed)
	ctx := a.ctx
	if s.Defects.Has(RetryDelayIgnoresAbort) {
		ctx = context.Background()
	}
	loop.Await(s.Runtime, func() { _ = s.Runtime.Sleep(ctx, delay) }) // an abort is seen below (SESS-3)
	if a.aborted() {
		s.giveUp(cancelled)
		return false
	}
	return true
}

const cancelled = "the retry was cancelled"

// omit takes a failed message out of the transcript, so that the model does not
// get to see it (SESS-4).
func (s *Session) omit(failed *trace.Message) {
	messages := s.Agent.Messages()
	if s.Defects.Has(FailedMessageSentAgain) {
		s.Agent.FollowUp(messages[len(messages)-2])
		return
	}
	s.Agent.SetMessages(slices.DeleteFunc(slices.Clone(messages), func(m *trace.Message) bool { return m == failed }))
}

// giveUp reports, once, that retrying has come to nothing.
func (s *Session) giveUp(reason string) {
	if s.attempt == 0 {
		return
	}
	end := event(trace.AutoRetryEnd, "success", false, "attempt", s.attempt, "finalError", reason)
	s.Tell(end)
	if s.Defects.Has(RetryEndTwice) {
		s.Tell(end)
	}
	s.attempt = 0
}

// compacts makes the transcript shorter if that is due, and says whether the
// model is to be asked once more.
func (s *Session) compacts(a *activity, last *trace.Message) bool {
	if s.Compaction == nil || last.StopReason == trace.StopAborted {
		return false
	}
	reason := s.Compaction.Due(last)
	if reason == "" {
		return false
	}
	s.Tell(event(trace.CompactionStart, "reason", reason))
	if reason == Overflow && last.StopReason == trace.StopError {
		s.omit(last) // the context did not fit; the error is not sent again (SESS-4)
	}
	var compacted []*trace.Message
	var again bool
	var err error
	loop.Await(s.Runtime, func() { compacted, again, err = s.Compaction.Compact(a.ctx, s.Agent.Messages()) })
	again = again && err == nil && !a.aborted()
	if err == nil && !a.aborted() {
		s.Agent.SetMessages(compacted)
	}
	members := []any{"reason", reason, "aborted", a.aborted(), "willRetry", again}
	if err != nil && !a.aborted() {
		members = append(members, "errorMessage", err.Error())
	}
	s.Tell(event(trace.CompactionEnd, members...))
	return again
}

// settle makes the session idle and lets those know who wait for it.
func (s *Session) settle(a *activity, failed error) {
	s.Tell(event(trace.AgentSettled, "aborted", a.aborted()))
	s.deactivate()
	a.cancel()
	if a.done != nil {
		a.done(failed)
	}
	for _, done := range a.waiters {
		done()
	}
}
