package suite_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop/faulty"
)

// TestShards: whatever the number of shards, together they are just the whole,
// down to the last byte of the report.
func TestShards(t *testing.T) {
	cases, err := suite.Cases()
	if err != nil {
		t.Fatal(err)
	}
	mutant, err := faulty.Lookup("late-update-accepted")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(0, len(cases)-1).Draw(t, "first")
		some := cases[first:min(len(cases), first+rapid.IntRange(1, 40).Draw(t, "cases"))]
		o := suite.Options{
			Tool: "test", Edition: edition.Default, Schedules: rapid.IntRange(0, 4).Draw(t, "schedules"), Jobs: 2,
			Seed: rapid.Uint64Range(1, 9).Draw(t, "seed"), Reference: reference.New(),
		}
		run := func(shard report.Shard) *report.Report {
			o := o
			o.Shard = shard
			rep, err := suite.Run(t.Context(), reference.New(mutant.Defect), some, o)
			if err != nil {
				t.Fatal(err)
			}
			return throughFile(t, rep)
		}
		whole := run(report.Shard{})
		count := rapid.IntRange(1, 7).Draw(t, "shards")
		var shards []*report.Report
		for i := range count {
			shards = append(shards, run(report.Shard{Index: i + 1, Count: count}))
		}
		merged, err := report.Merge(rapid.Permutation(shards).Draw(t, "order"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := written(t, merged), written(t, whole); got != want {
			t.Fatalf("the merged shards differ from the whole: %s", firstDifference(got, want))
		}
	})
}

// throughFile is the report as another process reads it.
func throughFile(t *rapid.T, r *report.Report) *report.Report {
	again, err := report.Read(bytes.NewReader([]byte(written(t, r))))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func written(t *rapid.T, r *report.Report) string {
	var b bytes.Buffer
	if err := report.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func firstDifference(got, want string) string {
	lines, others := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(lines), len(others)) {
		if lines[i] != others[i] {
			from := max(0, i-8)
			return strings.Join(lines[from:i+1], "\n") + "\nwant\n" + others[i]
		}
	}
	return "one is longer"
}
