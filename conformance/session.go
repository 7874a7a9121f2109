package conformance

import (
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

var sessionRules = []Rule{
	{
		ID: "SESS-1", Family: FamilySession, Level: Must, Source: "K", Forms: inSession, Needs: evidence{needE, needA, needC}, AfterFailure: true, check: audited(sess1),
		Sentence: "After each run, in this order: a retryable error that may still be retried continues after its delay; otherwise a run that failed after retries reports their end once, unsuccessful, with attempts and last error, and the counter is reset; then compaction, which may continue; then queued messages continue.",
		Why:      "A failure that would have gone away ends the work, a summary is paid for twice, or what the user typed waits for ever.",
	},
	{
		ID: "SESS-2", Family: FamilySession, Level: Must, Source: "R", Forms: inSession, Needs: evidence{needE}, AfterFailure: true, check: audited(sess2),
		Sentence: "The first message that is not an error after retries resets the counter and reports success.",
		Why:      "In a long session single failures add up until one of them is no longer retried, and the retry indicator never goes away.",
	},
	{
		ID: "SESS-3", Family: FamilySession, Level: Must, Source: "R", Forms: inSession, Needs: evidence{needE, needA}, AfterFailure: true, check: audited(sess3),
		Sentence: "The delay runs on the clock, doubled for each further attempt, and is cut short by abort.",
		Why:      "Whoever presses the abort key during a delay of a minute sees nothing happen for a minute.",
	},
	{
		ID: "SESS-4", Family: FamilySession, Level: Must, Source: "R", Forms: inSession, Needs: evidence{needE, needR}, AfterFailure: true, check: audited(sess4),
		Sentence: "The failed message is not sent to the model again.",
		Why:      "Providers refuse an empty or cut off message of the assistant, so every retry fails as well.",
	},
	{
		ID: "SESS-5", Family: FamilySession, Level: Must, Source: "K", Forms: inSession, Needs: evidence{needE, needA}, AfterFailure: true, check: audited(sess5),
		Sentence: "Without an assistant message there is no continuation.",
		Why:      "A run that could not even report its failure would be started again and again.",
	},
}

// sessionRule is the number of a rule of the family.
type sessionRule uint8

const (
	sess1 sessionRule = iota + 1
	sess2
	sess3
	sess4
	sess5
)

// audited is the check of one of the rules: the session is walked once, and each
// rule takes what is about it.
func audited(rule sessionRule) func(*history, *judge) {
	return func(h *history, j *judge) {
		a := auditor{history: h, report: func(about sessionRule, ok bool, from, to int, message string) {
			if about == rule {
				j.expect(ok, from, to, message)
			}
		}}
		a.walk()
	}
}

// sessionEvent is what the events of a session carry.
type sessionEvent struct {
	Attempt     int    `json:"attempt"`
	MaxAttempts int    `json:"maxAttempts"`
	DelayMs     int64  `json:"delayMs"`
	Success     bool   `json:"success"`
	FinalError  string `json:"finalError"`
	Reason      string `json:"reason"`
	WillRetry   bool   `json:"willRetry"`
}

func sessionEventOf(ev *trace.Event) sessionEvent {
	var e sessionEvent
	if len(ev.Extra) > 0 {
		_ = json.Unmarshal(ev.Extra, &e) // what is not there is zero, and judged as that
	}
	return e
}

// auditor walks the trace of a session and follows what it has to do.
type auditor struct {
	*history
	report func(rule sessionRule, ok bool, from, to int, message string)

	config   trace.SessionConfig
	queued   []string // tags of what is queued
	drained  []string // tags of what was taken from the queues and not delivered yet
	lossy    bool     // a listener threw, so that what was drained may be lost
	attempt  int      // retries so far
	resetBy  sessionRule
	looks    int  // at whether compaction is due
	looked   bool // the latest look is the last that is known of the session
	prompt   string
	begun    int  // entry of the prompt that has not settled, or none
	aborted  int  // entry of its abort, or none
	running  bool // a run of it is under way
	answered int  // last message_end of the assistant in its run, or none
	request  int  // last request of its run, or none
	failed   int  // message that the next request must not hold, or none
	before   int  // how often it stood in the request that failed
	owed     owed
	since    int   // entry from which it is owed
	delay    int64 // of the retry that is owed
	unread   int   // message that has to be followed by the success of retrying, or none
}

// owed is what the session still has to do before anything else.
type owed uint8

const (
	owesNothing    owed = iota
	owesRetry           // auto_retry_start
	owesAttempt         // the run of a retry
	owesGivingUp        // auto_retry_end, unsuccessful
	owesCompaction      // compaction_start
	owesSummary         // compaction_end
	owesRun             // a run, as compaction asked for it or messages are queued
	owesNoRun           // the end
)

func (a *auditor) walk() {
	a.begun, a.aborted, a.answered, a.request, a.failed, a.unread = none, none, none, none, none, none
	a.resetBy = sess1
	if s := a.tr.Header.Config.Session; s != nil {
		a.config = *s
	}
	for i := range a.entries {
		e := &a.entries[i]
		switch {
		case e.Kind == trace.KindAction:
			a.action(i, e)
		case e.Kind == trace.KindSettled && e.Name == a.prompt && a.begun != none:
			a.settled(i, e)
		case e.Kind == trace.KindCall:
			a.call(i, e)
		case e.Kind == trace.KindEvent && e.Event != nil && a.begun != none:
			a.event(i, e.Event)
		case e.Kind == trace.KindEnd && a.begun != none && e.Outcome == trace.OutcomeDeadlock:
			a.report(sess1, false, a.begun, i, "the prompt never returns")
		}
	}
}

func (a *auditor) action(i int, e *trace.Entry) {
	kind, _, _ := strings.Cut(e.Label, "/")
	switch kind {
	case "prompt":
		if a.begun == none {
			a.prompt, a.begun, a.aborted = e.Label, i, none
			a.answered, a.request, a.failed, a.owed = none, none, none, owesNothing
		}
	case "steer", "followUp":
		if e.Answer != nil {
			a.queued = append(a.queued, trace.Tags(e.Answer.Messages)...)
		}
		a.lookAgain()
	case "clearQueue":
		a.queued = nil
		a.lookAgain()
	case "abort":
		a.abort(i)
	}
	if e.Answer != nil && e.Answer.Abort {
		a.abort(i)
	}
	if e.Answer != nil && e.Answer.Throw != nil && kind == "listener" {
		a.lossy = true
	}
}

// lookAgain: the queues have changed, perhaps while listeners of the run's end
// hold the session back.
func (a *auditor) lookAgain() {
	if a.answered != none && (a.owed == owesRun || a.owed == owesNoRun) {
		a.owed = a.ifQueued()
	}
}

func (a *auditor) abort(i int) {
	if a.begun == none || a.aborted != none {
		return
	}
	a.aborted = i
	if a.looked { // listeners of the run's end hold the session back: it has not looked yet
		a.looks--
		a.looked = false
	}
	switch a.owed {
	case owesRetry, owesGivingUp, owesCompaction, owesRun:
		a.owed = a.unlessGivenUp(owesNoRun)
	case owesNothing, owesAttempt, owesSummary, owesNoRun:
	}
}

func (a *auditor) call(i int, e *trace.Entry) {
	if e.Answer != nil && e.Answer.Abort {
		a.abort(i)
	}
	switch parsed, _, _ := parseCallback(e.Name); {
	case e.Answer != nil && (parsed == callSteering || parsed == callFollowUp):
		for _, tag := range trace.Tags(e.Answer.Messages) {
			a.queued = withoutFirst(a.queued, tag)
			a.drained = append(a.drained, tag)
		}
	case parsed == callListener && e.Answer != nil && e.Answer.Throw != nil:
		a.lossy = true
	case parsed == callModel && a.begun != none && e.Payload != nil:
		a.ask(i)
	}
}

// withoutFirst is the list without the first element that is the tag.
func withoutFirst(list []string, tag string) []string {
	if k := slices.Index(list, tag); k >= 0 {
		return slices.Delete(list, k, k+1)
	}
	return list
}

func (a *auditor) ask(i int) {
	a.request = i
	if a.failed != none {
		again := a.holds(i, a.failed) > a.before
		a.report(sess4, !again, a.failed, i, "the failed message is sent to the model again")
		a.failed = none
	}
}

// holds is how often the request holds the message.
func (a *auditor) holds(request, message int) int {
	count, tag := 0, a.history.event(message).Message.Tag()
	for _, t := range a.entries[request].Payload.Messages {
		if t == tag {
			count++
		}
	}
	return count
}

func (a *auditor) event(i int, ev *trace.Event) {
	a.expectSuccess(i, ev)
	a.looked = false
	switch ev.Type {
	case trace.AgentStart:
		a.start(i)
	case trace.MessageEnd:
		a.message(i, ev.Message)
	case trace.AgentEnd:
		a.end(i)
	case trace.AutoRetryStart:
		a.retryStart(i, sessionEventOf(ev))
	case trace.AutoRetryEnd:
		a.retryEnd(i, sessionEventOf(ev))
	case trace.CompactionStart:
		a.next(i, owesCompaction, "the transcript is compacted out of turn")
		a.owe(i, owesSummary)
	case trace.CompactionEnd:
		a.compacted(i, sessionEventOf(ev))
	}
}

// expectSuccess expects that the message that ended retrying is followed by the
// report of that.
func (a *auditor) expectSuccess(i int, ev *trace.Event) {
	if a.unread == none {
		return
	}
	reported := ev.Type == trace.AutoRetryEnd && sessionEventOf(ev).Success
	a.report(sess2, reported, a.unread, i, "a retry was answered, and its success is not reported")
	if !reported {
		a.reset(sess2)
	}
	a.unread = none
}

func (a *auditor) reset(by sessionRule) { a.attempt, a.resetBy = 0, by }

func (a *auditor) message(i int, m *trace.Message) {
	if m == nil {
		return
	}
	if tag := m.Tag(); slices.Contains(a.drained, tag) {
		a.drained = withoutFirst(a.drained, tag)
	} else { // what a continuation begins with was not polled
		a.queued = withoutFirst(a.queued, tag)
	}
	if m.Role != trace.RoleAssistant {
		return
	}
	a.answered = i
	if m.StopReason != trace.StopError && a.attempt > 0 {
		a.unread = i
	}
}

func (a *auditor) start(i int) {
	if a.owed == owesAttempt {
		waited := a.entries[i].Time - a.entries[a.since].Time
		a.report(sess3, !a.clocked() || waited == a.delay, a.since, i, "the retry does not come after its delay on the clock")
	}
	switch {
	case a.running && a.answered == none: // it broke off without its end
		a.report(sess5, false, a.begun, i, "the run had no assistant message, and it is continued")
	case a.running:
		a.report(sess1, false, a.begun, i, "another run begins though the last has broken off")
	case a.owed == owesNoRun && a.answered == none:
		a.report(sess5, false, a.since, i, "the run had no assistant message, and it is continued")
	case a.owed == owesNoRun && a.aborted != none:
		a.report(sess3, false, a.aborted, i, "the user aborted, and another run begins")
	case a.owed == owesNoRun:
		a.report(sess1, false, a.since, i, "nothing is left to do, and another run begins")
	case a.owed != owesNothing && a.owed != owesAttempt && a.owed != owesRun:
		a.report(sess1, false, a.since, i, "another run begins before "+owedText[a.owed])
	}
	a.owed, a.running, a.answered, a.request = owesNothing, true, none, none
}

// clocked reports whether the subject's time is the harness's.
func (a *auditor) clocked() bool { return slices.Contains(a.tr.Header.Capabilities, "clock") }

var owedText = [...]string{
	owesNothing: "anything", owesRetry: "the failure is retried", owesAttempt: "the delay is over",
	owesGivingUp: "the end of retrying is reported", owesCompaction: "the transcript is compacted",
	owesSummary: "compaction has ended", owesRun: "the session goes on", owesNoRun: "the session settles",
}

// end says what a session owes after a run.
func (a *auditor) end(i int) {
	if !a.running {
		return
	}
	a.running = false
	switch {
	case a.answered == none:
		a.owe(i, owesNoRun)
	case a.aborted != none:
		a.owe(i, a.unlessGivenUp(owesNoRun))
	case a.retryable(a.lastMessage()) && a.attempt < a.config.MaxRetries:
		a.owe(i, owesRetry)
	case a.lastMessage().StopReason == trace.StopError && a.attempt > 0:
		a.owe(i, owesGivingUp)
	default:
		a.owe(i, a.afterRetries())
	}
}

func (a *auditor) owe(i int, what owed) { a.owed, a.since = what, i }

func (a *auditor) lastMessage() *trace.Message { return a.history.event(a.answered).Message }

func (a *auditor) retryable(m *trace.Message) bool {
	return m.StopReason == trace.StopError &&
		slices.ContainsFunc(a.config.Retryable, func(text string) bool { return strings.Contains(m.ErrorMessage, text) })
}

func (a *auditor) unlessGivenUp(otherwise owed) owed {
	if a.attempt > 0 {
		return owesGivingUp
	}
	return otherwise
}

// afterRetries is what is owed once nothing is to be retried.
func (a *auditor) afterRetries() owed {
	if a.hooked(trace.HookCompact) && a.lastMessage().StopReason != trace.StopAborted {
		a.looks++
		a.looked = true
		if a.looks <= len(a.config.Compact) && a.config.Compact[a.looks-1] != "" {
			return owesCompaction
		}
	}
	return a.ifQueued()
}

func (a *auditor) ifQueued() owed {
	switch {
	case a.aborted != none || len(a.queued) == 0:
		return owesNoRun
	case a.lossy:
		return owesNothing
	}
	return owesRun
}

// next expects that it is the turn of something.
func (a *auditor) next(i int, what owed, message string) {
	switch {
	case a.owed == what:
		a.report(sess1, true, a.since, i, "")
	case a.owed == owesNoRun && a.aborted != none:
		a.report(sess3, false, a.aborted, i, "the user aborted, and the session goes on")
	case a.owed == owesNothing || a.owed == owesNoRun:
		a.report(sess1, false, max(a.since, a.begun), i, message)
	default:
		a.report(sess1, false, a.since, i, message+": before "+owedText[a.owed])
	}
}

func (a *auditor) retryStart(i int, e sessionEvent) {
	a.next(i, owesRetry, "a retry begins out of turn")
	a.report(a.resetBy, e.Attempt == a.attempt+1, max(a.since, a.begun), i, "the attempts are not counted from where they stood")
	a.report(sess1, e.MaxAttempts == a.config.MaxRetries, max(a.since, a.begun), i, "the retry says another number of attempts")
	a.attempt++
	a.delay = e.DelayMs
	want := int64(math.MaxInt64)
	if e.Attempt > 0 && e.Attempt < 32 {
		want = a.config.BaseDelayMs << (e.Attempt - 1)
	}
	a.report(sess3, e.DelayMs == want, a.begun, i, "the delay is not the base delay, doubled for each further attempt")
	if a.answered != none {
		a.mustNotHold(a.answered)
	}
	a.owe(i, owesAttempt)
}

// mustNotHold: the next request must not hold the failed message. One that
// looks the same may have been there before.
func (a *auditor) mustNotHold(message int) {
	a.failed, a.before = message, 0
	if a.request != none {
		a.before = a.holds(a.request, message)
	}
}

func (a *auditor) retryEnd(i int, e sessionEvent) {
	switch {
	case e.Success:
		a.report(sess2, a.attempt > 0 && e.Attempt == a.attempt, a.begun, i, "the success of retrying is reported with a wrong number of attempts")
		a.reset(sess2)
		return
	case a.running && a.attempt > 0: // it breaks off
		a.countEnd(i, e)
		return
	case a.owed == owesAttempt && a.aborted != none:
		a.report(sess3, a.step(i) == a.step(a.aborted), a.aborted, i, "abort does not cut the delay short")
		a.countEnd(i, e)
		a.owe(i, owesNoRun)
		return
	case a.owed == owesAttempt && a.stuckAt(i):
		a.countEnd(i, e)
		a.owe(i, owesNoRun)
		return
	case a.owed == owesGivingUp:
		a.report(sess1, true, a.since, i, "")
		a.countEnd(i, e)
		if a.aborted == none {
			a.report(sess1, e.FinalError == a.lastMessage().ErrorMessage, a.answered, i, "the end of retrying does not tell the last error")
			a.owe(i, a.afterRetries())
			return
		}
		a.owe(i, owesNoRun)
		return
	}
	a.report(sess1, false, max(a.since, a.begun), i, "the end of retrying is reported when there was none to report")
	a.reset(sess1)
}

// stuckAt reports whether the transcript cannot be continued from, once the
// failed message has been taken out: it ends with another message of the
// assistant, as a hook asked for one more request after it.
func (a *auditor) stuckAt(i int) bool {
	state := a.entries[i].State
	return state == nil || strings.HasPrefix(state.Last, trace.RoleAssistant+" ")
}

func (a *auditor) countEnd(i int, e sessionEvent) {
	a.report(sess1, e.Attempt == a.attempt, a.since, i, "the end of retrying tells a wrong number of attempts")
	a.reset(sess1)
}

func (a *auditor) compacted(i int, e sessionEvent) {
	a.next(i, owesSummary, "compaction ends that had not begun")
	switch {
	case e.WillRetry && a.aborted == none:
		if e.Reason == "overflow" && a.answered != none && a.lastMessage().StopReason == trace.StopError {
			a.mustNotHold(a.answered)
		}
		a.owe(i, owesRun)
	default:
		a.owe(i, a.ifQueued())
	}
}

// settled: the prompt has returned, so nothing may be owed any more.
func (a *auditor) settled(i int, e *trace.Entry) {
	switch {
	case e.Outcome == trace.OutcomeRefused:
	case a.running && a.answered == none:
		a.report(sess5, true, a.begun, i, "") // it broke off, and is left at that
	case a.owed == owesNoRun && a.answered == none:
		a.report(sess5, true, a.since, i, "")
	case a.owed == owesAttempt && a.aborted != none:
		a.report(sess1, false, a.since, i, "the end of retrying is not reported")
		a.reset(sess1)
	case a.owed == owesRun && a.aborted == none && len(a.queued) > 0:
		a.report(sess1, false, a.since, i, "messages are queued, and the session settles")
	case a.owed == owesRun && a.aborted != none, a.owed == owesNoRun, e.Outcome == trace.OutcomeError:
		a.report(sess1, true, a.begun, i, "")
	case a.owed != owesNothing && a.owed != owesRun:
		a.report(sess1, false, a.since, i, "the session settles before "+owedText[a.owed])
	}
	if a.running && a.attempt > 0 {
		a.reset(sess1)
	}
	a.running = false
	a.begun, a.owed = none, owesNothing
}
