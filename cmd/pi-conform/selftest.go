package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/mutation"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
)

type selftestFlags struct {
	families  []string
	schedules int
	seed      uint64
	json      bool
}

func (p *program) selftestCommand() *cobra.Command {
	f := &selftestFlags{}
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "the reference passes, and every mutant is found by the rule that names it",
		Long: `Runs the reference in every edition and every mutant, and says what falls short: a MUST finding on
the reference, a mutant that is not found first by its rule, a rule that nothing exercises.`,
		Args: arguments(0, 0, false),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.selftest(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.families, "family", nil, "only the rules of these `FAMILIES`, such as UPD,LEN, and their mutants")
	flags.IntVar(&f.schedules, "schedules", 10, "drawn schedules of each case, besides its own")
	flags.Uint64Var(&f.seed, "seed", 1, "seed from which schedules are drawn")
	flags.BoolVar(&f.json, "json", false, "the figures as JSON")
	return cmd
}

func (p *program) selftest(ctx context.Context, f *selftestFlags) error {
	families, err := parseFamilies(f.families)
	if err != nil {
		return err
	}
	if f.schedules < 0 {
		return exit.Usagef("--schedules cannot be negative")
	}
	score, err := measure(ctx, f, families)
	if err != nil {
		return err
	}
	if f.json {
		err = p.writeJSON(score)
	} else {
		p.printScores(score)
	}
	if err == nil && score.falls() {
		err = exit.Silently(exit.Broken)
	}
	return err
}

// scores are those of the loop and of the progress channel, as far as they were
// asked for.
type scores struct {
	*mutation.Score
	Progress *suite.Score `json:"progress,omitzero"`
}

func (s *scores) falls() bool {
	return s.Score != nil && len(s.Score.Short) > 0 || s.Progress != nil && len(s.Progress.Short) > 0
}

func measure(ctx context.Context, f *selftestFlags, families []conformance.Family) (*scores, error) {
	s := &scores{}
	loop, channel := ofProgress(families)
	var err error
	if families == nil || loop != nil {
		s.Score, err = mutation.Measure(ctx, mutation.Options{
			Families: loop, Schedules: f.schedules, Seed: f.seed, Jobs: runtime.GOMAXPROCS(0),
		})
	}
	if err == nil && (families == nil || channel != nil) {
		s.Progress, err = measureProgress(ctx, channel)
	}
	return s, err
}

func (p *program) printScores(s *scores) {
	if s.Progress != nil {
		p.printProgress(s.Progress)
	}
	if s.Score != nil {
		p.printScore(s.Score)
	}
}

func parseFamilies(names []string) ([]conformance.Family, error) {
	var known []string
	for _, r := range conformance.Catalogue() {
		if !slices.Contains(known, string(r.Family)) {
			known = append(known, string(r.Family))
		}
	}
	known = append(known, progressFamilies()...)
	var families []conformance.Family
	for _, name := range names {
		name = strings.ToUpper(name)
		if !slices.Contains(known, name) {
			return nil, exit.Usagef("unknown family %q%s: it has to be one of %s", name, pick.DidYouMean(name, known), strings.Join(known, ", "))
		}
		families = append(families, conformance.Family(name))
	}
	return families, nil
}

func (p *program) printScore(s *mutation.Score) {
	for _, e := range s.Editions {
		p.out.Printf("reference, edition %s: %s, %s, %s broken\n", e.Name,
			console.Count(e.Cases, "case"), console.Count(e.Schedules, "schedule"), console.Count(len(e.Broken), "MUST rule"))
	}
	p.out.Printf("\n")
	p.printMutants(s)
	p.printRules(s)
	p.printVerdict(s.Short, s.Killed, s.Counted)
}

func (p *program) printVerdict(shorts []string, killed, counted int) {
	for _, short := range shorts {
		p.out.Printf("%s %s\n", p.out.Bad("short:"), short)
	}
	word := p.out.Good("nothing falls short")
	if len(shorts) > 0 {
		word = p.out.Bad(fmt.Sprintf("%d things fall short", len(shorts)))
	}
	p.out.Printf("score: %d of %s killed by the rule that names them; %s\n", killed, console.Count(counted, "mutant"), word)
}

func (p *program) printMutants(s *mutation.Score) {
	var rows [][]string
	for _, m := range s.Mutants {
		rows = append(rows, []string{
			m.Name, m.Rule, strconv.Itoa(m.Cases), strconv.Itoa(m.Schedules), p.fate(&m),
		})
	}
	p.out.Table([]string{"mutant", "rule", "cases", "schedules", "killed in"}, rows)
	p.out.Printf("\n")
}

func (p *program) fate(m *mutation.Mutant) string {
	switch {
	case m.Equivalent != "":
		return "equivalent: " + m.Equivalent
	case m.Killed:
		return fmt.Sprintf("%s (edition %s)", m.Case, m.Edition)
	}
	return p.out.Bad("survives")
}

func (p *program) printRules(s *mutation.Score) {
	var rows [][]string
	for _, r := range s.Rules {
		rows = append(rows, []string{r.ID, strconv.Itoa(r.Exercised), strconv.Itoa(r.Kills), strconv.Itoa(r.Only)})
	}
	p.out.Table([]string{"rule", "exercised", "kills", "kills alone"}, rows)
	p.out.Printf("\n")
}
