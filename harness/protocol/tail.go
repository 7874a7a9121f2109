package protocol

import (
	"bufio"
	"io"
	"strings"
	"sync"
)

const (
	tailLines     = 128 // a report of a data race has 50 and more
	dumpLines     = 512 // while a runtime dumps its stacks
	tailLineBytes = 2000
)

// tail keeps the last lines of a text.
type tail struct {
	mu    sync.Mutex
	lines []string
	keep  int
}

// read keeps what comes from in, until it ends. What stands beyond the first
// part of a very long line is dropped.
func (t *tail) read(in io.Reader) {
	r := bufio.NewReaderSize(in, tailLineBytes)
	for {
		text, more, err := r.ReadLine()
		if err != nil {
			return
		}
		t.add(string(text))
		for more && err == nil {
			_, more, err = r.ReadLine()
		}
	}
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, strings.ToValidUTF8(line, "\uFFFD"))
	if over := len(t.lines) - max(t.keep, tailLines); over > 0 {
		t.lines = append(t.lines[:0], t.lines[over:]...)
	}
}

// expectDump makes room for a dump of stacks.
func (t *tail) expectDump() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep = dumpLines
}

func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}
