// Command pi-conform judges pi-style agent loops by the rules of the contract.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
)

func main() { os.Exit(int(command())) }

// command runs the command line of this process.
func command() exit.Code {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	setGC(gcPercent)
	return newProgram(os.Stdin, os.Stdout, os.Stderr).run(ctx, os.Args[1:])
}

// gcPercent lets the heap grow to some tens of megabytes before it is cleaned up.
// Every case is garbage a moment later, so with the usual setting most of the time
// would go into looking at the little that is not.
const gcPercent = 1600

// streamGCPercent is for commands that read logs of any length: they stay below 100
// megabytes, and are hardly slower (docs/PERFORMANCE.md).
const streamGCPercent = 800

// setGC says how far the heap may grow, if the user has not.
func setGC(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// program is the command with its three streams. Standard output carries only
// what was asked for; progress and notes go to standard error.
type program struct {
	in    io.Reader
	out   *console.Console
	notes *console.Console
	raw   io.Writer // standard output, for what is not written for people
}

func newProgram(in io.Reader, out, err io.Writer) *program {
	return &program{in: in, out: console.New(out), notes: console.New(err), raw: out}
}

// run runs one command line and says how the program ends.
func (p *program) run(ctx context.Context, args []string) (code exit.Code) {
	defer func() {
		if fault := recover(); fault != nil {
			p.notes.Printf("pi-conform: a fault of pi-conform itself: %v\n\n%s\n%s\n", fault, debug.Stack(), pleaseReport)
			code = exit.Fault
		}
	}()
	root := p.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	p.explain(err)
	return exit.CodeOf(err)
}

const pleaseReport = "Please report this, with the command line and what is written above."

// explain writes an error for people.
func (p *program) explain(err error) {
	switch {
	case err == nil || err.Error() == "":
		return
	case errors.Is(err, context.Canceled):
		p.notes.Printf("pi-conform: interrupted\n")
		return
	}
	p.notes.Printf("%s %v\n", p.notes.Bad("pi-conform:"), err)
	for _, line := range exit.Stderr(err) {
		p.notes.Printf("  stderr: %s\n", line)
	}
	if exit.CodeOf(err) == exit.Fault {
		p.notes.Printf("%s\n", pleaseReport)
	}
}

// note writes one line of progress.
func (p *program) note(line string) { p.notes.Printf("%s\n", p.notes.Faint(line)) }

// tool names the program, for reports and subjects.
func tool() string { return fmt.Sprintf("pi-conform %s", currentVersion().Version) }
