package harness

import (
	"math/rand/v2"
	"slices"
)

// Policy chooses what happens next.
type Policy interface {
	// Choose gives the index of one of the enabled actions, of which there is
	// at least one. They come in canonical order.
	Choose(enabled []Action) int
}

// First is the default policy: the first enabled action in canonical order. It
// is fair, because what lets the loop go on comes before what starts something
// new, and every action is done once.
type First struct{}

// Choose gives 0.
func (First) Choose([]Action) int { return 0 }

// Random chooses evenly among the enabled actions.
type Random struct{ rng *rand.Rand }

// NewRandom gives a random policy that always makes the same choices for the
// same seed.
func NewRandom(seed uint64) *Random {
	return &Random{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// Choose gives any index.
func (r *Random) Choose(enabled []Action) int { return r.rng.IntN(len(enabled)) }

// Replay follows a schedule.
//
// While the label whose turn it is is not enabled, it waits, and actions that
// the schedule does not name are done in default order. So a schedule need only
// name what departs from the default order. If only named actions are left, the
// label is skipped and noted. When the list is used up the default policy goes
// on.
type Replay struct {
	schedule []string
	named    map[string]int // how often a label is still to come
	skipped  []string
	then     Policy
}

// NewReplay gives a policy that follows the labels.
func NewReplay(schedule []string) *Replay {
	r := &Replay{schedule: schedule, named: make(map[string]int, len(schedule))}
	for _, label := range schedule {
		r.named[label]++
	}
	return r
}

// Then lets another policy go on, in the place of the default one, when the list
// is used up.
func (r *Replay) Then(p Policy) *Replay {
	r.then = p
	return r
}

// Choose gives the action whose turn it is.
func (r *Replay) Choose(enabled []Action) int {
	for len(r.schedule) > 0 {
		label := r.schedule[0]
		if i := slices.IndexFunc(enabled, func(a Action) bool { return a.Label == label }); i >= 0 {
			r.take()
			return i
		}
		if i := slices.IndexFunc(enabled, func(a Action) bool { return r.named[a.Label] == 0 }); i >= 0 {
			return i
		}
		r.skipped = append(r.skipped, label)
		r.take()
	}
	if r.then != nil {
		return r.then.Choose(enabled)
	}
	return 0
}

func (r *Replay) take() {
	r.named[r.schedule[0]]--
	r.schedule = r.schedule[1:]
}

// Skipped are the labels that were never enabled when their turn came.
func (r *Replay) Skipped() []string { return append(r.skipped, r.schedule...) }
