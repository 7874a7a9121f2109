// Package chanprogress is a registry of progress in another style than the
// reference's: each execution has a goroutine that tells the observers, and all
// others speak to it by channels. It is an example of what
// conformancetest.RunProgress tests, and has defects that can be planted.
package chanprogress

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
)

// View is what a tool shows.
type View struct {
	Title   string  `json:"title,omitempty"`
	Content []Block `json:"content,omitempty"`
}

// Block is a piece of text.
type Block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// mostBytes is how large a view may be as JSON.
const mostBytes = 64 << 10

// Event is what an observer is told.
type Event struct {
	Agent, Call   string
	Token, Parent uint64
	View          *View
}

// Entry is an entry of the log.
type Entry struct {
	Kind    string `json:"kind"`
	Agent   string `json:"agent"`
	Call    string `json:"call"`
	Tool    string `json:"tool,omitempty"`
	Text    string `json:"text,omitempty"`
	IsError bool   `json:"isError,omitzero"`
}

// Plant is a defect that can be planted.
type Plant string

// The defects.
const (
	Shared      Plant = "shared"       // a view is not copied
	Late        Plant = "late"         // a report after the end is told of
	Impatient   Plant = "impatient"    // the end does not wait for observers
	Fragile     Plant = "fragile"      // an observer that panics keeps others from being told
	Gossip      Plant = "gossip"       // scopes are ignored
	Lenient     Plant = "lenient"      // a view may say anything
	Eager       Plant = "eager"        // progress before the call was stored
	Stuck       Plant = "stuck"        // an observer that reports waits for itself
	Panicky     Plant = "panicky"      // a report that is too large panics
	Chatty      Plant = "chatty"       // progress is stored
	NestedCalls Plant = "nested-calls" // a nested execution is stored too
)

// Registry owns executions.
type Registry struct {
	store func(Entry) error
	log   func(who string, err error)
	plant Plant

	mu        sync.Mutex
	tokens    uint64
	watchers  map[uint64]watcher
	observers uint64
}

type watcher struct {
	agent string
	tell  func(Event) error
}

// New makes a registry.
func New(store func(Entry) error, log func(who string, err error), plant Plant) *Registry {
	return &Registry{store: store, log: log, plant: plant, watchers: map[uint64]watcher{}}
}

// Watch registers an observer of an agent, or of all.
func (r *Registry) Watch(agent string, tell func(Event) error) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.observers++
	id := r.observers
	r.watchers[id] = watcher{agent, tell}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}

// watching are those who watch an agent, in the order in which they came.
func (r *Registry) watching(agent string) []watcher {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []watcher
	for _, id := range slices.Sorted(maps.Keys(r.watchers)) {
		if w := r.watchers[id]; w.agent == "" || w.agent == agent || r.plant == Gossip {
			found = append(found, w)
		}
	}
	return found
}

// Parse reads a view.
func (r *Registry) Parse(text []byte) (*View, error) {
	v := &View{}
	return v, json.Unmarshal(text, v, json.RejectUnknownMembers(r.plant != Lenient))
}

// Execution is one execution. Its own goroutine begins with Begin.
type Execution struct {
	registry      *Registry
	Agent, Call   string
	Tool          string
	Token, Parent uint64

	begun  chan struct{}
	rounds chan round
	end    chan struct{}
	closed chan struct{} // nothing is accepted any more
	teller uint64        // the goroutine; set before begun is closed
}

type round struct {
	view *View
	done chan struct{}
}

// Prepare makes an execution.
func (r *Registry) Prepare(agent, call, tool string, parent uint64) *Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens++
	return &Execution{
		registry: r, Agent: agent, Call: call, Tool: tool, Token: r.tokens, Parent: parent,
		begun: make(chan struct{}), rounds: make(chan round), end: make(chan struct{}), closed: make(chan struct{}),
	}
}

func (x *Execution) shown() bool {
	return x.Agent != "" && (x.Parent == 0 || x.registry.plant == NestedCalls)
}

// Begin stores the call and starts the goroutine that tells.
func (x *Execution) Begin() error {
	if x.shown() {
		if err := x.registry.store(Entry{Kind: "tool/call", Agent: x.Agent, Call: x.Call, Tool: x.Tool}); err != nil {
			return err
		}
	}
	ready := make(chan struct{})
	go x.tellers(ready)
	<-ready
	close(x.begun)
	return nil
}

// tellers tells one view after the other until the end.
func (x *Execution) tellers(ready chan<- struct{}) {
	x.teller = goroutine()
	close(ready)
	for {
		select {
		case r := <-x.rounds:
			if x.registry.plant == Impatient {
				go x.tell(r)
			} else {
				x.tell(r)
			}
		case <-x.end:
			close(x.closed)
			return
		}
	}
}

func (x *Execution) tell(r round) {
	defer close(r.done)
	if x.registry.plant == Chatty && x.shown() {
		_ = x.registry.store(Entry{Kind: "tool/progress", Agent: x.Agent, Call: x.Call})
	}
	for _, w := range x.registry.watching(x.Agent) {
		view := r.view
		if x.registry.plant != Shared {
			view = view.copied()
		}
		err := guarded(func() error { return w.tell(Event{x.Agent, x.Call, x.Token, x.Parent, view}) })
		if err != nil {
			x.registry.log("observer", err)
			if x.registry.plant == Fragile {
				return
			}
		}
	}
}

func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

func (v *View) copied() *View { return &View{Title: v.Title, Content: slices.Clone(v.Content)} }

// The reasons to refuse.
var (
	ErrEarly     = errors.New("the call is not stored yet")
	ErrTooLarge  = errors.New("the view is too large")
	ErrReentrant = errors.New("an observer reports on what it is told of")
)

// Report shows a view.
func (x *Execution) Report(v *View) (bool, error) {
	plant := x.registry.plant
	if isClosed(x.closed) {
		if plant == Late {
			x.tell(round{v, make(chan struct{})})
			return true, nil
		}
		return false, nil
	}
	if !isClosed(x.begun) {
		if plant == Eager {
			return true, nil
		}
		return false, ErrEarly
	}
	if text, err := json.Marshal(v); err != nil || len(text) > mostBytes {
		if plant == Panicky {
			panic("a view is too large")
		}
		return false, ErrTooLarge
	}
	if plant != Stuck && goroutine() == x.teller {
		return false, ErrReentrant
	}
	r := round{v, make(chan struct{})}
	if plant != Shared {
		r.view = v.copied()
	}
	select {
	case x.rounds <- r:
		<-r.done
		return true, nil
	case <-x.closed:
		return false, nil
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// End ends the execution. Hook may change the text.
func (x *Execution) End(text string, isError bool, hook func(string, bool) (string, bool)) (string, bool) {
	select {
	case x.end <- struct{}{}:
	case <-x.closed:
		return text, isError
	}
	<-x.closed
	if hook != nil {
		text, isError = hook(text, isError)
	}
	if x.shown() {
		_ = x.registry.store(Entry{Kind: "tool/result", Agent: x.Agent, Call: x.Call, Text: text, IsError: isError})
	}
	return text, isError
}

// goroutine is the number of the calling goroutine.
func goroutine() uint64 {
	head := make([]byte, 48)
	fields := bytes.Fields(head[:runtime.Stack(head, false)])
	n, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
