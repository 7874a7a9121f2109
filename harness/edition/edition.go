// Package edition holds the dated versions of the contract as data, so that
// the reference loop, the harness and the rules all mean the same by a name.
//
// An edition is named after the release of the npm loop that first behaved so.
// Two are complete: [V0843], which the source documents describe, and [V16].
// The names between them only bound single behaviours: see [Edition.AtLeast].
package edition

import (
	"fmt"
	"strconv"
	"strings"
)

// Edition is the name of an edition, a dotted version such as "0.84.3".
type Edition string

// The editions that a loop can be run in and judged by.
const (
	V0843 Edition = "0.84.3"
	V16   Edition = "1.6"
)

// Default is the edition of the reference loop and of rules.
const Default = V0843

// Known are the complete editions, oldest first.
func Known() []Edition { return []Edition{V0843, V16} }

// AtLeast reports whether e is not older than the release named other.
// A name that is no dotted version is older than everything.
func (e Edition) AtLeast(other Edition) bool { return compare(e, other) >= 0 }

// Order is a number that is greater for a newer edition: what AtLeast compares,
// for those who compare often.
func (e Edition) Order() int {
	n := numbers(e)
	return n[0]*1_000_000 + n[1]*1_000 + n[2]
}

// HasHook reports whether loops of the edition ask the hook of that name.
func (e Edition) HasHook(name string) bool {
	switch name {
	case "shouldStopAfterTurn":
		return !e.AtLeast("0.87")
	case "finishTurn", "prepareRequest":
		return e.AtLeast("0.87")
	}
	return true
}

// Parse gives the known edition of that name.
func Parse(name string) (Edition, error) {
	for _, e := range Known() {
		if string(e) == name {
			return e, nil
		}
	}
	return "", fmt.Errorf("unknown edition %q (known: %s)", name, join(Known()))
}

// ForRelease is the newest known edition that is not newer than the release,
// and never one older than the oldest known.
func ForRelease(release string) Edition {
	best := Known()[0]
	for _, e := range Known() {
		if Edition(release).AtLeast(e) {
			best = e
		}
	}
	return best
}

func join(editions []Edition) string {
	names := make([]string, len(editions))
	for i, e := range editions {
		names[i] = string(e)
	}
	return strings.Join(names, ", ")
}

func compare(a, b Edition) int {
	left, right := numbers(a), numbers(b)
	for i := range left {
		if left[i] != right[i] {
			return left[i] - right[i]
		}
	}
	return 0
}

// numbers are the first three components of a dotted version; what is missing
// or no number counts as 0.
func numbers(e Edition) [3]int {
	var parts [3]int
	rest := string(e)
	for i := range parts {
		text, after, _ := strings.Cut(rest, ".")
		if text != "" {
			parts[i], _ = strconv.Atoi(text)
		}
		rest = after
	}
	return parts
}
