package loop

import "github.com/pi-conform/pi-conform/harness/trace"

// queue holds messages that wait for their turn. Its owner locks it.
type queue struct {
	mode    string // OneAtATime unless it is All
	waiting []*trace.Message
}

func (q *queue) put(messages ...*trace.Message) { q.waiting = append(q.waiting, messages...) }

// drain takes the oldest message, or in mode «all» every one; order is kept (QUE-5).
func (q *queue) drain() []*trace.Message {
	n := len(q.waiting)
	if q.mode != All {
		n = min(n, 1)
	}
	drained := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return drained
}

func (q *queue) clear() { q.waiting = nil }
