package suite

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Open opens the channel of progress of a subject in another process.
type Open func() (*protocol.Channel, error)

// RemoteCalls is what the channel of a subject in another process does under a
// seed. Capabilities are those that the subject has declared.
func RemoteCalls(open Open, capabilities []string, seed uint64) (*rules.Record, error) {
	p := drawPlan(seed).able(abilitiesOf(capabilities).throttle)
	return recordCalls(p, true, func(p plan) ([]rules.Entry, error) {
		channel, err := open()
		if err != nil {
			return nil, err
		}
		entries, err := playRemote(channel, capabilities, p)
		if closing := channel.Close(); err == nil {
			err = closing
		}
		return entries, err
	})
}

func playRemote(channel *protocol.Channel, capabilities []string, p plan) ([]rules.Entry, error) {
	s := newStage(p, newCoroutines(p.seed))
	r := &remote{stage: s, wire: channel, waiting: map[string]bool{}, over: map[string]bool{}, abilities: abilitiesOf(capabilities)}
	s.channel = r
	entries, err := s.play()
	if r.err != nil {
		err = r.err
	}
	return entries, err
}

func abilitiesOf(capabilities []string) abilities {
	return abilities{
		announce: slices.Contains(capabilities, protocol.CapAnnounce),
		bridge:   slices.Contains(capabilities, protocol.CapBridge),
		throttle: slices.Contains(capabilities, protocol.CapThrottle),
	}
}

// RemoteLacks says of each rule that is not applicable to a subject with these
// capabilities why that is so.
func RemoteLacks(capabilities []string) map[string]string {
	return lacks(abilitiesOf(capabilities).bridge, false, false)
}

// remote is a channel in another process. What is seen there comes as entries.
type remote struct {
	*stage
	abilities abilities
	wire      *protocol.Channel
	waiting   map[string]bool // observers
	over      map[string]bool // reports and executions that have come to their end
	err       error           // the first; from then on nothing is done
}

func (r *remote) can() abilities { return r.abilities }

// do does something and takes in what was seen.
func (r *remote) do(a *protocol.Act) {
	if r.err == nil {
		r.take(r.wire.Do(a))
	}
}

func (r *remote) take(seen []trace.Value, waiting []string, err error) {
	for _, text := range seen {
		if err == nil {
			err = r.see(text)
		}
	}
	if err != nil {
		r.err = err
		return
	}
	for _, observer := range waiting {
		if !r.waiting[observer] {
			r.waiting[observer] = true
			r.spawn(func() { r.letOn(observer) })
		}
	}
}

// letOn lets an observer go on that was slow.
func (r *remote) letOn(observer string) {
	if r.err != nil {
		return
	}
	seen, waiting, err := r.wire.Answer(observer)
	delete(r.waiting, observer)
	r.take(seen, waiting, err)
}

// see adds an entry.
func (r *remote) see(text trace.Value) error {
	var e rules.Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("an entry of a channel of progress cannot be read: %w", err)
	}
	for _, v := range []*trace.Value{&e.View, &e.Value} {
		if *v == nil {
			continue
		}
		if err := v.Canonicalize(); err != nil { // languages write members in another order
			return err
		}
	}
	r.complete(&e)
	r.add(e)
	return nil
}

// complete adds to an entry what the subject need not know.
func (r *remote) complete(e *rules.Entry) {
	switch {
	case e.Kind == rules.Prepared:
		x := r.running[len(r.running)-1] // which is being prepared
		x.identity = Identity{e.Agent, e.Call, e.Token, e.Parent}
		e.Session = sessionOf(x.call.agent)
	case e.Kind == rules.Durable:
		r.stored(e, e.Error != "")
	case e.Kind == rules.Wire:
		if line, err := wireEntry(e.Value, e.Replay); err == nil {
			e.Session, e.Report = line.Session, line.Report
		}
	case e.Kind == rules.Returned:
		r.over[reportKey(e.Report)] = true
	case e.Kind == rules.Outcome:
		r.over[executionKey(e.Token)] = true
	}
}

func reportKey(number int) string        { return fmt.Sprint("report ", number) }
func executionKey(token uint64) string   { return fmt.Sprint("execution ", token) }
func (r *remote) isOver(key string) bool { return r.over[key] || r.err != nil }

func (r *remote) open(p *plan) error {
	for _, w := range p.watchers() {
		r.add(rules.Entry{Kind: rules.Observers, Observer: w.name, Scope: w.scope})
		r.do(&protocol.Act{Do: protocol.DoObserve, Observer: w.name, Agent: w.scope, Does: string(w.does)})
	}
	for _, agent := range agents {
		if r.abilities.bridge {
			r.do(&protocol.Act{Do: protocol.DoOpenSession, Session: sessionOf(agent), Agent: agent, Every: p.every})
		}
	}
	return r.err
}

func (r *remote) parse(text string) {
	r.do(&protocol.Act{Do: protocol.DoParse, View: trace.Value(text)})
}

// of is a report as a message has it.
func of(r *report) *protocol.Progress {
	if r == nil {
		return nil
	}
	return &protocol.Progress{Number: r.number, By: r.by, View: r.view, Invalid: r.invalid, Echo: of(r.echo)}
}

func (r *remote) prepare(x, parent *running) {
	a := &protocol.Act{
		Do: protocol.DoPrepare, Execution: x.number, Agent: x.call.agent, Call: x.call.id, Tool: x.tool, Args: argsOf(x.call),
		Hook: of(x.hook), Result: of(x.result),
	}
	if x.call.card != nil {
		card, err := json.Marshal(x.call.card, json.Deterministic(true))
		if err != nil {
			r.err = err
			return
		}
		a.Card = card
	}
	if parent != nil {
		a.Parent = parent.number
	}
	r.do(a)
}

func (r *remote) announce(x *running) {
	r.do(&protocol.Act{Do: protocol.DoAnnounce, Execution: x.number})
}

func (r *remote) dispatch(x *running) {
	r.do(&protocol.Act{Do: protocol.DoDispatch, Execution: x.number})
}

func (r *remote) report(x *running, rep *report) {
	r.do(&protocol.Act{Do: protocol.DoReport, Execution: x.number, Report: of(rep)})
	r.wait(func() bool { return r.isOver(reportKey(rep.number)) })
}

func (r *remote) finalize(x *running, o Outcome) {
	r.do(&protocol.Act{Do: protocol.DoFinalize, Execution: x.number, Text: o.Text, IsError: o.IsError})
	r.wait(func() bool { return r.isOver(executionKey(x.identity.Token)) })
}

// settle waits for slow observers too: the subject does.
func (r *remote) settle(agent, why string) {
	r.do(&protocol.Act{Do: protocol.DoSettle, Agent: agent, Text: why})
	r.wait(func() bool { return len(r.waiting) == 0 || r.err != nil })
}

func (r *remote) closeSession(session string) {
	r.do(&protocol.Act{Do: protocol.DoCloseSession, Session: session})
}

func (r *remote) dispose() { r.do(&protocol.Act{Do: protocol.DoDispose}) }

// probe does nothing: what a subject holds is not seen.
func (r *remote) probe() {}

func (r *remote) end(replays bool) error {
	for _, agent := range agents {
		if replays && r.abilities.bridge {
			r.do(&protocol.Act{Do: protocol.DoReplay, Session: sessionOf(agent), Agent: agent})
		}
	}
	r.do(&protocol.Act{Do: protocol.DoLook})
	return r.err
}
