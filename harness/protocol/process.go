package protocol

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
)

// Command is how a subject is started.
type Command struct {
	Argv []string
	Env  []string // KEY=VALUE, added to the environment of this process
	Dir  string   // working directory; empty means that of this process
	// KeepEnv keeps what would otherwise be taken out of the environment because
	// it hides faults of the subject.
	KeepEnv bool
}

// hiding are variables that make a program behave better, or otherwise, than
// where its author runs it.
var hiding = []string{
	"PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", // hide missing flushes and wrong encodings
	"_STDBUF_I", "_STDBUF_O", "_STDBUF_E",
	"NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "RUBYOPT", // load or print what is not the subject's
	"FORCE_COLOR", "CLICOLOR_FORCE",
}

func (c *Command) environment(inherited []string) []string {
	env := slices.Clone(inherited)
	if !c.KeepEnv {
		env = slices.DeleteFunc(env, func(entry string) bool {
			key, _, _ := strings.Cut(entry, "=")
			return slices.Contains(hiding, key)
		})
	}
	return append(env, c.Env...)
}

// String is the command as one would type it.
func (c Command) String() string { return strings.Join(c.Argv, " ") }

// Options of a process. The zero value will do.
type Options struct {
	Harness  string   // how the harness names itself; empty means «pi-conform»
	Editions []string // that the harness knows; nil means all known ones
	// TimeoutScale multiplies all time limits; 0 means 1. They count from the last
	// sign of life: 10 s for the start, 5 s for a reply, a barrier and the
	// end. A whole case has 60 s.
	TimeoutScale float64
	// Strict checks every message in both directions against the schema.
	Strict bool
	// Log, if not nil, gets what the subject logs and what the harness notes. It
	// may be called from several goroutines.
	Log func(line string)
}

func (o *Options) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}

const (
	helloLimit = 10 * time.Second
	replyLimit = 5 * time.Second
	syncLimit  = 5 * time.Second
	byeLimit   = 5 * time.Second
	caseLimit  = 60 * time.Second
	// quietTime is how long a subject without a barrier has to be quiet to count
	// as settled.
	quietTime = 50 * time.Millisecond
)

func (o *Options) scaled(d time.Duration) time.Duration {
	if o.TimeoutScale <= 0 {
		return d
	}
	return time.Duration(float64(d) * o.TimeoutScale)
}

// Process is a [harness.Driver] for a subject in a process of its own. The
// process is started on first use, serves any number of sessions, and is
// started again on the next use after it has died.
type Process struct {
	command Command
	opts    Options

	gate sync.RWMutex

	mu      sync.Mutex
	conn    *conn
	info    harness.SubjectInfo
	failed  int         // starts in a row
	final   *StartError // no further start is tried
	starts  int
	stopped bool
}

// startTries is how many starts in a row may fail.
const startTries = 3

var (
	_ harness.Driver = (*Process)(nil)
	_ harness.Shared = (*Process)(nil)
)

// Gate is that of the process.
func (p *Process) Gate() *sync.RWMutex { return &p.gate }

// NewProcess gives a driver for a command. Nothing is started yet.
func NewProcess(command Command, opts Options) *Process {
	if opts.Harness == "" {
		opts.Harness = "pi-conform"
	}
	if opts.Editions == nil {
		for _, e := range edition.Known() {
			opts.Editions = append(opts.Editions, string(e))
		}
	}
	return &Process{command: command, opts: opts, info: harness.SubjectInfo{Name: command.String()}}
}

// Info is what the subject says of itself. It starts the subject if need be; if
// that fails, there is only a name, and [Process.Start] says why.
func (p *Process) Info() harness.SubjectInfo {
	p.mu.Lock()
	known := p.starts > 0
	p.mu.Unlock()
	if !known {
		_ = p.Start(context.Background()) // Open tells
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

// Start starts the subject, if it does not run, and shakes hands with it. An
// error is a [StartError].
func (p *Process) Start(ctx context.Context) error {
	_, err := p.running(ctx)
	return err
}

// Starts is how often the subject has been started so far with success.
func (p *Process) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

func (p *Process) running(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, errors.New("the subject has been closed")
	}
	if p.conn != nil && !p.conn.over() {
		return p.conn, nil
	}
	if p.final != nil {
		return nil, p.final
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := p.start(ctx)
	if err != nil {
		return nil, p.noteFailure(ctx, err)
	}
	p.conn = c
	p.failed = 0
	p.starts++
	return c, nil
}

func (p *Process) noteFailure(ctx context.Context, err *StartError) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.failed++
	if p.failed >= startTries && !err.Final {
		err.Final = true
		err.Err = fmt.Errorf("%d starts in a row failed; the last one: %w", p.failed, err.Err)
	}
	if err.Final {
		p.final = err
	}
	return err
}

func (p *Process) start(ctx context.Context) (*conn, *StartError) {
	fault := func(err error, final bool) *StartError {
		return &StartError{Command: p.command.String(), Err: err, Final: final}
	}
	if len(p.command.Argv) == 0 {
		return nil, fault(errors.New("the command is empty"), true)
	}
	c, err := launch(p.command, &p.opts)
	if err != nil {
		return nil, fault(cannotRun(p.command.Argv[0], err), true)
	}
	final, err := p.shakeHands(ctx, c)
	if err == nil {
		return c, nil
	}
	c.fail(err)
	<-c.done
	e := fault(err, final)
	e.Stderr = c.stderr.last()
	return nil, e
}

func cannotRun(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("there is no program %q on the PATH", name)
	}
	return err
}

// shakeHands greets the subject and learns what it is. final means that the
// next start could not end otherwise.
func (p *Process) shakeHands(ctx context.Context, c *conn) (final bool, err error) {
	box := newInbox()
	nonce := rand.Text()
	hello := &Request{
		Type: TypeHello, Protocol: []int{Version}, Harness: p.opts.Harness, Editions: p.opts.Editions, Nonce: nonce,
	}
	r, err := c.converse(ctx, box, asked{hello, subject{what: "hello"}}, p.opts.scaled(helloLimit))
	if err != nil {
		return false, err
	}
	if final, err := helloFault(r, nonce); err != nil {
		return final, err
	}
	// What it does with a message that it cannot know shows whether it will bear
	// the next version of the protocol.
	probe := &Request{Type: "x-" + strings.ToLower(nonce)}
	odd, err := c.converse(ctx, box, asked{probe, subject{what: "a message of an unknown type"}}, p.opts.scaled(replyLimit))
	if err != nil {
		return false, err
	}
	if odd.Type != TypeError || odd.Code != CodeUnsupported {
		return true, odd.violation("a message of an unknown type was answered with "+odd.Type+" "+odd.Code,
			"answer it with error and the code unsupported")
	}
	p.info = harness.SubjectInfo{
		Name: r.Subject.Name, Version: r.Subject.Version, Language: r.Subject.Language,
		Editions: r.Editions, Capabilities: r.Capabilities, Barrier: r.Barrier, Evidence: EvidenceOf(r.Capabilities),
	}
	c.dumps = dumpsStacks(r.Subject.Language)
	return false, nil
}

func helloFault(r arrival, nonce string) (final bool, err error) {
	if r.Type == TypeError && (r.Code == CodeVersion || r.Code == CodeUnsupported) {
		return true, fmt.Errorf("the subject does not speak %s: %s", Name, r.Message)
	}
	if r.Type == TypeError {
		return false, &ReplyError{To: "hello", Code: r.Code, Message: r.Message, Stack: r.Stack}
	}
	if r.Type != TypeHelloOK {
		return true, r.violation("hello was answered with "+r.Type, "answer it with helloOk")
	}
	if r.Protocol != Version {
		return true, r.violation(
			fmt.Sprintf("the subject speaks version %d of the protocol, this harness version %d", r.Protocol, Version),
			"get an adapter library and a harness of the same version")
	}
	if r.Nonce != nonce {
		return true, r.violation("helloOk does not repeat the nonce of hello", "the answer was not made for this hello")
	}
	return false, nil
}

// converse sends a request that has no outputs and waits for its reply.
func (c *conn) converse(ctx context.Context, box *inbox, a asked, limit time.Duration) (arrival, error) {
	if _, err := c.ask(box, a); err == errOver {
		return arrival{}, c.reason()
	} else if err != nil {
		return arrival{}, err
	}
	return c.reply(ctx, box, limit)
}

// Close says goodbye to the subject and waits until it has ended.
func (p *Process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.conn == nil || p.conn.over() {
		return nil
	}
	return p.conn.bye()
}

func (c *conn) bye() error {
	limit := c.opts.scaled(byeLimit)
	r, err := c.converse(context.Background(), newInbox(), asked{&Request{Type: TypeBye}, subject{what: "bye"}}, limit)
	if err != nil {
		return err
	}
	c.send.close()
	if r.Type == TypeError {
		c.end(false)
		return &ReplyError{To: "bye", Code: r.Code, Message: r.Message, Stack: r.Stack}
	}
	if !c.exitsWithin(limit) {
		c.fail(fmt.Errorf("the subject was still running %v after bye", limit))
		return c.reason()
	}
	<-c.done
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the subject ended with exit code %d after bye", code)
	}
	return nil
}
