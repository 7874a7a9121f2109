//go:build !windows

package protocol_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func scenario() *harness.Scenario {
	return &harness.Scenario{Edition: "0.84.3", Form: trace.FormAgent}
}

func prompt(text string) *harness.Action {
	return &harness.Action{
		Label: "prompt/0", Name: "prompt/0", Kind: harness.ActionUser, User: harness.UserPrompt, Answer: &trace.Answer{Text: text},
	}
}

func modelDone(name string) *harness.Action {
	m := &trace.Message{Role: trace.RoleAssistant, StopReason: "stop", Content: trace.TextContent("hello")}
	return &harness.Action{
		Label: name + "/event/0", Name: name, Kind: harness.ActionAnswer,
		Answer: &trace.Answer{Event: &trace.StreamEvent{Type: trace.StreamDone, Reason: "stop", Message: m}},
	}
}

func open(t *testing.T, p *protocol.Process) harness.Session {
	t.Helper()
	s, err := p.Open(context.Background(), scenario())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do does the action and gives a line for each thing that the subject did.
func do(s harness.Session, a *harness.Action) ([]string, error) {
	var seen []string
	if err := s.Do(a); err != nil {
		return nil, err
	}
	err := s.Settle(func(e *trace.Entry) { seen = append(seen, summary(e)) })
	return seen, err
}

func summary(e *trace.Entry) string {
	switch e.Kind {
	case trace.KindEvent:
		return "event " + strconv.Itoa(e.N) + " " + e.Event.Type
	case trace.KindSettled:
		return "settled " + e.Name + " " + string(e.Outcome)
	default:
	}
	return string(e.Kind) + " " + e.Name
}

func TestACase(t *testing.T) {
	for _, mode := range []string{"ok", "crlf", "no-barrier"} {
		t.Run(mode, func(t *testing.T) {
			p := fake(t, mode, protocol.Options{})
			s := open(t, p)
			first, err := do(s, prompt("go"))
			if want := []string{"event 0 agent_start", "call model/0"}; err != nil || !slices.Equal(first, want) {
				t.Fatalf("%q, %v; want %q", first, err, want)
			}
			second, err := do(s, modelDone("model/0"))
			if want := []string{"event 1 message_end", "settled prompt/0 ok"}; err != nil || !slices.Equal(second, want) {
				t.Fatalf("%q, %v; want %q", second, err, want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	p := fake(t, "ok", protocol.Options{})
	info := p.Info()
	if info.Name != "fake" || info.Language != "go" || info.Barrier != harness.BarrierQuiescent {
		t.Errorf("%+v", info)
	}
	want := []trace.Evidence{"E", "C", "R", "A", "L"}
	if !slices.Equal(info.Evidence, want) {
		t.Errorf("evidence %q, want %q", info.Evidence, want)
	}
}

func TestManySessionsShareOneProcess(t *testing.T) {
	p := fake(t, "ok", protocol.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				s, err := p.Open(context.Background(), scenario())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := do(s, prompt("many10")); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if p.Starts() != 1 {
		t.Errorf("%d starts", p.Starts())
	}
}

func TestFirstWordsThatDoNotFit(t *testing.T) {
	cases := []struct {
		mode  string
		words []string // in the error
	}{
		{"banner", []string{"line 1, byte 0", "not a JSON object", "this looks like a log line: write logs to stderr", "Server listening"}},
		{"exit", []string{"exit code 7", "hello was not answered"}},
		{"version", []string{"version 2 of the protocol", "this harness version 1"}},
		{"refuses", []string{"does not speak pi-conform/1", "only 3"}},
		{"nonce", []string{"nonce"}},
		{"accepts-all", []string{"unknown type was answered with error oops", "unsupported"}},
	}
	for _, c := range cases {
		t.Run(c.mode, func(t *testing.T) {
			p := fake(t, c.mode, protocol.Options{})
			_, err := p.Open(context.Background(), scenario())
			start, ok := errors.AsType[*protocol.StartError](err)
			if !ok {
				t.Fatalf("%T %v", err, err)
			}
			for _, words := range c.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in %q", words, err)
				}
			}
			if c.mode == "exit" && !slices.Contains(start.Stderr, "cannot find module 'loop'") {
				t.Errorf("stderr %q", start.Stderr)
			}
		})
	}
}

func TestNoSuchProgram(t *testing.T) {
	p := protocol.NewProcess(protocol.Command{Argv: []string{"no-such-program-at-all"}}, protocol.Options{})
	_, err := p.Open(context.Background(), scenario())
	start, ok := errors.AsType[*protocol.StartError](err)
	if !ok || !start.Final || !strings.Contains(err.Error(), "PATH") {
		t.Errorf("%v", err)
	}
}

func TestSilenceAtTheStart(t *testing.T) {
	p := fake(t, "silent", protocol.Options{TimeoutScale: 0.05})
	_, err := p.Open(context.Background(), scenario())
	subject, ok := errors.AsType[*harness.SubjectError](err)
	if !ok || subject.Outcome != trace.OutcomeHung || subject.Open != "hello" {
		t.Errorf("%v", err)
	}
}

func TestThreeFailedStartsEndIt(t *testing.T) {
	p := fake(t, "exit", protocol.Options{})
	var last error
	for i := range 4 {
		_, last = p.Open(context.Background(), scenario())
		start, ok := errors.AsType[*protocol.StartError](last)
		if !ok || start.Final != (i >= 2) {
			t.Fatalf("start %d: %v", i, last)
		}
	}
	if !strings.Contains(last.Error(), "3 starts in a row failed") {
		t.Error(last)
	}
}

func TestAStartThatFailsOnceIsTriedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "first")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	exe, _ := os.Executable()
	p := protocol.NewProcess(protocol.Command{
		Argv: []string{exe}, Env: []string{fakeVar + "=once", "PI_CONFORM_TEST_FILE=" + file},
	}, protocol.Options{})
	defer p.Close()
	if _, err := p.Open(context.Background(), scenario()); err == nil {
		t.Fatal("no error")
	}
	open(t, p)
}

func TestDeath(t *testing.T) {
	cases := []struct {
		text, signal string
		exit         int
		words        string
	}{
		{text: "die", exit: 3, words: "exit code 3 while prompt/0 (s1) was not answered"},
		{text: "signal", exit: -1, signal: "killed", words: "ended by a signal (killed)"},
		{text: "cut", exit: 0, words: "exit code 0 in the middle of a line"},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			p := fake(t, "ok", protocol.Options{})
			s := open(t, p)
			_, err := do(s, prompt(c.text))
			e, ok := errors.AsType[*harness.SubjectError](err)
			if !ok {
				t.Fatalf("%T %v", err, err)
			}
			if e.Outcome != trace.OutcomeCrashed || e.Exit != c.exit || e.Signal != c.signal || !strings.Contains(e.Message, c.words) {
				t.Errorf("%+v", e)
			}
			if c.text == "die" && !slices.Contains(e.Stderr, "panic: everything is lost") {
				t.Errorf("stderr %q", e.Stderr)
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			next := open(t, p) // a new process
			if _, err := do(next, prompt("go")); err != nil {
				t.Errorf("after the restart: %v", err)
			}
			if p.Starts() != 2 {
				t.Errorf("%d starts", p.Starts())
			}
		})
	}
}

// TestDeathOverAnotherCase: the case that is under way meanwhile is not to blame,
// whether it had asked for something by then or not.
func TestDeathOverAnotherCase(t *testing.T) {
	p := fake(t, "ok", protocol.Options{})
	s, other := open(t, p), open(t, p)
	_, err := do(other, prompt("die"))
	if e, ok := errors.AsType[*harness.SubjectError](err); !ok || e.Exit != 3 {
		t.Fatal(err)
	}
	if _, err := do(s, prompt("go")); err != harness.ErrElsewhere {
		t.Error(err)
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	p := fake(t, "ok", protocol.Options{TimeoutScale: 0.4})
	s := open(t, p)
	_, err := do(s, prompt("hang"))
	e, ok := errors.AsType[*harness.SubjectError](err)
	if !ok || e.Outcome != trace.OutcomeHung || !strings.Contains(e.Message, "no sign of life for 2s while prompt/0 (s1)") {
		t.Fatalf("%T %v", err, err)
	}
	if !strings.Contains(strings.Join(e.Stderr, "\n"), "SIGQUIT") {
		t.Errorf("no stacks in %q", e.Stderr)
	}
	open(t, p)
}

func TestSignsOfLifeExtendTheLimit(t *testing.T) {
	t.Parallel()
	p := fake(t, "ok", protocol.Options{TimeoutScale: 0.4}) // 2 s; the subject takes 3
	if _, err := do(open(t, p), prompt("slow")); err != nil {
		t.Error(err)
	}
}

func TestClosedOutput(t *testing.T) {
	t.Parallel()
	p := fake(t, "ok", protocol.Options{})
	_, err := do(open(t, p), prompt("close"))
	if err == nil || !strings.Contains(err.Error(), "closed its standard output and went on running") {
		t.Error(err)
	}
}

func TestFloods(t *testing.T) {
	t.Parallel()
	t.Run("messages", func(t *testing.T) {
		p := fake(t, "lax", protocol.Options{})
		_, err := do(open(t, p), prompt("flood"))
		e, ok := errors.AsType[*harness.SubjectError](err)
		if !ok || e.Outcome != trace.OutcomeHung || !strings.Contains(e.Message, "200001 messages without coming to rest") {
			t.Errorf("%v", err)
		}
	})
	t.Run("stderr", func(t *testing.T) {
		p := fake(t, "lax", protocol.Options{})
		s := open(t, p)
		if _, err := do(s, prompt("flood-stderr")); err != nil {
			t.Fatal(err)
		}
		_, err := do(s, prompt("die"))
		e, ok := errors.AsType[*harness.SubjectError](err)
		if !ok || len(e.Stderr) != 128 || e.Stderr[126] != "line 99999" {
			t.Errorf("%v", e)
		}
	})
	t.Run("line", func(t *testing.T) {
		p := fake(t, "lax", protocol.Options{})
		_, err := do(open(t, p), prompt("endless-line"))
		e, ok := errors.AsType[*protocol.ProtocolError](err)
		if !ok || !strings.Contains(e.Problem, "more than 16 MiB") {
			t.Errorf("%v", err)
		}
	})
}

func TestViolations(t *testing.T) {
	cases := []struct {
		mode, text string
		words      []string
	}{
		{"ok", "noise", []string{"not a JSON object", "write logs to stderr", "debug: got a prompt"}},
		{"gaps", "error", []string{"event number 2 where 1 should follow"}},
		{"miscounts", "error", []string{"synced counts 3 events, but 2 were written", "flush"}},
		{"python", "error", []string{"line ", "byte ", "use a JSON writer"}},
	}
	for _, c := range cases {
		t.Run(c.mode+" "+c.text, func(t *testing.T) {
			p := fake(t, c.mode, protocol.Options{})
			s := open(t, p)
			_, err := do(s, prompt(c.text))
			if _, ok := errors.AsType[*protocol.ProtocolError](err); !ok {
				t.Fatalf("%T %v", err, err)
			}
			for _, words := range c.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in %q", words, err)
				}
			}
			open(t, p)
		})
	}
}

func TestRefusals(t *testing.T) {
	p := fake(t, "ok", protocol.Options{})
	sc := scenario()
	sc.Form = trace.FormLoop
	_, err := p.Open(context.Background(), sc)
	if e, ok := errors.AsType[*protocol.ReplyError](err); !ok || e.Code != protocol.CodeFailed || e.To != "open of s1" {
		t.Errorf("%v", err)
	}
	sc = scenario()
	sc.Edition = "9.9"
	_, err = p.Open(context.Background(), sc)
	if e, ok := errors.AsType[*protocol.ReplyError](err); !ok || e.Code != protocol.CodeUnsupported {
		t.Errorf("%v", err)
	}
	s := open(t, p)
	_, err = do(s, modelDone("model/7"))
	if e, ok := errors.AsType[*protocol.ReplyError](err); !ok || e.Code != protocol.CodeCall {
		t.Errorf("%v", err)
	}
	if _, err := do(s, prompt("go")); err != nil { // nothing is lost by it
		t.Errorf("%v", err)
	}
	if p.Starts() != 1 {
		t.Errorf("%d starts", p.Starts())
	}
}

func TestTextsThatOthersSplitAt(t *testing.T) {
	for _, text := range []string{"a\u2028b\u2029c\u0085d\ve\ff", "\r\n\r", `"\`, "\x00\x7f", "\U0001F600 \uFFFD", strings.Repeat("long ", 1<<20)} {
		p := fake(t, "ok", protocol.Options{})
		s := open(t, p)
		if err := s.Do(prompt(text)); err != nil {
			t.Fatal(err)
		}
		got := ""
		err := s.Settle(func(e *trace.Entry) {
			if e.Kind == trace.KindEvent {
				got = e.Event.Message.Content.PlainText()
			}
		})
		if err != nil || got != text {
			t.Errorf("%.40q came back as %.40q, %v", text, got, err)
		}
	}
}

// play hands over a case at once and waits for its end.
func play(t *testing.T, p *protocol.Process, actions []*harness.Action, expect [][]string, out func(*trace.Entry)) error {
	t.Helper()
	playing, err := p.Play(t.Context(), &harness.Prepared{Scenario: scenario()}, actions, expect)
	if err == nil {
		_, err = playing.Read(out)
	}
	return err
}

func TestBothSidesWriteMuch(t *testing.T) {
	p := fake(t, "lax", protocol.Options{})
	text := "many20 " // the texts make it 40 MiB in all each way, far more than the pipes hold
	actions, expect := []*harness.Action{}, [][]string{}
	waiting := []string{}
	for i := range 20 {
		a := prompt(text + strings.Repeat("x", 100<<10))
		a.Name = "prompt/" + strconv.Itoa(i)
		actions = append(actions, a)
		waiting = append(waiting, "model/"+strconv.Itoa(i))
		expect = append(expect, slices.Clone(waiting))
	}
	if err := play(t, p, actions, expect, func(*trace.Entry) {}); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyTheCaseThatHangsIsToBlame: a case that was written behind it is to be run
// again.
func TestOnlyTheCaseThatHangsIsToBlame(t *testing.T) {
	p := fake(t, "ok", protocol.Options{TimeoutScale: 0.1})
	play := func(text string) error {
		return play(t, p, []*harness.Action{prompt(text)}, [][]string{{"model/0"}}, func(*trace.Entry) {})
	}
	if err := play("go"); err != nil {
		t.Fatal(err)
	}
	hung := make(chan error)
	go func() { hung <- play("hang") }()
	time.Sleep(50 * time.Millisecond) // it has been written by then
	if err := play("go"); err != harness.ErrElsewhere {
		t.Errorf("the case behind it ends with %v", err)
	}
	fault, ok := errors.AsType[*harness.SubjectError](<-hung)
	if !ok || fault.Outcome != trace.OutcomeHung {
		t.Errorf("the case that hangs ends with %v", fault)
	}
}

func TestPlay(t *testing.T) {
	p := fake(t, "ok", protocol.Options{})
	actions := []*harness.Action{prompt("go"), modelDone("model/0")}
	t.Run("as predicted", func(t *testing.T) {
		var seen []string
		err := play(t, p, actions, [][]string{{"model/0"}, {}}, func(e *trace.Entry) {
			seen = append(seen, strconv.Itoa(e.Step)+" "+summary(e))
		})
		want := []string{"1 event 0 agent_start", "1 call model/0", "2 event 1 message_end", "2 settled prompt/0 ok"}
		if err != nil || !slices.Equal(seen, want) {
			t.Errorf("%q, %v; want %q", seen, err, want)
		}
	})
	t.Run("otherwise", func(t *testing.T) {
		err := play(t, p, actions, [][]string{{"model/0", "tool/c1"}, {}}, func(*trace.Entry) {})
		if err != harness.ErrMispredicted {
			t.Error(err)
		}
		if _, err := do(open(t, p), prompt("go")); err != nil {
			t.Error(err)
		}
	})
	if p.Starts() != 1 {
		t.Errorf("%d starts", p.Starts())
	}
}

func TestGoodbye(t *testing.T) {
	t.Parallel()
	t.Run("code", func(t *testing.T) {
		p := fake(t, "bad-bye", protocol.Options{})
		open(t, p)
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "exit code 5 after bye") {
			t.Error(err)
		}
	})
	t.Run("none", func(t *testing.T) {
		p := fake(t, "stubborn-bye", protocol.Options{TimeoutScale: 0.4})
		open(t, p)
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "still running 2s after bye") {
			t.Error(err)
		}
	})
}

func TestWhatTheSubjectStartedIsEndedWithIt(t *testing.T) {
	p := fake(t, "grandchild", protocol.Options{})
	_, err := do(open(t, p), prompt("die"))
	e, ok := errors.AsType[*harness.SubjectError](err)
	if !ok || len(e.Stderr) == 0 {
		t.Fatalf("%v", err)
	}
	pid, err := strconv.Atoi(strings.TrimPrefix(e.Stderr[0], "child "))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if syscall.Kill(pid, 0) != nil || isZombie(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

// isZombie reports whether the process has ended and only waits to be reaped by
// a parent that this machine may not have.
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestTheEnvironmentIsCleaned(t *testing.T) {
	t.Setenv("PYTHONUNBUFFERED", "1")
	t.Setenv("SOMETHING_ELSE", "1")
	show := func(c protocol.Command) string {
		c.Argv = []string{"sh", "-c", "echo pybuf=$PYTHONUNBUFFERED else=$SOMETHING_ELSE >&2; exit 1"}
		_, err := protocol.NewProcess(c, protocol.Options{}).Open(context.Background(), scenario())
		start, ok := errors.AsType[*protocol.StartError](err)
		if !ok {
			t.Fatal(err)
		}
		return strings.Join(start.Stderr, "\n")
	}
	if got := show(protocol.Command{}); got != "pybuf= else=1" {
		t.Error(got)
	}
	if got := show(protocol.Command{KeepEnv: true}); got != "pybuf=1 else=1" {
		t.Error(got)
	}
	if got := show(protocol.Command{Env: []string{"PYTHONUNBUFFERED=2"}}); got != "pybuf=2 else=1" {
		t.Error(got)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	p := fake(t, "ok", protocol.Options{TimeoutScale: 0.4})
	ctx, cancel := context.WithCancel(context.Background())
	s, err := p.Open(ctx, scenario())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := do(s, prompt("hang")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestTheCaseThatBreaksTheProtocolIsToBlame: that is seen when the case is read, and
// by then the subject may be at another one, or have died over it.
func TestTheCaseThatBreaksTheProtocolIsToBlame(t *testing.T) {
	for _, next := range []string{"go", "die"} {
		p := fake(t, "lax", protocol.Options{})
		begin := func(text string) harness.Playing {
			playing, err := p.Play(t.Context(), &harness.Prepared{Scenario: scenario()}, []*harness.Action{prompt(text)}, [][]string{{"model/0"}})
			if err != nil {
				t.Fatal(err)
			}
			return playing
		}
		guilty, behind := begin("gap"), begin(next)
		died := make(chan error)
		go func() {
			_, err := behind.Read(func(*trace.Entry) {})
			died <- err
		}()
		time.Sleep(100 * time.Millisecond) // the subject has done what it can by then
		_, err := guilty.Read(func(*trace.Entry) {})
		if broken, ok := errors.AsType[*protocol.ProtocolError](err); !ok || !strings.Contains(broken.Problem, "which never was called") {
			t.Errorf("%s: the case that breaks the protocol ends with %v", next, err)
		}
		err = <-died
		if fault, ok := errors.AsType[*harness.SubjectError](err); next == "die" && (!ok || fault.Exit != 3) {
			t.Errorf("the case that dies behind it ends with %v", err)
		}
		if next == "go" && err != nil && err != harness.ErrElsewhere {
			t.Errorf("the case behind it ends with %v", err)
		}
	}
}

// TestDeathWhileAnotherIsQuiet: a subject that has no barrier dies over one case while
// another waits for it to be quiet.
func TestDeathWhileAnotherIsQuiet(t *testing.T) {
	p := fake(t, "no-barrier", protocol.Options{})
	s, other := open(t, p), open(t, p)
	if err := s.Do(prompt("go")); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error)
	go func() { settled <- s.Settle(func(*trace.Entry) {}) }()
	time.Sleep(20 * time.Millisecond)
	if _, err := do(other, prompt("die")); err == nil {
		t.Error("no error")
	}
	if err := <-settled; err != nil && err != harness.ErrElsewhere {
		t.Error(err)
	}
}

func TestAScenarioThatIsNoJSONIsRefusedEachTime(t *testing.T) {
	p := fake(t, "lax", protocol.Options{})
	sc := scenario()
	sc.Config.Tools = []trace.Tool{{Name: "x", Parameters: trace.Value("{")}}
	prepared := &harness.Prepared{Scenario: sc}
	for range 2 {
		if _, err := p.Play(t.Context(), prepared, []*harness.Action{prompt("go")}, [][]string{{"model/0"}}); err == nil {
			t.Error("no error")
		}
	}
}

// TestACaseThatWasAskedForComesToItsEnd, even if the context ends meanwhile; but none
// is begun after that.
func TestACaseThatWasAskedForComesToItsEnd(t *testing.T) {
	p := fake(t, "lax", protocol.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ask := func() (harness.Playing, error) {
		return p.Play(ctx, &harness.Prepared{Scenario: scenario()}, []*harness.Action{prompt("go")}, [][]string{{"model/0"}})
	}
	playing, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := playing.Read(func(*trace.Entry) {}); err != nil {
		t.Error(err)
	}
	if _, err := ask(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := p.Open(ctx, scenario()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
