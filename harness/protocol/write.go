package protocol

import (
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// append writes the message after the text. The messages of which a case is made
// are put together from their few members: the writer of JSON looks at all that a
// message could have.
func (r *Request) append(text []byte) ([]byte, error) {
	var members []byte
	var err error
	switch {
	case r.Type == TypeSync, r.Type == TypeClose:
	case r.Type == TypeUser:
		members, err = membersOf(&acting{r.Name, r.Kind, r.Answer})
	case r.Type == TypeAnswer:
		members, err = membersOf(&answering{r.Call, r.Answer})
	case r.opening != nil:
		members, err = r.opening.members, r.opening.err
	default:
		members, err = json.Marshal(r, json.Deterministic(true))
		return append(text, members...), err
	}
	text = append(append(append(text, `{"type":"`...), r.Type...), `","id":`...)
	text = strconv.AppendInt(text, r.ID, 10)
	text = append(append(append(text, `,"session":"`...), r.Session...), '"')
	return append(append(text, members...), '}'), err
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

// opening is what opens a case of one scenario, but for the session.
type opening struct {
	members []byte
	err     error
}

func newOpening(sc *harness.Scenario) *opening {
	members, err := membersOf(&struct {
		Form    trace.Form      `json:"form"`
		Edition string          `json:"edition"`
		Config  *trace.Config   `json:"config"`
		Script  *harness.Script `json:"script"`
	}{sc.Form, string(sc.Edition), &sc.Config, harness.ScriptOf(sc)})
	return &opening{members, err}
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
