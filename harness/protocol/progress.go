package protocol

import (
	"context"
	"fmt"
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Act is one thing that is done to a channel of progress. Which members are
// present depends on Do.
type Act struct {
	Do string `json:"do"`

	// observe
	Observer string `json:"observer,omitempty"`
	Does     string `json:"does,omitempty"` // look, keep, meddle, panic, fail, wait or report

	// observe, if it is scoped; prepare, unless nobody has asked; settle, openSession
	Agent string `json:"agent,omitempty"`

	// parse
	View trace.Value `json:"view,omitzero"`

	// prepare; announce, dispatch, report, finalize: the number that it was given there
	Execution int         `json:"execution,omitzero"`
	Call      string      `json:"call,omitempty"`
	Tool      string      `json:"tool,omitempty"`
	Args      trace.Value `json:"args,omitzero"`
	Card      trace.Value `json:"card,omitzero"`
	Parent    int         `json:"parent,omitzero"`
	Hook      *Progress   `json:"hook,omitzero"`   // that its hook reports
	Result    *Progress   `json:"result,omitzero"` // that an observer of its result reports

	Report *Progress `json:"report,omitzero"` // report

	// finalize, settle
	Text    string `json:"text,omitempty"`
	IsError bool   `json:"isError,omitzero"`

	Session string `json:"session,omitempty"` // openSession, closeSession, replay
	Every   int    `json:"every,omitzero"`    // openSession
}

// What can be done.
const (
	DoOpen         = "open"
	DoObserve      = "observe"
	DoParse        = "parse"
	DoPrepare      = "prepare"
	DoAnnounce     = "announce"
	DoDispatch     = "dispatch"
	DoReport       = "report"
	DoFinalize     = "finalize"
	DoSettle       = "settle"
	DoOpenSession  = "openSession"
	DoCloseSession = "closeSession"
	DoReplay       = "replay"
	DoDispose      = "dispose"
	DoLook         = "look" // at the views that were kept
)

// Progress is one report that is to be made.
type Progress struct {
	Number  int         `json:"number"`
	By      string      `json:"by"`
	View    trace.Value `json:"view"`
	Invalid bool        `json:"invalid,omitzero"`
	Echo    *Progress   `json:"echo,omitzero"` // that an observer of it reports on the same execution
}

// Channel is a channel of progress in a subject, in one session.
type Channel struct{ session *session }

// Progress opens the channel of progress of a subject that has declared one. It
// starts the subject if it does not run.
func (p *Process) Progress(ctx context.Context) (*Channel, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(p.Info().Capabilities, CapProgress) {
		s.forget()
		return nil, fmt.Errorf("the subject %s has no channel of progress", p.Info().Name)
	}
	open := asked{&Request{Type: TypeProgress, Session: s.name, Act: &Act{Do: DoOpen}}, subject{what: "open of the channel ", of: s.name}}
	if _, err = s.ask(open); err == nil {
		err = s.opened(open.what)
	}
	if err != nil {
		s.forget()
		return nil, err
	}
	return &Channel{s}, nil
}

// Do does something, waits until the subject has come to rest, and gives what was
// seen, each a JSON object, and which observers wait.
func (c *Channel) Do(a *Act) (seen []trace.Value, waiting []string, err error) {
	c.session.last = a.Do
	return c.after(&Request{Type: TypeProgress, Session: c.session.name, Act: a}, a.Do)
}

// Answer lets an observer that waits go on. The rest is as with Do.
func (c *Channel) Answer(observer string) (seen []trace.Value, waiting []string, err error) {
	c.session.last = observer
	return c.after(&Request{Type: TypeAnswer, Session: c.session.name, Call: observer, Answer: &trace.Answer{}}, observer)
}

// Close closes the session.
func (c *Channel) Close() error { return c.session.Close() }

func (c *Channel) after(m *Request, about string) (seen []trace.Value, waiting []string, err error) {
	what := subject{of: about, session: c.session.name}
	barrier, err := c.session.ask(asked{m, what}, c.session.syncRequest())
	if err != nil {
		return nil, nil, err
	}
	var refused error
	for {
		r, err := c.session.receive()
		switch {
		case err != nil:
			return nil, nil, err
		case r.Type == TypeProgress:
			seen = append(seen, r.Entry)
		case r.isOutput():
			return nil, nil, c.session.protest(r.violation(r.Type+" in a channel of progress", "report what was seen there with progress"))
		case r.Re != barrier:
			refused = c.session.accepted(r, what)
		case r.Type == TypeSynced:
			return seen, r.WaitingOn, refused
		default:
			return nil, nil, c.session.accepted(r, subject{what: "the barrier after ", of: about})
		}
	}
}
