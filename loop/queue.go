package loop

import "github.com/pi-conform/pi-conform/harness/trace"

// queue holds messages that wait for their turn. Its owner locks it.
type queue struct {
	mode    string // OneAtATime unless it is All
	waiting []*trace.Message
}

func (q *queue) put(messages ...*trace.Message) { q.waiting = append(q.waiting, messages...) }

// drain takes the oldest message, or in mode «all» every one; order is kept
// (QUE-5). If there is none it gives an empty list, not nil.
func (q *queue) drain() []*trace.Message {
	n := len(q.waiting)
	if q.mode != All {
		n = min(n, 1)
	}
	if n == 0 {
		return []*trace.Message{}
	}
	drained := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return drained
}

func (q *queue) clear() { q.waiting = nil }
