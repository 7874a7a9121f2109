package console

import (
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/report/lanes"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// stepMost is how many entries of the reference's step are shown.
const stepMost = 8

// reference writes what the reference does where the subject broke the rule: in
// the same step, or if both do the same there, in the first one that differs.
func (c *Console) reference(f *report.Finding) {
	if f.Reference == nil || len(f.Entries) == 0 {
		return
	}
	projected := *f
	projected.Reference = trace.Project(f.Reference, f.Trace.Header.Evidence...)
	f = &projected
	subject, good := stepsOf(f.Trace), stepsOf(f.Reference)
	place := f.Trace.Entries[f.Entries[len(f.Entries)-1]].Step
	i := slices.IndexFunc(subject, func(s step) bool { return s.number == place })
	j := sameAction(good, subject[i])
	switch {
	case j < 0:
		c.Printf("  the reference never comes to this action\n")
		return
	case !slices.Equal(subject[i].lines, good[j].lines):
		c.Printf("  what the reference does here:\n")
	default:
		if i, j = firstDifference(subject, good); i < 0 {
			c.unlike(f)
			return
		}
		c.Printf("  where the reference first does something else:\n")
	}
	c.drawStep(f.Reference, good[j], commonLines(subject[i].lines, good[j].lines))
}

// unlike writes what differs from the reference where every line reads the same.
// Times and the like, which the normal form leaves out, do not count.
func (c *Console) unlike(f *report.Finding) {
	mine, theirs := trace.Normalize(loopOnly(f.Trace)), trace.Normalize(loopOnly(f.Reference))
	for _, p := range lanes.Align(mine, theirs) {
		if p.Like != lanes.SameLine {
			continue
		}
		e := &mine.Entries[p.A]
		subject, good := trace.Excerpts(e, &theirs.Entries[p.B])
		if subject == good {
			continue
		}
		c.Printf("  the reference's lines read the same, but differ first in what they leave out, step %d:\n", e.Step)
		c.Printf("    %s\n      subject:   %s\n      reference: %s\n", trace.Line(e), c.Bad(subject), c.Good(good))
		return
	}
	switch {
	case strings.HasPrefix(f.Rule, string(conformance.FamilyView)+"-"):
		c.Printf("  the reference's loop does the same: what differs is what the reducer makes of it\n")
	case needsTwin(f.Rule):
		c.Printf("  the reference does the same here: what differs is a second run, the same case with one thing left out\n")
	default:
		c.Printf("  the reference does the same here, in this edition\n")
	}
}

func needsTwin(rule string) bool {
	r, err := conformance.Lookup(rule)
	return err == nil && r.NeedsTwin()
}

func loopOnly(t *trace.Trace) *trace.Trace {
	return &trace.Trace{Header: t.Header, Entries: slices.DeleteFunc(slices.Clone(t.Entries), func(e trace.Entry) bool {
		return e.Kind == trace.KindView
	})}
}

// step is what happened between one action and the next.
type step struct {
	number int
	label  string
	first  int // index of its first entry
	lines  []string
}

func stepsOf(t *trace.Trace) []step {
	var steps []step
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Kind == trace.KindView { // of the subject alone
			continue
		}
		if n := len(steps); n == 0 || steps[n-1].number != e.Step {
			steps = append(steps, step{number: e.Step, label: e.Label, first: i})
		}
		last := &steps[len(steps)-1]
		last.lines = append(last.lines, trace.Line(e))
	}
	return steps
}

// sameAction is the place of the step that begins with the same action: an
// action happens only once. It is -1 if there is none.
func sameAction(steps []step, as step) int {
	return slices.IndexFunc(steps, func(s step) bool { return s.label == as.label })
}

// firstDifference are the places of the first step that both have but in which
// they do different things; -1 if there is none.
func firstDifference(a, b []step) (i, j int) {
	for i := range a {
		if j := sameAction(b, a[i]); j >= 0 && !slices.Equal(a[i].lines, b[j].lines) {
			return i, j
		}
	}
	return -1, -1
}

// commonLines is how many lines two steps have in common at their beginning.
func commonLines(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// drawStep draws the action of a step and what stands around the entry with that
// number in it.
func (c *Console) drawStep(t *trace.Trace, s step, at int) {
	end := s.first + len(s.lines)
	from := max(s.first, s.first+at-around)
	to := min(end, from+stepMost)
	shown := span(from, to)
	if from > s.first {
		shown = append([]int{s.first}, shown...)
	}
	c.draw(t, nil, closeGaps(shown))
	switch {
	case len(s.lines) == 1:
		c.Printf("        %s\n", c.faint.Render("(nothing)"))
	case to < end:
		c.omitted(end - to)
	}
}
