package doctor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/harness/protocol"
)

// message is what the adapter writes: a reply or an output.
type message struct {
	Type      string   `json:"type"`
	Re        *int64   `json:"re"`
	Code      string   `json:"code"`
	Message   string   `json:"message"`
	Protocol  int      `json:"protocol"`
	Nonce     string   `json:"nonce"`
	Editions  []string `json:"editions"`
	Barrier   string   `json:"barrier"`
	Can       []string `json:"capabilities"`
	Subject   *named   `json:"subject"`
	Idle      bool     `json:"idle"`
	WaitingOn []string `json:"waitingOn"`
	Events    int      `json:"events"`
	Name      string   `json:"name"`
	N         *int     `json:"n"`
	Auto      bool     `json:"auto"`
	Session   string   `json:"session"`
	Entry     entry    `json:"entry"`

	line string
}

// entry is what was seen of a channel of progress.
type entry struct {
	Kind     string `json:"kind"`
	Accepted bool   `json:"accepted"`
}

type named struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// talk is a conversation with one process, at the level of lines.
type talk struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // closed when standard output ends
	over  chan struct{}
	limit time.Duration // of patience for one answer
	said  tail

	id      int64
	outputs []message // so far, of all sessions
	writing sync.WaitGroup
}

// Ways in which a conversation breaks off.
var (
	errSilent = errors.New("there was no answer in time")
	errEnded  = errors.New("the process ended")
)

type noise struct{ line string }

func (n *noise) Error() string {
	return fmt.Sprintf("on standard output there is the line %.200q", n.line)
}

func begin(command protocol.Command, limit time.Duration) (*talk, error) {
	cmd := command.Exec()
	t := &talk{cmd: cmd, lines: make(chan string, 1024), over: make(chan struct{}), limit: limit}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = &t.said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.stdin = stdin
	go t.read(stdout)
	return t, nil
}

func (t *talk) read(stdout io.Reader) {
	lines := bufio.NewReaderSize(stdout, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			t.lines <- strings.TrimRight(line, "\r\n")
		}
		if err != nil {
			break
		}
	}
	close(t.lines)
	_ = t.cmd.Wait()
	close(t.over)
}

// end ends the process, whatever it does.
func (t *talk) end() {
	protocol.Kill(t.cmd)
	_ = t.stdin.Close()
	go func() {
		for range t.lines {
		}
	}()
	<-t.over
	t.writing.Wait()
}

// write sends a line. It never waits for a process that does not read.
func (t *talk) write(line []byte) {
	t.writing.Go(func() { _, _ = t.stdin.Write(line) })
}

// send sends a request and gives its id.
func (t *talk) send(request map[string]any) int64 {
	t.id++
	request["id"] = t.id
	line, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		panic(err) // requests are made here
	}
	t.writing.Wait() // in order
	t.write(append(line, '\n'))
	return t.id
}

// ask sends a request and waits for its reply. Outputs that come before it are
// kept.
func (t *talk) ask(request map[string]any) (*message, error) {
	return t.reply(t.send(request))
}

func (t *talk) reply(id int64) (*message, error) {
	patience := time.After(t.limit)
	for {
		m, err := t.next(patience)
		if err != nil {
			return nil, err
		}
		if m.Re != nil && *m.Re == id {
			return m, nil
		}
		if m.Re != nil || m.Type == "error" {
			return m, fmt.Errorf("there is a reply to something else: %.200s", m.line)
		}
	}
}

// next gives the next message; outputs are kept besides.
func (t *talk) next(patience <-chan time.Time) (*message, error) {
	select {
	case line, ok := <-t.lines:
		if !ok {
			return nil, errEnded
		}
		if !strings.HasPrefix(line, "{") || !jsontext.Value(line).IsValid() {
			return nil, &noise{line}
		}
		m := message{line: line}
		_ = json.Unmarshal([]byte(line), &m) // what does not fit is missed
		m.line = line
		if m.Re == nil && m.Session != "" {
			t.outputs = append(t.outputs, m)
		}
		return &m, nil
	case <-patience:
		return nil, errSilent
	}
}

// quiet waits for a while, and gives what was written meanwhile.
func (t *talk) quiet() (*message, error) {
	m, err := t.next(time.After(t.limit / 16))
	if errors.Is(err, errSilent) {
		return nil, nil
	}
	return m, err
}

// exitsWithin waits until the process has ended, and gives its exit code.
func (t *talk) exitsWithin(limit time.Duration) (code int, ok bool) {
	patience := time.After(limit)
	lines := t.lines
	for {
		select {
		case <-t.over:
			return t.cmd.ProcessState.ExitCode(), true
		case _, ok := <-lines:
			if !ok {
				lines = nil
			}
		case <-patience:
			return 0, false
		}
	}
}

// tail keeps the last of what a process writes to standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(text), nil
}

const linesKept = 8

// last are the last lines.
func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(t.text) {
		if text := strings.TrimSpace(string(line)); text != "" {
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-linesKept):]
}
