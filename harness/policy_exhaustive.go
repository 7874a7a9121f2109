package harness

import (
	"slices"
	"strings"
)

// Exhaustive goes through all schedules of a scenario, depth first and without
// keeping any state of the subject: each run follows the choices of the one
// before up to some step, takes the next alternative there, and the default
// order after it.
//
//	for x := NewExhaustive(); x.Next(); {
//		Run(ctx, driver, scenario, x, limits)
//	}
//
// The subject has to be deterministic. If it is not, so that a choice of the run
// before is not there, [Exhaustive.Strayed] says so.
type Exhaustive struct {
	frames    []frame
	floor     int // frames below it are fixed: somebody else goes through their alternatives
	depth     int // of the run under way
	bound     int // how many there may be; negative: any number
	commuting bool
	started   bool
	strayed   bool
	cut       bool
	schedules int
}

// frame is one choice of a schedule.
type frame struct {
	choice  int
	next    int      // the first alternative that nobody goes through yet
	options int      // how many there are
	labels  []string // of the alternatives; only if updates commute
	asleep  []string // labels that have been done elsewhere with the same outcome
}

// NewExhaustive goes through all schedules.
func NewExhaustive() *Exhaustive { return &Exhaustive{bound: -1} }

// Within leaves out schedules that depart from the default order more often than
// that.
func (x *Exhaustive) Within(departures int) *Exhaustive {
	x.bound = departures
	return x
}

// Commuting takes updates of different calls to commute, and of the schedules
// that differ only in their order goes through one. That is an assumption about
// the subject: one that confuses calls with each other may break it.
func (x *Exhaustive) Commuting() *Exhaustive {
	x.commuting = true
	return x
}

// Next moves on to the next schedule; false if there is none.
func (x *Exhaustive) Next() bool {
	if !x.started {
		x.started = true
		x.begin()
		return true
	}
	x.frames = x.frames[:min(x.depth, len(x.frames))]
	for len(x.frames) > x.floor {
		last := &x.frames[len(x.frames)-1]
		if i := x.alternative(last); i < last.options {
			last.choice, last.next = i, i+1
			x.begin()
			return true
		}
		x.frames = x.frames[:len(x.frames)-1]
	}
	return false
}

func (x *Exhaustive) begin() {
	x.depth = 0
	x.schedules++
}

// alternative is the first alternative of a frame that is still to be done.
func (x *Exhaustive) alternative(f *frame) int {
	i := f.next
	for i < f.options && slices.Contains(f.asleep, f.label(i)) {
		i++
	}
	if i < f.options && !x.may(f) {
		x.cut = true
		return f.options
	}
	return i
}

func (f *frame) label(i int) string {
	if i < len(f.labels) {
		return f.labels[i]
	}
	return ""
}

// may reports whether the bound lets the frame depart from the default order.
func (x *Exhaustive) may(f *frame) bool {
	if x.bound < 0 {
		return true
	}
	departed := 0
	for k := range x.frames {
		if &x.frames[k] == f {
			break
		}
		if x.frames[k].choice > 0 {
			departed++
		}
	}
	return departed < x.bound
}

// Choose follows the schedule.
func (x *Exhaustive) Choose(enabled []Action) int {
	if x.depth < len(x.frames) {
		f := &x.frames[x.depth]
		x.depth++
		if f.options == len(enabled) {
			return f.choice
		}
		x.strayed = true
		return min(f.choice, len(enabled)-1)
	}
	f := frame{options: len(enabled)}
	if x.commuting {
		f.asleep = x.sleepers()
		for i := range enabled {
			f.labels = append(f.labels, enabled[i].Label)
		}
		for f.choice < len(enabled)-1 && slices.Contains(f.asleep, f.labels[f.choice]) {
			f.choice++
		}
	}
	f.next = f.choice + 1
	x.frames = append(x.frames, f)
	x.depth++
	return f.choice
}

// sleepers are the labels that need not be done next: they were done before the
// last choice, in another schedule, and commute with it.
func (x *Exhaustive) sleepers() []string {
	if len(x.frames) == 0 {
		return nil
	}
	last := &x.frames[len(x.frames)-1]
	done := last.labels[last.choice]
	var asleep []string
	for _, label := range last.asleep {
		if commute(label, done) {
			asleep = append(asleep, label)
		}
	}
	for _, label := range last.labels[:last.choice] {
		if commute(label, done) && !slices.Contains(asleep, label) {
			asleep = append(asleep, label)
		}
	}
	return asleep
}

// commute reports whether the two are updates of different calls.
func commute(a, b string) bool {
	first, ok := updates(a)
	second, also := updates(b)
	return ok && also && first != second
}

// updates is the call that the label is an update of.
func updates(label string) (string, bool) {
	i := strings.LastIndex(label, "/update/")
	if i < 0 || !strings.HasPrefix(label, "tool/") {
		return "", false
	}
	return label[:i], true
}

// Split gives away a part of what is left, to be gone through by somebody else,
// or nil if there is nothing to give. Together both go through the same
// schedules as one alone.
func (x *Exhaustive) Split() *Exhaustive {
	for k := x.floor; k < len(x.frames); k++ {
		f := &x.frames[k]
		i := x.alternative(f)
		if i >= f.options {
			continue
		}
		given := &Exhaustive{bound: x.bound, commuting: x.commuting, floor: k + 1, frames: slices.Clone(x.frames[:k+1])}
		f.next = i + 1
		given.frames[k].choice = i
		return given
	}
	return nil
}

// Schedules is the number of schedules so far.
func (x *Exhaustive) Schedules() int { return x.schedules }

// Cut reports whether the bound has left out any schedule so far.
func (x *Exhaustive) Cut() bool { return x.cut }

// Strayed reports whether the subject did not follow a schedule that it had
// followed before.
func (x *Exhaustive) Strayed() bool { return x.strayed }

// Choices are the choices of the run that was done last.
func (x *Exhaustive) Choices() []int {
	choices := make([]int, len(x.frames))
	for i := range x.frames {
		choices[i] = x.frames[i].choice
	}
	return choices
}
