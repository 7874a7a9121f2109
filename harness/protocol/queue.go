package protocol

import (
	"io"
	"sync"
)

// queue writes to a pipe on a goroutine of its own. Whoever fills it never
// waits: if both ends of a conversation wrote before they read, both could wait
// for ever.
type queue struct {
	mu     sync.Mutex
	filled sync.Cond
	bytes  []byte
	due    bool // they are to be written
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.filled.L = &q.mu
	return q
}

// push adds to what is written next.
func (q *queue) push(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes = append(q.bytes, line...)
}

// flush lets what was pushed be written.
func (q *queue) flush() {
	q.mu.Lock()
	due := len(q.bytes) > 0
	q.due = q.due || due
	q.mu.Unlock()
	if due {
		q.filled.Signal()
	}
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.filled.Signal()
}

// run writes until the queue is closed and empty, then closes the pipe. An
// error of writing is not reported: whoever reads learns that the peer is gone.
func (q *queue) run(out io.WriteCloser) {
	defer out.Close()
	var chunk []byte
	for {
		q.mu.Lock()
		for !q.due && !q.closed {
			q.filled.Wait()
		}
		chunk, q.bytes, q.due = q.bytes, chunk[:0], false
		q.mu.Unlock()
		if len(chunk) == 0 {
			return
		}
		if _, err := out.Write(chunk); err != nil {
			return
		}
	}
}
