package protocol

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// ServeOptions are the options of [Serve]. The zero value will do.
type ServeOptions struct {
	// Strict checks every message in both directions against the schema.
	Strict bool
	// Reduce, if not nil, is a reducer of views that is offered besides: a view
	// that is nil is the first.
	Reduce func(view trace.Value, ev *trace.Event) (trace.Value, error)
}

// Serve lets the driver be a subject: it answers the messages of a harness from
// in on out until the harness says goodbye or in ends, which is no error. It
// does not close the driver.
func Serve(in io.Reader, out io.Writer, driver harness.Driver, opts ServeOptions) error {
	s := &server{
		driver: driver, opts: opts, in: NewLineReader(in), out: bufio.NewWriterSize(out, 64<<10),
		sessions: map[string]*served{},
	}
	defer s.closeAll()
	for !s.ended {
		line, err := s.in.Next()
		if err == io.EOF {
			break
		}
		if fault, ok := errors.AsType[*ProtocolError](err); ok {
			s.refuse(0, CodeMalformed, fault.Error())
			s.flush()
			return fault
		}
		if err != nil {
			return err
		}
		s.answer(line)
		if !s.in.more() {
			s.flush()
		}
		if s.broken != nil {
			return s.broken
		}
	}
	s.flush()
	return s.broken
}

type server struct {
	driver   harness.Driver
	opts     ServeOptions
	in       *LineReader
	out      *bufio.Writer
	sessions map[string]*served
	session  string // of the message before
	ended    bool
	broken   error // writing is no longer possible
}

// served is one session.
type served struct {
	session harness.Session
	events  int
	waiting []string            // callbacks, in the order in which they began
	called  map[string]struct{} // all that waited at some time
	runs    map[string]struct{} // prompts and continues that have not settled
}

func (s *server) answer(line Line) {
	r, err := DecodeRequest(line)
	if err == nil && s.opts.Strict {
		err = strict(ToSubject, line)
	}
	if err != nil {
		s.refuse(r.ID, CodeMalformed, err.Error())
		return
	}
	if r.Session != s.session {
		s.flush() // should this case be the end, the one before is not to blame
		s.session = r.Session
	}
	switch r.Type {
	case TypeHello:
		s.hello(r)
	case TypeOpen:
		s.open(r)
	case TypeUser, TypeAnswer, TypeClock:
		s.act(r)
	case TypeSync:
		s.sync(r)
	case TypeReduce:
		s.reduce(r)
	case TypeClose:
		s.close(r)
	case TypeBye:
		s.closeAll()
		s.ok(r.ID)
		s.ended = true
	default:
		s.refuse(r.ID, CodeUnsupported, fmt.Sprintf("unknown type %q", r.Type))
	}
}

func (s *server) hello(r *Request) {
	if !slices.Contains(r.Protocol, Version) {
		s.refuse(r.ID, CodeVersion, fmt.Sprintf("this subject speaks version %d alone", Version))
		return
	}
	info := s.driver.Info()
	capabilities := info.Capabilities
	if capabilities == nil {
		capabilities = capabilitiesOf(info.Evidence)
	}
	if s.opts.Reduce != nil {
		capabilities = append(slices.Clip(capabilities), CapReducer)
	}
	barrier := info.Barrier
	if barrier == "" {
		barrier = harness.BarrierQuiescent
	}
	s.write(&Reply{
		Type: TypeHelloOK, Re: r.ID, Protocol: Version, Nonce: r.Nonce,
		Subject:  &Subject{Name: info.Name, Version: info.Version, Language: info.Language},
		Editions: info.Editions, Barrier: barrier, Capabilities: capabilities,
	})
}

func (s *server) open(r *Request) {
	if _, exists := s.sessions[r.Session]; exists {
		s.refuse(r.ID, CodeSession, fmt.Sprintf("session %q is open already", r.Session))
		return
	}
	if info := s.driver.Info(); len(info.Editions) > 0 && !slices.Contains(info.Editions, r.Edition) {
		s.refuse(r.ID, CodeUnsupported, fmt.Sprintf("unknown edition %q (known: %s)", r.Edition, strings.Join(info.Editions, ", ")))
		return
	}
	sc := &harness.Scenario{Edition: edition.Edition(r.Edition), Form: r.Form, Config: *r.Config, Keep: true}
	r.Script.Surround(sc)
	session, err := s.driver.Open(context.Background(), sc)
	if err != nil {
		s.failed(r.ID, err)
		return
	}
	s.sessions[r.Session] = &served{session: session, called: map[string]struct{}{}, runs: map[string]struct{}{}}
	s.ok(r.ID)
}

func (s *server) act(r *Request) {
	open := s.find(r)
	if open == nil {
		return
	}
	if r.Type == TypeAnswer && !open.awaits(r) {
		s.refuse(r.ID, CodeCall, fmt.Sprintf("no callback %q waits", r.Call))
		return
	}
	if err := open.session.Do(action(r)); err != nil {
		s.failed(r.ID, err)
		return
	}
	open.did(r)
	s.ok(r.ID)
}

// action is the message as an action. The wire has no labels of answers, so the
// name of the callback has to do.
func action(r *Request) *harness.Action {
	switch r.Type {
	case TypeUser:
		return &harness.Action{Label: r.Name, Name: r.Name, Kind: harness.ActionUser, User: r.Kind, Answer: r.Answer}
	case TypeAnswer:
		return &harness.Action{Label: r.Call, Name: r.Call, Kind: harness.ActionAnswer, Answer: r.Answer}
	}
	advance := time.Duration(r.AdvanceMs) * time.Millisecond
	return &harness.Action{Label: "clock", Kind: harness.ActionClock, Advance: advance}
}

// awaits reports whether the callback waits, or may be updated late.
func (o *served) awaits(r *Request) bool {
	if slices.Contains(o.waiting, r.Call) {
		return true
	}
	_, called := o.called[r.Call]
	return called && r.Answer.Partial != nil
}

func (o *served) did(r *Request) {
	switch r.Type {
	case TypeUser:
		if r.Kind == harness.UserPrompt || r.Kind == harness.UserContinue {
			o.runs[r.Name] = struct{}{}
		}
	case TypeAnswer:
		if ends(r.Call, r.Answer) {
			o.waiting = slices.DeleteFunc(o.waiting, func(name string) bool { return name == r.Call })
		}
	}
}

func (s *server) sync(r *Request) {
	open := s.find(r)
	if open == nil {
		return
	}
	err := open.session.Settle(func(e *trace.Entry) {
		open.saw(e)
		s.write(output(r.Session, e))
	})
	if err != nil {
		s.failed(r.ID, err)
		return
	}
	idle := len(open.runs) == 0
	waiting := append([]string{}, open.waiting...)
	s.write(&Reply{
		Type: TypeSynced, Re: r.ID, Idle: &idle, WaitingOn: waiting, Events: &open.events, WakeMs: wakeMs(open.session),
	})
}

// wakeMs is the time until a subject wakes, in whole milliseconds, rounded up; 0
// if it does not sleep.
func wakeMs(session harness.Session) int64 {
	sleeper, ok := session.(harness.Sleeper)
	if !ok {
		return 0
	}
	d, ok := sleeper.NextWake()
	if !ok || d <= 0 {
		return 0
	}
	return (d + time.Millisecond - 1).Milliseconds()
}

func (s *server) reduce(r *Request) {
	if s.opts.Reduce == nil {
		s.refuse(r.ID, CodeUnsupported, "there is no reducer")
		return
	}
	view, err := s.opts.Reduce(r.View, r.Event)
	if err != nil {
		s.failed(r.ID, err)
		return
	}
	s.write(&Reply{Type: TypeReduced, Re: r.ID, View: view})
}

func (o *served) saw(e *trace.Entry) {
	switch e.Kind {
	case trace.KindEvent:
		o.events++
	case trace.KindCall:
		if !e.Auto {
			o.waiting = append(o.waiting, e.Name)
			o.called[e.Name] = struct{}{}
		}
	case trace.KindSettled:
		delete(o.runs, e.Name)
	case trace.KindAction, trace.KindRead, trace.KindCancelled, trace.KindRetained, trace.KindEnd:
	default:
	}
}

func (s *server) close(r *Request) {
	open := s.find(r)
	if open == nil {
		return
	}
	delete(s.sessions, r.Session)
	if err := open.session.Close(); err != nil {
		s.failed(r.ID, err)
		return
	}
	s.ok(r.ID)
}

// closeAll gives up what is open. Nobody is left to hear of errors.
func (s *server) closeAll() {
	for name, open := range s.sessions {
		_ = open.session.Close()
		delete(s.sessions, name)
	}
}

// find gives the session of the message, or refuses the message.
func (s *server) find(r *Request) *served {
	open, ok := s.sessions[r.Session]
	if !ok {
		s.refuse(r.ID, CodeSession, fmt.Sprintf("there is no session %q", r.Session))
	}
	return open
}

func (s *server) ok(id int64) { s.write(&Reply{Type: TypeOK, Re: id}) }

func (s *server) refuse(id int64, code, message string) {
	s.write(&Reply{Type: TypeError, Re: id, Code: code, Message: message})
}

func (s *server) failed(id int64, err error) {
	code := CodeFailed
	if subject, ok := errors.AsType[*harness.SubjectError](err); ok {
		code = string(subject.Outcome)
	}
	s.refuse(id, code, err.Error())
}

func (s *server) write(r *Reply) {
	if s.broken != nil {
		return
	}
	line, err := json.Marshal(r)
	if err == nil && s.opts.Strict {
		err = strict(FromSubject, Line{Bytes: line})
	}
	if err != nil {
		s.broken = fmt.Errorf("%s: %w", r.Type, err)
		return
	}
	line = append(line, '\n')
	_, s.broken = s.out.Write(line)
}

func (s *server) flush() {
	if err := s.out.Flush(); s.broken == nil {
		s.broken = err
	}
}
