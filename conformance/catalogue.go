package conformance

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness/spelling"
)

// catalogue are all rules, family by family.
var catalogue = slices.Concat(
	runRules, turnRules, messageRules, toolRules, parallelRules, updateRules,
	lengthRules, abortRules, queueRules, stateRules, listenerRules, contextRules,
	sessionRules, viewRules,
)

func init() {
	for i := range catalogue {
		catalogue[i].prepare()
	}
}

// Catalogue are all rules, in the order in which findings at one place are
// given. The slice is the caller's own.
func Catalogue() []Rule { return slices.Clone(catalogue) }

// Lookup gives the rule of that id, in whatever case it is written. The error
// for an unknown id names the nearest one.
func Lookup(id string) (Rule, error) {
	for _, r := range catalogue {
		if strings.EqualFold(r.ID, id) {
			return r, nil
		}
	}
	return Rule{}, fmt.Errorf("unknown rule %q%s", id, didYouMean(id))
}

// Select are the rules that match any of the patterns, in the order of the
// catalogue. A pattern is an id or a glob over ids ("UPD-*"), or the name of a
// family. No pattern selects every rule; a pattern that matches none is an
// error.
func Select(patterns ...string) ([]Rule, error) {
	if len(patterns) == 0 {
		return Catalogue(), nil
	}
	chosen := make([]bool, len(catalogue))
	for _, pattern := range patterns {
		matched := false
		for i := range catalogue {
			if matches(strings.ToUpper(pattern), &catalogue[i]) {
				chosen[i], matched = true, true
			}
		}
		if !matched {
			return nil, fmt.Errorf("no rule matches %q%s", pattern, didYouMean(pattern))
		}
	}
	var rules []Rule
	for i, yes := range chosen {
		if yes {
			rules = append(rules, catalogue[i])
		}
	}
	return rules, nil
}

func matches(pattern string, r *Rule) bool {
	if pattern == string(r.Family) {
		return true
	}
	ok, err := path.Match(pattern, strings.ToUpper(r.ID))
	return err == nil && ok
}

// didYouMean names the rule whose id is nearest to what was written, if it is
// near enough to be meant.
func didYouMean(id string) string {
	best, distance := "", 4
	for i := range catalogue {
		if d := spelling.Distance(strings.ToUpper(id), strings.ToUpper(catalogue[i].ID)); d < distance {
			best, distance = catalogue[i].ID, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
