package harness_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// onceBroken dies when it is given its first case at once, and is well after
// that.
type onceBroken struct {
	harness.Driver
	died bool
}

func (d *onceBroken) Play(context.Context, *harness.Prepared, []*harness.Action, [][]string) (harness.Playing, error) {
	return d, nil
}

func (d *onceBroken) Read(func(*trace.Entry)) (time.Duration, error) {
	if d.died {
		return 0, harness.ErrMispredicted
	}
	d.died = true
	return 0, &harness.SubjectError{Outcome: trace.OutcomeCrashed, Message: "it died with exit code 7", Exit: 7}
}

// TestASubjectThatDiesOnceHasDied: that it gets through the second time does not
// make it well.
func TestASubjectThatDiesOnceHasDied(t *testing.T) {
	sc := &harness.Scenario{
		Model: []scriptedmodel.Turn{{Text: "done"}},
		User:  []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}},
	}
	d := &onceBroken{Driver: reference.New()}
	rec, err := harness.RunPredicted(context.Background(), d, reference.New(), sc, harness.First{}, harness.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	end := rec.Trace.Entries[len(rec.Trace.Entries)-1]
	if end.Outcome != trace.OutcomeCrashed || !strings.Contains(end.Message, "exit code 7; run again") {
		t.Errorf("the recording ends with %s: %s", end.Outcome, end.Message)
	}
	rec, err = harness.RunPredicted(context.Background(), d, reference.New(), sc, harness.First{}, harness.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if end := rec.Trace.Entries[len(rec.Trace.Entries)-1]; end.Outcome != trace.OutcomeComplete {
		t.Errorf("after a misprediction the recording ends with %s: %s", end.Outcome, end.Message)
	}
}

// wayward asks the model with a signal that has fired, where nothing was aborted.
type wayward struct {
	harness.Driver
	actions int
	read    bool
}

func (d *wayward) Play(_ context.Context, _ *harness.Prepared, actions []*harness.Action, _ [][]string) (harness.Playing, error) {
	d.actions = len(actions)
	return d, nil
}

func (d *wayward) Read(out func(*trace.Entry)) (time.Duration, error) {
	d.read = true
	out(&trace.Entry{Kind: trace.KindCall, Name: "model/0", Aborted: true, Payload: &trace.Payload{}, Step: 1})
	for step := range d.actions - 1 {
		out(&trace.Entry{Kind: trace.KindEvent, Event: &trace.Event{Type: trace.MessageUpdate}, Step: step + 2})
	}
	return 0, harness.ErrMispredicted
}

// TestASubjectMayGoAnotherWay: whatever comes of a schedule that was predicted for
// another subject, the case is run again, step by step.
func TestASubjectMayGoAnotherWay(t *testing.T) {
	sc := &harness.Scenario{
		Model: []scriptedmodel.Turn{{Text: "done", Gate: true, Stream: scriptedmodel.StreamDeltas}},
		User:  []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}},
	}
	d := &wayward{Driver: reference.New()}
	rec, err := harness.RunPredicted(context.Background(), d, reference.New(), sc, harness.First{}, harness.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !d.read {
		t.Error("nothing was predicted")
	}
	if end := rec.Trace.Entries[len(rec.Trace.Entries)-1]; end.Outcome != trace.OutcomeComplete {
		t.Errorf("the recording ends with %s: %s", end.Outcome, end.Message)
	}
}
