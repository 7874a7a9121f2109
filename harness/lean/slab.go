// Package lean holds what makes very many small cases cheap.
//
// A case makes some hundred small values that live about as long as each other:
// events, states, payloads. One by one, making them takes longer than all that is
// done with them. A [Slab] makes several at a time, and can take all of them back:
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
	piece  []T // that values are given from
	used   int // how many of it
	pieces [][]T
	at     int  // place of piece in pieces
	keeps  bool // pieces are kept, for Recycle
}

// The first piece holds so many values, the next ones more, up to a bound: what is
// hardly used costs hardly anything.
const (
	first = 16
	most  = 32
)

// New gives a zero value.
func (s *Slab[T]) New() *T {
	if s.used == len(s.piece) {
		s.next(1)
	}
	s.used++
	return &s.piece[s.used-1]
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
	if s.used+n > len(s.piece) {
		s.next(n)
	}
	s.used += n
	return s.piece[s.used-n : s.used-n : s.used]
}

// next goes on with another piece, of at least n values.
func (s *Slab[T]) next(n int) {
	if s.keeps && s.at+1 < len(s.pieces) {
		s.at++
		s.piece, s.used = s.pieces[s.at], 0
		return
	}
	s.piece, s.used = make([]T, max(n, min(first+len(s.piece), most))), 0
	if s.keeps {
		s.pieces = append(s.pieces, s.piece)
		s.at = len(s.pieces) - 1
	}
}

// Recycle takes back all values that were given so far, to be given again. From
// then on the slab keeps its memory for that.
func (s *Slab[T]) Recycle() {
	switch {
	case !s.keeps:
		*s = Slab[T]{keeps: true}
	case len(s.pieces) > 0:
		for _, p := range s.pieces[:s.at] {
			clear(p)
		}
		clear(s.piece[:s.used])
		s.piece, s.used, s.at = s.pieces[0], 0, 0
	}
}
