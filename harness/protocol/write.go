package protocol

import (
	"cmp"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// append writes the message after the text. The messages of which a case is made
// are put together from their few members: the writer of JSON looks at all that a
// message could have.
func (r *Request) append(text []byte) ([]byte, error) {
	members, err := r.members, error(nil)
	switch {
	case members != nil, r.Type == TypeSync, r.Type == TypeClose:
	case r.Type == TypeUser, r.Type == TypeAnswer:
		members, err = r.action()
	default:
		members, err = json.Marshal(r, json.Deterministic(true))
		return append(text, members...), err
	}
	text = append(append(append(text, `{"type":"`...), r.Type...), `","id":`...)
	text = strconv.AppendInt(text, r.ID, 10)
	text = append(append(append(text, `,"session":"`...), r.Session...), '"')
	return append(append(text, members...), '}'), err
}

// action is the members of a message about an action.
func (r *Request) action() ([]byte, error) {
	if r.Type == TypeUser {
		return membersOf(&acting{r.Name, r.Kind, r.Answer})
	}
	return membersOf(&answering{r.Call, r.Answer})
}

type acting struct {
	Name   string           `json:"name"`
	Kind   harness.UserKind `json:"kind"`
	Answer *trace.Answer    `json:"answer,omitzero"`
}

type answering struct {
	Call   string        `json:"call"`
	Answer *trace.Answer `json:"answer,omitzero"`
}

// membersOf are the members of an object that has some, each with a comma before it.
func membersOf(object any) ([]byte, error) {
	text, err := json.Marshal(object, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	text[0] = ','
	return text[:len(text)-1], nil
}

// script is what is kept of a scenario from one case to the next: the messages
// that come again, without what is each case's own, and memory.
type script struct {
	opening []byte           // members
	actions map[acted][]byte // members
	whole   *wholeCase       // that was read
}

// acted is what a message about an action says.
type acted struct {
	name   string
	user   harness.UserKind
	answer *trace.Answer
}

// maxActions bounds what is kept.
const maxActions = 1000

// scriptOf is what is kept of the scenario.
func scriptOf(sc *harness.Prepared) (*script, error) {
	if made, ok := sc.Made.(*script); ok {
		return made, nil
	}
	opening, err := membersOf(&struct {
		Form    trace.Form      `json:"form"`
		Edition string          `json:"edition"`
		Config  *trace.Config   `json:"config"`
		Script  *harness.Script `json:"script"`
	}{sc.Scenario.Form, string(sc.Scenario.Edition), &sc.Scenario.Config, harness.ScriptOf(sc.Scenario)})
	if err != nil {
		return nil, err
	}
	made := &script{opening: opening, actions: map[acted][]byte{}}
	sc.Made = made
	return made, nil
}

// write gives a message about an action its members.
func (s *script) write(r *Request) (err error) {
	about := acted{cmp.Or(r.Name, r.Call), r.Kind, r.Answer}
	known, ok := s.actions[about]
	if !ok {
		if known, err = r.action(); err != nil {
			return err
		}
		if len(s.actions) == maxActions {
			clear(s.actions)
		}
		s.actions[about] = known
	}
	r.members = known
	return nil
}
