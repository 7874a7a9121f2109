package docs

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/matrix"
)

const joined = `
## How oh-my-pi is joined

Its agent is a fork of the contract's, published as TypeScript for Bun; ` + "`adapters/oh-my-pi`" + ` joins it. It claims no edition and is judged by the one
that the documents describe. What its agent class does not have is not declared: no hook prepares a tool's arguments, the next turn or
a request, none stops a run, and nobody outside sees when a queue is polled. Three things had to be done for a trace that means something:

- The agent is fed by a stream of events and waits for nobody, so its listeners hear of an event a few microtasks after whatever the loop did
  next. Every callback therefore waits for one turn of the event loop, the same for all that begin together. What stands before a callback in
  the trace is then what the loop did before it. Without that nearly every rule about a callback and an event would be broken by the delay alone.
- The loop rests for 20 ms whenever 50 ms have passed. Its clock is stopped, or the place of the rest would depend on the machine. Before each
  request it sleeps for no time at all; a barrier outlasts that.
- It takes for granted that a message of the model says what it cost, and makes up details for a tool's result that mentions none. The
  adapter gives the one and mentions the other.
`

// Matrix is the document about several subjects.
func Matrix(m *matrix.Matrix) string {
	text := "# Subjects side by side\n\n<!-- Written by «make matrix» from a real run: do not edit. -->\n\n" + matrix.Markdown(m)
	if slices.ContainsFunc(m.Subjects, func(s matrix.Subject) bool { return strings.HasPrefix(s.Name, "oh-my-pi@") }) {
		text += joined
	}
	return text
}
