package bubble_test

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/bubble"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestBubble(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "bubble")
}

// loop is a loop of which only what it does on a prompt matters.
type loop struct {
	s      *harness.Surroundings
	prompt func(settle func())
	closed func()
}

func (l *loop) User(name string, _ harness.UserKind, _ *trace.Answer) {
	l.prompt(func() { l.s.Settled(name, trace.OutcomeOK, nil) })
}

func (l *loop) Close() error {
	if l.closed != nil {
		l.closed()
	}
	return nil
}

// run prompts a loop once and gives the last entry.
func run(prompt func(settle func()), closed func()) trace.Entry {
	d := &bubble.Driver{Patience: time.Second / 2, Join: func(s *harness.Surroundings) (harness.Loop, error) {
		return &loop{s, prompt, closed}, nil
	}}
	sc := &harness.Scenario{User: []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}}}
	rec, err := harness.Run(context.Background(), d, sc, harness.First{}, harness.Limits{})
	Expect(err).NotTo(HaveOccurred())
	Expect(rec.Schedule).To(Equal([]string{"prompt/0"}), "the schedule that led there is always told")
	return rec.Trace.Entries[len(rec.Trace.Entries)-1]
}

func waitForNothing() { <-make(chan struct{}) }

var _ = Describe("a loop in a bubble", func() {
	It("may use goroutines and timers, for which no time passes", func() {
		end := run(func(settle func()) {
			go func() {
				settle()
				time.Sleep(59 * time.Minute)
			}()
		}, nil)
		Expect(end.Outcome).To(Equal(trace.OutcomeComplete))
	})

	It("that leaves a goroutine behind is told where that waits", func() {
		end := run(func(settle func()) { settle(); go waitForNothing() }, nil)
		Expect(end.Outcome).To(Equal(trace.OutcomeLeaked))
		Expect(end.Message).To(ContainSubstring("chan receive in bubble_test.waitForNothing bubble_test.go:"))
	})

	It("is closed at the end, which may end its goroutines", func() {
		stop := make(chan chan struct{}, 1)
		end := run(func(settle func()) {
			stopped := make(chan struct{})
			stop <- stopped
			settle()
			go func() { <-stopped }()
		}, func() { close(<-stop) })
		Expect(end.Outcome).To(Equal(trace.OutcomeComplete))
	})

	It("that never settles is in a deadlock", func() {
		stop := make(chan struct{})
		end := run(func(func()) { go func() { <-stop }() }, func() {})
		Expect(end.Outcome).To(Or(Equal(trace.OutcomeDeadlock), Equal(trace.OutcomeHung)))
		close(stop)
	})

	It("that does not return to its user hangs", func() {
		end := run(func(func()) { waitForNothing() }, nil)
		Expect(end.Outcome).To(Equal(trace.OutcomeHung))
		Expect(end.Message).To(ContainSubstring("does not return to its user"))
		Expect(end.Message).To(ContainSubstring("bubble_test.waitForNothing"))
	})

	It("that waits for a mutex hangs, which the bubble itself cannot see", func() {
		var mu sync.Mutex
		mu.Lock()
		end := run(func(settle func()) {
			settle()
			go mu.Lock()
		}, nil)
		Expect(end.Outcome).To(Equal(trace.OutcomeHung))
		Expect(end.Message).To(ContainSubstring("after prompt/0"))
		mu.Unlock()
	})

	It("that panics on its user's goroutine has crashed", func() {
		end := run(func(func()) { panic("no such thing") }, nil)
		Expect(end.Outcome).To(Equal(trace.OutcomeCrashed))
		Expect(end.Message).To(ContainSubstring("panic: no such thing"))
	})
})

// A zero testing.T is not documented to work: if a version of Go changes that, it has
// to be seen here first, within a test and in an ordinary program.
var _ = Describe("a bubble without a test", func() {
	It("works in an ordinary program", func() {
		out, err := exec.Command("go", "run", "./testdata/outside").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(ContainSubstring("settled prompt/0 ok"))
		Expect(string(out)).To(HaveSuffix("end complete\n"))
	})
})
