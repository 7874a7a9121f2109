package progress

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Identity is whose execution it is. The registry gives it, and nothing that a
// tool says changes it (PROG-7).
type Identity struct {
	Agent  string // empty if no agent has asked
	Call   string
	Token  uint64 // never given twice by a registry
	Parent uint64 // token of the execution inside which it runs, or 0
}

// shown reports whether the execution has a durable call, and thereby a card.
func (id Identity) shown(ds Defects) bool {
	return id.Agent != "" && (id.Parent == 0 || ds.Has(NestedUnderParentsAgent))
}

// Observation is what an observer is told.
type Observation struct {
	Identity
	View View // the observer's own
}

// Observer is told of every report that is accepted. What it returns or throws is
// logged, and changes nothing (PROG-6).
type Observer func(Observation) error

// ResultObserver is told how an execution has ended, before that is stored.
type ResultObserver func(Identity, Outcome) error

// Options are what a registry is made of. Nothing is required.
type Options struct {
	Policy  Policy
	Durable DurableLog // keeps nothing if nil
	// Log is told what went wrong in an observer or a hook; it must not report.
	Log     func(who string, err error)
	Defects Defects
	// Await waits until done is closed; nil means a plain wait. Pause is called
	// where another goroutine might run between two steps of a report. Both are
	// for those who schedule goroutines themselves.
	Await func(done <-chan struct{})
	Pause func()
}

// Registry owns executions and tells observers of their progress.
type Registry struct {
	policy  Policy
	durable DurableLog
	log     func(string, error)
	defects Defects
	await   func(<-chan struct{})
	pause   func()

	mu         sync.Mutex
	tokens     uint64
	executions map[uint64]*Execution
	observers  []*subscription
	results    []*resultSubscription
	stored     []*storedSubscription
}

// New makes a registry. The error says what is wrong with the policy.
func New(o Options) (*Registry, error) {
	if err := o.Policy.check(); err != nil {
		return nil, err
	}
	r := &Registry{
		policy: o.Policy, durable: o.Durable, log: o.Log, defects: o.Defects, await: o.Await, pause: o.Pause,
		executions: map[uint64]*Execution{},
	}
	if r.durable == nil {
		r.durable = func(Durable) error { return nil }
	}
	if r.log == nil {
		r.log = func(string, error) {}
	}
	if r.await == nil {
		r.await = func(done <-chan struct{}) { <-done }
	}
	if r.pause == nil {
		r.pause = func() {}
	}
	return r, nil
}

// Policy is the policy of the registry.
func (r *Registry) Policy() Policy { return r.policy }

type subscription struct {
	agent   string // that it is scoped to
	scoped  bool
	observe Observer
}

type resultSubscription struct{ observe ResultObserver }

type storedSubscription struct{ stored func(Durable) }

// Observe registers an observer of all progress, until stop is called.
func (r *Registry) Observe(o Observer) (stop func()) {
	return add(r, &r.observers, &subscription{observe: o})
}

// ObserveAgent registers an observer of one agent's progress (PROG-8).
func (r *Registry) ObserveAgent(agent string, o Observer) (stop func()) {
	return add(r, &r.observers, &subscription{agent: agent, scoped: true, observe: o})
}

// ObserveResults registers an observer of the ends of executions.
func (r *Registry) ObserveResults(o ResultObserver) (stop func()) {
	return add(r, &r.results, &resultSubscription{o})
}

// ObserveStored registers a function that is told of each durable entry once it
// is stored.
func (r *Registry) ObserveStored(f func(Durable)) (stop func()) {
	return add(r, &r.stored, &storedSubscription{f})
}

func add[T any](r *Registry, list *[]*T, item *T) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(slices.Clip(*list), item)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(t *T) bool { return t == item })
	}
}

// snapshot is a list as it is now; it is never changed in place.
func snapshot[T any](r *Registry, list *[]*T) []*T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *list
}

// matching are the observers whose scope an execution is in.
func (r *Registry) matching(agent string) []*subscription {
	var found []*subscription
	for _, s := range snapshot(r, &r.observers) {
		if !s.scoped || s.agent == agent || r.defects.Has(ScopeIgnored) {
			found = append(found, s)
		}
	}
	return found
}

// Call is what a registry is asked to run.
type Call struct {
	Agent  string
	ID     string
	Tool   string
	Args   trace.Value
	Card   *Card      // nil means one that shows the tool's name
	Parent *Execution // inside which it runs, or nil
}

// Prepare begins an execution. Nothing is stored yet.
func (r *Registry) Prepare(c Call) *Execution {
	if c.Card == nil {
		c.Card = &Card{Title: c.Tool, Generic: true}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens++
	x := &Execution{registry: r, call: c, identity: Identity{Agent: c.Agent, Call: c.ID, Token: r.tokens}, rounds: map[uint64]int{}}
	if c.Parent != nil {
		x.identity.Parent = c.Parent.identity.Token
	}
	r.executions[x.identity.Token] = x
	return x
}

// Settle ends what an agent has still running, with a failure that says why. It
// is for whoever knows that nobody else will: a worker that died, a session that
// is over.
func (r *Registry) Settle(agent, why string) {
	for _, x := range r.running(agent) {
		x.Finalize(Failure(why), nil)
	}
}

func (r *Registry) running(agent string) []*Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*Execution
	for _, x := range r.executions {
		if x.identity.Agent == agent {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(a, b *Execution) int { return int(b.identity.Token) - int(a.identity.Token) }) // inner ones first
	return found
}

// Probe counts what a registry holds.
type Probe struct{ Executions, Observers int }

// Probe counts what the registry holds.
func (r *Registry) Probe() Probe {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Probe{Executions: len(r.executions), Observers: len(r.observers) + len(r.results) + len(r.stored)}
}

// store writes an entry and tells of it.
func (r *Registry) store(d Durable) error {
	if err := r.durable(d); err != nil {
		return err
	}
	for _, s := range snapshot(r, &r.stored) {
		r.guard("observer of the log", func() error { s.stored(d); return nil })
	}
	return nil
}

// guard runs what is not ours. Whatever goes wrong in it is logged.
func (r *Registry) guard(who string, f func() error) {
	if err := recovered(f); err != nil {
		r.log(who, err)
	}
}

// recovered runs f and makes an error of a panic.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
