package drive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/scriptedmodel/httpmodel"
)

// driver drives one program.
type driver struct {
	script  *Script
	options *Options
	model   *httpmodel.Server
	folder  string
	wake    chan struct{} // something changed at the model

	log    bytes.Buffer
	stderr tail
	in     io.WriteCloser
	next   int // step
	sent   int // commands and requests

	// settled says that the program has nothing left to do.
	settled bool
	acp     client
}

func (d *driver) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *driver) run(ctx context.Context, home, base string) error {
	argv := append(append([]string{}, d.options.Command...), d.options.arguments(d.script)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = d.folder
	cmd.Env = environment(home, base, d.options.Env)
	cmd.Stderr = &d.stderr
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if d.options.Mode != PiJSON {
		if d.in, err = cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the program could not be started: %w", err)
	}
	lines := make(chan []byte)
	go read(ctx, out, lines)
	failed := d.drive(ctx, lines)
	if d.in != nil {
		d.in.Close()
	}
	for line := range lines { // what it prints as it goes
		d.record("<-- ", line)
	}
	err = cmd.Wait()
	switch {
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return fmt.Errorf("the program did not end: %w", ctx.Err())
	case err != nil && d.options.Mode == PiJSON && !isExit(err):
		return err
	}
	return nil
}

func isExit(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return ok
}

// read gives the lines of a stream, however long they are.
func read(ctx context.Context, out io.Reader, lines chan<- []byte) {
	defer close(lines)
	from := bufio.NewReader(out)
	for {
		line, err := from.ReadBytes('\n')
		if len(line) > 0 {
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// record writes a line into the log before anything looks into it.
func (d *driver) record(mark string, line []byte) {
	if d.options.Mode == ACP {
		d.log.WriteString(mark)
	}
	d.log.Write(line)
	if !bytes.HasSuffix(line, []byte("\n")) {
		d.log.WriteByte('\n')
	}
}

// drive does the steps as what they wait for comes.
func (d *driver) drive(ctx context.Context, lines <-chan []byte) error {
	if err := d.begin(); err != nil {
		return err
	}
	for {
		if err := d.advance(nil); err != nil {
			return err
		}
		if d.over() {
			return nil
		}
		select {
		case <-ctx.Done():
			return d.stuck(ctx.Err())
		case <-d.wake:
		case line, ok := <-lines:
			if !ok {
				return d.ended()
			}
			d.record("<-- ", line)
			if err := d.take(line); err != nil {
				return err
			}
		}
	}
}

// begin does what comes before the first step.
func (d *driver) begin() error {
	switch d.options.Mode {
	case PiRPC:
		return d.command("prompt", d.script.Prompt)
	case ACP:
		return d.initialize()
	case PiJSON:
	}
	return nil
}

func (d *driver) over() bool {
	return d.options.Mode != PiJSON && d.settled && d.next >= len(d.script.Steps)
}

// ended says whether a program that has closed its output was to do so.
func (d *driver) ended() error {
	switch {
	case d.next < len(d.script.Steps):
		return d.stuck(errors.New("the program ended"))
	case d.options.Mode != PiJSON:
		return errors.New("the program ended before it was told to")
	}
	return nil
}

func (d *driver) stuck(why error) error {
	if d.next < len(d.script.Steps) {
		return fmt.Errorf("what step %d waits for never came: %w", d.next, why)
	}
	return fmt.Errorf("the program never came to rest: %w", why)
}

// take takes in a line of the program.
func (d *driver) take(line []byte) error {
	var value any
	if err := json.Unmarshal(line, &value, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil // it is in the log, and will be judged
	}
	if d.options.Mode == ACP {
		if err := d.hear(line, value); err != nil {
			return err
		}
	} else if at(value, "type") == "agent_settled" {
		d.settled = true
	}
	return d.advance(&event{line: line, value: value})
}

// event is a line that a step may wait for.
type event struct {
	line  []byte
	value any
	used  bool
}

// advance does the steps that are due. Of steps that wait for a line, one line is
// enough for one only.
func (d *driver) advance(e *event) error {
	for d.next < len(d.script.Steps) {
		s := &d.script.Steps[d.next]
		if !d.due(s, e) {
			return nil
		}
		d.next++
		if err := d.do(s); err != nil {
			return fmt.Errorf("step %d: %w", d.next-1, err)
		}
	}
	return nil
}

func (d *driver) due(s *Step, e *event) bool {
	if !d.ready(s) {
		return false
	}
	if s.Gate != "" && !d.model.Waiting(s.Gate) {
		return false
	}
	if len(s.When) == 0 && s.Has == "" && s.Answer == "" {
		return true
	}
	if e == nil || e.used {
		return false
	}
	if !d.matches(s, e) {
		return false
	}
	e.used = true
	return true
}

func (d *driver) matches(s *Step, e *event) bool {
	for path, want := range s.When {
		// For OpenAI responses pi adds another id to that of a call.
		if got := at(e.value, path); got != want && !strings.HasPrefix(got, want+"|") {
			return false
		}
	}
	if s.Has != "" && !bytes.Contains(e.line, []byte(s.Has)) {
		return false
	}
	if d.options.Mode == ACP {
		return d.acp.matches(s, e.value)
	}
	return true
}

// at is the member at a path, as text; empty if there is none.
func at(value any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = object[name]
	}
	switch value := value.(type) {
	case string:
		return value
	case nil, map[string]any, []any:
		return ""
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}

// do does what a step says.
func (d *driver) do(s *Step) error {
	switch {
	case s.Open != "":
		d.model.Open(s.Open)
		return nil
	case s.Touch != "":
		return os.WriteFile(filepath.Join(d.folder, s.Touch), nil, 0o600)
	case d.options.Mode == ACP:
		return d.doACP(s)
	case d.options.Mode == PiJSON:
		return errors.New("a program that takes one prompt can only be given files and chunks of the model")
	case s.Abort:
		return d.command("abort", "")
	case s.Steer != "":
		return d.command("steer", s.Steer)
	case s.FollowUp != "":
		return d.command("follow_up", s.FollowUp)
	case s.Prompt != "":
		d.settled = false
		return d.command("prompt", s.Prompt)
	}
	return errors.New("pi cannot be told to do that")
}

// command sends a command of pi's RPC mode.
func (d *driver) command(kind, message string) error {
	d.sent++
	command := map[string]any{"id": strconv.Itoa(d.sent), "type": kind}
	if message != "" {
		command["message"] = message
	}
	return d.send(command)
}

func (d *driver) send(value any) error {
	line, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return err
	}
	if d.options.Mode == ACP {
		d.record("--> ", line)
	}
	_, err = d.in.Write(append(line, '\n'))
	if errors.Is(err, syscall.EPIPE) {
		return nil // it has ended, or reads no more: what it still says, or the end of that, tells
	}
	return err
}

// tail keeps the last lines of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-10):]
}
