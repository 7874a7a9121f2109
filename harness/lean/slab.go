// Package lean holds what makes very many small cases cheap.
//
// A case makes some hundred small values that live about as long as each other:
// events, states, payloads. One by one, making them takes longer than all that is
// done with them. A [Slab] makes several at a time:
//
//	var events lean.Slab[trace.Event]
//	ev := events.New()
//
// And where coroutines take turns on one goroutine, a [Lock] has nothing to do.
package lean

// Slab gives zero values out of pieces of memory that hold several. A piece is
// collected when nothing refers to any of its values. The zero Slab is ready; it
// is not safe for use by several goroutines at once.
type Slab[T any] struct {
	free []T
	next int // values in the next piece
}

// A piece holds twice as many values as the one before, within these bounds: what
// is hardly used costs hardly anything.
const (
	first = 16
	most  = 32
)

// New gives a zero value.
func (s *Slab[T]) New() *T {
	if len(s.free) == 0 {
		s.next = min(max(2*s.next, first), most)
		s.free = make([]T, s.next)
	}
	v := &s.free[0]
	s.free = s.free[1:]
	return v
}

// Of gives a copy of the value.
func (s *Slab[T]) Of(value T) *T {
	v := s.New()
	*v = value
	return v
}

// List gives an empty list with room for n values.
func (s *Slab[T]) List(n int) []T {
	if n > most/2 {
		return make([]T, 0, n)
	}
	if n > len(s.free) {
		s.next = min(max(2*s.next, first, n), most)
		s.free = make([]T, s.next)
	}
	list := s.free[:0:n]
	s.free = s.free[n:]
	return list
}
