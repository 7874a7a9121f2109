package coro_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/harness/coro"
)

func TestCoro(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "coroutines")
}

var _ = Describe("a scheduler", func() {
	var (
		s   *coro.Scheduler
		log []string
	)
	say := func(what string) { log = append(log, what) }

	BeforeEach(func() {
		s = coro.New(time.Unix(0, 0))
		log = nil
	})

	AfterEach(func() {
		Expect(s.Live()).To(BeZero(), "a task was left behind")
		s.Close()
	})

	It("runs a task to its first wait at once, then its starter goes on", func() {
		s.Go(func() {
			join := s.Go(func() {
				say("inner begins")
				await(s, func() {})
				say("inner ends")
			})
			say("outer goes on")
			await(s, join.Join)
			say("outer has joined")
		})
		s.Run()
		Expect(log).To(Equal([]string{"inner begins", "outer goes on", "inner ends", "outer has joined"}))
	})

	It("lets tasks that are ready have their turn at every await, first come first served", func() {
		s.Go(func() {
			a := s.Go(func() { await(s, func() {}); say("a1"); await(s, func() {}); say("a2") })
			b := s.Go(func() { await(s, func() {}); say("b1"); await(s, func() {}); say("b2") })
			await(s, a.Join)
			await(s, b.Join)
		})
		s.Run()
		Expect(log).To(Equal([]string{"a1", "b1", "a2", "b2"}))
	})

	It("holds a task at a gate until somebody opens it", func() {
		gate := s.NewGate()
		s.Go(func() { await(s, gate.Wait); say("through") })
		s.Run()
		Expect(log).To(BeEmpty())
		gate.Open()
		Expect(log).To(BeEmpty(), "opening alone runs nothing")
		s.Run()
		Expect(log).To(Equal([]string{"through"}))
	})

	It("does not hold a task at a gate that is open already", func() {
		gate := s.NewGate()
		gate.Open()
		s.Go(func() { gate.Wait(); say("through") })
		Expect(log).To(Equal([]string{"through"}))
	})

	It("joins a task that has ended before", func() {
		join := s.Go(func() {})
		s.Go(func() { await(s, join.Join); say("joined") })
		s.Run()
		Expect(log).To(Equal([]string{"joined"}))
	})

	It("reuses coroutines without mixing up who waits for whom", func() {
		first := s.Go(func() {})
		gate := s.NewGate()
		second := s.Go(func() { gate.Wait() }) // on the same coroutine
		s.Go(func() { first.Join(); say("first has ended") })
		s.Go(func() { second.Join(); say("second has ended") })
		s.Run()
		Expect(log).To(Equal([]string{"first has ended"}))
		gate.Open()
		s.Run()
		Expect(log).To(Equal([]string{"first has ended", "second has ended"}))
	})

	It("wakes sleepers by the virtual clock, earliest first", func() {
		ctx := context.Background()
		s.Go(func() { _ = s.Sleep(ctx, 2*time.Second); say("two") })
		s.Go(func() { _ = s.Sleep(ctx, time.Second); say("one") })
		s.Run()
		Expect(log).To(BeEmpty())
		d, ok := s.NextWake()
		Expect(ok).To(BeTrue())
		Expect(d).To(Equal(time.Second))
		s.Advance(3 * time.Second)
		s.Run()
		Expect(log).To(Equal([]string{"one", "two"}))
		Expect(s.Now()).To(Equal(time.Unix(3, 0)))
	})

	It("wakes a sleeper whose context is done", func() {
		ctx, cancel := context.WithCancel(context.Background())
		var err error
		s.Go(func() { err = s.Sleep(ctx, time.Hour); say("woken") })
		cancel()
		s.Wake()
		s.Run()
		Expect(log).To(Equal([]string{"woken"}))
		Expect(err).To(MatchError(context.Canceled))
	})
})

// await runs f, which may wait, as loop code does.
func await(s *coro.Scheduler, f func()) {
	s.Leave()
	f()
	s.Enter()
}

func BenchmarkSwitch(b *testing.B) {
	s := coro.New(time.Unix(0, 0))
	s.Go(func() {
		for b.Loop() {
			await(s, func() {})
		}
	})
	s.Run()
	s.Close()
}

// BenchmarkTask starts, suspends and ends a task.
func BenchmarkTask(b *testing.B) {
	s := coro.New(time.Unix(0, 0))
	for b.Loop() {
		gate := s.NewGate()
		s.Go(gate.Wait)
		gate.Open()
		s.Run()
	}
	s.Close()
}
