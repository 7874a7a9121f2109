package pick_test

import (
	"slices"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
)

func TestMatches(t *testing.T) {
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"par/reverse", "par/reverse", true},
		{"par/*", "par/reverse", true},
		{"par", "par/reverse", true},
		{"par/", "par/reverse", true},
		{"pa", "par/reverse", false},
		{"*", "par/reverse", true},
		{"*/rev*", "par/reverse", true},
		{"**/reverse", "reverse", true},
		{"**/reverse", "a/b/reverse", true},
		{"a/**/c", "a/c", true},
		{"a/**/c", "a/b/b/c", true},
		{"a/**/c", "a/b", false},
		{"par/reverse/more", "par/reverse", false},
	} {
		if got := pick.Matches(row.pattern, row.name); got != row.want {
			t.Errorf("Matches(%q, %q) = %v", row.pattern, row.name, got)
		}
	}
}

func TestFilter(t *testing.T) {
	names := []string{"par/reverse", "par/source", "upd/late"}
	self := func(s string) string { return s }
	for _, row := range []struct {
		run, skip, want []string
		problem         string
	}{
		{want: names},
		{run: []string{"par"}, want: names[:2]},
		{skip: []string{"par/*"}, want: names[2:]},
		{run: []string{"par"}, skip: []string{"**/source"}, want: names[:1]},
		{run: []string{"upd/lat"}, problem: `no case matches "upd/lat" (did you mean "upd/late"?)`},
		{run: []string{"late"}, problem: `no case matches "late" (did you mean "upd/late"?)`},
		{skip: []string{"zzzzzzzzz"}, problem: `no case matches "zzzzzzzzz"`},
		{run: []string{"["}, problem: `pattern "[": syntax error in pattern`},
	} {
		got, err := pick.Filter("case", names, self, row.run, row.skip)
		switch {
		case row.problem == "" && err != nil, row.problem != "" && (err == nil || err.Error() != row.problem):
			t.Errorf("%v %v: %v, want %q", row.run, row.skip, err, row.problem)
		case !slices.Equal(got, row.want):
			t.Errorf("%v %v: %v, want %v", row.run, row.skip, got, row.want)
		}
	}
}
