package dialect

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// requestRules are the rules that can be judged once it is known what the model
// was shown, although not when it was asked.
var requestRules = []string{"CTX-5", "TOOL-15"}

// shown matches requests of the model with the messages of a log. From the first
// one on that does not fit, nothing is matched any more.
type shown struct {
	requests [][]string
	answers  map[string]string // tags of answers so far, by what a request tells of them
	lost     bool
}

// with is the trace of a run with its requests put in before the answers; nil if
// they are not known.
func (s *shown) with(run *Run) *Run {
	if s.lost || len(s.requests) == 0 {
		return nil
	}
	t := &trace.Trace{Header: run.Trace.Header}
	t.Header.Evidence = append(slices.Clone(t.Header.Evidence), trace.EvidenceRequests)
	made := &Run{Number: run.Number, Trace: t}
	before := "" // tag of the message before
	for i := range run.Trace.Entries {
		e := &run.Trace.Entries[i]
		if isAnswerStart(e.Event) {
			request, ok := s.next(before, run.Trace.Entries[i:])
			if !ok {
				return nil
			}
			t.Entries = append(t.Entries, request)
			made.Lines = append(made.Lines, run.Lines[i])
		}
		if e.Event != nil && e.Event.Type == trace.MessageEnd && e.Event.Message != nil {
			before = e.Event.Message.Tag()
			s.answered(before)
		}
		t.Entries = append(t.Entries, *e)
		made.Lines = append(made.Lines, run.Lines[i])
	}
	return made
}

func isAnswerStart(e *trace.Event) bool {
	return e != nil && e.Type == trace.MessageStart && e.Message != nil && e.Message.Role == trace.RoleAssistant
}

// next is the request that an answer belongs to. An answer that was aborted at
// once may have none.
func (s *shown) next(before string, rest []trace.Entry) (trace.Entry, bool) {
	request := trace.Entry{Step: 1, Kind: trace.KindCall, Name: "model/0", Auto: true, Payload: &trace.Payload{}}
	if len(s.requests) > 0 && follows(s.requests[0], before) {
		request.Payload.Messages, s.lost = s.named(s.requests[0])
		s.requests = s.requests[1:]
		return request, !s.lost
	}
	for i := range rest {
		if e := rest[i].Event; e != nil && e.Type == trace.MessageEnd {
			s.lost = e.Message == nil || e.Message.StopReason != trace.StopAborted
			break
		}
	}
	return request, !s.lost
}

// answered keeps the tag of an answer.
func (s *shown) answered(tag string) {
	if s.answers == nil {
		s.answers = map[string]string{}
	}
	if told, ok := withoutStop(tag); ok {
		s.answers[told] = tag
	}
}

// named are the messages of a request with the answers as the log has them:
// providers are not told how an answer stopped. An answer that the log does not
// have means that nothing can be said.
func (s *shown) named(request []string) (tags []string, lost bool) {
	tags = slices.Clone(request)
	for i, tag := range tags {
		told, ok := withoutStop(tag)
		if !ok {
			continue
		}
		if tags[i], ok = s.answers[told]; !ok {
			return nil, true
		}
	}
	return tags, false
}

// withoutStop is the tag of an answer without its stop reason.
func withoutStop(tag string) (told string, ok bool) {
	rest, ok := strings.CutPrefix(tag, trace.RoleAssistant+" ")
	_, told, _ = strings.Cut(rest, " ")
	return told, ok
}

// follows reports whether the last message of a request is the one before an
// answer. A run that goes on after a failure has none.
func follows(request []string, before string) bool {
	if len(request) == 0 {
		return false
	}
	if before == "" {
		return true
	}
	return subjectOf(request[len(request)-1]) == subjectOf(before)
}

// subjectOf is whose message a tag is, and of which call: whether a result is an
// error, providers are not always told.
func subjectOf(tag string) string {
	head, text, _ := strings.Cut(tag, ": ")
	if strings.HasPrefix(head, trace.RoleUser) {
		return head + text
	}
	return strings.TrimSuffix(head, " error")
}

// judgeRequests judges what the model was shown in a run.
func (j *judge) judgeRequests(run *Run) {
	made := j.shown.with(run)
	if made == nil {
		return
	}
	rules := slices.DeleteFunc(slices.Clone(j.options.Rules), func(r conformance.Rule) bool { return !slices.Contains(requestRules, r.ID) })
	for _, v := range j.views {
		v.verdict = conformance.Check(made.Trace, rules, conformance.InEdition(v.edition))
		for i := range v.verdict.Rules {
			have := v.results[v.verdict.Rules[i].Rule]
			if have.Status == conformance.StatusNotApplicable {
				have.Status, have.Reason = conformance.StatusNotExercised, ""
			}
			v.add(&v.verdict.Rules[i])
		}
		v.broken = v.broken || v.verdict.Outcome == conformance.Fail
	}
	for _, f := range j.common() {
		j.report.found(locate(made, f), j.options)
	}
}
