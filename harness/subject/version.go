package subject

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var releaseForm = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// release is a version in parts that can be compared.
type release struct {
	numbers [3]int
	pre     string // what follows a hyphen; a release without it is newer
}

func parseRelease(text string) release {
	var r release
	text, r.pre, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "v"), "-")
	for i, part := range strings.SplitN(text, ".", 3) {
		r.numbers[i], _ = strconv.Atoi(part)
	}
	return r
}

func compareReleases(a, b string) int {
	left, right := parseRelease(a), parseRelease(b)
	if c := slices.Compare(left.numbers[:], right.numbers[:]); c != 0 {
		return c
	}
	if (left.pre == "") != (right.pre == "") {
		return cmp.Compare(len(right.pre), len(left.pre))
	}
	return strings.Compare(left.pre, right.pre)
}

const nearestEachSide = 2

// nearest are the releases next to the version, oldest first.
func nearest(version string, all []string) []string {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, compareReleases)
	at, _ := slices.BinarySearchFunc(sorted, version, compareReleases)
	return sorted[max(0, at-nearestEachSide):min(len(sorted), at+nearestEachSide)]
}
