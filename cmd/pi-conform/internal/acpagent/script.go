package acpagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// scripts are the workflows that there are.
var scripts = map[string]workflow.Script{"review": {
	Text: "Two files were reviewed.",
	Steps: []workflow.Step{
		{Event: workflow.Event{Kind: workflow.Start}},
		{Event: workflow.Event{Kind: workflow.Phase, Phase: "reading"}},
		{At: 1 * time.Second, Event: workflow.Event{Kind: workflow.AgentStart, Seq: 1, Label: "main.go", Child: "child-1"}},
		{At: 2 * time.Second, Event: workflow.Event{Kind: workflow.AgentStart, Seq: 2, Label: "main_test.go", Child: "child-2"}},
		{At: 4 * time.Second, Event: workflow.Event{Kind: workflow.Log, Log: "main.go: nothing to say"}},
		{At: 5 * time.Second, Event: workflow.Event{Kind: workflow.AgentEnd, Seq: 1, Outcome: workflow.Completed}},
		{At: 6 * time.Second, Event: workflow.Event{Kind: workflow.Phase, Phase: "writing"}},
		{At: 8 * time.Second, Event: workflow.Event{Kind: workflow.AgentEnd, Seq: 2, Outcome: workflow.Failed}},
		{At: 9 * time.Second, Event: workflow.Event{Kind: workflow.End, Stop: "finished", Started: 2}},
	},
}}

// turns are what the model says to each prompt.
var turns = []scriptedmodel.Turn{
	{Text: "I have it reviewed, and change a line meanwhile.", Calls: []scriptedmodel.Call{
		{ID: "workflow", Name: "workflow", Args: trace.Value(`{"script":"review"}`)},
		{ID: "edit", Name: "edit", Args: trace.Value(`{"path":"/project/main.go"}`)},
		{ID: "missing", Name: "no-such-tool"},
	}},
	{Text: "That is done."},
}

// tools are what the model may call.
func (a *Agent) tools() []*loop.Tool {
	return []*loop.Tool{
		{Name: "workflow", Description: "Runs a workflow.", Execute: a.runWorkflow},
		{Name: "edit", Description: "Pretends to change a file.", Execute: edit},
	}
}

var errNoExecution = errors.New("the tool was called without an execution")

func (a *Agent) runWorkflow(ctx context.Context, call loop.Execution, _ func(*trace.Result)) (*trace.Result, error) {
	var args struct {
		Script string `json:"script"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err
	}
	x := progress.From(ctx)
	if x == nil {
		return nil, errNoExecution
	}
	return a.producer.Run(ctx, x, workflow.Job{Script: args.Script})
}

func edit(ctx context.Context, _ loop.Execution, _ func(*trace.Result)) (*trace.Result, error) {
	if x := progress.From(ctx); x != nil {
		if _, err := x.ReportProgress(progress.Text("half of it")); err != nil {
			return nil, err
		}
	}
	return &trace.Result{Content: trace.TextContent("changed")}, nil
}

// cardOf is how a call is shown.
func cardOf(tool string, args trace.Value) *progress.Card {
	var a struct {
		Path string `json:"path"`
	}
	if tool != "edit" || json.Unmarshal(args, &a) != nil {
		return &progress.Card{Title: tool, Kind: "other", Generic: true}
	}
	return &progress.Card{
		Title: "Edit " + a.Path, Kind: "edit", Locations: trace.Value(fmt.Sprintf(`[{"path":%q}]`, a.Path)),
		Fixed: []trace.Value{trace.Value(fmt.Sprintf(`{"type":"diff","path":%q,"oldText":"one","newText":"two"}`, a.Path))},
	}
}

// model says its turns over and over, each time with other ids.
type model struct{ asked int }

func newModel() *model { return &model{} }

// stream is called by one run at a time.
func (m *model) stream(ctx context.Context, request *loop.Request) (loop.Stream, error) {
	if last := request.Messages[len(request.Messages)-1]; last.Role == trace.RoleUser && m.asked%len(turns) != 0 {
		m.asked += len(turns) - m.asked%len(turns) // the prompt before was cancelled
	}
	turn := turns[m.asked%len(turns)]
	round := 1 + m.asked/len(turns)
	if ctx.Err() != nil {
		turn = scriptedmodel.Turn{Stop: trace.StopAborted, Error: "aborted"}
	} else {
		m.asked++
	}
	turn.Calls = append([]scriptedmodel.Call{}, turn.Calls...)
	for i := range turn.Calls {
		turn.Calls[i].ID = fmt.Sprintf("%s-%d", turn.Calls[i].ID, round)
	}
	return &stream{steps: turn.Plan(), final: turn.Message()}, nil
}

// stream is a turn that is there as soon as it is asked for.
type stream struct {
	steps []scriptedmodel.Step
	final *trace.Message
}

// Next is the next event.
func (s *stream) Next() (*trace.StreamEvent, bool, error) {
	if len(s.steps) == 0 {
		return nil, false, nil
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step.Event, true, nil
}

// Result is the whole message.
func (s *stream) Result() (*trace.Message, error) { return s.final, nil }
