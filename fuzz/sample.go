package fuzz

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pi-conform/pi-conform/harness"
)

// mixture are the policies that auto takes in turn. Those without a depth that
// needs one are variations of what was new.
var mixture = [...]harness.PolicySpec{
	{Kind: harness.PolicyUniform},
	{Kind: harness.PolicyPCT, Depth: 1},
	{Kind: harness.PolicyRandom},
	variation,
	{Kind: harness.PolicyPCT, Depth: 2},
	{Kind: harness.PolicyUniform},
	{Kind: harness.PolicyPCT, Depth: 3},
	variation,
}

// variation is the policy of runs that vary an earlier case.
var variation = harness.PolicySpec{Kind: "variation"}

// draw is one run that is about to be done.
type draw struct {
	scenario *harness.Scenario
	spec     harness.PolicySpec
	policy   harness.Policy
	outcome  outcome
}

// sample runs drawn scenarios by drawn schedules, round by round.
func (x *explorer) sample(ctx context.Context) error {
	round := make([]draw, roundSize)
	for first := 0; ; first += roundSize {
		clear(round)
		err := x.eachAhead(roundSize, x.court.ahead(), func(i int) func() error {
			if !x.left(ctx) {
				return func() error { return nil }
			}
			d := &round[i]
			x.draw(d, first+i)
			finish := x.begin(ctx, d.scenario, d.policy)
			return func() (err error) {
				d.outcome, err = finish()
				return err
			}
		})
		if err != nil {
			return err
		}
		if x.takeIn(round, first) {
			return nil
		}
	}
}

// takeIn takes in a round and reports whether it was the last.
func (x *explorer) takeIn(round []draw, first int) (last bool) {
	for i := range round {
		d := &round[i]
		if d.scenario == nil {
			last = true
			continue
		}
		x.result.Scenarios++
		x.note(d.scenario, &d.outcome, first+i, func() string {
			return fmt.Sprintf("scenario %d of seed %d, policy %s", first+i, x.o.Seed, d.spec)
		})
		if d.outcome.ran {
			x.result.sampled(d.tally())
		}
	}
	x.tell("sample")
	return last
}

func (d *draw) tally() Sampled {
	s := Sampled{Policy: d.spec, Runs: 1, Failed: weight(d.outcome.wrong != nil)}
	if p, ok := d.policy.(*harness.PCT); ok {
		s.Bound = p.Bound()
		s.Beyond = weight(s.Bound == 0)
	}
	return s
}

// streams of numbers that are drawn from one seed.
const (
	streamSample uint64 = iota + 1
	streamSmall
)

// seedOf is the seed of number i of a stream.
func (x *explorer) seedOf(stream uint64, i int) uint64 {
	return scramble(x.o.Seed + 0x9e3779b97f4a7c15*(uint64(i)*4+stream-1))
}

// draw draws run i.
func (x *explorer) draw(d *draw, i int) {
	seed := x.seedOf(streamSample, i)
	d.spec = x.o.Policy
	if d.spec.Kind == harness.PolicyAuto {
		d.spec = mixture[i%len(mixture)]
	}
	c := NewSeeded(seed)
	if d.spec == variation {
		if len(x.seen.corpus) > 0 {
			d.scenario, d.policy = x.seen.vary(c, seed)
			return
		}
		d.spec = harness.PolicySpec{Kind: harness.PolicyRandom}
	}
	d.policy = d.spec.Policy(seed)
	if x.o.Scenario != nil {
		d.scenario = clone(x.o.Scenario)
		d.scenario.Edition = x.o.Edition
		return
	}
	d.scenario = x.scenario(c, x.o.Size)
}

func fileOf(dir, name string) string { return filepath.Join(dir, filepath.Base(name)+".txtar") }
