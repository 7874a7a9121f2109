package loop

import (
	"errors"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// What the defects of a streamed message do. Without a defect each of these
// functions is what the first sentence of its comment says.

// emitUpdate emits an update and waits until it has been dealt with.
func (a *assistant) emitUpdate(ev *trace.Event) error {
	switch {
	case a.run.has(ThinkingNotPassedOn) && strings.HasPrefix(ev.StreamEvent.Type, "thinking"):
		return nil
	case a.run.has(StreamReadAhead):
		return a.emitWhileReading(ev)
	}
	return a.run.emit(ev)
}

// emitWhileReading reads the next event while listeners are still busy with this
// one.
func (a *assistant) emitWhileReading(ev *trace.Event) (err error) {
	told := a.run.rt.Go(func() { err = a.run.emit(ev) })
	yield(a.run.rt)
	ahead, broken := a.next()
	Await(a.run.rt, told.Join)
	a.ahead = ahead
	return errors.Join(err, broken)
}

// result is the stream's.
func (a *assistant) result() (*trace.Message, error) {
	switch {
	case a.last == nil && a.begun && a.run.has(SilentEndKeepsDraft):
		return a.context.Messages[len(a.context.Messages)-1], nil
	case a.last != nil && a.last.Message != nil && a.run.has(LastEventKept):
		return a.last.Message, nil
	}
	return a.stream.Result()
}

// asUpdate passes content off as one that was streamed.
func asUpdate(m *trace.Message, c trace.Content) *trace.Event {
	delta := &trace.StreamEvent{Type: trace.StreamTextDelta, Delta: c.PlainText(), Partial: m}
	return &trace.Event{Type: trace.MessageUpdate, Message: m, StreamEvent: delta}
}

// emitEarly comes before the end of a message: nothing is emitted.
func (a *assistant) emitEarly(final *trace.Message) error {
	switch {
	case a.run.has(BareAnswerUpdated) && !a.begun:
		return a.run.emit(asUpdate(final, final.Content))
	case a.run.has(StartBeforeMessageEnd):
		for _, block := range final.ToolCalls() {
			if err := (&call{run: a.run, block: block}).emitStart(); err != nil {
				return err
			}
		}
		a.run.notes.started = true
	}
	return nil
}
