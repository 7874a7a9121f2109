package progress

import (
	"fmt"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Step is an event of a loop's run, or a line that a bridge sends for its
// session.
type Step struct {
	Event *trace.Event
	Line  trace.Value
}

// Refine says where the lines are not what the events of a run allow. The start
// of a tool allows one tool_call, and its end the one update that closes the
// card; between the two there may be progress. No other event allows a line about
// a card. A run that is over owes none.
func Refine(steps []Step) []Finding {
	r := &refinement{cards: map[string]cardState{}}
	for i := range steps {
		if steps[i].Event != nil {
			r.event(i, steps[i].Event)
		} else {
			r.line(i, parseLine(i, &Entry{Value: steps[i].Line}))
		}
	}
	for _, id := range r.order {
		r.expect(r.cards[id] == cardClosed, len(steps)-1, "%s: %s at the end of the run", id, r.cards[id])
	}
	return r.findings
}

// cardState is how far a card has come.
type cardState uint8

const (
	noCard    cardState = iota
	owesCall            // the tool has started
	cardOpen            // the card is announced
	owesEnd             // the tool has succeeded
	owesError           // the tool has failed
	cardClosed
)

func (s cardState) String() string {
	return [...]string{"no card", "a card that is not announced", "an open card", "a card that is not closed", "a card that is not closed as failed", "a closed card"}[s]
}

type refinement struct {
	cards    map[string]cardState
	order    []string
	findings []Finding
}

func (r *refinement) expect(ok bool, step int, format string, args ...any) {
	if !ok {
		r.findings = append(r.findings, Finding{Rule: "refinement", Message: fmt.Sprintf(format, args...), Entry: step})
	}
}

func (r *refinement) event(i int, ev *trace.Event) {
	id := ev.ToolCallID
	switch ev.Type {
	case trace.ToolExecutionStart:
		r.expect(r.cards[id] == noCard || r.cards[id] == cardClosed, i, "%s starts, and there is %s", id, r.cards[id])
		r.cards[id] = owesCall
		r.order = append(r.order, id)
	case trace.ToolExecutionEnd:
		r.expect(r.cards[id] == cardOpen, i, "%s ends, and there is %s", id, r.cards[id])
		r.cards[id] = owesEnd
		if ev.IsError != nil && *ev.IsError {
			r.cards[id] = owesError
		}
	}
}

func (r *refinement) line(i int, l *line) {
	state := r.cards[l.ID]
	switch {
	case l.isCall():
		r.expect(state == owesCall, i, "%s is announced, and there is %s", l.ID, state)
		r.cards[l.ID] = cardOpen
	case l.isTerminal():
		want := map[string]cardState{"completed": owesEnd, "failed": owesError}[l.Status]
		r.expect(state == want, i, "%s is %s, and there is %s", l.ID, l.Status, state)
		r.cards[l.ID] = cardClosed
	case l.isUpdate():
		r.expect(state == cardOpen, i, "progress of %s, and there is %s", l.ID, state)
	}
}
