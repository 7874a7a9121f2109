package fuzz

import (
	"math/bits"

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

// Seeded chooses by pseudo-random numbers that depend on the seed, on the label, and
// on how often there was that label before. So what is chosen for one thing does
// not depend on what else is chosen, and when: a new feature of the generator
// leaves what else a seed stands for as it was.
type Seeded struct {
	seed uint64
	// count is how often there was a label, by the last bits of its hash. Labels that
	// share them share a count, which shifts their numbers and does no harm.
	count [256]uint32
}

// NewSeeded gives a chooser that makes the same choices for the same seed.
func NewSeeded(seed uint64) *Seeded { return &Seeded{seed: seed} }

// Choose gives a number from 0 to n-1.
func (s *Seeded) Choose(label string, n int) int {
	name := uint64(digest(offset64).text(label))
	count := &s.count[name>>56]
	*count++
	high, _ := bits.Mul64(scramble(scramble(s.seed^name)+uint64(*count)), uint64(n))
	return int(high)
}

// scramble is the finaliser of splitmix64: near numbers give unrelated ones.
func scramble(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

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
