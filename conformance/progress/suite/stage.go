package suite

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
)

// channel is a channel of progress as a plan drives it. Whatever is seen of it is
// added to the stage's record.
type channel interface {
	can() abilities
	// open makes the registry, its observers and, if there is one, its bridge.
	open(p *plan) error
	parse(text string)
	// prepare gives an execution its identity.
	prepare(x *running, parent *running)
	announce(x *running)
	dispatch(x *running)
	report(x *running, r *report)
	finalize(x *running, o Outcome)
	settle(agent, why string)
	closeSession(session string)
	dispose()
	probe()
	// end replays the sessions, if there are any, and takes everything down.
	end(replays bool) error
}

// abilities are what a channel has besides a registry.
type abilities struct {
	announce bool
	bridge   bool
	throttle bool
}

// running is an execution.
type running struct {
	number   int
	call     plannedCall
	tool     string
	identity Identity
	own      Execution // of a registry in Go
	hook     *report   // that its hook makes; nil if none
	result   *report   // that an observer of its result makes; nil if none
	ended    bool      // finalize was called
}

func (x *running) entry(kind rules.Kind) rules.Entry {
	id := x.identity
	return rules.Entry{Kind: kind, Agent: id.Agent, Call: id.Call, Token: id.Token, Parent: id.Parent}
}

// report is one report that is going to be made.
type report struct {
	number  int
	by      string
	view    trace.Value
	invalid bool
	echo    *report // that an observer of it makes on the same execution; nil if none
}

// stage is where a plan is played.
type stage struct {
	schedule
	plan    plan
	channel channel

	mu       sync.Mutex
	entries  []rules.Entry
	count    int // reports
	rng      *rand.Rand
	busy     map[string]int // calls of each agent that are not over
	running  []*running
	disposed bool
}

func newStage(p plan, s schedule) *stage {
	return &stage{schedule: s, plan: p, busy: map[string]int{}, rng: rand.New(rand.NewPCG(p.seed, 4))}
}

func (s *stage) add(e rules.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
}

// play plays the plan.
func (s *stage) play() ([]rules.Entry, error) {
	if err := s.channel.open(&s.plan); err != nil {
		return nil, err
	}
	for _, text := range foreign {
		s.channel.parse(text)
	}
	for _, c := range s.plan.calls {
		s.busy[c.agent]++
	}
	for _, c := range s.plan.calls {
		s.spawn(func() { s.run(c) })
	}
	for _, agent := range agents {
		s.spawn(func() { s.session(agent) })
	}
	if s.channel.can().bridge {
		s.takeDown()
	}
	if err := s.schedule.run(); err != nil {
		return s.entries, err
	}
	return s.entries, s.channel.end(!s.disposed)
}

// takeDown closes a session, or all of them, while tools run.
func (s *stage) takeDown() {
	switch turns := 1 + s.rng.IntN(12); {
	case s.plan.closes != "":
		s.spawn(func() { s.after(turns, func() { s.close(s.plan.closes) }) })
	case s.plan.disposes:
		s.spawn(func() { s.after(turns, s.dispose) })
	}
}

func (s *stage) after(turns int, f func()) {
	for range turns {
		s.yield()
	}
	f()
}

func (s *stage) close(session string) {
	s.add(rules.Entry{Kind: rules.Leaving, Session: session})
	s.channel.closeSession(session)
	s.add(rules.Entry{Kind: rules.Closed, Session: session})
}

func (s *stage) dispose() {
	for _, agent := range agents {
		s.add(rules.Entry{Kind: rules.Leaving, Session: sessionOf(agent)})
	}
	s.channel.dispose()
	for _, agent := range agents {
		s.add(rules.Entry{Kind: rules.Closed, Session: sessionOf(agent)})
	}
	s.disposed = true
}

// newReport is the next report; nil if nobody is to report.
func (s *stage) newReport(by string, c plannedCall, echo bool) *report {
	if s.plan.quiet {
		return nil
	}
	s.mu.Lock()
	s.count++
	r := &report{number: s.count, by: by}
	s.mu.Unlock()
	title := ""
	switch r.number % 3 {
	case 0:
		title = fmt.Sprintf(`"title":"%d %%",`, r.number)
	case 1:
		title = `"title":"@b/c9",`
	}
	r.view = trace.Value(fmt.Sprintf(`{%s"content":[{"type":"text","text":"%s/%s: step %d"}]}`, title, c.agent, c.id, r.number))
	if echo && r.number%3 == 0 {
		r.echo = s.newReport("observer", c, false)
	}
	return r
}

var step = regexp.MustCompile(`: step (\d+)`)

// numberIn is the number of the report whose view, or whose line, it is; 0 if it
// says none.
func numberIn(text trace.Value) int {
	m := step.FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return 0
	}
	return n
}

func (s *stage) report(x *running, by string) {
	if r := s.newReport(by, x.call, true); r != nil {
		s.channel.report(x, r)
	}
}

// reportInvalid reports a view that is too large.
func (s *stage) reportInvalid(x *running) {
	r := s.newReport("body", x.call, false)
	if r == nil {
		return
	}
	r.invalid = true
	r.view = trace.Value(fmt.Sprintf(`{"content":[{"type":"text","text":"%s"}]}`, strings.Repeat("x", progress.DefaultMaxViewBytes)))
	s.channel.report(x, r)
}

// prepare begins an execution.
func (s *stage) prepare(c plannedCall, parent *running) *running {
	s.mu.Lock()
	x := &running{number: len(s.running) + 1, call: c, tool: s.plan.tool}
	s.running = append(s.running, x)
	s.mu.Unlock()
	if parent == nil {
		x.hook = s.newReport("hook", c, false)
	}
	x.result = s.newReport("result", c, false)
	s.channel.prepare(x, parent)
	return x
}

// run is one call, from its preparation to its end.
func (s *stage) run(c plannedCall) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy[c.agent]--
	}()
	x := s.prepare(c, nil)
	if c.early {
		s.report(x, "body")
	}
	s.yield()
	if c.fate == isRefused && s.channel.can().announce {
		s.channel.announce(x)
		s.finalize(x, Outcome{"refused", true})
		return
	}
	s.dispatch(x)
	if c.timer > 0 {
		s.spawn(func() { s.later(x, "timer", c.timer) })
	}
	if c.thread > 0 {
		s.spawn(func() { s.later(x, "thread", c.thread) })
	}
	s.body(x)
	if c.fate != workerDies {
		s.finalize(x, ends[c.fate])
	}
}

var ends = map[fate]Outcome{
	succeeds: {"done", false}, isRefused: {"refused", true}, fails: {"no such file", true},
	panics: {"panic: index out of range", true}, isAborted: {"aborted", true},
}

func (s *stage) dispatch(x *running) {
	s.channel.dispatch(x)
	s.add(x.entry(rules.Dispatched))
}

func (s *stage) body(x *running) {
	for k := range x.call.reports {
		s.yield()
		if x.call.invalid && k == 0 {
			s.reportInvalid(x)
		}
		s.report(x, "body")
	}
	if x.call.nested {
		s.inner(x)
	}
	s.yield()
}

// inner is a nested execution.
func (s *stage) inner(x *running) {
	inner := s.prepare(plannedCall{agent: x.call.agent, id: x.call.id + ".1"}, x)
	s.dispatch(inner)
	s.report(inner, "body")
	s.finalize(inner, Outcome{"inner", false})
}

// later reports without asking whether the tool still runs.
func (s *stage) later(x *running, by string, times int) {
	for range times {
		s.yield()
		s.report(x, by)
	}
}

func (s *stage) finalize(x *running, o Outcome) {
	s.mu.Lock()
	x.ended = true
	s.mu.Unlock()
	s.add(x.entry(rules.Closing))
	s.channel.finalize(x, o)
}

// outcome is the entry of what became of an execution.
func (x *running) outcome(o Outcome) rules.Entry {
	e := x.entry(rules.Outcome)
	e.Value = trace.Value(strconv.Quote(o.Text))
	if o.IsError {
		e.Error = o.Text
	}
	return e
}

// session answers the prompt of an agent once its calls are over. What a worker
// has left behind is ended here.
func (s *stage) session(agent string) {
	s.wait(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.busy[agent] == 0
	})
	for _, x := range s.left(agent) {
		s.add(x.entry(rules.Closing))
	}
	s.channel.settle(agent, "the worker is gone")
	if s.plan.closes != sessionOf(agent) && !s.plan.disposes {
		s.add(rules.Entry{Kind: rules.Response, Agent: agent, Session: sessionOf(agent)})
	}
}

// left are the executions of an agent that nobody has ended, inner ones first.
func (s *stage) left(agent string) []*running {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*running
	for _, x := range s.running {
		if x.call.agent == agent && !x.ended {
			left = append([]*running{x}, left...)
		}
	}
	return left
}
