package loop

import (
	"context"
	"slices"
	"unsafe"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Listener is told of every event, in order. It is loop code: what takes long
// belongs into [Await], and the loop waits for it nevertheless, except
// that deliveries of calls that run in parallel may overlap. Ctx is the run's
// abort signal. An error ends the run (RUN-7).
type Listener func(ctx context.Context, ev *trace.Event) error

// subscription is a listener with its number, from 1, that is never used again.
type subscription struct {
	number int
	listen Listener
}

// listeners are the subscriptions in the order of their numbers. A delivery goes
// from number to number, so it reaches those that are added meanwhile, and not
// those that are removed before their turn (LIS-3).
type listeners struct {
	subscribed []*subscription
	last       int
}

func (ls *listeners) add(l Listener) {
	if ls.index(l) < 0 {
		ls.put(l)
	}
}

func (ls *listeners) put(l Listener) {
	ls.last++
	ls.subscribed = append(ls.subscribed, &subscription{number: ls.last, listen: l})
}

func (ls *listeners) remove(l Listener) {
	if i := ls.index(l); i >= 0 {
		ls.subscribed = slices.Delete(ls.subscribed, i, i+1)
	}
}

// after is the first subscription with a higher number.
func (ls *listeners) after(number int) *subscription {
	for _, s := range ls.subscribed {
		if s.number > number {
			return s
		}
	}
	return nil
}

func (ls *listeners) index(l Listener) int {
	return slices.IndexFunc(ls.subscribed, func(s *subscription) bool { return identity(s.listen) == identity(l) })
}

// identity tells function values apart, which Go does not compare: a function
// value is a pointer to its closure, and two are the same if they share it.
func identity(l Listener) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&l)) }
