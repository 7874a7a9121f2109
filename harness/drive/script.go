// Package drive puts a whole agent program under a scripted model and drives it
// from outside: it prompts, steers, aborts and cancels at chosen points of what
// the program prints, never after some time. What the program printed is
// recorded as it came; judging it is somebody else's business.
//
// A program is not deterministic to the bit. Its tools and its files are
// processes of the machine; only the normal form of a recording can be expected
// to be the same again.
package drive

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/pi-conform/pi-conform/scriptedmodel/httpmodel"
)

// Script says what the model answers and what is done to the program.
type Script struct {
	Story  string           `yaml:"story"`
	Prompt string           `yaml:"prompt"` // the first one
	Model  []httpmodel.Turn `yaml:"model"`
	Steps  []Step           `yaml:"steps"`
	Client Client           `yaml:"client"` // for programs that speak ACP
}

// Client says how a client of ACP behaves.
type Client struct {
	Files      bool   `yaml:"files"`      // reads and writes files for the agent
	Permission string `yaml:"permission"` // allow (also if empty), reject, or cancel
}

// Step waits for something and then does something. Steps come one after the
// other; what a step waits for has to come after the step before was done.
type Step struct {
	// When are members that a line of the program has to have, by path
	// («assistantMessageEvent.type»), with their values as text.
	When map[string]string `yaml:"when"`
	Has  string            `yaml:"has"` // a text that the line has to hold
	Gate string            `yaml:"gate"`
	// Answer, of ACP, waits for the answer to a request of that method.
	Answer string `yaml:"answer"`

	Prompt   string `yaml:"prompt"`
	Steer    string `yaml:"steer"`
	FollowUp string `yaml:"followUp"`
	Abort    bool   `yaml:"abort"`
	Open     string `yaml:"open"`  // a gate of the model
	Touch    string `yaml:"touch"` // a file in the program's folder

	// Of ACP. Session is the name that the script gives to the session in which
	// something is done; In names the one in which the step waits, if not in any.
	Session string `yaml:"session"`
	In      string `yaml:"in"`
	New     bool   `yaml:"new"`
	Load    bool   `yaml:"load"`
	Cancel  bool   `yaml:"cancel"`
}

// Parse reads a script from YAML and says what is wrong with it.
func Parse(text []byte) (*Script, error) {
	s := &Script{}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(s); err != nil {
		return nil, err
	}
	if err := httpmodel.Check(s.Model); err != nil {
		return nil, err
	}
	for i := range s.Steps {
		if err := s.Steps[i].check(s); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	switch s.Client.Permission {
	case "", "allow", "reject", "cancel":
	default:
		return nil, fmt.Errorf("unknown permission %q: it has to be allow, reject or cancel", s.Client.Permission)
	}
	return s, nil
}

func (s *Step) check(script *Script) error {
	known := map[string]bool{"": true}
	for _, t := range script.Model {
		for _, g := range t.Gates {
			known[g.Name] = true
		}
	}
	for _, gate := range []string{s.Gate, s.Open} {
		if !known[gate] {
			return fmt.Errorf("no turn has a gate %q", gate)
		}
	}
	if s.deeds() == 0 {
		return fmt.Errorf("it does nothing")
	}
	if s.deeds() > 1 {
		return fmt.Errorf("it does more than one thing: make two steps of it")
	}
	return nil
}

func (s *Step) deeds() int {
	n := 0
	for _, is := range []bool{s.Prompt != "", s.Steer != "", s.FollowUp != "", s.Abort, s.Open != "", s.Touch != "", s.New, s.Load, s.Cancel} {
		if is {
			n++
		}
	}
	return n
}
