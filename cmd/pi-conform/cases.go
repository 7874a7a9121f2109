package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
)

func caseName(c *harness.CaseFile) string { return c.Name }

// chosenCases are the cases of the suite that the patterns choose.
func chosenCases(run, skip []string) ([]*harness.CaseFile, error) {
	cases, err := suite.Cases()
	if err != nil {
		return nil, err
	}
	cases, err = pick.Filter("case", cases, caseName, run, skip)
	return cases, exit.With(exit.Usage, err)
}

// runsIn reports whether the case means anything in the edition.
func runsIn(c *harness.CaseFile, e edition.Edition) bool {
	return !c.Pinned || c.Case.Scenario.Edition == e
}

// pinnedTo is the edition that the case is written for; empty if it is for all.
func pinnedTo(c *harness.CaseFile) string {
	if !c.Pinned {
		return ""
	}
	return string(c.Case.Scenario.Edition)
}

// fitting are the cases that can be run on the subject in its edition, and a
// note for each capability for lack of which cases were left out.
func fitting(cases []*harness.CaseFile, s *subjects.Subject) (kept []*harness.CaseFile, skipped []report.Skipped, notes []string) {
	lacking := map[string]int{}
	for _, c := range cases {
		if !runsIn(c, s.Edition) {
			continue
		}
		if lacks := s.Lacks(c.Case.Scenario); lacks != "" {
			lacking[lacks]++
			skipped = append(skipped, report.Skipped{Case: c.Name, Needs: lacks})
			continue
		}
		kept = append(kept, c)
	}
	for _, capability := range slices.Sorted(maps.Keys(lacking)) {
		notes = append(notes, fmt.Sprintf("not applicable: %s, for the subject has not declared %s",
			console.Count(lacking[capability], "case"), capability))
	}
	return kept, skipped, notes
}

// scenarioIn is the scenario of a case, to be run in the edition.
func scenarioIn(c *harness.CaseFile, e edition.Edition) *harness.Scenario {
	sc := *c.Case.Scenario
	sc.Name, sc.Edition = c.Name, e
	return &sc
}

// token names a case and a schedule: CASE for the schedule of its own, CASE@SEED
// for a drawn one. CASE is a name or a file.
type token struct {
	Case   *harness.CaseFile
	Seed   uint64
	Seeded bool
}

func parseToken(text string) (token, error) {
	if c, err := readCaseFile(text); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return token{Case: c}, err
	}
	name, seed, seeded := strings.Cut(text, "@")
	t := token{Seeded: seeded}
	var err error
	if seeded {
		t.Seed, err = strconv.ParseUint(seed, 10, 64)
	}
	if err != nil {
		return t, exit.Usagef("%q: what follows @ has to be the seed of a schedule, a number", text)
	}
	if t.Case, err = readCaseFile(name); errors.Is(err, fs.ErrNotExist) {
		t.Case, err = lookupCase(name)
	}
	return t, err
}

func readCaseFile(file string) (*harness.CaseFile, error) {
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fs.ErrNotExist
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c, err := harness.ParseCase(file, data)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	c.Name = file
	return c, nil
}

// lookupCase gives the case of the suite that has that name.
func lookupCase(name string) (*harness.CaseFile, error) {
	cases, err := suite.Cases()
	if err != nil {
		return nil, err
	}
	name = strings.TrimSuffix(name, ".txtar")
	var known []string
	for _, c := range cases {
		if c.Name == name {
			return c, nil
		}
		known = append(known, c.Name)
	}
	return nil, exit.Usagef("there is no file and no case %q%s; «pi-conform list cases» names the cases", name, pick.DidYouMean(name, known))
}

// policy follows the schedule that the token names.
func (t *token) policy() harness.Policy {
	if t.Seeded {
		return harness.NewRandom(t.Seed)
	}
	return harness.NewReplay(t.Case.Case.Schedule)
}

// String is the token as it is written.
func (t *token) String() string {
	if t.Seeded {
		return t.Case.Name + "@" + strconv.FormatUint(t.Seed, 10)
	}
	return t.Case.Name
}

func completeCases() []string {
	cases, err := suite.Cases()
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range cases {
		names = append(names, c.Name)
	}
	return names
}
