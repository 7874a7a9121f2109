// Package httpmodel is a scripted model behind HTTP, as providers have it: OpenAI
// chat completions, OpenAI responses and Anthropic messages, streamed or not, all
// from one script.
//
// A request takes the next turn of the script. A gate holds a piece of a turn
// until somebody opens it. Every request is recorded.
package httpmodel

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// Turn is one answer of the model.
type Turn struct {
	Thinking string `yaml:"thinking"`
	Text     string `yaml:"text"`
	Calls    []Call `yaml:"calls"`
	// Stop is the stop reason: stop, toolUse or length; empty means toolUse if
	// there are calls and stop if there are none.
	Stop string `yaml:"stop"`
	// Pieces is in how many pieces a text, or the arguments of a call, come; 2 if
	// it is 0.
	Pieces int `yaml:"pieces"`
	// For is a text that the last message of the user has to hold; other requests
	// leave the turn to later ones.
	For string `yaml:"for"`

	// Status, if not 0, is the HTTP status of an error in the place of an answer.
	Status     int    `yaml:"status"`
	Error      string `yaml:"error"`      // its message
	RetryAfter string `yaml:"retryAfter"` // header of an error

	// End says how the stream ends; empty means as it should.
	End End `yaml:"end"`
	// Gates hold pieces back.
	Gates []Gate `yaml:"gates"`
}

// Call is one tool call of a turn.
type Call struct {
	ID   string `yaml:"id"`
	Name string `yaml:"name"`
	Args any    `yaml:"args"` // {} if absent
	// Raw are the arguments as they are sent, in the place of Args: they need not
	// be JSON.
	Raw string `yaml:"raw"`
}

// Gate holds a piece of a turn until it is opened.
type Gate struct {
	Name string `yaml:"name"`
	// Before is the piece: «text/0», «thinking/1», «call_1» for the beginning of a
	// call, «call_1/0» for a piece of its arguments, or «end».
	Before string `yaml:"before"`
}

// End says how a stream ends.
type End string

// The ways to end.
const (
	EndDone   End = ""       // as it should
	EndSilent End = "silent" // the connection is closed after the last piece, without a stop reason
	EndStalls End = "stalls" // nothing more comes until the client goes away
	EndCut    End = "cut"    // the connection breaks in the middle of a chunk
)

// Parse reads turns from YAML.
func Parse(text []byte) ([]Turn, error) {
	var script struct {
		Model []Turn `yaml:"model"`
	}
	if err := yaml.Unmarshal(text, &script); err != nil {
		return nil, err
	}
	return script.Model, Check(script.Model)
}

// Check says what is wrong with a script.
func Check(turns []Turn) error {
	if len(turns) == 0 {
		return fmt.Errorf("the script has no turn under «model»")
	}
	for i := range turns {
		if err := turns[i].check(); err != nil {
			return fmt.Errorf("turn %d: %w", i, err)
		}
	}
	return nil
}

func (t *Turn) check() error {
	switch t.Stop {
	case "", trace.StopStop, trace.StopToolUse, trace.StopLength:
	default:
		return fmt.Errorf("unknown stop reason %q: it has to be stop, toolUse or length", t.Stop)
	}
	switch t.End {
	case EndDone, EndSilent, EndStalls, EndCut:
	default:
		return fmt.Errorf("unknown end %q: it has to be silent, stalls or cut", t.End)
	}
	if t.Status != 0 && (t.Status < 400 || t.Status > 599) {
		return fmt.Errorf("status %d is no error", t.Status)
	}
	known := map[string]bool{}
	for _, p := range t.pieces() {
		known[p.name] = true
	}
	for _, g := range t.Gates {
		if g.Name == "" {
			return fmt.Errorf("the gate before %q has no name", g.Before)
		}
		if !known[g.Before] {
			return fmt.Errorf("gate %q stands before %q, which the turn does not have", g.Name, g.Before)
		}
	}
	return nil
}

func (t *Turn) stop() string {
	plain := scriptedmodel.Turn{Stop: t.Stop, Calls: make([]scriptedmodel.Call, len(t.Calls))}
	return plain.StopReason()
}

func (c *Call) arguments() string {
	if c.Raw != "" {
		return c.Raw
	}
	if c.Args == nil {
		return "{}"
	}
	text, err := json.Marshal(c.Args, json.Deterministic(true))
	if err != nil { // YAML gives nothing that JSON cannot hold
		return "{}"
	}
	return string(text)
}

// pieceKind is what a piece of an answer is.
type pieceKind int

const (
	thinkingPiece pieceKind = iota
	textPiece
	callPiece
	argumentsPiece
	endPiece
)

// piece is the least part of an answer that can be held back.
type piece struct {
	kind pieceKind
	name string // for gates
	text string
	call int // which one
}

// pieces are the parts of the turn in order; the last is its end.
func (t *Turn) pieces() []piece {
	var all []piece
	add := func(kind pieceKind, name, text string, call int) {
		for i, part := range split(text, t.Pieces) {
			all = append(all, piece{kind: kind, name: name + "/" + strconv.Itoa(i), text: part, call: call})
		}
	}
	add(thinkingPiece, "thinking", t.Thinking, 0)
	add(textPiece, "text", t.Text, 0)
	for i := range t.Calls {
		c := &t.Calls[i]
		all = append(all, piece{kind: callPiece, name: c.ID, call: i})
		add(argumentsPiece, c.ID, c.arguments(), i)
	}
	return append(all, piece{kind: endPiece, name: "end"})
}

// split cuts a text into about n parts, between characters.
func split(text string, n int) []string {
	if n == 0 {
		n = 2
	}
	runes := []rune(text)
	size := max(1, (len(runes)+n-1)/n)
	var parts []string
	for len(runes) > 0 {
		k := min(size, len(runes))
		parts = append(parts, string(runes[:k]))
		runes = runes[k:]
	}
	return parts
}
