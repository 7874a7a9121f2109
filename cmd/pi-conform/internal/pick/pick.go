// Package pick chooses things by name: by patterns, and with a suggestion where
// a name is not known.
package pick

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness/spelling"
)

// Matches reports whether a name with / between its parts matches a pattern: *
// stands for anything within a part, ** for any number of parts. A pattern that
// matches the first parts of a name matches everything below them too.
func Matches(pattern, name string) bool {
	return matches(strings.Split(strings.TrimSuffix(pattern, "/"), "/"), strings.Split(name, "/"))
}

func matches(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return true
	case pattern[0] == "**":
		return matches(pattern[1:], name) || len(name) > 0 && matches(pattern, name[1:])
	case len(name) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && matches(pattern[1:], name[1:])
}

// Filter gives the things whose names match any pattern of run (all, if there is
// none) and no pattern of skip. What names the kind of thing, such as «case». A
// pattern that matches nothing is an error.
func Filter[T any](what string, things []T, name func(T) string, run, skip []string) ([]T, error) {
	names := make([]string, len(things))
	for i := range things {
		names[i] = name(things[i])
	}
	for _, pattern := range slices.Concat(run, skip) {
		if err := someMatch(what, pattern, names); err != nil {
			return nil, err
		}
	}
	var chosen []T
	for i, thing := range things {
		if (len(run) == 0 || anyMatches(run, names[i])) && !anyMatches(skip, names[i]) {
			chosen = append(chosen, thing)
		}
	}
	return chosen, nil
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return Matches(pattern, name) })
}

func someMatch(what, pattern string, names []string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("pattern %q: %w", pattern, err)
	}
	if slices.ContainsFunc(names, func(name string) bool { return Matches(pattern, name) }) {
		return nil
	}
	return fmt.Errorf("no %s matches %q%s", what, pattern, DidYouMean(pattern, names))
}

// DidYouMean suggests the known word that is nearest to what was written, if one
// is near enough to have been meant; it is to be put behind an error message.
func DidYouMean(word string, known []string) string {
	if best := nearest(word, known); best != "" {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	return ""
}

func nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, distance := "", 1+max(2, len(word)/3)
	for _, k := range known {
		lower := strings.ToLower(k)
		d := spelling.Distance(word, lower)
		if word != "" && strings.Contains(lower, word) {
			d = min(d, 1)
		}
		if d < distance {
			best, distance = k, d
		}
	}
	return best
}
