// Package adapter joins an agent loop written in Go to pi-conform, as a program
// that speaks the protocol on standard input and output:
//
//	func main() {
//		adapter.Serve(about, func(s *adapter.Surroundings) (harness.Loop, error) {
//			return adapter.Join(s, newAgent(s)), nil
//		})
//	}
//
// The loop runs with its own goroutines, channels, timers and contexts. Each
// session has a [testing/synctest] bubble of its own: there the clock is virtual,
// and it is known when every goroutine of the loop waits for good. What that asks
// of a loop is said in package bubble.
//
// Whoever tests a loop within its own module needs no process: package bubble does
// the same for a Go test.
package adapter

import (
	"fmt"
	"os"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/bubble"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// Serve answers a harness on standard input and output until it says goodbye, with
// loops that join makes, one a session; then it ends the program. Whatever the loop
// itself writes to os.Stdout goes to standard error.
func Serve(about harness.SubjectInfo, join Joiner) {
	out := os.Stdout
	os.Stdout = os.Stderr
	d := &bubble.Driver{About: about, Join: join}
	if err := protocol.Serve(os.Stdin, out, d, protocol.ServeOptions{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0) // whatever a loop has left behind
}

// Surroundings are what a loop is surrounded by in one session.
type Surroundings = harness.Surroundings

// Joiner joins a loop to its surroundings. It is called inside the bubble.
type Joiner = func(s *Surroundings) (harness.Loop, error)
