package harness

import "math/rand/v2"

// Uniform gives every order of the actions the same chance, as far as the script
// tells what there is to be put in order.
//
// If each actor had a fixed number of actions left, the rule would be to pick
// actor i with probability remaining_i / total. A tool that may return before it
// has made all its updates, and a stream that may notice an abort, can go on in
// several ways; so the completions after each action are counted, and an action
// is picked in proportion to them. What the script holds beyond the callbacks
// that wait is taken to come after them, one after the other, and beside it what
// the user does. Turns that an abort or a hook takes away are counted as if they
// came.
type Uniform struct {
	rng    *rand.Rand
	world  *world
	weight []float64
	group  []int // actions of one actor have one number
	actors []Action
	a, b   []float64
}

// NewUniform gives a policy that always makes the same choices for the same
// seed.
func NewUniform(seed uint64) *Uniform {
	return &Uniform{rng: rand.New(rand.NewPCG(seed, 0xda942042e4dd58b5))}
}

func (u *Uniform) begin(w *world) {
	w.counts = newCounts(w.sc)
	u.world = w
}

// Choose gives an action in proportion to the number of ways to go on after it.
func (u *Uniform) Choose(enabled []Action) int {
	if len(enabled) == 1 {
		return 0
	}
	if u.world == nil || u.world.counts == nil {
		return u.rng.IntN(len(enabled))
	}
	u.weigh(enabled)
	total := 0.0
	for _, w := range u.weight {
		total += w
	}
	at := u.rng.Float64() * total
	for i, w := range u.weight {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(enabled) - 1
}

// weigh sets the weight of each action.
func (u *Uniform) weigh(enabled []Action) {
	u.actors, u.group, u.weight = u.actors[:0], u.group[:0], u.weight[:0]
	for i := range enabled {
		g := 0
		for g < len(u.actors) && !u.actors[g].sameActor(&enabled[i]) {
			g++
		}
		if g == len(u.actors) {
			u.actors = append(u.actors, enabled[i])
		}
		u.group = append(u.group, g)
	}
	ahead := u.world.counts.ahead() + u.world.runsLeft()
	for i := range enabled {
		u.weight = append(u.weight, u.completions(enabled, i, ahead))
	}
}

// completions counts the ways to go on after action i.
//
// The lengths of what each actor does in a run are multiplied as exponential
// generating functions: a[n] is the number of orders of n actions, divided by n
// factorial. What the script holds beyond them adds to the length. Actors beside
// the runs may come in anywhere.
func (u *Uniform) completions(enabled []Action, i, ahead int) float64 {
	u.a = append(u.a[:0], 1)
	free, orders := 0, 1.0
	for g := range u.actors {
		left := u.left(g)
		if g == u.group[i] {
			left = u.world.counts.then(&enabled[i])
		}
		if !u.actors[g].free() {
			u.multiply(left)
			continue
		}
		for n := 1; n <= left.most; n++ {
			free++
			orders *= float64(free) / float64(n)
		}
	}
	sum := 0.0
	factorial := 1.0
	for n, ways := range u.a {
		if n > 0 {
			factorial *= float64(n)
		}
		if ways == 0 {
			continue
		}
		sum += ways * factorial * choose(n+ahead+free, free)
	}
	return sum * orders
}

func (u *Uniform) left(g int) remains {
	a := &u.actors[g]
	switch {
	case a.queue != nil:
		return exactly(len(a.queue.left()))
	case a.call == nil:
		return exactly(1) // the clock
	}
	return u.world.counts.left(a.call)
}

// multiply multiplies a by the generating function of r.
func (u *Uniform) multiply(r remains) {
	u.b = u.b[:0]
	for range len(u.a) + r.most {
		u.b = append(u.b, 0)
	}
	factorial := 1.0
	for n := 1; n < r.least; n++ {
		factorial *= float64(n)
	}
	for n := r.least; n <= r.most; n++ {
		if n > 0 {
			factorial *= float64(n)
		}
		ways := r.ways(n) / factorial
		for k, w := range u.a {
			u.b[k+n] += w * ways
		}
	}
	u.a, u.b = u.b, u.a
}

// choose is n over k.
func choose(n, k int) float64 {
	c := 1.0
	for i := 1; i <= k; i++ {
		c = c * float64(n-k+i) / float64(i)
	}
	return c
}
