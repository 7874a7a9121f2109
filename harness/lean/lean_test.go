package lean_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/harness/lean"
)

func TestValuesAreZeroAndTheirOwn(t *testing.T) {
	g := NewWithT(t)
	var s lean.Slab[int]
	seen := map[*int]bool{}
	for i := range 1000 {
		v := s.New()
		g.Expect(*v).To(BeZero())
		g.Expect(seen).NotTo(HaveKey(v))
		*v, seen[v] = i+1, true
	}
	g.Expect(*s.Of(7)).To(Equal(7))
}

func TestListsDoNotGrowIntoEachOther(t *testing.T) {
	g := NewWithT(t)
	var s lean.Slab[int]
	a, b := s.List(2), s.List(3)
	a, b = append(a, 1, 2), append(b, 3)
	a = append(a, 4) // beyond its room
	b = append(b, 5)
	g.Expect(a).To(Equal([]int{1, 2, 4}))
	g.Expect(b).To(Equal([]int{3, 5}))
	g.Expect(cap(s.List(1000))).To(Equal(1000))
}

func TestRecycledValuesAreZeroAgain(t *testing.T) {
	g := NewWithT(t)
	var s lean.Slab[int]
	for range 3 {
		s.Recycle()
		for range 100 {
			v := s.New()
			g.Expect(*v).To(BeZero())
			*v = 1
			list := s.List(3)[:3]
			g.Expect(list).To(Equal([]int{0, 0, 0}))
			list[0], list[1], list[2] = 1, 2, 3
		}
	}
	g.Expect(testing.AllocsPerRun(10, func() {
		s.Recycle()
		for range 100 {
			s.New()
			s.List(3)
		}
	})).To(BeZero())
}

func TestMakingIsRare(t *testing.T) {
	g := NewWithT(t)
	var s lean.Slab[[4]*int]
	g.Expect(testing.AllocsPerRun(100, func() {
		for range 64 {
			s.New()
		}
	})).To(BeNumerically("<=", 2))
}
