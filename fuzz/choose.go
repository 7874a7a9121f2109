package fuzz

import (
	"math/rand/v2"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
)

// Chooser is the one seam for every open choice: a random source, a property
// test's draws, or a tape of bytes.
type Chooser interface {
	// Choose gives a number from 0 to n-1; n is at least 1. Choices that are
	// nearer to 0 make smaller cases. The label says what is chosen.
	Choose(label string, n int) int
}

// Seeded chooses by a pseudo-random source.
type Seeded struct{ rng *rand.Rand }

// NewSeeded gives a chooser that makes the same choices for the same seed.
func NewSeeded(seed uint64) *Seeded {
	return &Seeded{rng: rand.New(rand.NewPCG(seed, 0xd1342543de82ef95))}
}

// Choose gives a number from 0 to n-1.
func (s *Seeded) Choose(_ string, n int) int { return s.rng.IntN(n) }

// Tape chooses by the bytes of a tape. When the tape is used up every choice is
// 0, so every tape, the empty one included, means some case.
type Tape []byte

// Choose gives a number from 0 to n-1.
func (t *Tape) Choose(_ string, n int) int {
	value, span := 0, 1
	for span < n && len(*t) > 0 {
		value = value<<8 | int((*t)[0])
		*t = (*t)[1:]
		span <<= 8
	}
	return value % n
}

// Decode makes a case of a tape, total: every tape means one. What is left of it
// after the scenario was drawn gives the schedule.
func Decode(tape []byte, e edition.Edition, size Size) (*harness.Scenario, harness.Policy) {
	t := Tape(tape)
	sc := Scenario(&t, e, size)
	return sc, &chosen{c: &t}
}

// chosen is a policy that leaves its choices to a chooser.
type chosen struct{ c Chooser }

func (p *chosen) Choose(enabled []harness.Action) int {
	if len(enabled) == 1 {
		return 0
	}
	return p.c.Choose("action", len(enabled))
}
