// Runs a case in a bubble in an ordinary program, which no test runner has started.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/bubble"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func main() {
	d := &bubble.Driver{Join: func(s *harness.Surroundings) (harness.Loop, error) { return loop{s}, nil }}
	sc := &harness.Scenario{User: []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}}}
	rec, err := harness.Run(context.Background(), d, sc, harness.First{}, harness.Limits{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(trace.Text(rec.Trace))
}

// loop settles at once, and then keeps a goroutine for a minute of the bubble's time.
type loop struct{ s *harness.Surroundings }

func (l loop) User(name string, _ harness.UserKind, _ *trace.Answer) {
	go func() {
		l.s.Settled(name, trace.OutcomeOK, nil)
		time.Sleep(time.Minute)
	}()
}
