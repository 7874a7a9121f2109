// Package mutation measures what the rules are worth: it lets them find the
// mutants, and keeps count of what they were exercised on.
package mutation

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop/view"
)

// Options say what is measured.
type Options struct {
	Families  []conformance.Family // of the rules; nil means all
	Schedules int                  // drawn for each case, besides its own
	Seed      uint64
	Jobs      int // mutants at a time; at least 1
	// Progress, if not nil, is told of every mutant that is done.
	Progress func(m Mutant)
}

// Score is what came of it.
type Score struct {
	Editions []Edition `json:"editions"`
	Mutants  []Mutant  `json:"mutants"`
	Rules    []Rule    `json:"rules"`
	Killed   int       `json:"killed"`
	Counted  int       `json:"counted"` // mutants that are not equivalent
	// Short says what falls short; nothing if all is as it should be.
	Short []string `json:"short"`
}

// Edition is what the reference does in one edition.
type Edition struct {
	Name         edition.Edition `json:"name"`
	Cases        int             `json:"cases"`
	Schedules    int             `json:"schedules"`
	Broken       []string        `json:"broken"` // MUST rules
	Inconclusive int             `json:"inconclusive"`
}

// Mutant is what became of one mutant.
type Mutant struct {
	Name       string          `json:"name"`
	Rule       string          `json:"rule"` // that has to find it first
	Equivalent string          `json:"equivalent,omitempty"`
	Racy       bool            `json:"racy,omitempty"` // only goroutines with the race detector show it; not counted here
	Killed     bool            `json:"killed"`         // by its rule, as the first finding of a schedule
	Case       string          `json:"case,omitempty"`
	Edition    edition.Edition `json:"edition,omitempty"`
	Cases      int             `json:"cases"`     // run up to the kill, in all if there was none
	Schedules  int             `json:"schedules"` // the same
	Findings   []string        `json:"findings"`  // MUST rules that it broke in any schedule, and its own
}

// Rule is what one rule was worth.
type Rule struct {
	ID        string   `json:"id"`
	Exercised int      `json:"exercised"` // occasions on the reference, in all editions
	Only      int      `json:"only"`      // mutants that it alone finds
	Kills     int      `json:"kills"`     // mutants that it finds
	Reasons   []string `json:"reasons,omitzero"`
}

// Measure runs the reference in every edition, and every mutant.
func Measure(ctx context.Context, o Options) (*Score, error) {
	s := &Score{Mutants: chosen(o), Short: []string{}}
	for _, r := range rules(o) {
		s.Rules = append(s.Rules, Rule{ID: r.ID})
	}
	if err := s.reference(ctx, o); err != nil {
		return nil, err
	}
	if err := s.mutants(ctx, o); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.conclude()
	return s, nil
}

func rules(o Options) []conformance.Rule {
	return slices.DeleteFunc(conformance.Catalogue(), func(r conformance.Rule) bool {
		return o.Families != nil && !slices.Contains(o.Families, r.Family)
	})
}

// chosen are the mutants whose rules are measured.
func chosen(o Options) []Mutant {
	ids := map[string]bool{}
	for _, r := range rules(o) {
		ids[r.ID] = true
	}
	all := []Mutant{}
	for _, m := range subjects.Mutants() {
		if o.Families == nil || ids[m.Rule] {
			all = append(all, Mutant{Name: m.Name, Rule: m.Rule, Equivalent: m.Equivalent, Racy: m.Racy})
		}
	}
	return all
}

// reference runs the reference in every edition.
func (s *Score) reference(ctx context.Context, o Options) error {
	cases, err := suite.Cases()
	if err != nil {
		return err
	}
	for _, e := range edition.Known() {
		rep, err := suite.Run(ctx, reference.New(), cases, suite.Options{
			Edition: e, Rules: rules(o), Schedules: o.Schedules, Seed: o.Seed, Jobs: o.Jobs, Reducer: view.Reducer{},
		})
		if err != nil {
			return err
		}
		s.Editions = append(s.Editions, editionOf(e, rep))
		for i, r := range rep.Rules {
			s.Rules[i].Exercised += r.Exercised
			if r.Reason != "" {
				s.Rules[i].Reasons = append(s.Rules[i].Reasons, string(e)+": "+r.Reason)
			}
		}
	}
	return nil
}

func editionOf(e edition.Edition, rep *report.Report) Edition {
	found := Edition{
		Name: e, Cases: rep.Cases, Schedules: rep.Schedules, Broken: []string{}, Inconclusive: len(rep.Unclear),
	}
	for _, f := range rep.Broken(conformance.Must) {
		if !slices.Contains(found.Broken, f.Rule) {
			found.Broken = append(found.Broken, f.Rule)
		}
	}
	return found
}

// mutants hunts them, several at a time.
func (s *Score) mutants(ctx context.Context, o Options) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, o.Jobs))
	var telling sync.Mutex
	for i := range s.Mutants {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := hunt(ctx, &s.Mutants[i], o); err != nil {
				return err
			}
			if o.Progress != nil {
				telling.Lock()
				defer telling.Unlock()
				o.Progress(s.Mutants[i])
			}
			return nil
		})
	}
	return group.Wait()
}

// hunter hunts one mutant. Its cases are its own: a run completes the scenario
// that it is given.
type hunter struct {
	mutant  *Mutant
	driver  harness.Driver
	reducer harness.Reducer
	o       Options
	rules   []conformance.Rule
}

// hunt runs the mutant by the schedules that the cases have of their own, in
// every edition, and if that does not kill it, by drawn ones until it is dead.
func hunt(ctx context.Context, m *Mutant, o Options) error {
	mutant, err := subjects.LookupMutant(m.Name)
	if err != nil {
		return err
	}
	cases, err := suite.Cases()
	if err != nil {
		return err
	}
	driver := mutant.Driver()
	defer driver.Close()
	h := &hunter{mutant: m, driver: driver, reducer: mutant.Reducer, o: o, rules: conformance.Catalogue()}
	m.Findings = []string{}
	if err := h.round(ctx, cases, 0); err != nil || m.Killed {
		return err
	}
	for n := 1; n <= o.Schedules && !m.Killed; n++ {
		if err := h.round(ctx, cases, n); err != nil {
			return err
		}
	}
	return nil
}

// round runs schedule number n of every case.
func (h *hunter) round(ctx context.Context, cases []*harness.CaseFile, n int) error {
	for _, e := range edition.Known() {
		for _, c := range cases {
			if c.Pinned && c.Case.Scenario.Edition != e {
				continue
			}
			if err := h.run(ctx, c, e, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *hunter) run(ctx context.Context, c *harness.CaseFile, e edition.Edition, n int) error {
	policy, seed := suite.Schedule(c, h.o.Seed, n)
	if h.mutant.Killed { // which other rules find it is still of interest
		return h.look(ctx, c, e, policy)
	}
	rep, rec, err := suite.One(ctx, h.driver, c, seed, suite.Options{Edition: e, Rules: h.rules, Reducer: h.reducer})
	if err != nil || rec == nil {
		return err
	}
	for _, f := range rep.Broken(conformance.Must) {
		h.see(f.Rule)
	}
	h.mutant.Schedules++
	if n == 0 {
		h.mutant.Cases++
	}
	if f := rep.First(); f != nil && f.Rule == h.mutant.Rule && f.Level != conformance.Robust {
		h.see(f.Rule) // also if it is no MUST rule, and none is broken
		h.mutant.Killed, h.mutant.Case, h.mutant.Edition = true, c.Name, e
	}
	return nil
}

// look notes the rules that a trace alone shows to be broken.
func (h *hunter) look(ctx context.Context, c *harness.CaseFile, e edition.Edition, policy harness.Policy) error {
	scenario := *c.Case.Scenario
	scenario.Name, scenario.Edition = c.Name, e
	rec, err := harness.Run(ctx, h.driver, &scenario, policy, harness.Limits{})
	if err != nil {
		return err
	}
	for _, f := range conformance.Check(rec.Trace, h.rules, conformance.InEdition(e)).Findings {
		if f.Level == conformance.Must {
			h.see(f.Rule)
		}
	}
	return nil
}

func (h *hunter) see(rule string) {
	if !slices.Contains(h.mutant.Findings, rule) {
		h.mutant.Findings = append(h.mutant.Findings, rule)
	}
}
