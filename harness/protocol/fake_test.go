//go:build !windows

package protocol_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop/view"
)

// The test binary is also the subject: with this variable set it behaves as one
// that has the fault which the variable names.
const fakeVar = "PI_CONFORM_TEST_SUBJECT"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeVar); mode != "" {
		os.Exit(beSubject(mode))
	}
	os.Exit(m.Run())
}

// fake is the command that starts the test binary as a subject.
func fake(t *testing.T, mode string, opts protocol.Options) *protocol.Process {
	t.Helper()
	if opts.TimeoutScale == 0 {
		opts.TimeoutScale = 1
	}
	opts.Strict = !strings.HasPrefix(mode, "lax")
	command := fakeCommand(t)
	command.Env = []string{fakeVar + "=" + mode}
	p := protocol.NewProcess(command, opts)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func fakeCommand(t testing.TB) protocol.Command {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Command{Argv: []string{exe}, Env: []string{fakeVar + "=ok"}}
}

func beSubject(mode string) int {
	in, out := io.Reader(os.Stdin), io.Writer(os.Stdout)
	switch mode {
	case "banner":
		fmt.Println("Server listening, v1.2")
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot find module 'loop'")
		return 7
	case "silent":
		time.Sleep(time.Hour)
	case "version":
		return substitute(`"protocol":1`, `"protocol":2`)
	case "nonce":
		return substitute(`"nonce":"`, `"nonce":"x`)
	case "refuses":
		return substitute(`"type":"helloOk"`, `"type":"error","code":"version","message":"only 3"`)
	case "accepts-all":
		return substitute(`"code":"unsupported"`, `"code":"oops"`)
	case "crlf":
		return substitute("\n", "\r\n")
	case "gaps":
		return substitute(`"n":1`, `"n":2`)
	case "miscounts":
		return substitute(`"events":2`, `"events":3`)
	case "python":
		return substitute(`"isError":true`, `"isError":True`)
	case "stubborn-bye":
		if err := protocol.Serve(in, out, &fakeDriver{}, protocol.ServeOptions{}); err != nil {
			return 1
		}
		time.Sleep(time.Hour)
	case "bad-bye":
		_ = protocol.Serve(in, out, &fakeDriver{}, protocol.ServeOptions{})
		return 5
	case "grandchild":
		child := exec.Command("sleep", "300")
		child.Stdout = os.Stdout
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
	case "reference", "quick-reference": // the quick one leaves out the schema
		o := protocol.ServeOptions{Strict: mode == "reference", Reduce: view.ReduceJSON}
		if err := protocol.Serve(in, out, reference.New(), o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "once": // dies on its first start, as long as the file is there
		if os.Remove(os.Getenv("PI_CONFORM_TEST_FILE")) == nil {
			return 9
		}
	}
	if err := protocol.Serve(in, out, &fakeDriver{mode: mode}, protocol.ServeOptions{Strict: !strings.HasPrefix(mode, "lax")}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// substitute serves with a text replaced in every line that is written.
func substitute(old, new string) int {
	r, w := io.Pipe()
	go func() {
		_ = protocol.Serve(os.Stdin, w, &fakeDriver{}, protocol.ServeOptions{})
		w.Close()
	}()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		os.Stdout.Write(bytes.ReplaceAll(line, []byte(old), []byte(new)))
		if err != nil {
			return 0
		}
	}
}

// fakeDriver is a loop so small that it needs no loop: a prompt makes a model
// request, and the model's answer ends the run. The text of the prompt says
// what goes wrong.
type fakeDriver struct{ mode string }

func (d *fakeDriver) Info() harness.SubjectInfo {
	barrier := harness.BarrierQuiescent
	if d.mode == "no-barrier" {
		barrier = harness.BarrierNone
	}
	return harness.SubjectInfo{
		Name: "fake", Version: "1", Language: "go", Editions: []string{"0.84.3"}, Barrier: barrier,
		Capabilities: []string{"listeners", "hooks:beforeToolCall", "forms:agent"},
	}
}

func (d *fakeDriver) Open(_ context.Context, sc *harness.Scenario) (harness.Session, error) {
	if sc.Form != trace.FormAgent {
		return nil, fmt.Errorf("the form %s is not there", sc.Form)
	}
	return &fakeSession{script: harness.ScriptOf(sc)}, nil
}

func (d *fakeDriver) Close() error { return nil }

type fakeSession struct {
	script *harness.Script
	out    []trace.Entry
	events int
	models int
	prompt string
}

func (s *fakeSession) event(e trace.Event) {
	s.out = append(s.out, trace.Entry{Kind: trace.KindEvent, N: s.events, Event: &e})
	s.events++
}

func (s *fakeSession) Do(a *harness.Action) error {
	switch a.Kind {
	case harness.ActionUser:
		s.start(a)
	case harness.ActionAnswer:
		s.event(trace.Event{Type: trace.MessageEnd, Message: a.Answer.Event.Message})
		s.out = append(s.out, trace.Entry{Kind: trace.KindSettled, Name: s.prompt, Outcome: trace.OutcomeOK})
	case harness.ActionClock:
	}
	return nil
}

func (s *fakeSession) start(a *harness.Action) {
	s.prompt = a.Name
	text := a.Answer.Text
	switch {
	case text == "die":
		fmt.Fprintln(os.Stderr, "panic: everything is lost")
		os.Exit(3)
	case text == "signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case text == "hang":
		time.Sleep(time.Hour)
	case text == "close":
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case text == "gap":
		s.out = append(s.out, trace.Entry{Kind: trace.KindCancelled, Name: "tool/nothing"})
	case text == "noise":
		fmt.Println("debug: got a prompt")
	case text == "cut":
		fmt.Print(`{"type":"ev`)
		os.Exit(0)
	case text == "error":
		isError := true
		s.event(trace.Event{Type: trace.AgentStart})
		s.event(trace.Event{Type: trace.ToolExecutionEnd, IsError: &isError})
		return
	case text == "refuse":
		s.out = append(s.out, trace.Entry{Kind: trace.KindSettled, Name: s.prompt, Outcome: trace.OutcomeRefused, Message: "busy"})
		return
	case text == "flood":
		for {
			fmt.Println(`{"type":"retained","session":"s1","changed":[]}`)
		}
	case text == "flood-stderr":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 3<<20))
		for i := range 100_000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
	case text == "endless-line":
		for {
			fmt.Print(strings.Repeat("y", 1<<20))
		}
	case strings.HasPrefix(text, "slow"): // shows signs of life for longer than a reply may take
		for range 6 {
			time.Sleep(500 * time.Millisecond)
			fmt.Println(`{"type":"log","text":"still here"}`)
		}
	case strings.HasPrefix(text, "many"):
		count := 0
		_, _ = fmt.Sscanf(text, "many%d", &count)
		for range count {
			s.event(trace.Event{Type: trace.MessageUpdate, Message: &trace.Message{Role: "user", Content: trace.TextContent(text)}})
		}
	}
	s.event(trace.Event{Type: trace.AgentStart, Message: &trace.Message{Role: "user", Content: trace.TextContent(text)}})
	s.out = append(s.out, trace.Entry{
		Kind: trace.KindCall, Name: "model/" + strconv.Itoa(s.models), Payload: &trace.Payload{Model: "scripted-1"},
	})
	s.models++
}

func (s *fakeSession) Settle(out func(*trace.Entry)) error {
	for i := range s.out {
		out(&s.out[i])
	}
	s.out = nil
	return nil
}

func (s *fakeSession) Close() error { return nil }
