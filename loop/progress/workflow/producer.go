package workflow

import (
	"context"
	"errors"
	"sync"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
)

// Producer runs workflows as a tool and reports their progress.
type Producer struct {
	engine  Engine
	policy  progress.Policy
	defects Defects

	mu       sync.Mutex
	captures map[*capture]bool
}

// NewProducer makes a producer.
func NewProducer(e Engine, p progress.Policy, ds Defects) *Producer {
	return &Producer{engine: e, policy: p, defects: ds, captures: map[*capture]bool{}}
}

// Probe counts what a producer holds.
type Probe struct {
	Captures   int
	Candidates int // runs of which it is not known yet whose they are
	Active     int // children
	Retained   int // things that are kept of runs: children and texts
}

// Probe counts what the producer holds.
func (p *Producer) Probe() Probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum Probe
	for c := range p.captures {
		one := c.probe()
		sum.Captures++
		sum.Candidates += one.Candidates
		sum.Active += one.Active
		sum.Retained += one.Retained
	}
	return sum
}

// Run is the body of the tool: it starts the workflow, waits for its end, and
// reports on the execution as it goes. A run that fails is an error.
func (p *Producer) Run(ctx context.Context, x *progress.Execution, job Job) (*trace.Result, error) {
	c := p.newCapture(x)
	if !p.defects.Has(CaptureLate) {
		p.open(c) // before Start is entered (FLOW-1)
	}
	defer func() {
		if !p.defects.Has(CaptureLeaks) && !(p.defects.Has(CancelledLeaks) && ctx.Err() != nil) {
			p.close(c) // whatever happens (FLOW-8)
		}
	}()
	run, err := p.engine.Start(ctx, job)
	if p.defects.Has(CaptureLate) {
		p.open(c)
	}
	if err != nil {
		if p.defects.Has(FailedStartReported) {
			c.reportAny()
		}
		return nil, err // nothing was reported (FLOW-4)
	}
	c.correlate(run)
	result, err := p.engine.Wait(ctx, run)
	switch {
	case err != nil:
		return nil, err
	case result.Error != "":
		return nil, errors.New(result.Error)
	}
	return &trace.Result{Content: trace.TextContent(result.Text)}, nil
}

func (p *Producer) newCapture(x *progress.Execution) *capture {
	return &capture{producer: p, execution: x, candidates: map[string]*state{}}
}

func (p *Producer) open(c *capture) {
	p.mu.Lock()
	p.captures[c] = true
	p.mu.Unlock()
	c.stop = p.engine.Listen(c.event)
}

func (p *Producer) close(c *capture) {
	if c.stop != nil {
		c.stop()
	}
	c.shut()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.captures, c)
}

// capture listens for one execution. Its lock is held while it reports, so that
// reports come in the order of the events (FLOW-5); an observer must not make the
// engine emit.
type capture struct {
	producer  *Producer
	execution *progress.Execution
	stop      func()

	mu         sync.Mutex
	candidates map[string]*state // until correlation
	run        string            // after it
	state      *state
	closed     bool
}

// event takes in an event of any run.
func (c *capture) event(ev *Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ds := c.producer.defects
	if ds.Has(EventsChanged) && ev.Kind == Log {
		ev.Log += " (seen)"
	}
	switch {
	case c.closed:
	case c.run == "":
		c.candidate(ev)
	case ev.Run != c.run && !ds.Has(OtherRunsReported): // (FLOW-3)
	case c.state == nil:
	case c.state.take(ev):
		c.report()
	}
}

// candidate folds an event in without knowing whose it is (FLOW-2).
func (c *capture) candidate(ev *Event) {
	ds := c.producer.defects
	if ds.Has(EarlyEventsLost) && ev.Kind != Start {
		return
	}
	s := c.candidates[ev.Run]
	if s == nil {
		s = &state{defects: ds}
		c.candidates[ev.Run] = s
	}
	s.take(ev)
	if ds.Has(CandidatesReported) {
		c.state = s
		c.report()
	}
}

// correlate says which run is ours, and forgets the others (FLOW-3).
func (c *capture) correlate(run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run = run
	c.state = c.candidates[run]
	if c.state == nil {
		c.state = &state{defects: c.producer.defects}
	}
	if !c.producer.defects.Has(CandidatesKept) {
		clear(c.candidates)
	}
	if c.state.began && !(c.state.ended && c.producer.policy.EarlyEnd == progress.EndDropped) {
		c.report()
	}
}

// report shows the state. A run that has ended is forgotten after its report.
func (c *capture) report() {
	if c.producer.defects.Has(LogsNotReported) && c.state.log != "" && len(c.state.active) == 0 && !c.state.ended {
		return
	}
	_, _ = c.execution.ReportProgress(c.state.view()) // a report that is refused is not the workflow's concern
	if c.state.ended {
		c.state = nil
	}
}

// reportAny shows whichever candidate there is.
func (c *capture) reportAny() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.candidates {
		c.state = s
		c.report()
	}
}

func (c *capture) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	clear(c.candidates)
	c.state = nil
}

func (c *capture) probe() Probe {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Probe{Candidates: len(c.candidates)}
	for _, s := range c.candidates {
		p.Active += len(s.active)
		p.Retained += s.retained()
	}
	if c.state != nil {
		p.Active += len(c.state.active)
		p.Retained += c.state.retained()
	}
	return p
}
