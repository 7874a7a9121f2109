package loop_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

var _ = Describe("The agent", func() {
	It("runs a prompt from start to end", func() {
		s := &script{turns: []scriptedmodel.Turn{{Text: "hi", Stream: scriptedmodel.StreamDeltas}}}
		a, l := agentWith(s, loop.Options{})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(l.all()).To(Equal([]string{
			"agent_start", "turn_start", "m_start user: go", "m_end user: go",
			"m_start assistant stop []: ",
			"m_update assistant stop []: ", "m_update assistant stop []: hi", "m_update assistant stop []: hi",
			"m_end assistant stop []: hi", "turn_end", "agent_end",
		}))
		Expect(a.State()).To(Equal(trace.State{Messages: 2, Last: "assistant stop []: hi"}))
	})

	It("runs calls in parallel: ends as they complete, results in source order", func() {
		second := make(chan struct{})
		slow := executing("slow", func(context.Context, string, func(*trace.Result)) (*trace.Result, error) {
			<-second
			return text("slow"), nil
		})
		a, l := agentWith(&script{turns: []scriptedmodel.Turn{calling("1:slow", "2:fast")}}, loop.Options{
			Tools: []*loop.Tool{slow, echo("fast")},
		})
		a.Subscribe(func(_ context.Context, ev *trace.Event) error {
			if line(ev) == "end 2" {
				close(second)
			}
			return nil
		})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(l.all("m_", "agent")).To(Equal([]string{
			"turn_start", "start 1", "start 2", "end 2", "end 1", "turn_end 1 2", "turn_start", "turn_end",
		}))
		Expect(l.all("start", "end", "turn", "agent")[4:8]).To(Equal([]string{
			"m_start toolResult 1: slow", "m_end toolResult 1: slow", "m_start toolResult 2: r2", "m_end toolResult 2: r2",
		}))
	})

	It("runs a batch one by one if one of its tools has to run alone", func() {
		alone := echo("alone")
		alone.ExecutionMode = loop.Sequential
		a, l := agentWith(&script{turns: []scriptedmodel.Turn{calling("1:a", "2:alone")}}, loop.Options{
			Tools: []*loop.Tool{echo("a"), alone},
		})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(l.all("m_start", "agent")).To(Equal([]string{
			"turn_start", "m_end user: go", "m_end assistant toolUse [1 2]: ",
			"start 1", "end 1", "m_end toolResult 1: r1",
			"start 2", "end 2", "m_end toolResult 2: r2",
			"turn_end 1 2", "turn_start", "m_end assistant stop []: done", "turn_end",
		}))
	})

	It("delivers updates to every listener before the call's end, and drops late ones", func() {
		var late func(*trace.Result)
		tool := executing("t", func(_ context.Context, id string, onUpdate func(*trace.Result)) (*trace.Result, error) {
			late = onUpdate
			onUpdate(text("a"))
			onUpdate(text("b"))
			return text("r"), nil
		})
		rt := loop.Goroutines()
		a, l := agentWith(&script{turns: []scriptedmodel.Turn{calling("1:t")}}, loop.Options{
			Runtime: rt, Tools: []*loop.Tool{tool},
		})
		a.Subscribe(func(_ context.Context, ev *trace.Event) error {
			if ev.Type == trace.ToolExecutionUpdate {
				loop.Await(rt, func() { time.Sleep(5 * time.Millisecond) })
				l.add("seen " + ev.PartialResult.Content.PlainText())
			}
			if ev.Type == trace.TurnEnd {
				late(text("late"))
			}
			return nil
		})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(l.all("m_", "agent", "turn", "seen")).To(Equal([]string{"start 1", "update 1 a", "update 1 b", "end 1"}))
		Expect(l.all("m_", "agent", "turn", "update")).To(ConsistOf("start 1", "seen a", "seen b", "end 1"))
		Expect(l.all("m_", "agent", "turn", "update")[3]).To(Equal("end 1"))
	})

	It("answers a call that it can't execute with an error", func() {
		strict := echo("strict")
		strict.Parameters = trace.Value(`{"type":"object","required":["n","m"],"properties":{"n":{"type":"number"}}}`)
		broken := executing("broken", func(context.Context, string, func(*trace.Result)) (*trace.Result, error) { panic("boom") })
		s := &script{turns: []scriptedmodel.Turn{calling("1:nobody", "2:strict", "3:broken")}}
		a, l := agentWith(s, loop.Options{Tools: []*loop.Tool{strict, broken}})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(l.all("m_", "turn", "agent")).To(Equal([]string{
			"start 1", "end 1 error", "start 2", "end 2 error", "start 3", "end 3 error",
		}))
		Expect(s.sees(1)[2:]).To(Equal([]string{
			`toolResult 1 error: There is no tool named "nobody".`,
			`toolResult 2 error: the arguments of "strict" are not valid: at '': missing properties 'n', 'm'`,
			`toolResult 3 error: panic: boom`,
		}))
	})

	It("executes nothing of a message that was cut off", func() {
		turn := calling("1:a", "2:nobody")
		turn.Stop = trace.StopLength
		s := &script{turns: []scriptedmodel.Turn{turn}}
		a, l := agentWith(s, loop.Options{Tools: []*loop.Tool{echo("a")}})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(l.all("m_start", "turn", "agent")[2:6]).To(HaveExactElements(
			"start 1", "end 1 error", HavePrefix("m_end toolResult 1 error: The call of \"a\" was not executed"), "start 2"))
		Expect(s.sees(1)).To(HaveLen(4))
	})

	It("lets hooks block a call, change an outcome, and end the cycle", func() {
		s := &script{turns: []scriptedmodel.Turn{calling("1:a", "2:a")}}
		changed := trace.TextContent("changed")
		yes := true
		a, _ := agentWith(s, loop.Options{Tools: []*loop.Tool{echo("a")}, Hooks: loop.Hooks{
			BeforeToolCall: func(_ context.Context, c loop.BeforeToolCallContext) (*loop.BeforeToolCallResult, error) {
				return &loop.BeforeToolCallResult{Block: c.Call.ID == "1", Reason: "not that", Terminate: true}, nil
			},
			AfterToolCall: func(context.Context, loop.AfterToolCallContext) (*loop.AfterToolCallResult, error) {
				return &loop.AfterToolCallResult{Content: &changed, Terminate: &yes}, nil
			},
		}})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(trace.Tags(a.Messages())[2:]).To(Equal([]string{"toolResult 1 error: not that", "toolResult 2: changed"}))
		Expect(s.asked).To(HaveLen(1))
	})

	It("refuses a second run and a reset while one is active, and is idle only after the last listener", func() {
		rt := loop.Goroutines()
		a, l := agentWith(&script{}, loop.Options{Runtime: rt})
		a.Subscribe(func(_ context.Context, ev *trace.Event) error {
			if ev.Type != trace.AgentEnd {
				return nil
			}
			Expect(a.PromptText("again")).To(MatchError(loop.ErrBusy))
			Expect(a.Continue()).To(MatchError(loop.ErrBusy))
			Expect(a.Reset()).To(MatchError(loop.ErrBusy))
			Expect(a.State().IsStreaming).To(BeTrue())
			loop.Await(rt, func() { time.Sleep(5 * time.Millisecond) })
			l.add("listener done")
			return nil
		})
		Expect(a.BeginPrompt([]*trace.Message{user("go")}, nil)).To(Succeed())
		a.WaitForIdle()
		Expect(l.all()).To(HaveLen(9))
		Expect(l.all()[8]).To(Equal("listener done"))
		Expect(a.State().IsStreaming).To(BeFalse())

		a.Steer(user("later"))
		Expect(a.Reset()).To(Succeed())
		Expect(a.State()).To(Equal(trace.State{}))
		Expect(a.Continue()).To(MatchError(loop.ErrNoMessages))
		a.WaitForIdle()
	})

	It("delivers steering and follow-ups where they belong", func() {
		s := &script{turns: []scriptedmodel.Turn{calling("1:a")}}
		var a *loop.Agent
		tool := executing("a", func(context.Context, string, func(*trace.Result)) (*trace.Result, error) {
			a.FollowUp(user("follow"))
			a.Steer(user("steer 1"))
			a.Steer(user("steer 2"))
			return text("r"), nil
		})
		var polls []string
		a, _ = agentWith(s, loop.Options{
			Tools: []*loop.Tool{tool}, SteeringMode: loop.All,
			Polled: func(queue string, drained []*trace.Message) {
				for _, m := range drained {
					polls = append(polls, queue+" "+m.Tag())
				}
			},
		})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(polls).To(Equal([]string{
			"getSteeringMessages user: steer 1", "getSteeringMessages user: steer 2", "getFollowUpMessages user: follow",
		}))
		Expect(s.sees(2)).To(Equal([]string{
			"user: go", "assistant toolUse [1]: ", "toolResult 1: r", "user: steer 1", "user: steer 2",
			"assistant stop []: done", "user: follow",
		}))

		Expect(a.Continue()).To(MatchError(loop.ErrLastAssistant))
		a.Steer(user("more"))
		Expect(a.Continue()).To(Succeed())
		Expect(a.HasQueued()).To(BeFalse())
		Expect(s.sees(3)[8:]).To(Equal([]string{"user: more"}))
	})

	DescribeTable("stops a batch on abort",
		func(e edition.Edition, mode string, expected ...string) {
			var a *loop.Agent
			var l *log
			stop := executing("stop", func(context.Context, string, func(*trace.Result)) (*trace.Result, error) {
				a.Abort()
				return text("r"), nil
			})
			a, l = agentWith(&script{turns: []scriptedmodel.Turn{calling("1:a", "2:stop", "3:a")}}, loop.Options{
				Edition: e, ToolExecution: mode, Tools: []*loop.Tool{echo("a"), stop},
			})
			Expect(a.PromptText("go")).To(Succeed())
			Expect(l.all("m_", "agent", "turn_start")).To(Equal(expected))
			Expect(a.Messages()[len(a.Messages())-1].StopReason).To(Equal(trace.StopAborted))
			Expect(a.PromptText("again")).To(Succeed())
		},
		Entry("0.84.3, one by one", edition.V0843, loop.Sequential,
			"start 1", "end 1", "start 2", "end 2", "turn_end 1 2", "turn_end"),
		Entry("1.6, one by one", edition.V16, loop.Sequential,
			"start 1", "end 1", "start 2", "end 2", "start 3", "end 3 error", "turn_end 1 2 3", "turn_end"),
	)

	DescribeTable("answers an abort during preparation by the edition",
		func(e edition.Edition, expected ...string) {
			var a *loop.Agent
			var l *log
			a, l = agentWith(&script{turns: []scriptedmodel.Turn{calling("1:a", "2:a", "3:a")}}, loop.Options{
				Edition: e, Tools: []*loop.Tool{echo("a")}, Hooks: loop.Hooks{
					BeforeToolCall: func(_ context.Context, c loop.BeforeToolCallContext) (*loop.BeforeToolCallResult, error) {
						if c.Call.ID == "2" {
							a.Abort()
						}
						return nil, nil
					},
				},
			})
			Expect(a.PromptText("go")).To(Succeed())
			Expect(l.all("m_", "agent", "turn_start")).To(Equal(expected))
		},
		Entry("0.84.3", edition.V0843, "start 1", "start 2", "end 2 error", "end 1", "turn_end 1 2", "turn_end"),
		Entry("1.6", edition.V16,
			"start 1", "start 2", "end 2 error", "start 3", "end 3 error", "end 1 error", "turn_end 1 2 3", "turn_end"),
	)

	It("closes a run that failed outside the protocol, and works again", func() {
		s := &script{turns: []scriptedmodel.Turn{{End: scriptedmodel.EndRefuses, Throw: "no network"}}}
		a, l := agentWith(s, loop.Options{})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(l.all()[4:]).To(Equal([]string{
			"m_start assistant error []: ", "m_end assistant error []: ", "turn_end", "agent_end",
		}))
		Expect(a.State().Error).To(Equal("no network"))
		Expect(a.PromptText("again")).To(Succeed())
		Expect(a.State().Error).To(BeEmpty())
	})

	It("ends the run at once when a listener fails on one of several parallel calls", func() {
		release := make(chan struct{})
		hangs := executing("hangs", func(context.Context, string, func(*trace.Result)) (*trace.Result, error) {
			<-release
			return text("late"), nil
		})
		a, l := agentWith(&script{turns: []scriptedmodel.Turn{calling("1:a", "2:hangs")}}, loop.Options{
			Tools: []*loop.Tool{echo("a"), hangs},
		})
		a.Subscribe(func(_ context.Context, ev *trace.Event) error {
			if line(ev) == "end 1" {
				return errors.New("listener")
			}
			return nil
		})
		Expect(a.PromptText("go")).To(Succeed()) // although call 2 still runs
		Expect(l.all("m_", "turn_start")).To(Equal([]string{
			"agent_start", "start 1", "start 2", "end 1", "turn_end", "agent_end",
		}))
		close(release)
		Expect(a.State().Pending).To(BeEmpty())
		Eventually(func() []string { return l.all("m_", "turn_start") }).ShouldNot(ContainElement("end 2"))
	})

	It("counts a listener once and lets it go in the middle of a delivery", func() {
		a, l := agentWith(&script{}, loop.Options{})
		count := 0
		counting := func(context.Context, *trace.Event) error { count++; return nil }
		var remove func()
		a.Subscribe(func(_ context.Context, ev *trace.Event) error {
			if ev.Type == trace.TurnStart {
				remove()
			}
			return nil
		})
		a.Subscribe(counting)
		remove = a.Subscribe(counting)
		Expect(a.PromptText("go")).To(Succeed())
		Expect(count).To(Equal(1))
		Expect(l.all()).To(HaveLen(8))
	})

	It("keeps prompt and tools in the transcript in edition 1.6", func() {
		s := &script{turns: []scriptedmodel.Turn{calling("1:a")}}
		a, l := agentWith(s, loop.Options{Edition: edition.V16, SystemPrompt: "be brief", Tools: []*loop.Tool{echo("a")}})
		Expect(a.PromptText("go")).To(Succeed())
		Expect(s.sees(0)).To(Equal([]string{"system: be brief", "user: go"}))
		Expect(string(a.Messages()[0].Extra)).To(Equal(`{"toolsAdded":[{"name":"a","description":""}]}`))
		Expect(string(a.Messages()[2].Extra)).To(Equal(`{"thinkingLevel":"off"}`))
		Expect(string(a.Messages()[3].Extra)).To(Equal(`{"durationMs":0}`))
		Expect(s.asked[0].SystemPrompt).To(Equal("be brief"))
		Expect(s.asked[0].Tools).To(HaveLen(1))

		a.SetTools([]*loop.Tool{echo("b")})
		Expect(a.PromptText("more")).To(Succeed())
		Expect(l.all()).To(ContainElement("m_end system: "))
		Expect(string(a.Messages()[5].Extra)).To(
			Equal(`{"toolsAdded":[{"name":"b","description":""}],"toolsRemoved":[{"name":"a"}]}`))

		Expect(a.Reset()).To(Succeed())
		Expect(trace.Tags(a.Messages())).To(Equal([]string{"system: be brief"}))
		Expect(a.Continue()).To(MatchError(loop.ErrNoMessages))
	})

	It("asks the hooks around a turn's end in the edition's order", func() {
		order := func(e edition.Edition) (calls []string) {
			note := func(name string) { calls = append(calls, name) }
			a, _ := agentWith(&script{turns: []scriptedmodel.Turn{calling("1:a")}}, loop.Options{
				Edition: e, Tools: []*loop.Tool{echo("a")},
				Polled: func(queue string, _ []*trace.Message) { note(queue) },
				Hooks: loop.Hooks{
					PrepareNextTurn:     func(context.Context, loop.TurnContext) (*loop.TurnUpdate, error) { note("next"); return nil, nil },
					ShouldStopAfterTurn: func(context.Context, loop.TurnContext) (bool, error) { note("stop?"); return false, nil },
					FinishTurn:          func(context.Context, loop.TurnContext) (loop.Decision, error) { note("finish"); return "", nil },
					PrepareRequest: func(context.Context, loop.RequestContext) (*loop.RequestUpdate, error) {
						note("request")
						return nil, nil
					},
				},
			})
			a.Subscribe(func(_ context.Context, ev *trace.Event) error {
				if ev.Type == trace.TurnEnd || ev.Type == trace.TurnStart {
					note(ev.Type)
				}
				return nil
			})
			Expect(a.PromptText("go")).To(Succeed())
			return calls
		}
		Expect(order(edition.V0843)).To(Equal([]string{
			"turn_start", "getSteeringMessages",
			"turn_end", "next", "stop?", "getSteeringMessages", "turn_start",
			"turn_end", "next", "stop?", "getSteeringMessages", "getFollowUpMessages",
		}))
		Expect(order(edition.V16)).To(Equal([]string{
			"turn_start", "getSteeringMessages", "request",
			"finish", "turn_end", "getSteeringMessages", "next", "getSteeringMessages", "turn_start", "request",
			"finish", "turn_end", "getSteeringMessages", "getFollowUpMessages",
		}))
	})
})

var _ = Describe("The bare loop", func() {
	It("gives what it added and waits for its sink", func() {
		s := &script{}
		l := &log{}
		added, err := loop.Run(context.Background(), loop.Goroutines(), []*trace.Message{user("go")},
			loop.Context{Messages: []*trace.Message{user("before")}}, &loop.Config{Stream: s.stream},
			func(ev *trace.Event) error { return l.listen(context.Background(), ev) })
		Expect(err).NotTo(HaveOccurred())
		Expect(trace.Tags(added)).To(Equal([]string{"user: go", "assistant stop []: done"}))
		Expect(s.sees(0)).To(Equal([]string{"user: before", "user: go"}))
		Expect(l.all()).To(HaveLen(8))
	})

	It("returns what failed, and continues only from what can be continued", func() {
		s := &script{turns: []scriptedmodel.Turn{{End: scriptedmodel.EndThrows, Throw: "cut"}}}
		config := &loop.Config{Stream: s.stream}
		sink := func(*trace.Event) error { return nil }
		c := &loop.Context{}
		_, err := loop.Continue(context.Background(), loop.Goroutines(), c, config, sink)
		Expect(err).To(MatchError(loop.ErrNoMessages))
		c.Messages = []*trace.Message{user("go")}
		_, err = loop.Continue(context.Background(), loop.Goroutines(), c, config, sink)
		Expect(err).To(MatchError("cut"))
		Expect(c.Messages).To(HaveLen(2)) // the partial message is left there
		_, err = loop.Continue(context.Background(), loop.Goroutines(), c, config, sink)
		Expect(err).To(MatchError(loop.ErrLastAssistant))
	})

	It("does not wait for the reader of a plain stream", func() {
		s := &script{}
		rt := loop.Goroutines()
		events := loop.Events(context.Background(), rt, []*trace.Message{user("go")}, loop.Context{}, &loop.Config{Stream: s.stream})
		Eventually(func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.asked) }).Should(Equal(1))
		var lines []string
		for ev := events.Next(context.Background()); ev != nil; ev = events.Next(context.Background()) {
			lines = append(lines, line(ev))
		}
		Expect(lines).To(HaveLen(8))
		Expect(lines[7]).To(Equal("agent_end"))

		events = loop.Events(context.Background(), rt, []*trace.Message{user("go")}, loop.Context{}, &loop.Config{Stream: s.stream})
		ended := make(chan struct{})
		events.Each(func(ev *trace.Event) {
			loop.Await(rt, func() { time.Sleep(time.Millisecond) })
			if ev.Type == trace.AgentEnd {
				close(ended)
			}
		})
		Eventually(ended).Should(BeClosed())
	})
})
