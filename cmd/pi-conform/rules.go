package main

import (
	"slices"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/edition"
)

// levels from the strictest on.
var levels = []conformance.Level{conformance.Must, conformance.Should, conformance.Robust}

// chosenRules are the rules that the patterns choose and that have at least the
// level in the edition.
func chosenRules(patterns []string, level string, e edition.Edition) ([]conformance.Rule, error) {
	rules, err := conformance.Select(patterns...)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	least := slices.Index(levels, conformance.Level(level))
	if least < 0 {
		return nil, oneOf("level", level, "must", "should", "robust")
	}
	rules = slices.DeleteFunc(rules, func(r conformance.Rule) bool {
		return slices.Index(levels, r.LevelIn(e)) > least
	})
	if len(rules) == 0 {
		return nil, exit.Usagef("--level %s leaves no rule in edition %s", level, e)
	}
	return rules, nil
}

func ruleIDs() []string {
	var ids []string
	for _, r := range conformance.Catalogue() {
		ids = append(ids, r.ID)
	}
	for _, r := range progress.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}
