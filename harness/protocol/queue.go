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
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.filled.L = &q.mu
	return q
}

func (q *queue) push(line []byte) {
	q.mu.Lock()
	q.bytes = append(q.bytes, line...)
	q.mu.Unlock()
	q.filled.Signal()
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
		for len(q.bytes) == 0 && !q.closed {
			q.filled.Wait()
		}
		chunk, q.bytes = q.bytes, chunk[:0]
		q.mu.Unlock()
		if len(chunk) == 0 {
			return
		}
		if _, err := out.Write(chunk); err != nil {
			return
		}
	}
}
