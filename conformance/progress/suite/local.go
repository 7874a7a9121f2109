package suite

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// local is a channel in Go.
type local struct {
	*stage
	subject  Subject
	registry Registry
	bridge   Bridge
	stops    []func()

	mu      sync.Mutex
	log     []Stored
	tokens  map[uint64]*running
	reports map[int]*report
	crossed map[uint64]bool
	kept    []func()
	replay  bool
}

// play plays a plan on a subject.
func play(subject Subject, p plan, s schedule) ([]rules.Entry, error) {
	st := newStage(p, s)
	st.channel = &local{stage: st, subject: subject, tokens: map[uint64]*running{}, reports: map[int]*report{}, crossed: map[uint64]bool{}}
	return st.play()
}

func (l *local) can() abilities {
	return abilities{announce: true, bridge: l.subject.Bridge != nil, throttle: l.subject.Throttled != nil}
}

func (l *local) open(p *plan) (err error) {
	l.registry, err = l.subject.New(Surroundings{Store: l.store, Log: l.logged, Await: l.await, Pause: l.yield})
	if err != nil {
		return err
	}
	l.probe()
	for _, w := range p.watchers() {
		l.add(rules.Entry{Kind: rules.Observers, Observer: w.name, Scope: w.scope})
		l.stops = append(l.stops, l.registry.Observe(w.scope, func(o Observation) error { return l.observed(w, o) }))
	}
	if r, ok := l.registry.(ResultObservable); ok {
		l.stops = append(l.stops, r.ObserveResults(l.result))
	}
	return l.openBridge(p)
}

func (l *local) openBridge(p *plan) (err error) {
	switch {
	case l.subject.Bridge == nil:
		return nil
	case p.every > 1 && l.subject.Throttled != nil:
		l.bridge, err = l.subject.Throttled(l.registry, l.send, p.every)
	default:
		l.bridge, err = l.subject.Bridge(l.registry, l.send)
	}
	for _, agent := range agents {
		if err == nil {
			err = l.bridge.Open(sessionOf(agent), agent)
		}
	}
	return err
}

func (l *local) store(d Stored) error {
	e := rules.Entry{Kind: rules.Durable, Agent: d.Agent, Call: d.Call, Stored: d.Kind, Value: d.Entry}
	l.mu.Lock()
	l.log = append(l.log, d)
	l.mu.Unlock()
	l.stage.stored(&e, d.IsError)
	l.add(e)
	return nil
}

// stored completes an entry of the log: a call is to be shown as its card says.
func (s *stage) stored(e *rules.Entry, isError bool) {
	if isError {
		e.Error = "it failed"
	}
	for _, c := range s.plan.calls {
		if e.Stored == "tool/call" && c.agent == e.Agent && c.id == e.Call && c.card != nil {
			card := *c.card
			card.RawInput = argsOf(c)
			e.Card = &card
		}
	}
}

func argsOf(c plannedCall) trace.Value {
	return trace.Value(fmt.Sprintf(`{"agent":%q,"call":%q}`, c.agent, c.id))
}

func (l *local) logged(_ string, err error) {
	l.add(rules.Entry{Kind: rules.Logged, Error: err.Error()})
}

func (l *local) send(line []byte) error {
	l.mu.Lock()
	replay := l.replay
	l.mu.Unlock()
	e, err := wireEntry(line, replay)
	if err != nil {
		return err
	}
	l.add(e)
	return nil
}

// wireEntry is the entry of a line that was sent.
func wireEntry(line []byte, replay bool) (rules.Entry, error) {
	e := rules.Entry{Kind: rules.Wire, Value: append(trace.Value{}, line...), Replay: replay}
	if !replay {
		e.Report = numberIn(e.Value)
	}
	var text struct {
		Params struct {
			Session string `json:"sessionId"`
		} `json:"params"`
	}
	err := json.Unmarshal(line, &text)
	e.Session = text.Params.Session
	return e, err
}

// show is a view as JSON.
func show(view any) trace.Value {
	text, err := json.Marshal(view, json.Deterministic(true))
	if err != nil {
		return trace.Value("null") // a view that is no JSON is another one than was reported
	}
	return text
}

func (l *local) observed(w watcher, o Observation) error {
	view := show(o.View)
	number := numberIn(view)
	e := rules.Entry{Kind: rules.Observed, Agent: o.Agent, Call: o.Call, Token: o.Token, Parent: o.Parent}
	e.Report, e.Observer, e.Scope, e.View = number, w.name, w.scope, view
	l.add(e)
	switch {
	case w.does == doKeep:
		l.keep(w.name, number, o.View)
	case w.does == doMeddle:
		spoil(reflect.ValueOf(o.View))
	case w.does == doWait:
		l.yield()
	case w.does == doReport:
		l.echo(o.Token, number)
	case w.does.breaksOn(number):
		return l.fail(w, number)
	}
	return nil
}

func (l *local) fail(w watcher, number int) error {
	l.add(rules.Entry{Kind: rules.Broke, Observer: w.name, Report: number})
	if w.does == doPanic {
		panic("a broken panel")
	}
	return errors.New("the disk is full")
}

func (l *local) keep(name string, number int, view any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, func() {
		l.add(rules.Entry{Kind: rules.Kept, Observer: name, Report: number, View: show(view)})
	})
}

// echo reports on the execution that an observer is told of.
func (l *local) echo(token uint64, number int) {
	l.mu.Lock()
	x, r := l.tokens[token], l.reports[number]
	l.mu.Unlock()
	if x != nil && r != nil && r.echo != nil {
		l.report(x, r.echo)
	}
}

// boundary notes that finalize has begun, if nobody has noted it before.
func (l *local) boundary(x *running) {
	l.mu.Lock()
	before := l.crossed[x.identity.Token]
	l.crossed[x.identity.Token] = true
	l.mu.Unlock()
	if !before {
		l.add(x.entry(rules.Boundary))
	}
}

// result is told how an execution has ended, and reports once more.
func (l *local) result(id Identity, _ Outcome) error {
	l.mu.Lock()
	x := l.tokens[id.Token]
	l.mu.Unlock()
	if x == nil {
		return nil
	}
	l.boundary(x)
	if x.result != nil {
		l.report(x, x.result)
	}
	return nil
}

// report reports a view, and changes it afterwards, as a caller may.
func (l *local) report(x *running, r *report) {
	l.mu.Lock()
	l.reports[r.number] = r
	l.mu.Unlock()
	view, err := l.registry.ParseView(r.view)
	e := x.entry(rules.Report)
	e.Report, e.By, e.Invalid, e.View = r.number, r.by, r.invalid, r.view
	if err == nil {
		e.View = show(view)
	}
	l.add(e)
	accepted := false
	if err == nil {
		accepted, err = x.own.ReportProgress(view)
	}
	e = x.entry(rules.Returned)
	e.Report, e.Accepted, e.Error = r.number, accepted, textOf(err)
	l.add(e)
	spoil(reflect.ValueOf(view))
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// spoil changes the texts that a value leads to, as far as its owner could.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			spoil(field)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			spoil(v.MapIndex(key))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(v.String() + " (changed)")
		}
	default:
	}
}

func (l *local) parse(text string) {
	_, err := l.registry.ParseView([]byte(text))
	l.add(rules.Entry{Kind: rules.Parsed, Value: trace.Value(text), Error: textOf(err)})
}

func (l *local) prepare(x, parent *running) {
	c := Call{Agent: x.call.agent, ID: x.call.id, Tool: x.tool, Args: argsOf(x.call), Card: x.call.card}
	if parent != nil {
		c.Parent = parent.own
	}
	x.own = l.registry.Prepare(c)
	x.identity = x.own.Identity()
	l.mu.Lock()
	l.tokens[x.identity.Token] = x
	l.mu.Unlock()
	e := x.entry(rules.Prepared)
	e.Session = sessionOf(x.call.agent)
	l.add(e)
}

func (l *local) announce(x *running) {
	if a, ok := x.own.(Announcer); ok {
		_ = a.Announce() // the log never refuses
		return
	}
	_ = x.own.Dispatch()
}

func (l *local) dispatch(x *running) { _ = x.own.Dispatch() }

// finalize ends a call, with a hook that reports.
func (l *local) finalize(x *running, o Outcome) {
	o = x.own.Finalize(o, func(o Outcome) Outcome {
		l.boundary(x)
		if x.hook != nil {
			l.report(x, x.hook)
		}
		l.yield()
		return o
	})
	l.add(x.outcome(o))
}

func (l *local) settle(agent, why string) {
	left := l.left(agent)
	if s, ok := l.registry.(Settler); ok {
		s.Settle(agent, why)
		return
	}
	for _, x := range left {
		l.stage.finalize(x, Outcome{why, true})
	}
}

func (l *local) closeSession(session string) { l.bridge.Close(session) }
func (l *local) dispose()                    { l.bridge.Dispose() }

// probe counts what the registry holds.
func (l *local) probe() {
	if p, ok := l.registry.(Prober); ok {
		executions, observers := p.Held()
		l.add(rules.Entry{Kind: rules.Probed, Probe: &rules.Probe{Executions: executions, Observers: observers}})
	}
}

func (l *local) end(replays bool) error {
	if replays && l.bridge != nil {
		if err := l.replayAll(); err != nil {
			return err
		}
	}
	for _, kept := range l.kept {
		kept()
	}
	for _, stop := range l.stops {
		stop()
	}
	if l.bridge != nil && replays {
		l.bridge.Dispose()
	}
	l.probe()
	return closed(l.registry, nil)
}

// closed closes a registry that can be closed, unless something has failed before.
func closed(r Registry, err error) error {
	if c, ok := r.(io.Closer); ok && err == nil {
		return c.Close()
	}
	return err
}

func (l *local) replayAll() error {
	l.mu.Lock()
	l.replay = true
	l.mu.Unlock()
	for _, agent := range agents {
		var log []Stored
		for _, d := range l.log {
			if d.Agent == agent && (d.Kind == "tool/call" || d.Kind == "tool/result") {
				log = append(log, d)
			}
		}
		if err := l.bridge.Replay(sessionOf(agent), log); err != nil {
			return err
		}
	}
	return nil
}
