package harness_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// shared is a subject that breaks down over other cases: at the given action, the
// opening being the first, counted over all that is run.
type shared struct {
	harness.Driver
	breaks []int
	done   int
}

func (d *shared) breaksDown() error {
	d.done++
	if slices.Contains(d.breaks, d.done) {
		return harness.ErrElsewhere
	}
	return nil
}

// Open begins a case.
func (d *shared) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	if err := d.breaksDown(); err != nil {
		return nil, err
	}
	s, err := d.Driver.Open(ctx, sc)
	return &sharedSession{s, d}, err
}

type sharedSession struct {
	harness.Session
	subject *shared
}

// Do hands over one action.
func (s *sharedSession) Do(a *harness.Action) error {
	if err := s.subject.breaksDown(); err != nil {
		return err
	}
	return s.Session.Do(a)
}

// TestBrokenDownElsewhere: a case that is cut off because the subject breaks down
// over another one is run again, and goes where it would have gone.
func TestBrokenDownElsewhere(t *testing.T) {
	sc := &harness.Scenario{
		Model: []scriptedmodel.Turn{
			{Calls: []scriptedmodel.Call{{ID: "c1", Name: "a"}, {ID: "c2", Name: "a"}, {ID: "c3", Name: "a"}}},
			{Text: "done"},
		},
		Calls: map[string]harness.ToolScript{"c1": {Gate: true}, "c2": {Gate: true}, "c3": {Gate: true}},
		User:  []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}},
	}
	sc.Config.Tools = []trace.Tool{{Name: "a"}}
	for _, kind := range []harness.PolicySpec{
		{Kind: harness.PolicyRandom}, {Kind: harness.PolicyUniform}, {Kind: harness.PolicyPCT, Depth: 3},
	} {
		for seed := range uint64(20) {
			want, err := harness.Run(t.Context(), reference.New(), sc, kind.Policy(seed), harness.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			d := &shared{Driver: reference.New(), breaks: []int{1, 4, 5, 9, 12}}
			got, err := harness.Run(t.Context(), d, sc, kind.Policy(seed), harness.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Schedule, want.Schedule) || trace.Hash(got.Trace) != trace.Hash(want.Trace) {
				t.Errorf("%s, seed %d: %q, want %q", kind, seed, got.Schedule, want.Schedule)
			}
		}
	}
}
