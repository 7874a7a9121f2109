// Package acpagent is an agent of the Agent Client Protocol, version 1, made of
// the reference loop, a scripted model, the registry of executions, the workflow
// producer and the bridge. It is there so that clients can be tried on it.
package acpagent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress"
	"github.com/pi-conform/pi-conform/loop/progress/acp"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
)

// Options are what an agent is made of.
type Options struct {
	In  io.Reader
	Out io.Writer
	// Ticks move the workflow engine's clock by a second each, as long as a
	// workflow is waited for. One that is alone sees no time pass while it starts,
	// so that what it shows does not depend on how fast the machine is.
	Ticks <-chan time.Time
}

// Agent serves one client.
type Agent struct {
	in       io.Reader
	registry *progress.Registry
	bridge   *acp.Bridge
	engine   *workflow.Scripted
	waiting  atomic.Int32 // workflows that are waited for
	producer *workflow.Producer

	out struct {
		sync.Mutex
		io.Writer
	}

	mu       sync.Mutex
	sessions map[string]*session
	log      []progress.Durable
	prompts  sync.WaitGroup
}

// The error codes of JSON-RPC.
const (
	codeParse   = -32700
	codeMethod  = -32601
	codeParams  = -32602
	codeProblem = -32603
)

type message struct {
	Version string      `json:"jsonrpc"`
	ID      trace.Value `json:"id,omitzero"`
	Method  string      `json:"method,omitempty"`
	Params  trace.Value `json:"params,omitzero"`
	Result  any         `json:"result,omitzero"`
	Error   *fault      `json:"error,omitempty"`
}

type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (f *fault) Error() string { return f.Message }

// Serve serves a client until it ends its side, or ctx is done.
func Serve(ctx context.Context, o Options) error {
	a := &Agent{in: o.In, sessions: map[string]*session{}}
	a.engine = workflow.NewScripted(scripts, a.await)
	a.out.Writer = o.Out
	var err error
	if a.registry, err = progress.New(progress.Options{Durable: a.store}); err != nil {
		return err
	}
	if a.bridge, err = acp.New(acp.Options{Registry: a.registry, Send: a.write}); err != nil {
		return err
	}
	defer a.bridge.Dispose()
	a.producer = workflow.NewProducer(a.engine, a.registry.Policy(), nil)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go a.clock(ctx, o.Ticks)
	err = a.serve(ctx)
	a.leave()
	return err
}

// clock moves the workflow engine's clock.
func (a *Agent) clock(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			if a.waiting.Load() > 0 {
				a.engine.Advance(time.Second)
			}
		}
	}
}

// await waits for the end of a workflow.
func (a *Agent) await(ctx context.Context, done <-chan struct{}) error {
	a.waiting.Add(1)
	defer a.waiting.Add(-1)
	return workflow.WaitFor(ctx, done)
}

// maxLine is how long a line may be.
const maxLine = 16 << 20

func (a *Agent) serve(ctx context.Context) error {
	lines := bufio.NewScanner(a.in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) > 0 {
			if err := a.line(lines.Bytes()); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return lines.Err()
}

// leave ends what is still running once the client is gone.
func (a *Agent) leave() {
	a.mu.Lock()
	for _, s := range a.sessions {
		s.cancel()
	}
	a.mu.Unlock()
	a.prompts.Wait()
}

// line takes in one line. The error is that of the output.
func (a *Agent) line(text []byte) error {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return a.say(message{ID: trace.Value("null"), Error: &fault{codeParse, err.Error()}})
	}
	if m.ID == nil {
		a.notice(&m)
		return nil
	}
	if m.Method == "" {
		return nil // an answer, and this agent asks nothing
	}
	result, err := a.handle(&m)
	if errors.Is(err, errLater) {
		return nil
	}
	return a.answer(m.ID, result, err)
}

func (a *Agent) notice(m *message) {
	if m.Method != "session/cancel" {
		return
	}
	if s, err := a.find(m.Params); err == nil {
		s.cancel()
	}
}

// errLater says that a request is answered later.
var errLater = errors.New("answered later")

func (a *Agent) handle(m *message) (any, error) {
	switch m.Method {
	case "initialize":
		return initialized{ProtocolVersion: 1, AgentCapabilities: capabilities{LoadSession: true}, AuthMethods: []string{}}, nil
	case "authenticate":
		return struct{}{}, nil
	case "session/new":
		return a.create()
	case "session/load":
		return struct{}{}, a.load(m.Params)
	case "session/prompt":
		return nil, a.prompt(m)
	}
	return nil, &fault{codeMethod, fmt.Sprintf("there is no method %q", m.Method)}
}

type initialized struct {
	ProtocolVersion   int          `json:"protocolVersion"`
	AgentCapabilities capabilities `json:"agentCapabilities"`
	AuthMethods       []string     `json:"authMethods"`
}

type capabilities struct {
	LoadSession bool `json:"loadSession"`
}

func (a *Agent) answer(id trace.Value, result any, err error) error {
	if err == nil {
		return a.say(message{ID: id, Result: result})
	}
	f, ok := errors.AsType[*fault](err)
	if !ok {
		f = &fault{codeProblem, err.Error()}
	}
	return a.say(message{ID: id, Error: f})
}

func (a *Agent) say(m message) error {
	m.Version = "2.0"
	text, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return err
	}
	return a.write(text)
}

// write writes a line.
func (a *Agent) write(text []byte) error {
	a.out.Lock()
	defer a.out.Unlock()
	_, err := a.out.Write(append(text[:len(text):len(text)], '\n'))
	return err
}

// store keeps the durable log.
func (a *Agent) store(d progress.Durable) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, d)
	return nil
}

// pair are the entries of one call of a session.
func (a *Agent) pair(session, call string) []progress.Durable {
	a.mu.Lock()
	defer a.mu.Unlock()
	var pair []progress.Durable
	for _, d := range a.log {
		if d.Agent == session && d.Call == call {
			pair = append(pair, d)
		}
	}
	return pair
}

func (a *Agent) find(params trace.Value) (*session, error) {
	var of struct {
		Session string `json:"sessionId"`
	}
	if err := json.Unmarshal(params, &of); err != nil {
		return nil, &fault{codeParams, err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[of.Session]
	if s == nil {
		return nil, &fault{codeParams, fmt.Sprintf("there is no session %q", of.Session)}
	}
	return s, nil
}
