package dialect

import (
	"bytes"
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Run is one run of a log, as a trace. It stays as it is until the next one is
// asked for.
type Run struct {
	Number int // from 1
	Trace  *trace.Trace
	Lines  []int // for each entry of the trace the line that it comes from; 0 if from none
	Cut    bool  // the log does not show how the run ended
}

// assembler puts the events of a log together to runs.
type assembler struct {
	eager bool // a run is done as soon as it is settled
	count int
	open  *openRun
	// The run that was given last, and the one that is open, have a store each.
	stores [2]store
}

// store is that of the open run, or of the next.
func (a *assembler) store() *store { return &a.stores[a.count%2] }

// openRun is a run that more may be said about.
type openRun struct {
	*store
	seen    int // events
	last    string
	ended   bool // there was an agent_end
	settled bool
	aborted bool // something of the session says so
}

// start is the action that stands for whatever began a run.
const start = "prompt/0"

func (a *assembler) begin() *openRun {
	a.open = &openRun{store: a.store()}
	a.open.add(0, trace.Entry{Kind: trace.KindAction, Label: start, Name: start})
	return a.open
}

func (r *openRun) add(line int, e trace.Entry) {
	e.Step = 1
	r.entries = append(r.entries, e)
	r.lines = append(r.lines, line)
}

// event takes in an event of the loop. It gives the run that this one ends, if
// it ends one.
func (a *assembler) event(line int, e *trace.Event) (done *Run) {
	if a.open != nil && a.open.endsBefore(e) {
		if !a.open.ended {
			a.open.settle(line)
		}
		done = a.close()
	}
	r := a.open
	if r == nil {
		r = a.begin()
	}
	if r.seen > 0 && r.says(e) {
		return done
	}
	kept := r.events.New()
	*kept = *e
	r.add(line, trace.Entry{Kind: trace.KindEvent, N: r.seen, Event: kept})
	r.seen++
	r.last = e.Type
	r.ended = r.ended || e.Type == trace.AgentEnd
	return done
}

// endsBefore reports whether an event begins another run. An agent_start in the
// middle of a turn does not: it is one too many.
func (r *openRun) endsBefore(e *trace.Event) bool {
	switch e.Type {
	case trace.AgentStart:
		return r.ended || r.settled || r.last == trace.TurnEnd
	case trace.TurnStart:
		return r.settled
	}
	return false
}

// says reports whether the last event says the same as e, as far as any rule
// looks: of updates in a row, the first is enough.
func (r *openRun) says(e *trace.Event) bool {
	if e.Type != r.last {
		return false
	}
	switch e.Type {
	case trace.MessageUpdate:
		return e.Message == nil
	case trace.ToolExecutionUpdate:
		last := r.entries[len(r.entries)-1].Event
		return last != nil && last.ToolCallID == e.ToolCallID && last.ToolName == e.ToolName && bytes.Equal(last.Args, e.Args)
	}
	return false
}

// update is event for a message_update of which only its place is known.
func (a *assembler) update(line int) *Run {
	if a.open != nil && a.open.last == trace.MessageUpdate {
		return nil
	}
	return a.event(line, &trace.Event{Type: trace.MessageUpdate})
}

// session takes in what is no event of the loop but tells something about runs.
func (a *assembler) session(line int, rec *record) (done *Run) {
	if a.open == nil {
		return nil
	}
	switch rec.kind {
	case "session": // another process
		return a.close()
	case "response":
		a.open.aborted = a.open.aborted || rec.command == "abort" && rec.done
	case trace.AutoRetryStart:
		if a.open.last == trace.TurnEnd || a.open.ended {
			a.open.settle(line)
		}
	case trace.AgentSettled:
		a.open.aborted = a.open.aborted || rec.aborted
		a.open.settle(line)
		if a.eager {
			return a.close()
		}
	}
	return nil
}

func (r *openRun) settle(line int) {
	if !r.settled {
		r.settled = true
		r.add(line, trace.Entry{Kind: trace.KindSettled, Name: start, Outcome: trace.OutcomeOK})
		r.last = ""
	}
}

// close makes the open run a trace; nil if there is none.
func (a *assembler) close() *Run {
	r := a.open
	a.open = nil
	if r == nil {
		return nil
	}
	a.count++
	run := &Run{Number: a.count, Cut: !r.ended && !r.settled}
	outcome := trace.OutcomeComplete
	if run.Cut {
		outcome = trace.OutcomeTruncated
	}
	tools := r.sequential()
	if at := r.abort(); at >= 0 {
		r.entries = slices.Insert(r.entries, at, trace.Entry{Step: 1, Kind: trace.KindAction, Label: "abort", Name: "abort"})
		r.lines = slices.Insert(r.lines, at, 0)
	}
	r.add(0, trace.Entry{Kind: trace.KindEnd, Outcome: outcome})
	a.store().reset()
	run.Lines = r.lines
	run.Trace = &trace.Trace{
		Header:  trace.Header{Format: trace.Format, Form: trace.FormAgent, Evidence: []trace.Evidence{trace.EvidenceEvents}, Config: trace.Config{Tools: tools}},
		Entries: r.entries,
	}
	return run
}

// abort is where the run may have been aborted at the earliest, or -1 if it was
// not: in the turn before the one that was cut short, whose tools may have been
// running.
func (r *openRun) abort() int {
	turn, before := 1, 1
	for i := range r.entries {
		e := r.entries[i].Event
		switch {
		case e == nil:
		case e.Type == trace.TurnStart:
			turn, before = i, turn
		case e.Type == trace.MessageEnd && e.Message != nil && e.Message.Role == trace.RoleAssistant && e.Message.StopReason == trace.StopAborted:
			return before
		}
	}
	if r.aborted {
		return turn
	}
	return -1
}

// sequential are the tools whose calls were run one at a time although there
// were several: the log does not show how they were configured.
func (r *openRun) sequential() []trace.Tool {
	var tools []trace.Tool
	var b batch
	for i := range r.entries {
		e := r.entries[i].Event
		if e == nil {
			continue
		}
		if e.Type == trace.TurnEnd && b.sequential() {
			for name := range b.names {
				tools = append(tools, trace.Tool{Name: name, ExecutionMode: "sequential"})
			}
		}
		b.see(e)
	}
	slices.SortFunc(tools, func(a, b trace.Tool) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return tools
}

// batch is what has been seen of the calls of one message.
type batch struct {
	names           map[string]bool
	starts, answers int
	overlap         bool // a call started before the last was answered
}

func (b *batch) sequential() bool { return b.starts > 1 && !b.overlap }

func (b *batch) see(e *trace.Event) {
	m := e.Message
	switch {
	case e.Type == trace.MessageEnd && m != nil && m.Role == trace.RoleAssistant:
		*b = batch{names: map[string]bool{}, overlap: m.StopReason == trace.StopLength}
		for _, call := range m.ToolCalls() {
			b.names[call.Name] = true
		}
	case e.Type == trace.ToolExecutionStart:
		b.overlap = b.overlap || b.starts != b.answers
		b.starts++
	case e.Type == trace.MessageEnd && m != nil && m.Role == trace.RoleToolResult:
		b.answers++
	}
}
