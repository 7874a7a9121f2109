package conformancetest

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/edition"
)

// Option changes how a subject is tested.
type Option func(*config)

type config struct {
	only, skip []string
	edition    edition.Edition
	seeds      int
	seed       uint64
	schedules  int
	repeats    int
	level      conformance.Level
	expected   map[string]string // reason by rule
	dir        string
	inProcess  bool
	patience   time.Duration
	time       time.Duration
}

const (
	usualSeeds      = 300
	usualSchedules  = 2
	usualDir        = "testdata/pi-conform/found"
	usualPatience   = 10 * time.Second
	shortestTesting = 10 // part of the seeds that go test -short leaves
)

// configured is the usual configuration in an edition, changed by the options.
func configured(e edition.Edition, options []Option) config {
	c := config{
		edition: e, seeds: usualSeeds, seed: 1, schedules: usualSchedules, repeats: 1,
		level: conformance.Must, expected: map[string]string{}, dir: usualDir, patience: usualPatience,
	}
	if testing.Short() {
		c.seeds = usualSeeds / shortestTesting
	}
	for _, option := range options {
		option(&c)
	}
	return c
}

// Cases runs only the cases whose names match one of the patterns, such as
// "par/three-reversed", "par/*" or "par".
func Cases(patterns ...string) Option {
	return func(c *config) { c.only = append(c.only, patterns...) }
}

// Skip leaves out the cases whose names match one of the patterns.
func Skip(patterns ...string) Option {
	return func(c *config) { c.skip = append(c.skip, patterns...) }
}

// Edition tests the subject in an edition other than its first.
func Edition(e edition.Edition) Option { return func(c *config) { c.edition = e } }

// Seeds is the number of schedules of scenarios that nobody wrote; 0 means none. It is
// 300 otherwise, and a tenth of that with go test -short.
func Seeds(n int) Option { return func(c *config) { c.seeds = n } }

// Seed is what they are drawn from, 1 otherwise.
func Seed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// Time bounds the time spent on them.
func Time(d time.Duration) Option { return func(c *config) { c.time = d } }

// Schedules is the number of schedules that are drawn for each case, besides its own:
// 2 otherwise.
func Schedules(n int) Option { return func(c *config) { c.schedules = n } }

// Repeat is how often each case is replayed, to see that the loop does the same each
// time: once otherwise.
func Repeat(n int) Option { return func(c *config) { c.repeats = n } }

// Level is the lowest level of which a broken rule fails the test. It is
// [conformance.Must] otherwise.
func Level(l conformance.Level) Option { return func(c *config) { c.level = l } }

// ExpectFail says that the loop is known to break a rule, and why that is borne. It
// fails the test that the rule is kept.
func ExpectFail(rule, reason string) Option {
	return func(c *config) { c.expected[rule] = reason }
}

// Found is the directory where cases are saved that were found, and from which they
// are run first.
func Found(dir string) Option { return func(c *config) { c.dir = dir } }

// InProcess tests the loop in the process of the test, where a debugger sees it. A
// goroutine of the loop that panics then ends the test; the next one begins with the
// case in which that happened.
func InProcess() Option { return func(c *config) { c.inProcess = true } }

// Patience is for how long, in real time, the loop may take to come to rest after an
// action: 10 seconds otherwise.
func Patience(d time.Duration) Option { return func(c *config) { c.patience = d } }

// matches reports whether a pattern means the case: by its whole name, its folder, or
// with wildcards.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if p == name || strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}

// fails reports whether a broken rule of that level fails the test.
func (c *config) fails(l conformance.Level) bool {
	rank := map[conformance.Level]int{conformance.Must: 2, conformance.Should: 1, conformance.Robust: 0}
	return rank[l] >= rank[c.level]
}
