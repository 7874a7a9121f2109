package protocol

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// session is one case on a process.
type session struct {
	conn   *conn
	box    *inbox
	ctx    context.Context
	name   string
	asked  bool                // the subject has been told of the session
	quiet  bool                // the subject has no barrier: wait until it is quiet
	events int                 // seen so far
	called map[string]struct{} // callbacks that waited, or still do
	spent  time.Duration       // waiting for the subject
	last   string              // label of the last action
	entry  trace.Entry         // of the last output
	wake   time.Duration       // until the subject wakes, as the last barrier said
}

var (
	_ harness.Session   = (*session)(nil)
	_ harness.Sleeper   = (*session)(nil)
	_ harness.Pipeliner = (*Process)(nil)
)

// Open begins a case. It starts the subject if it does not run.
func (p *Process) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	script, err := scriptOf(&harness.Prepared{Scenario: sc})
	if err != nil {
		return nil, err
	}
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	open := asked{&Request{Type: TypeOpen, Session: s.name, members: script.opening}, s.opening()}
	if _, err = s.ask(open); err == nil {
		err = s.opened(open.what)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		_ = s.Close() // the subject may be opening it
		return nil, err
	case err != nil:
		s.forget()
		return nil, err
	}
	return s, nil
}

// session makes a session of which the subject has not been told yet.
func (p *Process) session(ctx context.Context) (*session, error) {
	s := &session{box: newInbox(), called: map[string]struct{}{}}
	return s, p.begin(ctx, s)
}

// begin makes a session that is new, or that was forgotten, one of which the
// subject has not been told yet.
func (p *Process) begin(ctx context.Context, s *session) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := p.running(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	quiet := p.info.Barrier == harness.BarrierNone
	p.mu.Unlock()
	clear(s.called)
	*s = session{conn: c, box: s.box, ctx: ctx, quiet: quiet, called: s.called}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unasked++
	s.name = "s" + strconv.Itoa(c.unasked)
	c.sessions[s.name] = s
	return nil
}

func (s *session) opening() subject { return subject{what: "open of ", of: s.name} }

// opened waits until the subject has answered that request to open the session.
func (s *session) opened(what subject) error {
	r, err := s.reply(s.ctx, s.conn.opts.scaled(replyLimit))
	if err != nil {
		return err
	}
	if r.isOutput() {
		return s.protest(r.violation(fmt.Sprintf("%s before %s was answered", r.Type, what), "nothing has been asked of the loop yet"))
	}
	return s.accepted(r, what)
}

// accepted judges the reply to a request that should be answered with ok.
func (s *session) accepted(r arrival, what subject) error {
	switch {
	case r.Type == TypeOK:
		return nil
	case r.Type == TypeError && (r.Code == CodeCrashed || r.Code == CodeHung || r.Code == CodeLeaked):
		return &harness.SubjectError{
			Outcome: trace.Outcome(r.Code), Message: r.Message, Open: what.String(), Exit: -1, Stderr: s.conn.stderr.last(),
		}
	case r.Type == TypeError:
		return &ReplyError{To: what.String(), Code: r.Code, Message: r.Message, Stack: r.Stack}
	}
	return s.protest(r.violation(fmt.Sprintf("%s was answered with %s", what, r.Type), "answer it with ok or error"))
}

// protest ends the process for a violation of the protocol. It counts for this
// session even if the conversation is over for another reason.
func (s *session) protest(err *ProtocolError) error {
	s.conn.failOver(s.box, err)
	reason := s.conn.reason()
	if s.conn.blamesAnother(s.box) {
		return err
	}
	return reason
}

func (s *session) forget() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	delete(s.conn.sessions, s.name)
}

// Do writes the action. What the subject says to it is read by Settle.
func (s *session) Do(a *harness.Action) error {
	m, err := s.request(a)
	if err != nil {
		return err
	}
	s.last = a.Label
	_, err = s.ask(asked{&m, s.describe(a)})
	return err
}

func (s *session) ask(messages ...asked) (int64, error) {
	id, err := s.conn.ask(s.box, messages...)
	switch {
	case err == errOver && !s.asked:
		return 0, harness.ErrElsewhere // the subject was never told of the session
	case err == errOver:
		return 0, s.elsewhere(s.conn.reason())
	}
	s.asked = s.asked || err == nil
	return id, err
}

// reply waits for the next message, and ends the process if none comes in time.
func (s *session) reply(ctx context.Context, limit time.Duration) (arrival, error) {
	r, err := s.conn.reply(ctx, s.box, limit)
	return r, s.elsewhere(err)
}

// elsewhere is the error, unless the conversation is over for which somebody else
// is to blame.
func (s *session) elsewhere(err error) error {
	if err != nil && s.conn.blamesAnother(s.box) {
		return harness.ErrElsewhere
	}
	return err
}

func (s *session) describe(a *harness.Action) subject {
	return subject{of: a.Label, session: s.name}
}

func (s *session) syncRequest() asked {
	return asked{&Request{Type: TypeSync, Session: s.name}, s.barrier()}
}

func (s *session) barrier() subject {
	if s.last == "" {
		return subject{what: "the barrier at the start", session: s.name}
	}
	return subject{what: "the barrier after ", of: s.last, session: s.name}
}

func (s *session) request(a *harness.Action) (Request, error) {
	switch a.Kind {
	case harness.ActionUser:
		return Request{Type: TypeUser, Session: s.name, Name: a.Name, Kind: a.User, Answer: a.Answer}, nil
	case harness.ActionAnswer:
		return Request{Type: TypeAnswer, Session: s.name, Call: a.Name, Answer: a.Answer}, nil
	case harness.ActionClock:
		return Request{Type: TypeClock, Session: s.name, AdvanceMs: a.Advance.Milliseconds()}, nil
	}
	return Request{}, fmt.Errorf("action %s has the unknown kind %q", a.Label, a.Kind)
}

// Settle asks for a barrier and passes on everything that comes before it.
func (s *session) Settle(out func(*trace.Entry)) error {
	id, err := s.ask(s.syncRequest())
	if err != nil {
		return err
	}
	if _, err := s.untilSynced(id, out); err != nil {
		return err
	}
	if s.quiet {
		return s.untilQuiet(out)
	}
	return nil
}

// Play asks for the whole case, with a barrier after each action.
func (p *Process) Play(ctx context.Context, sc *harness.Prepared, actions []*harness.Action, expect [][]string) (harness.Playing, error) {
	script, err := scriptOf(sc)
	if err != nil {
		return nil, err
	}
	w := script.memory()
	if err := p.begin(ctx, &w.session); err != nil {
		return nil, err
	}
	w.ctx = context.WithoutCancel(ctx) // it is asked for whole: so it comes to its end
	w.script, w.expect = script, expect
	if err := w.askAll(actions); err != nil {
		w.forget()
		return nil, err
	}
	return w, nil
}

// wholeCase is a case that is asked for at once.
type wholeCase struct {
	session
	script   *script
	requests []Request
	messages []asked // that these are
	lastID   int64   // of the last of them
	expect   [][]string
}

// memory is that of a case that has been read, or new.
func (s *script) memory() *wholeCase {
	if w := s.whole; w != nil {
		s.whole = nil
		return w
	}
	return &wholeCase{session: session{box: newInbox(), called: map[string]struct{}{}}}
}

// askAll asks for everything.
func (w *wholeCase) askAll(actions []*harness.Action) error {
	if w.quiet { // nothing can be predicted
		return harness.ErrMispredicted
	}
	w.requests = slices.Grow(w.requests[:0], 2*len(actions)+2) // they are pointed to
	w.messages = w.messages[:0]
	w.add(Request{Type: TypeOpen, Session: w.name, members: w.script.opening}, w.opening())
	for _, a := range actions {
		m, err := w.request(a)
		if err == nil && recurs(a) {
			err = w.script.write(&m)
		}
		if err != nil {
			return err
		}
		w.last = a.Label
		w.add(m, w.describe(a))
		w.add(Request{Type: TypeSync, Session: w.name}, w.barrier())
	}
	w.add(Request{Type: TypeClose, Session: w.name}, w.closing())
	var err error
	w.lastID, err = w.ask(w.messages...)
	return err
}

// recurs reports whether the answer of the action is part of the scenario; others are
// made anew for each case.
func recurs(a *harness.Action) bool {
	return a.Kind == harness.ActionUser || a.Kind == harness.ActionAnswer && strings.HasPrefix(a.Name, "tool/")
}

func (w *wholeCase) add(r Request, what subject) {
	w.requests = append(w.requests, r)
	w.messages = append(w.messages, asked{&w.requests[len(w.requests)-1], what})
}

// Read reads the whole trace.
func (w *wholeCase) Read(out func(*trace.Entry)) (time.Duration, error) {
	err := w.read(out)
	w.forget()
	if w.box.empty(); err == nil {
		w.script.whole = w
	}
	return w.wake, err
}

func (w *wholeCase) read(out func(*trace.Entry)) error {
	err := w.opened(w.messages[0].what)
	if err == nil {
		firstBarrier := w.lastID - int64(len(w.messages)) + 3 // after open and the first action
		err = w.follows(firstBarrier, w.expect, out)
	}
	// Even if it went another way: what the subject has to say must not be left unread.
	if closing := w.closed(w.lastID, w.closing()); err == nil {
		err = closing
	}
	return err
}

// follows reads the trace of a schedule that has been written whole.
func (s *session) follows(firstBarrier int64, expect [][]string, out func(*trace.Entry)) error {
	step := 0
	numbered := func(e *trace.Entry) {
		e.Step = step
		out(e)
	}
	for i := range expect {
		step = i + 1
		synced, err := s.untilSynced(firstBarrier+int64(2*i), numbered)
		if err != nil {
			return err
		}
		if !sameSet(synced.WaitingOn, expect[i]) {
			return harness.ErrMispredicted
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.Equal(a, b) {
		return true
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// untilSynced passes on outputs until the barrier with that id is reached. If
// the subject refused the action before it, that is the error, after the barrier.
func (s *session) untilSynced(barrier int64, out func(*trace.Entry)) (arrival, error) {
	var refused error
	for {
		r, err := s.receive()
		switch {
		case err != nil:
			return r, err
		case r.isOutput():
			if err := s.follow(r); err != nil {
				return r, err
			}
			out(s.entryOf(r))
		case r.Re != barrier:
			refused = s.accepted(r, subject{what: "the action ", of: s.last + " or one before it"})
			if _, over := refused.(*ProtocolError); over {
				return r, refused
			}
		case r.Type == TypeSynced:
			if err := s.checkBarrier(r); err != nil {
				return r, err
			}
			return r, refused
		case r.Type == TypeOK:
			return r, s.protest(r.violation("a barrier was answered with ok", "answer sync with synced"))
		default:
			return r, s.accepted(r, subject{what: "the barrier"})
		}
	}
}

// receive waits for the next message, within the limits.
func (s *session) receive() (arrival, error) {
	if r, ok := s.box.take(); ok {
		return r, nil
	}
	limit := s.conn.opts.scaled(syncLimit)
	whole := s.conn.opts.scaled(caseLimit)
	began, works := time.Now(), s.conn.worksFor(s.box)
	r, err := s.reply(s.ctx, limit)
	if works { // and not for others, whose turn is before
		s.spent += time.Since(began)
	}
	if err == nil && s.spent > whole {
		s.conn.failOver(s.box, &harness.SubjectError{
			Outcome: trace.OutcomeHung, Exit: -1, Open: s.conn.open(),
			Message: fmt.Sprintf("the case took longer than %v%s", whole, s.conn.while()),
		})
		return arrival{}, s.elsewhere(s.conn.reason())
	}
	return r, err
}

// untilQuiet passes on outputs until there have been none for a while.
func (s *session) untilQuiet(out func(*trace.Entry)) error {
	for {
		r, err := s.conn.next(s.ctx, s.box, s.conn.opts.scaled(quietTime))
		switch {
		case err == errQuiet:
			return nil
		case err == errOver:
			return s.elsewhere(s.conn.reason())
		case err != nil:
			return err
		case !r.isOutput():
			return s.protest(r.violation(r.Type+" answers nothing", ""))
		}
		if err := s.follow(r); err != nil {
			return err
		}
		out(s.entryOf(r))
	}
}

// entryOf is the entry of an output, until the next one.
func (s *session) entryOf(r arrival) *trace.Entry {
	s.entry = r.entry()
	return &s.entry
}

// follow checks what only the whole conversation shows.
func (s *session) follow(r arrival) error {
	switch trace.Kind(r.Type) {
	case trace.KindEvent:
		if *r.N != s.events {
			return s.protest(r.violation(
				fmt.Sprintf("event number %d where %d should follow", *r.N, s.events), "events are numbered from 0 without gaps"))
		}
		s.events++
	case trace.KindCall:
		if _, twice := s.called[r.Name]; twice {
			return s.protest(r.violation(
				fmt.Sprintf("two callbacks with the name %q", r.Name), "the second of a name gets ~1 at its end, the third ~2"))
		}
		s.called[r.Name] = struct{}{}
	case trace.KindCancelled, trace.KindRead:
		if _, ok := s.called[r.Name]; !ok {
			return s.protest(r.violation(fmt.Sprintf("%s of the callback %q, which never was called", r.Type, r.Name), ""))
		}
	case trace.KindSettled, trace.KindRetained, trace.KindAction, trace.KindEnd:
	default:
	}
	return nil
}

// NextWake is what the last barrier said.
func (s *session) NextWake() (time.Duration, bool) { return s.wake, s.wake > 0 }

func (s *session) checkBarrier(r arrival) error {
	s.wake = time.Duration(r.WakeMs) * time.Millisecond
	if *r.Events != s.events {
		return s.protest(r.violation(
			fmt.Sprintf("synced counts %d events, but %d were written", *r.Events, s.events),
			"write everything before synced, and flush"))
	}
	for _, name := range r.WaitingOn {
		if _, ok := s.called[name]; !ok {
			return s.protest(r.violation(fmt.Sprintf("synced waits on the callback %q, which never was called", name), ""))
		}
	}
	return nil
}

func (s *session) closing() subject { return subject{what: "close of ", of: s.name} }

// Close drops the session. A process that has died is no error any more.
func (s *session) Close() error {
	defer s.forget()
	id, err := s.conn.ask(s.box, asked{&Request{Type: TypeClose, Session: s.name}, s.closing()})
	if err != nil {
		return nil
	}
	if err := s.closed(id, s.closing()); err != harness.ErrElsewhere {
		return err
	}
	return nil
}

// closed waits until the subject has answered the request to close. Outputs, and
// replies to what a schedule asked in vain, come first.
func (s *session) closed(id int64, what subject) error {
	for {
		r, err := s.reply(context.WithoutCancel(s.ctx), s.conn.opts.scaled(replyLimit))
		if err != nil {
			return err
		}
		if r.Re == id {
			return s.accepted(r, what)
		}
	}
}
