// Package acp shows the executions of a registry to clients of the Agent Client
// Protocol: a durable call is a tool_call, a view that was accepted is one
// tool_call_update in progress, a durable result is the update that closes the
// card. The bridge knows no tool by name (BRIDGE-9).
package acp

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
)

// Options are what a bridge is made of.
type Options struct {
	Registry *progress.Registry
	// Send writes one line of JSON-RPC, without its end. It is called by one
	// goroutine at a time, and must neither report nor use the bridge.
	Send func(line []byte) error
	// Every lets only each Every-th view of a card through, from the first on, and
	// the last one before the card is closed. 0 and 1 let all through (BRIDGE-10).
	Every   int
	Defects Defects
}

// The reasons to refuse.
var (
	ErrEvery   = errors.New("a bridge cannot let through each view of a negative number")
	ErrSession = errors.New("the session is open already, or its agent has another one")
)

// Bridge maps sessions to agents.
type Bridge struct {
	options Options
	stop    []func()

	mu       sync.Mutex
	sessions map[string]string // session of an agent
	cards    map[cardKey]*card
}

type cardKey struct{ agent, call string }

// card is what the bridge has to know of a card until it is closed.
type card struct {
	call    progress.Durable
	session string
	calls   int            // of its id that have no result; a model may use an id twice
	views   int            // that were accepted so far
	held    *progress.View // the last one, if it was not let through

	announced bool // only defects ask for it
}

// New makes a bridge and subscribes it.
func New(o Options) (*Bridge, error) {
	if o.Every < 0 {
		return nil, ErrEvery
	}
	b := &Bridge{options: o, sessions: map[string]string{}, cards: map[cardKey]*card{}}
	b.stop = []func(){o.Registry.ObserveStored(b.stored), o.Registry.Observe(b.progress)}
	return b, nil
}

// Dispose unsubscribes the bridge and closes its sessions.
func (b *Bridge) Dispose() {
	for _, stop := range b.stop {
		if !b.has(DisposeLeaks) {
			stop()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.sessions)
	clear(b.cards)
}

// Open shows an agent in a session.
func (b *Bridge) Open(session, agent string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a, s := range b.sessions {
		if a == agent || s == session {
			return ErrSession
		}
	}
	b.sessions[agent] = session
	return nil
}

// Close ends a session: nothing more is sent for it, and its tools go on
// undisturbed (BRIDGE-8).
func (b *Bridge) Close(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for agent, s := range b.sessions {
		if s == session && !b.has(ClosedSessionFed) {
			delete(b.sessions, agent)
		}
	}
	for key, c := range b.cards {
		if c.session == session && !b.has(ClosedSessionFed) {
			delete(b.cards, key)
		}
	}
}

// Replay shows what a log holds of the calls of a session, as pairs: no progress,
// and no card that stays open (BRIDGE-7). A call without a result, as a crash
// leaves it behind, is shown as failed.
func (b *Bridge) Replay(session string, log []progress.Durable) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range log {
		if log[i].Kind != progress.ToolCall || open(log[:i], log[i]) > 0 {
			continue
		}
		if err := b.replay(session, log[i], resultOf(log[i+1:], log[i])); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bridge) replay(session string, call, result progress.Durable) error {
	if err := b.send(session, announcement(call)); err != nil {
		return err
	}
	if b.has(ProgressReplayed) {
		_ = b.send(session, update{Update: kindUpdate, ToolCallID: call.Call, Status: inProgress})
	}
	if b.has(ReplayLeavesOpen) {
		return nil
	}
	return b.send(session, ending(call, result))
}

// open is how many calls of that id a log leaves without a result.
func open(log []progress.Durable, call progress.Durable) int {
	n := 0
	for _, d := range log {
		switch {
		case d.Agent != call.Agent || d.Call != call.Call:
		case d.Kind == progress.ToolCall:
			n++
		case d.Kind == progress.ToolResult:
			n--
		}
	}
	return n
}

// resultOf is the entry that closes the card of a call.
func resultOf(log []progress.Durable, call progress.Durable) progress.Durable {
	left := 1
	for _, d := range log {
		if left += open([]progress.Durable{d}, call); left == 0 {
			return d
		}
	}
	lost := progress.Failure("The result of the call was lost.")
	return progress.Durable{Kind: progress.ToolResult, Agent: call.Agent, Call: call.Call, Result: lost.Result, IsError: true}
}

func (b *Bridge) has(d Defect) bool { return b.options.Defects.Has(d) }

// send writes a line. The lock is held, so that lines stand in the order in which
// things happened.
func (b *Bridge) send(session string, u update) error {
	text, err := line(session, u)
	if err != nil {
		return fmt.Errorf("the card of %s cannot be written: %w", u.ToolCallID, err)
	}
	return b.options.Send(text)
}

// keyOf is by what a card is kept: its agent, and the id of its call (BRIDGE-3).
func (b *Bridge) keyOf(agent, call string) cardKey {
	if b.has(SessionsByCallID) {
		agent = ""
	}
	return cardKey{agent, call}
}

// stored takes in an entry of the durable log.
func (b *Bridge) stored(d progress.Durable) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch d.Kind {
	case progress.ToolCall:
		b.announce(d)
	case progress.ToolResult:
		b.end(d)
	}
}

// announce opens a card (BRIDGE-1). A call whose id another one has, which is still
// under way, has no card of its own: it would be announced twice.
func (b *Bridge) announce(d progress.Durable) {
	session, open := b.sessions[d.Agent]
	if !open {
		return
	}
	key := b.keyOf(d.Agent, d.Call)
	if c := b.cards[key]; c != nil && !b.has(SessionsByCallID) {
		c.calls++
		return
	}
	c := &card{call: d, session: session, calls: 1}
	b.cards[key] = c
	if !b.has(AnnouncedLate) {
		b.show(c)
	}
}

func (b *Bridge) show(c *card) {
	c.announced = true
	_ = b.send(c.session, announcement(c.call)) // a client that is gone is no concern of the tool's
}

// end closes a card, with the last result of its calls (BRIDGE-4, BRIDGE-5).
func (b *Bridge) end(d progress.Durable) {
	key := b.keyOf(d.Agent, d.Call)
	c := b.cards[key]
	if c == nil || b.has(FailuresNotClosed) && d.IsError {
		return
	}
	if c.calls--; c.calls > 0 {
		return
	}
	delete(b.cards, key)
	if c.held != nil && !b.has(LastViewLost) {
		_ = b.send(c.session, b.step(c, *c.held)) // (BRIDGE-10)
	}
	_ = b.send(c.session, ending(c.call, d))
	if b.has(UpdateAfterTerminal) && c.views > 0 {
		_ = b.send(c.session, update{Update: kindUpdate, ToolCallID: d.Call, Status: inProgress})
	}
}

// progress takes in a view that was accepted. A nested execution has no card, and
// so has nothing that nobody announced (PROG-11).
func (b *Bridge) progress(o progress.Observation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.Parent != 0 || o.Agent == "" {
		if b.has(NestedAnnounced) {
			b.nested(o)
		}
		return nil
	}
	c := b.cards[b.keyOf(o.Agent, o.Call)]
	if c == nil {
		return nil
	}
	if !c.announced {
		b.show(c)
	}
	c.views++
	if every := b.every(); (c.views-1)%every != 0 {
		c.held = &o.View
		return nil
	}
	c.held = nil
	if b.has(EverySecondDropped) && c.views%2 == 0 {
		return nil
	}
	u := b.step(c, o.View)
	if b.has(SentTwice) {
		_ = b.send(c.session, u)
	}
	return b.send(c.session, u)
}

func (b *Bridge) every() int { return max(b.options.Every, 1) }

// nested is what a bridge sends that takes any execution for a card.
func (b *Bridge) nested(o progress.Observation) {
	for agent, session := range b.sessions {
		if agent == o.Agent {
			_ = b.send(session, update{Update: kindUpdate, ToolCallID: o.Call, Status: inProgress, Content: shown(nil, viewBlocks(o.View))})
		}
	}
}

// step is the line of one view: title and content, and nothing else (BRIDGE-2).
func (b *Bridge) step(c *card, v progress.View) update {
	shape := cardOf(c.call)
	u := update{Update: kindUpdate, ToolCallID: c.call.Call, Status: inProgress}
	if v.Title != nil && (shape.Generic && b.options.Registry.Policy().Title == progress.TitleOnGeneric || b.has(TitleAlwaysReplaced)) {
		u.Title = *v.Title
	}
	if v.Content != nil {
		u.Content = shown(shape.Fixed, viewBlocks(v))
	}
	switch {
	case v.Content != nil && b.has(FixedContentWiped):
		u.Content = shown([]trace.Value{}, viewBlocks(v))
	case b.has(KindInProgress):
		u.Kind = shape.Kind
	case b.has(ToolKnownByName) && c.call.Tool == "workflow":
		u.Content = nil
	}
	return u
}
