package acpagent_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/acpagent"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
)

// client speaks to an agent over pipes and keeps what both say.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	log   []string
	ended chan error
	ticks chan time.Time
}

// connect begins a conversation. The clock of the workflows stands still until
// [client.run].
func connect(t *testing.T) *client {
	t.Helper()
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	c := &client{t: t, in: in, lines: make(chan string, 1000), ended: make(chan error, 1), ticks: make(chan time.Time)}
	go func() {
		err := acpagent.Serve(context.Background(), acpagent.Options{In: theirs, Out: ours, Ticks: c.ticks})
		_ = ours.Close()
		c.ended <- err
	}()
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
	}()
	return c
}

// run lets the clock run as fast as it can.
func (c *client) run() {
	c.t.Helper()
	over := make(chan struct{})
	c.t.Cleanup(func() { close(over) })
	go func() {
		for {
			select {
			case c.ticks <- time.Time{}:
			case <-over:
				return
			}
		}
	}()
}

func (c *client) say(line string) {
	c.t.Helper()
	c.log = append(c.log, line)
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// until reads lines to the first that holds a text, and gives all of them.
func (c *client) until(text string) []string {
	c.t.Helper()
	var read []string
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the agent has ended before %s: %q", text, read)
			}
			c.log, read = append(c.log, line), append(read, line)
			if strings.Contains(line, text) {
				return read
			}
		case <-time.After(20 * time.Second):
			c.t.Fatalf("no %s: %q", text, read)
		}
	}
}

func (c *client) ask(id int, method, params string) []string {
	c.t.Helper()
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	return c.until(fmt.Sprintf(`"id":%d,`, id))
}

const (
	newParams = `{"cwd":"/project","mcpServers":[]}`
	prompt    = `{"sessionId":"session-1","prompt":[{"type":"text","text":"go"}]}`
)

func (c *client) open() {
	c.t.Helper()
	c.ask(0, "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	c.ask(1, "session/new", newParams)
}

// close ends the client's side and judges the log.
func (c *client) close(exercised ...string) {
	c.t.Helper()
	_ = c.in.Close()
	if err := <-c.ended; err != nil {
		c.t.Error(err)
	}
	for line := range c.lines {
		c.log = append(c.log, line)
	}
	j := acp.New(acp.Seed)
	for n, line := range c.log {
		j.Line(n+1, []byte(line))
	}
	j.End()
	for _, f := range j.Findings {
		c.t.Errorf("%+v\n%s", f, strings.Join(c.log, "\n"))
	}
	for _, r := range j.Results() {
		for _, rule := range exercised {
			if r.Rule == rule && r.Status != conformance.StatusPass {
				c.t.Errorf("%s: %s", rule, r.Status)
			}
		}
	}
}

func count(lines []string, parts ...string) int {
	n := 0
next:
	for _, line := range lines {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		n++
	}
	return n
}

func TestPromptAndLoad(t *testing.T) {
	c := connect(t)
	c.open()
	c.run()
	live := c.ask(2, "session/prompt", prompt)
	for what, want := range map[string]int{`"tool_call"`: 3, "completed": 2, `"failed"`: 1, "end_turn": 1, "agent_message_chunk": 2} {
		// «completed» is also in the text of progress
		if got := count(live, what); got < want {
			t.Errorf("%d lines with %s: %s", got, what, strings.Join(live, "\n"))
		}
	}
	if n := count(live, "in_progress", "workflow-1"); n != 8 {
		t.Errorf("%d lines of progress", n) // one on correlation, one for each later event
	}
	if n := count(live, "in_progress", "edit-1", `"diff"`); n != 1 {
		t.Errorf("%d lines keep the diff", n)
	}
	again := c.ask(3, "session/load", `{"sessionId":"session-1","cwd":"/project","mcpServers":[]}`)
	if count(again, "in_progress") != 0 || count(again, `"tool_call"`) != 3 || count(again, `"tool_call_update"`) != 3 {
		t.Errorf("%s", strings.Join(again, "\n"))
	}
	c.ask(4, "session/prompt", prompt)
	c.close("ACP-2", "ACP-3", "ACP-4", "ACP-5", "ACP-8", "ACP-9", "ACP-12")
}

func TestCancel(t *testing.T) {
	c := connect(t)
	c.open()
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":%s}`, prompt))
	c.until("in_progress")
	c.say(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"session-1"}}`)
	rest := c.until(`"id":2,`)
	if last := rest[len(rest)-1]; !strings.Contains(last, `"cancelled"`) {
		t.Error(last)
	}
	c.run()
	if done := c.ask(3, "session/prompt", prompt); !strings.Contains(done[len(done)-1], "end_turn") {
		t.Error(done[len(done)-1])
	}
	c.close("ACP-4", "ACP-6")
}

// TestTwoSessions holds that two sessions whose calls have the same ids do not
// touch each other.
func TestTwoSessions(t *testing.T) {
	c := connect(t)
	c.open()
	c.ask(5, "session/new", newParams)
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":%s}`, prompt))
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":%s}`, strings.Replace(prompt, "session-1", "session-2", 1)))
	for count(c.log, "in_progress", "workflow-1") < 2 {
		c.until("in_progress")
	}
	c.run() // both have begun
	c.until("end_turn")
	c.until("end_turn")
	c.close("ACP-11")
}

func TestRefusals(t *testing.T) {
	c := connect(t)
	c.open()
	for id, request := range map[int][2]string{
		7: {"no/such", "{}"}, 8: {"session/prompt", `{"sessionId":"nobody","prompt":[]}`}, 9: {"session/load", `{"sessionId":"nobody"}`},
	} {
		if answer := c.ask(id, request[0], request[1]); !strings.Contains(answer[0], `"error"`) {
			t.Error(answer)
		}
	}
	c.close()
}

// TestClientLeaves holds that a client which goes in the middle of a prompt leaves
// nothing running.
func TestClientLeaves(t *testing.T) {
	c := connect(t)
	c.open()
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":%s}`, prompt))
	c.until("in_progress")
	c.close()
}
