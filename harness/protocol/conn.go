package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// conn is one life of a subject's process. One goroutine writes, one reads, and
// the sessions wait at their inboxes.
type conn struct {
	opts     *Options
	cmd      *exec.Cmd
	stdout   *os.File
	send     *queue
	stderr   tail
	exited   chan struct{} // the process has ended
	done     chan struct{} // nothing will be read any more; err is final
	lastLine atomic.Int64  // when the last line arrived, in nanoseconds since began
	began    time.Time
	ending   sync.Once

	// of the goroutine that reads
	memory memory
	filled *inbox // has been filled, and whoever waits there is still asleep

	mu       sync.Mutex
	err      error  // why the conversation is over: the first reason counts
	culprit  *inbox // of the session over which it is; nil if it is nobody's
	lastID   int64
	text     []byte              // memory of what was asked last
	unasked  int                 // number of the newest session
	waiting  []request           // not answered yet, oldest first
	sessions map[string]*session // open
	dumps    bool                // the runtime dumps its stacks on SIGQUIT
}

// request is a message that the subject has not answered yet.
type request struct {
	id   int64
	what subject
	to   *inbox
}

// subject is what a message is about, for people.
type subject struct{ what, of, session string }

func (s subject) String() string {
	text := s.what + s.of
	if s.session != "" {
		text += " (" + s.session + ")"
	}
	return text
}

const (
	// maxOutputs and maxOutputBytes bound what a subject may write between two
	// barriers. A batch of the greatest cases writes some thousands.
	maxOutputs     = 200_000
	maxOutputBytes = 256 << 20

	maxKept = 1 << 20 // bytes of memory that are kept for the next message

	dumpTime  = time.Second     // to dump stacks
	termTime  = 2 * time.Second // from SIGTERM to SIGKILL
	drainTime = time.Second     // to read what an ended process left in its pipe
)

// launch starts the process. Nothing has been said to it yet.
func launch(c Command, opts *Options) (*conn, error) {
	cmd := c.Exec()
	var pipes pipeSet
	stdin := pipes.in(&cmd.Stdin)
	stdout := pipes.out(&cmd.Stdout)
	stderr := pipes.out(&cmd.Stderr)
	err := pipes.err
	if err == nil {
		err = cmd.Start()
	}
	pipes.started(err == nil)
	if err != nil {
		return nil, err
	}
	conn := &conn{
		opts: opts, cmd: cmd, stdout: stdout, send: newQueue(), began: time.Now(),
		exited: make(chan struct{}), done: make(chan struct{}), sessions: map[string]*session{},
	}
	logged := make(chan struct{})
	go conn.send.run(stdin)
	go func() {
		defer close(logged)
		defer stderr.Close()
		conn.stderr.read(stderr)
	}()
	go conn.await()
	go func() {
		conn.read()
		// The process is gone, but something that it started may hold the pipe.
		select {
		case <-logged:
		case <-time.After(drainTime / 4):
		}
		close(conn.done)
	}()
	return conn, nil
}

// pipeSet makes the pipes of a process. They are not left to exec.Cmd, whose
// Wait would wait for grandchildren that hold them.
type pipeSet struct {
	ours, theirs []*os.File
	err          error
}

func (p *pipeSet) make() (r, w *os.File) {
	if p.err == nil {
		r, w, p.err = os.Pipe()
	}
	return r, w
}

func (p *pipeSet) in(to *io.Reader) *os.File {
	r, w := p.make()
	*to = r
	p.theirs, p.ours = append(p.theirs, r), append(p.ours, w)
	return w
}

func (p *pipeSet) out(to *io.Writer) *os.File {
	r, w := p.make()
	*to = w
	p.theirs, p.ours = append(p.theirs, w), append(p.ours, r)
	return r
}

// started closes the process's ends, which it has by now, and if it could not
// be started ours as well.
func (p *pipeSet) started(ok bool) {
	for _, f := range p.theirs {
		f.Close()
	}
	for _, f := range p.ours {
		if !ok {
			f.Close()
		}
	}
}

// await waits for the end of the process and ends what it left behind.
func (c *conn) await() {
	_ = c.cmd.Wait() // the state tells
	close(c.exited)
	killGroup(c.cmd.Process)
	select {
	case <-c.done:
	case <-time.After(drainTime):
		c.stdout.Close()
	}
}

// end ends the process, gently at first, and returns when it has ended.
func (c *conn) end(dump bool) {
	c.ending.Do(func() {
		c.send.close()
		if dump && c.dumps {
			c.stderr.expectDump()
			dumpStacks(c.cmd.Process)
			if c.exitsWithin(dumpTime) {
				return
			}
		}
		terminateGroup(c.cmd.Process)
		if !c.exitsWithin(termTime) {
			killGroup(c.cmd.Process)
		}
	})
	<-c.exited
}

func (c *conn) exitsWithin(d time.Duration) bool {
	select {
	case <-c.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// fail notes why the conversation is over and ends the process. The error that
// counts is the one of the first call. To blame is whoever asked what was not
// answered first.
func (c *conn) fail(err error) { c.failOver(nil, err) }

// failOver does so if it is known who is to blame.
func (c *conn) failOver(culprit *inbox, err error) {
	c.note(culprit, err)
	_, hung := errors.AsType[*harness.SubjectError](err)
	c.end(hung)
}

func (c *conn) note(culprit *inbox, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.culprit = err, culprit
	if culprit == nil && len(c.waiting) > 0 {
		c.culprit = c.waiting[0].to
	}
}

// blamesAnother reports whether the conversation is over, and for that somebody
// else is to blame.
func (c *conn) blamesAnother(than *inbox) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil && c.culprit != nil && c.culprit != than
}

// reason is why the conversation is over; it waits until that is certain.
func (c *conn) reason() error {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err := c.err.(type) {
	case *harness.SubjectError:
		e := *err
		e.Stderr = c.stderr.last()
		return &e
	case *ProtocolError:
		e := *err
		e.Stderr = c.stderr.last()
		return &e
	default:
		return err
	}
}

func (c *conn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// read takes in everything that the subject writes.
func (c *conn) read() {
	lines := NewLineReader(c.stdout)
	for {
		line, err := lines.Next()
		if err == nil {
			c.lastLine.Store(int64(time.Since(c.began)))
			err = c.take(line)
		}
		if err != nil || !lines.more() {
			c.wake()
		}
		if err != nil {
			c.stopReading(err)
			break
		}
	}
	if lines.Returns > 0 {
		c.opts.log(fmt.Sprintf("%d lines of the subject ended in CR LF; end them in LF alone", lines.Returns))
	}
	c.stdout.Close()
}

func (c *conn) stopReading(err error) {
	fault, ok := errors.AsType[*ProtocolError](err)
	if ok && fault.Problem != cutOff {
		c.fail(fault)
		return
	}
	if hung, ok := errors.AsType[*harness.SubjectError](err); ok {
		c.fail(hung)
		return
	}
	if !c.exitsWithin(termTime) {
		c.fail(&harness.SubjectError{
			Outcome: trace.OutcomeCrashed, Exit: -1, Open: c.open(),
			Message: "the subject closed its standard output and went on running" + c.while(),
		})
		return
	}
	c.note(nil, c.crash(ok))
}

// crash says how the process ended.
func (c *conn) crash(cut bool) error {
	state := c.cmd.ProcessState
	e := &harness.SubjectError{Outcome: trace.OutcomeCrashed, Exit: state.ExitCode(), Signal: signalOf(state), Open: c.open()}
	how := fmt.Sprintf("the subject ended with exit code %d", e.Exit)
	if e.Signal != "" {
		how = "the subject was ended by a signal (" + e.Signal + ")"
	}
	if cut {
		how += " in the middle of a line"
	}
	e.Message = how + c.while()
	return e
}

// open says what the subject has not answered, oldest first.
func (c *conn) open() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return ""
	}
	return c.waiting[0].what.String()
}

// worksFor reports whether the oldest message that is not answered is from there.
func (c *conn) worksFor(from *inbox) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0 && c.waiting[0].to == from
}

func (c *conn) while() string {
	if what := c.open(); what != "" {
		return " while " + what + " was not answered"
	}
	return ""
}

// take checks a line and hands it to whom it is for.
func (c *conn) take(line Line) error {
	r, err := c.memory.decode(line)
	if err == nil && c.opts.Strict {
		err = strict(FromSubject, line)
	}
	if err != nil {
		return err
	}
	if r.isOutput() {
		return c.takeOutput(r, len(line.Bytes))
	}
	return c.takeReply(r)
}

func (c *conn) takeReply(r arrival) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Re == 0 { // an error that is about no message in particular
		return r.violation(fmt.Sprintf("the subject reports: %s (%s)", r.Message, r.Code), "")
	}
	if len(c.waiting) == 0 || r.Re > c.waiting[len(c.waiting)-1].id {
		return r.violation(fmt.Sprintf("%s answers message %d, which was never sent", r.Type, r.Re), "")
	}
	if r.Re != c.waiting[0].id {
		return r.violation(
			fmt.Sprintf("%s answers message %d before message %d (%s)", r.Type, r.Re, c.waiting[0].id, c.waiting[0].what),
			"every message is answered once, in the order in which they came")
	}
	to := c.waiting[0].to
	c.waiting = c.waiting[1:]
	if r.Type == TypeSynced {
		to.outputs.Store(0)
		to.outputBytes.Store(0)
	}
	c.put(to, r)
	return nil
}

// put fills an inbox. Whoever waits there is woken once all has been put there
// that has come.
func (c *conn) put(to *inbox, r arrival) {
	if c.filled != to {
		c.wake()
	}
	c.filled = to
	to.put(r)
}

func (c *conn) wake() {
	if c.filled != nil {
		c.filled.wake()
	}
	c.filled = nil
}

func (c *conn) takeOutput(r arrival, size int) error {
	if r.Type == TypeLog {
		c.stderr.add(r.Text)
		c.opts.log(r.Text)
		return nil
	}
	box, err := c.deliver(r)
	if box == nil {
		return err
	}
	if box.outputs.Add(1) > maxOutputs || box.outputBytes.Add(int64(size)) > maxOutputBytes {
		err := &harness.SubjectError{
			Outcome: trace.OutcomeHung, Exit: -1, Open: c.open(),
			Message: fmt.Sprintf("the subject wrote %d messages without coming to rest%s", box.outputs.Load(), c.while()),
		}
		c.note(box, err)
		return err
	}
	return nil
}

// deliver puts an output into the inbox of its session, and gives that. Once a
// session has been forgotten, nothing more comes into its inbox.
func (c *conn) deliver(r arrival) (*inbox, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[r.Session]
	if !ok {
		return nil, stray(r, c.unasked)
	}
	c.put(s.box, r)
	return s.box, nil
}

// stray judges an output of a session that is not open. A loop that was given
// up may still have had something to say.
func stray(r arrival, newest int) error {
	if n, err := strconv.Atoi(strings.TrimPrefix(r.Session, "s")); err == nil && n >= 1 && n <= newest {
		return nil
	}
	return r.violation(fmt.Sprintf("there never was a session %q", r.Session), "")
}

func (r arrival) violation(problem, cause string) *ProtocolError {
	return &ProtocolError{Line: r.line, Offset: r.offset, Problem: problem, Cause: cause}
}

// strict checks a line against its schema. A request may be of any type: a
// subject has to answer what it does not know.
func strict(d Direction, line Line) error {
	if err := Validate(d, line.Bytes); err != nil {
		return faulty(line, d, typeOf(line.Bytes), "does not keep the schema: "+err.Error())
	}
	return nil
}

// ask sends requests in one piece, with ids that follow each other, and gives
// the last id. Their replies go to the inbox.
func (c *conn) ask(to *inbox, asked ...asked) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, errOver
	}
	text, waiting := c.text[:0], c.waiting
	for _, a := range asked {
		c.lastID++
		a.message.ID = c.lastID
		before := len(text)
		var err error
		text, err = a.message.append(text)
		line := text[before:]
		if err == nil && len(line) > MaxLine {
			err = fmt.Errorf("%s is longer than %d MiB", a.what, MaxLine>>20)
		}
		if err == nil && c.opts.Strict {
			err = strict(ToSubject, Line{Bytes: line})
		}
		if err != nil {
			return 0, err
		}
		text = append(text, '\n')
		waiting = append(waiting, request{id: c.lastID, what: a.what, to: to})
	}
	c.waiting = waiting
	c.send.push(text)
	if c.text = text; cap(text) > maxKept {
		c.text = nil
	}
	return c.lastID, nil
}

// asked is a message and what it is for people.
type asked struct {
	message *Request
	what    subject
}

// errOver says that the conversation is over; conn.reason says why.
var errOver = errors.New("the conversation is over")

// inbox is where messages wait for a session, in the order in which they came.
type inbox struct {
	mu          sync.Mutex
	arrived     []arrival
	ready       chan struct{} // has an element if something may have arrived
	batch       []arrival     // of the one that reads …
	read        int           // … of which this many have been read
	outputs     atomic.Int64  // since the last barrier
	outputBytes atomic.Int64
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) put(r arrival) {
	b.mu.Lock()
	b.arrived = append(b.arrived, r)
	b.mu.Unlock()
}

// empty makes the inbox one into which nothing has come.
func (b *inbox) empty() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.arrived)
	clear(b.batch)
	b.arrived, b.batch, b.read = b.arrived[:0], b.batch[:0], 0
	b.outputs.Store(0)
	b.outputBytes.Store(0)
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *inbox) take() (r arrival, ok bool) {
	if b.read == len(b.batch) {
		clear(b.batch)
		b.mu.Lock()
		b.batch, b.arrived = b.arrived, b.batch[:0]
		b.mu.Unlock()
		b.read = 0
	}
	if len(b.batch) == 0 {
		return r, false
	}
	b.read++
	return b.batch[b.read-1], true
}

// errQuiet says that nothing arrived in time.
var errQuiet = errors.New("nothing arrived")

// next waits for the next message, as long as the subject shows signs of life:
// limit is the time since its last line.
func (c *conn) next(ctx context.Context, b *inbox, limit time.Duration) (arrival, error) {
	if r, ok := b.take(); ok {
		return r, nil
	}
	c.send.flush() // what was asked for before somebody waits is written in one piece
	start := time.Since(c.began)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-b.ready:
		case <-c.done:
			if r, ok := b.take(); ok {
				return r, nil
			}
			return arrival{}, errOver
		case <-ctx.Done():
			return arrival{}, ctx.Err()
		case <-timer.C:
			quiet := time.Since(c.began) - max(start, time.Duration(c.lastLine.Load()))
			if quiet >= limit {
				return arrival{}, errQuiet
			}
			timer.Reset(limit - quiet)
		}
		if r, ok := b.take(); ok {
			return r, nil
		}
	}
}

// reply waits for the next message, and ends the process if none comes in time.
func (c *conn) reply(ctx context.Context, b *inbox, limit time.Duration) (arrival, error) {
	r, err := c.next(ctx, b, limit)
	switch err {
	case nil:
		return r, nil
	case errOver:
		return arrival{}, c.reason()
	case errQuiet:
		c.fail(c.hang(limit))
		return arrival{}, c.reason()
	}
	return arrival{}, err
}

// hang is the error for a subject that shows no sign of life.
func (c *conn) hang(limit time.Duration) error {
	return &harness.SubjectError{
		Outcome: trace.OutcomeHung, Exit: -1, Open: c.open(),
		Message: fmt.Sprintf("the subject gave no sign of life for %v%s", limit, c.while()),
	}
}

// dumpsStacks reports whether programs of the language usually dump their
// stacks on SIGQUIT.
func dumpsStacks(language string) bool {
	language = strings.ToLower(language)
	return slices.ContainsFunc([]string{"go", "java", "kotlin", "scala", "clojure"}, func(l string) bool {
		return language == l || strings.HasPrefix(language, l+" ")
	})
}
