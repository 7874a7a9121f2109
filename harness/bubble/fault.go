package bubble

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// leftover says what it means that goroutines wait for something that cannot
// come: after the case they were left behind, within it the loop is stuck.
func (s *session) leftover(stuck error) error {
	if strings.Contains(stuck.Error(), "has exited") {
		return s.fault(trace.OutcomeLeaked, "goroutines of the loop wait on although every callback was answered")
	}
	return s.fault(trace.OutcomeHung, "the loop does not return to its user, and waits for something that cannot come")
}

// hung says that the loop did not come to rest. A goroutine that waits for a mutex
// counts as one that could go on at any time.
func (s *session) hung(after string) error {
	return s.fault(trace.OutcomeHung, fmt.Sprintf(
		"the loop did not come to rest within %v after %s: a goroutine runs on, or waits for a mutex, the network or a system call", s.patience, after))
}

// runsOn says that there is no end to the loop's goroutines.
func (s *session) runsOn() error {
	return s.fault(trace.OutcomeLeaked, fmt.Sprintf("goroutines of the loop go on %v after every callback was answered", s.patience))
}

// fault is an outcome with where the goroutines of the bubble are.
func (s *session) fault(outcome trace.Outcome, message string) error {
	lines := []string{message}
	if name := s.name.Load(); name != nil {
		lines = append(lines, goroutinesOf(*name)...)
	}
	return &harness.SubjectError{Outcome: outcome, Message: strings.Join(lines, "\n  "), Exit: -1}
}

func crashed(p any) error {
	message := fmt.Sprintf("panic: %v", p)
	if where := frames(string(debug.Stack())); where != "" {
		message += "\n  " + where
	}
	return &harness.SubjectError{Outcome: trace.OutcomeCrashed, Message: message, Exit: -1}
}

var inName = regexp.MustCompile(`synctest bubble \d+`)

// bubbleName is what stack dumps call the bubble that it is called in.
func bubbleName() *string {
	head := make([]byte, 64)
	name := string(inName.Find(head[:runtime.Stack(head, false)]))
	return &name
}

// goroutinesOf says in one line for each goroutine of a bubble what it waits for
// and where. There is nothing in it that varies between runs.
func goroutinesOf(bubble string) []string {
	var lines []string
	for dump := range strings.SplitSeq(stacks(), "\n\n") {
		head, stack, _ := strings.Cut(dump, "\n")
		_, state, _ := strings.Cut(head, "[")
		state, within, _ := strings.Cut(state, ", synctest")
		within = "synctest" + strings.TrimSuffix(within, "]:")
		if where := frames(stack); within == bubble && where != "" {
			state, _, _ = strings.Cut(strings.TrimSuffix(state, " (durable)"), ",")
			lines = append(lines, state+" in "+where)
		}
	}
	slices.Sort(lines)
	return lines
}

func stacks() string {
	for size := 1 << 18; ; size *= 2 {
		dump := make([]byte, size)
		if n := runtime.Stack(dump, true); n < size || size > 1<<26 {
			return string(bytes.TrimSpace(dump[:n]))
		}
	}
}

const shownFrames = 4

// frames are the innermost frames of a stack that are neither Go's nor those of
// the harness, the inner ones first; empty if there are none.
func frames(stack string) string {
	var shown []string
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines) && len(shown) < shownFrames; i++ {
		place, isPlace := strings.CutPrefix(lines[i+1], "\t")
		if !isPlace || !strings.HasSuffix(lines[i], ")") || isForeign(lines[i]) {
			continue // «created by» is not a call
		}
		place, _, _ = strings.Cut(place, " +0x")
		function := lines[i][:strings.LastIndexByte(lines[i], '(')]
		shown = append(shown, path.Base(function)+" "+path.Base(place))
	}
	return strings.Join(shown, ", from ")
}

// foreign begins the names of functions that are not the loop's.
var foreign = regexp.MustCompile(
	`^(runtime|sync|time|testing|internal|context|panic)[./(]|/harness(/bubble)?\.|/conformance/conformancetest\.|^created by `)

func isForeign(call string) bool { return foreign.MatchString(call) }
