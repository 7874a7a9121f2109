package suite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/acp"
)

// fate is what becomes of a call. The plan decides it, so that it is the same in
// a twin.
type fate uint8

const (
	succeeds fate = iota
	fails
	panics
	isAborted
	isRefused // before the body is entered
	workerDies
	fates
)

// plan is what is going to happen, apart from the order.
type plan struct {
	seed   uint64
	every  int
	quiet  bool   // nobody reports, no observer fails
	tool   string // name of the tools
	calls  []plannedCall
	closes string // session that is closed while its tools run, or empty
}

type plannedCall struct {
	agent, id string
	card      *progress.Card
	fate      fate
	reports   int // by the body
	early     bool
	timer     int // reports by a timer
	nested    bool
	invalid   bool
}

var cards = []*progress.Card{
	{Title: "Run it", Generic: true, Kind: "other"},
	{Title: "Edit main.go", Kind: "edit", Locations: trace.Value(`[{"path":"/p/main.go"}]`), Fixed: []trace.Value{
		trace.Value(`{"type":"diff","path":"/p/main.go","oldText":"a","newText":"b"}`),
	}},
	{Title: "Run make", Kind: "execute", Fixed: []trace.Value{trace.Value(`{"type":"terminal","terminalId":"t1"}`)}},
}

func drawPlan(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := plan{seed: seed, tool: "workflow"}
	if rng.IntN(4) == 0 {
		p.every = 3
	}
	if rng.IntN(4) == 0 {
		p.closes = "session-a"
	}
	for _, agent := range []string{"a", "b"} {
		for k := range 1 + rng.IntN(2) {
			p.calls = append(p.calls, plannedCall{
				agent: agent, id: fmt.Sprintf("c%d", k+1), card: cards[rng.IntN(len(cards))], fate: fate(rng.IntN(int(fates))),
				reports: rng.IntN(4), early: rng.IntN(3) == 0, timer: rng.IntN(3), nested: rng.IntN(3) == 0, invalid: rng.IntN(4) == 0,
			})
		}
	}
	if rng.IntN(3) == 0 {
		p.calls = append(p.calls, plannedCall{id: "c1", reports: 1})
	}
	return p
}

// defects are those of a mutant, each for its package.
type defects struct {
	registry progress.Defects
	bridge   acp.Defects
}

// stage is where a plan is played.
type stage struct {
	*schedule
	plan     plan
	registry *progress.Registry
	bridge   *acp.Bridge
	entries  []rules.Entry
	log      []progress.Durable
	count    int
	replay   bool
	open     map[string]int // calls of each agent that are not over
	kept     []func()
	running  map[uint64]*progress.Execution
}

func (s *stage) add(e rules.Entry) { s.entries = append(s.entries, e) }

func identified(kind rules.Kind, id progress.Identity) rules.Entry {
	return rules.Entry{Kind: kind, Agent: id.Agent, Call: id.Call, Token: id.Token, Parent: id.Parent}
}

func sessionOf(agent string) string {
	if agent == "" {
		return ""
	}
	return "session-" + agent
}

// play plays a plan.
func play(p plan, ds defects) ([]rules.Entry, error) {
	s := &stage{schedule: newSchedule(p.seed), plan: p, open: map[string]int{}, running: map[uint64]*progress.Execution{}}
	var err error
	s.registry, err = progress.New(progress.Options{Durable: s.store, Log: s.logged, Defects: ds.registry, Await: s.await, Pause: s.pause})
	if err != nil {
		return nil, err
	}
	s.probe()
	stops := s.observers()
	s.bridge, err = acp.New(acp.Options{Registry: s.registry, Send: s.send, Every: p.every, Defects: ds.bridge})
	if err != nil {
		return nil, err
	}
	for _, agent := range []string{"a", "b"} {
		if err := s.bridge.Open(sessionOf(agent), agent); err != nil {
			return nil, err
		}
	}
	s.parse(ds.registry)
	for _, c := range p.calls {
		s.open[c.agent]++
		s.spawn(func() { s.run(c) })
	}
	for _, agent := range []string{"a", "b"} {
		s.spawn(func() { s.session(agent) })
	}
	if p.closes != "" {
		s.spawn(func() { s.closeSession(p.closes) })
	}
	if err := s.schedule.run(); err != nil {
		return s.entries, err
	}
	return s.entries, s.end(stops)
}

func (s *stage) pause() {
	if s.current != nil {
		s.yield()
	}
}

func (s *stage) store(d progress.Durable) error {
	text, err := json.Marshal(d, json.Deterministic(true))
	if err != nil {
		return err
	}
	e := rules.Entry{Kind: rules.Durable, Agent: d.Agent, Call: d.Call, Stored: d.Kind, Value: text}
	if c := d.Card; c != nil {
		e.Card = &rules.Card{Title: c.Title, Kind: c.Kind, RawInput: d.Args, Locations: c.Locations, Fixed: c.Fixed, Generic: c.Generic}
	}
	if d.IsError && d.Result != nil {
		e.Error = d.Result.Content.PlainText()
	}
	s.add(e)
	s.log = append(s.log, d)
	return nil
}

func (s *stage) logged(_ string, err error) {
	s.add(rules.Entry{Kind: rules.Logged, Error: err.Error()})
}

func (s *stage) send(line []byte) error {
	e := rules.Entry{Kind: rules.Wire, Value: append(trace.Value{}, line...), Replay: s.replay}
	if s.current != nil && !s.replay {
		e.Report = s.reporting()
	}
	var text struct {
		Params struct {
			Session string `json:"sessionId"`
		} `json:"params"`
	}
	if err := json.Unmarshal(line, &text); err != nil {
		return err
	}
	e.Session = text.Params.Session
	s.add(e)
	return nil
}

// reporting is the number of the report that the current task makes, or 0.
func (s *stage) reporting() int {
	if n := len(s.current.reports); n > 0 {
		return s.current.reports[n-1]
	}
	return 0
}

// observers registers those who watch.
func (s *stage) observers() []func() {
	var stops []func()
	watch := func(name, scope string, then func(progress.Observation) error) {
		s.add(rules.Entry{Kind: rules.Observers, Observer: name, Scope: scope})
		o := func(o progress.Observation) error { return s.observed(name, scope, o, then) }
		if scope == "" {
			stops = append(stops, s.registry.Observe(o))
		} else {
			stops = append(stops, s.registry.ObserveAgent(scope, o))
		}
	}
	watch("keeper", "", s.keep("keeper"))
	watch("meddler", "", meddle)
	if !s.plan.quiet {
		watch("panicking", "", s.breaking("panicking", 5, func() error { panic("a broken panel") }))
		watch("failing", "", s.breaking("failing", 4, func() error { return errors.New("the disk is full") }))
	}
	watch("slow", "", func(progress.Observation) error { s.yield(); return nil })
	watch("reporting", "", s.echo)
	watch("of a", "a", nothing)
	watch("of b", "b", nothing)
	watch("last", "", nothing)
	stops = append(stops, s.registry.ObserveResults(s.result))
	return stops
}

func nothing(progress.Observation) error { return nil }

func meddle(o progress.Observation) error {
	for i := range o.View.Content {
		o.View.Content[i].Text = "meddled with"
	}
	return nil
}

func (s *stage) observed(name, scope string, o progress.Observation, then func(progress.Observation) error) error {
	e := identified(rules.Observed, o.Identity)
	e.Report, e.Observer, e.Scope, e.View = s.reporting(), name, scope, o.View.JSON()
	s.add(e)
	return then(o)
}

// echo reports on the execution that it is told of.
func (s *stage) echo(o progress.Observation) error {
	if len(s.current.reports) == 1 && s.reporting()%3 == 0 && s.running[o.Token] != nil {
		s.report(s.running[o.Token], "observer", s.view(o.Identity), false)
	}
	return nil
}

func (s *stage) keep(name string) func(progress.Observation) error {
	return func(o progress.Observation) error {
		number := s.reporting()
		s.kept = append(s.kept, func() {
			s.add(rules.Entry{Kind: rules.Kept, Observer: name, Report: number, View: o.View.JSON()})
		})
		return nil
	}
}

// breaking fails on each every-th report.
func (s *stage) breaking(name string, every int, f func() error) func(progress.Observation) error {
	return func(progress.Observation) error {
		if s.reporting()%every != 0 {
			return nil
		}
		s.add(rules.Entry{Kind: rules.Broke, Observer: name, Report: s.reporting()})
		return f()
	}
}

// result marks a boundary that nobody else has marked, and reports once more.
func (s *stage) result(id progress.Identity, _ progress.Outcome) error {
	if !s.crossed(id) {
		s.add(identified(rules.Boundary, id))
	}
	s.report(s.running[id.Token], "result", s.view(id), false)
	return nil
}

// crossed reports whether the boundary of an execution stands in the record.
func (s *stage) crossed(id progress.Identity) bool {
	return slices.ContainsFunc(s.entries, func(e rules.Entry) bool { return e.Kind == rules.Boundary && e.Token == id.Token })
}

// report reports a view, and spoils it afterwards, as a caller may.
func (s *stage) report(x *progress.Execution, by string, v progress.View, invalid bool) {
	if s.plan.quiet {
		return
	}
	s.count++
	n := s.count
	e := identified(rules.Report, x.Identity())
	e.Report, e.By, e.View, e.Invalid = n, by, v.JSON(), invalid
	s.add(e)
	me := s.current
	me.reports = append(me.reports, n)
	accepted, err := x.ReportProgress(v)
	me.reports = me.reports[:len(me.reports)-1]
	e = identified(rules.Returned, x.Identity())
	e.Report, e.Accepted, e.Error = n, accepted, textOf(err)
	s.add(e)
	for i := range v.Content {
		v.Content[i].Text = "changed by the caller"
	}
	if v.Title != nil {
		*v.Title = "changed by the caller"
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// view is one of the views that are reported of an execution.
func (s *stage) view(id progress.Identity) progress.View {
	v := progress.Text(fmt.Sprintf("%s/%s: step %d", id.Agent, id.Call, s.count+1))
	switch s.count % 3 {
	case 0:
		title := fmt.Sprintf("%d %%", s.count)
		v.Title = &title
	case 1:
		title := "@b/c9"
		v.Title = &title
	}
	return v
}

func (s *stage) prepare(c progress.Call) *progress.Execution {
	x := s.registry.Prepare(c)
	s.running[x.Identity().Token] = x
	e := identified(rules.Prepared, x.Identity())
	e.Session = sessionOf(c.Agent)
	s.add(e)
	return x
}

// run is one call, from its preparation to its end.
func (s *stage) run(c plannedCall) {
	defer func() { s.open[c.agent]-- }()
	args := trace.Value(fmt.Sprintf(`{"agent":%q,"call":%q}`, c.agent, c.id))
	x := s.prepare(progress.Call{Agent: c.agent, ID: c.id, Tool: s.plan.tool, Args: args, Card: c.card})
	if c.early {
		s.report(x, "body", s.view(x.Identity()), false)
	}
	s.yield()
	if c.fate == isRefused {
		_ = x.Announce()
		s.finalize(x, progress.Failure("refused"))
		return
	}
	_ = x.Dispatch()
	s.add(identified(rules.Dispatched, x.Identity()))
	if c.timer > 0 {
		s.spawn(func() { s.timer(x, c) })
	}
	s.body(x, c)
	if c.fate != workerDies {
		s.finalize(x, outcomeOf(c))
	}
}

func outcomeOf(c plannedCall) progress.Outcome {
	switch {
	case c.fate == fails:
		return progress.Failure("no such file")
	case c.fate == panics:
		return progress.Failure("panic: index out of range")
	case c.fate == isAborted:
		return progress.Failure("aborted")
	default:
		return progress.Outcome{Result: &trace.Result{Content: trace.TextContent("done " + c.agent)}}
	}
}

func (s *stage) body(x *progress.Execution, c plannedCall) {
	for k := range c.reports {
		s.yield()
		if c.invalid && k == 0 {
			s.report(x, "body", progress.Text(strings.Repeat("x", progress.DefaultMaxViewBytes)), true)
		}
		s.report(x, "body", s.view(x.Identity()), false)
	}
	if c.nested {
		s.inner(x, c)
	}
	s.yield()
}

// inner is a nested execution.
func (s *stage) inner(x *progress.Execution, c plannedCall) {
	inner := s.prepare(progress.Call{Agent: c.agent, ID: c.id + ".1", Tool: s.plan.tool, Parent: x})
	_ = inner.Dispatch()
	s.add(identified(rules.Dispatched, inner.Identity()))
	s.report(inner, "body", s.view(inner.Identity()), false)
	s.add(identified(rules.Closing, inner.Identity()))
	inner.Finalize(progress.Outcome{Result: &trace.Result{Content: trace.TextContent("inner")}}, nil)
}

func (s *stage) timer(x *progress.Execution, c plannedCall) {
	for range c.timer {
		s.yield()
		s.report(x, "timer", s.view(x.Identity()), false)
	}
}

// finalize ends a call, with a hook that reports.
func (s *stage) finalize(x *progress.Execution, o progress.Outcome) {
	s.add(identified(rules.Closing, x.Identity()))
	o = x.Finalize(o, func(o progress.Outcome) progress.Outcome {
		s.add(identified(rules.Boundary, x.Identity()))
		s.report(x, "hook", s.view(x.Identity()), false)
		s.yield()
		return o
	})
	e := identified(rules.Outcome, x.Identity())
	e.Value = trace.Value(fmt.Sprintf("%q", o.Result.Content.PlainText()))
	if o.IsError {
		e.Error = o.Result.Content.PlainText()
	}
	s.add(e)
}

// session answers the prompt of an agent once its calls are over. What a worker
// has left behind is ended here.
func (s *stage) session(agent string) {
	s.wait(func() bool { return s.open[agent] == 0 })
	for i := range s.entries {
		if e := &s.entries[i]; e.Kind == rules.Prepared && e.Agent == agent {
			s.add(rules.Entry{Kind: rules.Closing, Agent: agent, Call: e.Call, Token: e.Token, Parent: e.Parent})
		}
	}
	s.registry.Settle(agent, "the worker is gone")
	if s.plan.closes != sessionOf(agent) {
		s.add(rules.Entry{Kind: rules.Response, Agent: agent, Session: sessionOf(agent)})
	}
}

func (s *stage) closeSession(session string) {
	for range 1 + s.rng.IntN(12) {
		s.yield()
	}
	s.bridge.Close(session)
	s.add(rules.Entry{Kind: rules.Closed, Session: session})
}

// probe counts what the registry holds.
func (s *stage) probe() {
	held := s.registry.Probe()
	s.add(rules.Entry{Kind: rules.Probed, Probe: &rules.Probe{Executions: held.Executions, Observers: held.Observers}})
}

// foreign are views in JSON, most of which say what a view cannot say.
var foreign = []string{
	`{"title":"half"}`, `{"content":[{"type":"text","text":"half"}]}`, `{"title":"x","kind":"edit"}`, `{"rawInput":{}}`,
	`{"locations":[]}`, `{"title":"x","status":"completed"}`, `{"card":"diff"}`,
}

func (s *stage) parse(ds progress.Defects) {
	for _, text := range foreign {
		_, err := ds.ParseView([]byte(text))
		s.add(rules.Entry{Kind: rules.Parsed, Value: trace.Value(text), Error: textOf(err)})
	}
}

// end replays the sessions and takes everything down.
func (s *stage) end(stops []func()) error {
	s.replay = true
	for _, agent := range []string{"a", "b"} {
		var log []progress.Durable
		for _, d := range s.log {
			if d.Agent == agent && d.Kind != "tool/progress" {
				log = append(log, d)
			}
		}
		if err := s.bridge.Replay(sessionOf(agent), log); err != nil {
			return err
		}
	}
	for _, kept := range s.kept {
		kept()
	}
	for _, stop := range stops {
		stop()
	}
	s.bridge.Dispose()
	s.probe()
	return nil
}
