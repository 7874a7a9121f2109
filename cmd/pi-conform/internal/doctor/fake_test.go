package doctor_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// faultVariable makes this test program an adapter that has that fault.
const faultVariable = "DOCTOR_FAULT"

func TestMain(m *testing.M) {
	if fault, ok := os.LookupEnv(faultVariable); ok {
		os.Exit(fakes[fault].run())
	}
	os.Exit(m.Run())
}

// fake is an adapter around the reference loop that is broken in one way. Each
// line passes through it in both directions; nil lets it pass as it is.
type fake struct {
	start func() (exit int, ends bool)
	in    func(m object, line string, f *flow) []string // from the doctor
	out   func(m object, line string, f *flow) []string // to the doctor
	end   func(f *flow) int                             // after bye or the end of input
	// held keeps all output back until the end.
	held bool
}

type object map[string]any

func (o object) text(key string) string {
	text, _ := o[key].(string)
	return text
}

// flow is what a fake remembers and can do besides.
type flow struct {
	seen   map[string]bool
	answer func(line string) // writes to the doctor
}

func (f *fake) run() int {
	if f.start != nil {
		if code, ends := f.start(); ends {
			return code
		}
	}
	toLoop, fromDoctor := io.Pipe()
	fromLoop, toDoctor := io.Pipe()
	var held bytes.Buffer
	var out io.Writer = os.Stdout
	if f.held {
		out = &held
	}
	state := &flow{seen: map[string]bool{}, answer: func(line string) { fmt.Fprintln(out, line) }}
	go pass(os.Stdin, fromDoctor, f.in, state)
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(fromLoop, out, f.out, state)
	}()
	_ = protocol.Serve(toLoop, toDoctor, reference.New(), protocol.ServeOptions{})
	_ = toDoctor.Close()
	<-done
	_, _ = held.WriteTo(os.Stdout)
	if f.end != nil {
		return f.end(state)
	}
	return 0
}

func pass(from io.Reader, to io.Writer, through func(object, string, *flow) []string, state *flow) {
	lines := bufio.NewReaderSize(from, 4<<20)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			line = strings.TrimSuffix(line, "\n")
			passed := []string{line}
			m := object{}
			if through != nil && json.Unmarshal([]byte(strings.TrimSpace(line)), &m) == nil {
				passed = through(m, line, state)
			}
			for _, line := range passed {
				fmt.Fprintln(to, line)
			}
		}
		if err != nil {
			break
		}
	}
	if c, ok := to.(io.Closer); ok && to != io.Writer(os.Stdout) {
		_ = c.Close()
	}
}

func forever() (int, bool) {
	time.Sleep(time.Hour)
	return 0, true
}

func endsWith(code int) func() (int, bool) {
	return func() (int, bool) {
		fmt.Fprintln(os.Stderr, "cannot find module 'my-agent'")
		return code, true
	}
}

// only changes messages of one type.
func only(kind string, change func(m object, line string, f *flow) []string) func(object, string, *flow) []string {
	return func(m object, line string, f *flow) []string {
		if m.text("type") == kind {
			return change(m, line, f)
		}
		return []string{line}
	}
}

func set(kind, member string, value any) func(object, string, *flow) []string {
	return only(kind, func(m object, _ string, _ *flow) []string {
		m[member] = value
		return []string{written(m)}
	})
}

func written(m object) string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func drop(object, string, *flow) []string { return nil }

// refuse answers instead of the loop.
func refuse(code string) func(object, string, *flow) []string {
	return func(m object, _ string, f *flow) []string {
		f.answer(fmt.Sprintf(`{"type":"error","re":%.0f,"code":%q,"message":"no"}`, m["id"], code))
		return nil
	}
}

func replace(old, fresh string) func(object, string, *flow) []string {
	return func(_ object, line string, _ *flow) []string { return []string{strings.ReplaceAll(line, old, fresh)} }
}

// once lets only the first message of a type pass.
func once(kind string, then func(object, string, *flow) []string) func(object, string, *flow) []string {
	return only(kind, func(m object, line string, f *flow) []string {
		if f.seen[kind] {
			return then(m, line, f)
		}
		f.seen[kind] = true
		return []string{line}
	})
}

var fakes = map[string]*fake{
	"":           {},
	"ends-early": {start: endsWith(3)},
	"silent":     {start: forever},
	"unflushed":  {held: true},
	"noise": {start: func() (int, bool) {
		fmt.Println("agent 1.0 is ready")
		return 0, false
	}},
	"bad-hello": {out: set("helloOk", "nonce", "none")},
	"unknown-type": {in: only("x-doctor", func(m object, _ string, f *flow) []string {
		f.answer(fmt.Sprintf(`{"type":"ok","re":%.0f}`, m["id"]))
		return nil
	})},
	"unknown-member": {in: func(m object, line string, f *flow) []string {
		if _, there := m["x-doctor"]; there {
			return refuse("malformed")(m, line, f)
		}
		return []string{line}
	}},
	"line-separator": {in: func(_ object, line string, _ *flow) []string { return strings.Split(line, "\u2028") }},
	"carriage-return": {in: func(m object, line string, f *flow) []string {
		if strings.HasSuffix(line, "\r") {
			return refuse("malformed")(m, line, f)
		}
		return []string{line}
	}},
	"long-line": {in: func(_ object, line string, _ *flow) []string {
		if len(line) > 64<<10 {
			os.Exit(1)
		}
		return []string{line}
	}},
	"no-open":   {in: only("open", refuse("failed"))},
	"no-prompt": {in: only("user", refuse("failed"))},
	"no-rest":   {out: only("synced", drop)},
	"early-rest": {out: only("synced", func(_ object, line string, f *flow) []string {
		time.AfterFunc(20*time.Millisecond, func() { f.answer(`{"type":"log","session":"d1","text":"and one more"}`) })
		return []string{line}
	})},
	"events-miscounted": {out: set("synced", "events", 99)},
	"not-idle":          {out: set("synced", "idle", true)},
	"no-model-call":     {out: only("call", drop)},
	"call-names":        {out: replace(`"model/0"`, `"model/1"`)},
	"not-waiting":       {out: set("synced", "waitingOn", []string{})},
	"answer-lost": {in: only("answer", func(m object, _ string, f *flow) []string {
		f.answer(fmt.Sprintf(`{"type":"ok","re":%.0f}`, m["id"]))
		return nil
	})},
	"answer-refused": {in: only("answer", refuse("call"))},
	"no-cancel":      {out: only("cancelled", drop)},
	"no-progress": {out: only("helloOk", func(m object, _ string, _ *flow) []string {
		m["capabilities"] = append(m["capabilities"].([]any), "progress") // it has none
		return []string{written(m)}
	})},
	"late-update": {in: only("answer", func(m object, line string, _ *flow) []string {
		if strings.Contains(line, `"partial":{"content"`) && m.text("call") == "tool/c1" {
			panic("onUpdate is not a function")
		}
		return []string{line}
	})},
	"never-settles": {out: only("settled", drop)},
	"not-again":     {in: once("open", refuse("session"))},
	"bye-ignored": {in: only("bye", func(m object, _ string, f *flow) []string {
		f.answer(fmt.Sprintf(`{"type":"ok","re":%.0f}`, m["id"]))
		time.Sleep(time.Hour)
		return nil
	})},
	"bye-exit-code": {
		in: only("bye", func(_ object, line string, f *flow) []string {
			f.seen["bye"] = true
			return []string{line}
		}),
		end: func(f *flow) int {
			if f.seen["bye"] {
				return 1
			}
			return 0
		},
	},
	"end-ignored": {
		in: only("bye", func(_ object, line string, f *flow) []string {
			f.seen["bye"] = true
			return []string{line}
		}),
		end: func(f *flow) int {
			if !f.seen["bye"] {
				time.Sleep(time.Hour)
			}
			return 0
		},
	},
	"dies": {out: only("synced", func(_ object, line string, f *flow) []string {
		f.seen[line] = true
		if len(f.seen) == 2 {
			panic("something in the background")
		}
		return []string{line}
	})},
}
