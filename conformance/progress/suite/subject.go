package suite

import (
	"context"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
)

// Subject is a channel of progress written in Go. Only New is needed. What is nil
// is not there, and the rules about it are not applicable.
type Subject struct {
	// New makes a registry. It is called inside the bubble. Its goroutines have to end
	// once nothing runs any more, or with its method Close, if it has one.
	New func(s Surroundings) (Registry, error)
	// Bridge shows the executions of a registry that New has made to a client. It
	// writes lines of JSON-RPC by send.
	Bridge func(r Registry, send func(line []byte) error) (Bridge, error)
	// Throttled is Bridge with a setting by which each every-th view is let through,
	// from the first on; nil if there is no such setting.
	Throttled func(r Registry, send func(line []byte) error, every int) (Bridge, error)
	// Producer makes a tool that runs workflows on an engine.
	Producer func(r Registry, e Engine) (Producer, error)

	// Coroutines says that the registry waits by Surroundings.Await alone, so that it
	// can be run without goroutines.
	Coroutines bool
}

// Surroundings are what a registry is made with.
type Surroundings struct {
	// Store writes an entry into the durable log.
	Store func(Stored) error
	// Log is to be told what went wrong in an observer or a hook.
	Log func(who string, err error)
	// Await waits until done is closed. Pause may be called where another goroutine
	// could run between two steps of a report. Neither has to be used by a registry
	// that has goroutines and locks of its own.
	Await func(done <-chan struct{})
	Pause func()
}

// Registry owns the executions of tools and tells observers of their progress.
//
// A view is a value of the registry's own type. The suite makes it by ParseView,
// looks at it as JSON, and changes it in place where its owner may: so do not copy
// it on the way to and from your registry, or the suite tests your copy.
type Registry interface {
	// ParseView reads the JSON form of a view, {title?, content?: [{type, text}]}.
	ParseView(text []byte) (view any, err error)
	// Prepare begins an execution. Nothing is stored yet.
	Prepare(c Call) Execution
	// Observe registers an observer of one agent's progress, or of all if agent is
	// empty, until stop is called.
	Observe(agent string, o func(Observation) error) (stop func())
}

// Execution is one execution of a tool.
type Execution interface {
	Identity() Identity
	// Dispatch stores the call and says that the tool's body is about to be entered.
	Dispatch() error
	ReportProgress(view any) (accepted bool, err error)
	// Finalize ends the execution: the boundary, then the hook, which may change the
	// outcome, then the observers of the result, then the durable result. It gives
	// what became of it.
	Finalize(o Outcome, hook func(Outcome) Outcome) Outcome
}

// Announcer is an execution whose call can be stored without being dispatched, as
// that of a call which is refused.
type Announcer interface{ Announce() error }

// ResultObservable is a registry that tells observers how an execution has ended.
type ResultObservable interface {
	ObserveResults(o func(Identity, Outcome) error) (stop func())
}

// Settler is a registry that ends what an agent has still running, as when its
// worker has died. Without it the suite finalizes each execution.
type Settler interface{ Settle(agent, why string) }

// Prober is a registry that counts what it holds.
type Prober interface {
	Held() (executions, observers int)
}

// Identity is whose execution it is. Tokens are the registry's, and not given
// twice.
type Identity struct {
	Agent  string // empty if no agent has asked
	Call   string
	Token  uint64
	Parent uint64 // token of the execution inside which it runs, or 0
}

// Observation is what an observer is told.
type Observation struct {
	Identity
	View any
}

// Call is what a registry is asked to run.
type Call struct {
	Agent  string
	ID     string
	Tool   string
	Args   trace.Value
	Card   *rules.Card // how it is shown
	Parent Execution   // inside which it runs, or nil
}

// Outcome is what became of a tool.
type Outcome struct {
	Text    string
	IsError bool
}

// Stored is an entry of the durable log.
type Stored struct {
	Kind    string // tool/call or tool/result
	Agent   string
	Call    string
	IsError bool        // of a result
	Entry   trace.Value // the whole entry, which is compared byte by byte
}

// Bridge shows agents in sessions.
type Bridge interface {
	Open(session, agent string) error
	Close(session string)
	// Replay shows what a log holds of a session.
	Replay(session string, log []Stored) error
	// Dispose unsubscribes the bridge and closes its sessions.
	Dispose()
}

// Engine runs workflows, and emits its events to listeners.
type Engine = workflow.Engine

// Job is what a workflow is to do.
type Job = workflow.Job

// Producer runs a workflow as the body of a tool, and reports as it goes: texts of
// the lines that FLOW-5 speaks of, «phase: …», «log: …», «active: …», «N active, N
// completed, N failed, N cancelled», «ended: …».
type Producer interface {
	Run(ctx context.Context, x Execution, job Job) (text string, err error)
}

// ProducerProber is a producer that counts what it holds.
type ProducerProber interface{ Held() workflow.Probe }
