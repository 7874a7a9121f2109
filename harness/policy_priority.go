package harness

import (
	"math/rand/v2"
	"strings"
)

// PCT is probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi,
// Nagarakatte: A randomized scheduler with probabilistic guarantees of finding
// bugs, ASPLOS 2010): every actor gets a random priority, the enabled actor of
// highest priority acts, and at depth-1 random steps the one that would have
// acted falls to the lowest. In a case of n actors and k steps it does any d
// things that have to happen in one order with probability at least
// 1/(n·k^(d-1)).
type PCT struct {
	rng     *rand.Rand
	depth   int
	length  int
	step    int
	changes []int
	lowest  int
	actors  []priority
}

type priority struct {
	actor string
	value int // negative after a change
}

// NewPCT gives the policy for a bug of that depth, at least 1. Length is the
// number of steps that the case takes at most; 0 lets it be estimated from the
// scenario.
func NewPCT(seed uint64, depth, length int) *PCT {
	p := &PCT{rng: rand.New(rand.NewPCG(seed, 0xa0761d6478bd642f)), depth: max(depth, 1)}
	if length > 0 {
		p.draw(length)
	}
	return p
}

func (p *PCT) begin(w *world) {
	if p.length == 0 {
		p.draw(w.estimate())
	}
}

func (p *PCT) draw(length int) {
	p.length = length
	for range p.depth - 1 {
		p.changes = append(p.changes, p.rng.IntN(length))
	}
}

// Choose gives the action of the actor of highest priority.
func (p *PCT) Choose(enabled []Action) int {
	best := p.highest(enabled)
	for _, at := range p.changes {
		if at == p.step {
			p.lowest--
			p.of(&enabled[best]).value = p.lowest
			best = p.highest(enabled)
		}
	}
	p.step++
	return best
}

func (p *PCT) highest(enabled []Action) int {
	best, value := 0, 0
	for i := range enabled {
		if v := p.of(&enabled[i]).value; i == 0 || v > value {
			best, value = i, v
		}
	}
	return best
}

func (p *PCT) of(a *Action) *priority {
	actor := actorOf(a)
	for i := range p.actors {
		if p.actors[i].actor == actor {
			return &p.actors[i]
		}
	}
	p.actors = append(p.actors, priority{actor: actor, value: 1 + p.rng.IntN(1<<40)})
	return &p.actors[len(p.actors)-1]
}

// Bound is the probability with which a bug of the depth is found, at least, in
// a case such as the one that was run: n actors were seen, and k is the number
// of steps that the changes were drawn from. It is 0 if the case took more steps
// than that.
func (p *PCT) Bound() float64 {
	if p.step > p.length || len(p.actors) == 0 {
		return 0
	}
	bound := 1 / float64(len(p.actors))
	for range p.depth - 1 {
		bound /= float64(p.length)
	}
	return bound
}

// actorOf names who does the action, so that of one actor at most one action is
// enabled: what a tool reports and how it ends are two actors, and so is giving
// up after an abort.
func actorOf(a *Action) string {
	switch {
	case a.Kind == ActionUser:
		return string(a.User)
	case strings.HasSuffix(a.Label, "/aborted"):
		return a.Label
	case a.Answer != nil && a.Answer.Partial != nil:
		return a.Label[:strings.LastIndexByte(a.Label, '/')]
	}
	return a.Name
}

// Departing follows the default order but for a bounded number of steps, at
// which it does something else: bounded delays. Most faults need one or two.
type Departing struct {
	rng    *rand.Rand
	left   int
	length int
	step   int
}

// NewDeparting gives a policy that departs from the default order so many times,
// at steps drawn evenly from the length of the case, which is estimated if it
// is 0.
func NewDeparting(seed uint64, times, length int) *Departing {
	return &Departing{rng: rand.New(rand.NewPCG(seed, 0xe7037ed1a0b428db)), left: times, length: length}
}

func (p *Departing) begin(w *world) {
	if p.length == 0 {
		p.length = w.estimate()
	}
}

// Choose gives 0, or at some steps another.
func (p *Departing) Choose(enabled []Action) int {
	ahead := max(p.length-p.step, 1)
	p.step++
	if p.left == 0 || len(enabled) == 1 || p.rng.IntN(ahead) >= p.left {
		return 0
	}
	p.left--
	return 1 + p.rng.IntN(len(enabled)-1)
}
