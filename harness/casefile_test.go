package harness_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/sebdah/goldie/v2"
	"pgregory.net/rapid"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// everything has each key of a case at least once.
const everything = `Everything that a case can say, at once.

It is no story, but it is long.

origin: example/project#12
edges: e2 e5
-- scenario --
edition: 0.84.3        # all optional with defaults
form: agent
systemPrompt: "be: brief"
modelId: other-1
thinkingLevel: high
apiKey: k
toolExecution: parallel
steeringMode: all
followUpMode: one-at-a-time
tools: [a, {name: v, mode: sequential, parameters: {type: object, required: [n], properties: {n: {type: number}}}, prepareArguments: true}]
model:
  - calls: [{id: c1, name: a, args: {x: 1}}, {id: c2, name: a}, {id: c1, name: v, args: {n: 1.50, s: "1", t: true, z: null, l: [a, -2e3]}}]   # stop toolUse by default
    gate: true
    stream: deltas
    thinking: hm
    usage: {input: 3}
  - {text: |
      two
      lines
    , stop: length}
  - {end: stalls}
  - {end: throws, throw: net down, stream: odd}
  - {end: silent, text: x, result: y}
  - {stop: error, error: overloaded}
calls:
  c1: {gate: true, sync: [s], updates: [p1, {text: p2, details: {done: 1}}], late: [x], return: A}
  c1~1: {return: {content: [{type: text, text: a}, {data: aGk=, mimeType: image/png}], details: null, usage: {n: 1}, terminate: true, isError: false}}
  c2: {throw: boom, abort: true}
hooks:
  beforeToolCall: {gate: true, answers: {c2: {block: true, reason: no, terminate: true}}}
  afterToolCall: {answers: {c1: {throw: after boom}, c1~1: {text: new, details: {}}}, else: {content: [], isError: true}}
  prepareArguments: {else: {args: {n: 2}}}
  transformContext: {answers: {0: {drop: 1, append: [more, {role: custom, text: c}]}}}
  convertToLlm: {else: {without: [custom]}}
  getApiKey: {else: {key: k2}}
  prepareNextTurn: {answers: {0: {model: m2, level: "off", systemPrompt: "", messages: [x]}}}
  shouldStopAfterTurn: {answers: {1: {stop: true}}, else: {abort: true}}
  finishTurn: {else: {action: continue}}
  prepareRequest: {else: {level: low}}
listeners: [{gate: [message_end/assistant, agent_end], throw: {"tool_execution_end/c1": ouch}, late: true}, {}, {gate: ["*"]}]
user: [prompt: go, steer: look, abort, continue, {prompt: {text: again, busy: true}}, waitForIdle, {unsubscribe: 0}, subscribe: 2,
  followUp: [a, {role: custom, text: b}], clearQueue, reset, {continue: {busy: true}}, {reset: {busy: true}},
  {prompt: {text: see, images: [{data: aGk=, mimeType: image/png}]}}, {prompt: {messages: [one, two]}}]
messages: [{role: user, text: earlier}, {role: assistant, text: ok, calls: [{id: old, name: a}], stopReason: toolUse},
  {role: toolResult, toolCallId: old, toolName: a, text: r, isError: true, details: {}}, {content: plain, timestamp: 5}]
-- schedule --
prompt/0
model/0/event/0   # the stream begins
# c2 is quick
tool/c1/update/0
tool/c1~1/late/0
hook/beforeToolCall/c2/return
listener/0/tool_execution_end/c1/0/done
listener/2/agent_end/0/throw
abort
abort/1
clock/30s
-- findings --
mutant:ends-in-source-order PAR-3 PAR-1
-- trace --
# a trace
`

func TestCaseFiles(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "harness")
}

func scenarioOf(yaml string) (*harness.Scenario, error) {
	f, err := harness.ParseCase("cases/x.txtar", []byte("A story.\n-- scenario --\n"+yaml))
	if err != nil {
		return nil, err
	}
	return f.Case.Scenario, nil
}

var _ = Describe("a case file", func() {
	It("says everything that a scenario has", func() {
		f, err := harness.ParseCase("cases/everything.txtar", []byte(everything))
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Name).To(Equal("everything"))
		Expect(f.Story).To(Equal("Everything that a case can say, at once.\n\nIt is no story, but it is long."))
		Expect(f.Origin).To(Equal("example/project#12"))
		Expect(f.Trace).To(Equal("# a trace\n"))
		Expect(f.Findings).To(Equal([]harness.ExpectedFindings{{Mutant: "ends-in-source-order", Rules: []string{"PAR-3", "PAR-1"}}}))
		Expect(f.Case.Schedule).To(Equal([]string{
			"prompt/0", "model/0/event/0", "tool/c1/update/0", "tool/c1~1/late/0", "hook/beforeToolCall/c2/return",
			"listener/0/tool_execution_end/c1/0/done", "listener/2/agent_end/0/throw", "abort", "abort/1", "clock/30s",
		}))
		sc := f.Case.Scenario
		Expect(sc.Tags).To(Equal([]string{"e2", "e5"}))
		Expect(sc.Edition).To(Equal(edition.V0843))
		Expect(sc.Config.Tools).To(HaveLen(2))
		Expect(string(sc.Config.Tools[1].Parameters)).To(Equal(`{"type":"object","required":["n"],"properties":{"n":{"type":"number"}}}`))
		Expect(string(sc.Model[0].Calls[2].Args)).To(Equal(`{"n":1.50,"s":"1","t":true,"z":null,"l":["a",-2e3]}`))
		Expect(sc.Model[1].Text).To(Equal("two\nlines\n"))
		Expect(sc.Model[2].Gate).To(BeTrue(), "a stalled stream waits")
		Expect(sc.Calls["c1"].Updates[1].Content).To(Equal(trace.TextContent("p2")))
		Expect(string(sc.Calls["c1~1"].Return.Details)).To(Equal("null"))
		Expect(*sc.Calls["c2"].Throw).To(Equal("boom"))
		Expect(sc.Hooks["afterToolCall"].Else.Value.Content.Blocks).To(BeEmpty())
		Expect(sc.Hooks["afterToolCall"].Else.Value.Content.Blocks).NotTo(BeNil())
		Expect(sc.Config.Hooks).To(HaveKeyWithValue("beforeToolCall", trace.ModeGate))
		Expect(sc.Config.Messages[1].Tag()).To(Equal("assistant toolUse [old]: ok"))
		Expect(sc.Config.Messages[3].Content.IsText).To(BeTrue())
		Expect(sc.User).To(HaveLen(15))
		Expect(*sc.User[7].Answer.Listener).To(Equal(2))
	})

	It("is the same after it was written", func() {
		f, err := harness.ParseCase("everything.txtar", []byte(everything))
		Expect(err).NotTo(HaveOccurred())
		written := harness.FormatCase(f)
		again, err := harness.ParseCase("everything.txtar", written)
		Expect(err).NotTo(HaveOccurred(), "%s", written)
		Expect(again).To(Equal(f), "%s", written)
		Expect(string(harness.FormatCase(again))).To(Equal(string(written)))
	})

	It("can be written without what the scenario can no longer reach", func() {
		f := &harness.CaseFile{Name: "x", Story: "A story.", Case: harness.Case{Scenario: &harness.Scenario{
			Model: []scriptedmodel.Turn{{Calls: []scriptedmodel.Call{{ID: "c1", Name: "a"}}}},
			Calls: map[string]harness.ToolScript{"gone": {Gate: true}},
			Hooks: map[string]harness.HookScript{"beforeToolCall": {Answers: map[string]harness.HookReply{"gone": {Abort: true}}}},
		}}}
		again, err := harness.ParseCase("x.txtar", harness.FormatCase(f))
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Case.Scenario.Calls).To(BeEmpty())
		Expect(again.Case.Scenario.Hooks["beforeToolCall"].Answers).To(BeEmpty())
	})

	It("can get another trace and keep everything else", func() {
		text := "A story.\n-- scenario --\nuser: [prompt: go] # a comment\n"
		with := string(harness.WithTrace([]byte(text), "new\n"))
		Expect(with).To(Equal(text + "-- trace --\nnew\n"))
		Expect(string(harness.WithTrace([]byte(with), "newer\n"))).To(Equal(text + "-- trace --\nnewer\n"))
	})

	DescribeTable("tells what is wrong in a scenario",
		func(yaml string, line int, why string) {
			_, err := scenarioOf(yaml)
			Expect(err).To(HaveOccurred())
			first, _, _ := strings.Cut(err.Error(), "\n")
			Expect(first).To(HavePrefix("cases/x.txtar:%d: ", line+2))
			Expect(first).To(ContainSubstring(why))
		},
		Entry("a key", "tolls: [a]", 1, `unknown key "tolls" in the scenario (did you mean "tools"?)`),
		Entry("an inner key", "model:\n- text: a\n- calls: [{id: 1, name: a, arg: 2}]", 3, `unknown key "arg" in a call (did you mean "args"?)`),
		Entry("a hook", "hooks:\n  beforeTolCall: {}", 2, `unknown hook "beforeTolCall" (did you mean "beforeToolCall"?)`),
		Entry("a poll", "hooks: {getSteeringMessages: {}}", 1, "getSteeringMessages cannot be scripted"),
		Entry("prepareArguments gated", "tools: [{name: a, prepareArguments: true}]\nhooks: {prepareArguments: {gate: true}}", 2, "prepareArguments cannot wait"),
		Entry("prepareArguments of no tool", "hooks: {prepareArguments: {}}", 1, "no tool has prepareArguments: true"),
		Entry("an answer that the hook does not have", "hooks: {shouldStopAfterTurn: {else: {block: true}}}", 1, `unknown key "block" in an answer of shouldStopAfterTurn`),
		Entry("a call's hook with a number", "hooks: {beforeToolCall: {answers: {0: {}}}}", 1, `the model makes no call "0"`),
		Entry("a numbered hook with a name", "hooks: {transformContext: {answers: {c1: {}}}}", 1, "an answer of transformContext needs a number from 0"),
		Entry("a stream", "model: [{stream: delta}]", 1, `unknown stream "delta" (did you mean "deltas"?)`),
		Entry("an end", "model: [{end: stall}]", 1, `unknown end "stall" (did you mean "stalls"?)`),
		Entry("a stop reason", "model: [{stop: tooluse}]", 1, `unknown stop "tooluse" (did you mean "toolUse"?)`),
		Entry("an edition", "edition: 0.84.2", 1, `unknown edition "0.84.2" (did you mean "0.84.3"?)`),
		Entry("a mode", "toolExecution: serial", 1, `unknown toolExecution "serial" (known: parallel, sequential)`),
		Entry("a call that no turn makes", "model: [{calls: [{id: c1, name: a}]}]\ncalls: {c2: {}}", 2, `the model makes no call "c2" (did you mean "c1"?)`),
		Entry("a tool that returns and throws", "model: [{calls: [{id: c1, name: a}]}]\ncalls: {c1: {return: a, throw: b}}", 2, "a tool returns or throws, not both"),
		Entry("a waiting tool that aborts", "model: [{calls: [{id: c1, name: a}]}]\ncalls: {c1: {updates: [a], abort: true}}", 2, "only a tool that does not wait aborts"),
		Entry("a listener", "listeners: [{}]\nuser: [{subscribe: 1}]", 2, "there is no listener 1, only 1 of them, from 0"),
		Entry("an event", "listeners: [{gate: [mesage_end]}]", 1, `unknown event "mesage_end" (did you mean "message_end"?)`),
		Entry("an event that a listener throws at", "listeners:\n- throw:\n    turn_ended: x", 3, `unknown event "turn_ended"`),
		Entry("an action", "user: [promt: go]", 1, `unknown action "promt" (did you mean "prompt"?)`),
		Entry("a prompt without text", "user: [prompt]", 1, "prompt needs text or messages"),
		Entry("a prompt of text and messages", "user: [{prompt: {text: a, messages: [b]}}]", 1, "not both"),
		Entry("images without text", "user: [{prompt: {images: [{data: aGk=}]}}]", 1, "images go with the text"),
		Entry("an abort that carries something", "user: [abort: 1]", 1, "abort carries nothing"),
		Entry("content twice", "messages: [{text: a, content: b}]", 1, "content says everything"),
		Entry("the wrong kind of value", "model: [{gate: maybe}]", 1, "gate has to be true or false, not text"),
		Entry("a list that is none", "tools: a", 1, "tools has to be a list, not text"),
		Entry("a list in place of the scenario", "- a", 1, "the scenario has to be a mapping, not a list"),
		Entry("broken YAML", "user: [prompt: go\n", 1, "not found"),
		Entry("a key twice", "tools: [a]\ntools: [b]", 2, "already"),
		Entry("an anchor", "tools: &x [a]", 1, "plain YAML only"),
		Entry("two documents", "tools: [a]\n---\ntools: [b]", 1, "one YAML document"),
		Entry("a number", "model: [{usage: .inf}]", 1, "plain YAML only"),
	)

	DescribeTable("tells what is wrong in a label",
		func(label, why string) {
			_, err := harness.ParseCase("x.txtar", []byte("A story.\n-- scenario --\n-- schedule --\nprompt/0\n"+label+"\n"))
			Expect(err).To(MatchError(HavePrefix("x.txtar:5: label ")))
			Expect(err).To(MatchError(ContainSubstring(why)))
		},
		Entry("kind", "tol/c1/return", `unknown action "tol" (did you mean "tool"?)`),
		Entry("first abort", "abort/0", "the first abort is just"),
		Entry("user action without number", "prompt", "prompt/N needs a number"),
		Entry("number", "prompt/01", "needs a number from 0"),
		Entry("model without number", "model/x/end", "model/N needs a number"),
		Entry("model's answer", "model/0/done", `unknown answer "done"`),
		Entry("event without number", "model/0/event", "event/N needs a number"),
		Entry("tool's answer", "tool/c1/returns", `unknown answer "returns" (did you mean "return"?)`),
		Entry("tool without answer", "tool/c1", "a tool's label is"),
		Entry("hook", "hook/beforeCall/c1/return", `unknown hook "beforeCall"`),
		Entry("hook without call", "hook/beforeToolCall/return", "a hook's label is"),
		Entry("listener without count", "listener/0/turn_end/c1/done", "the count needs a number"),
		Entry("listener's event", "listener/0/turn_ends/0/done", `did you mean "turn_end"`),
		Entry("listener's answer", "listener/0/turn_end/0/return", `unknown answer "return"`),
		Entry("clock", "clock/soon", "clock/DURATION"),
	)

	DescribeTable("tells what is wrong around the scenario",
		func(text, why string) {
			_, err := harness.ParseCase("x.txtar", []byte(text))
			Expect(err).To(MatchError(ContainSubstring(why)))
		},
		Entry("no scenario", "A story.\n", "x.txtar:1: there is no section -- scenario --"),
		Entry("an unknown section", "A story.\n-- scenario --\n-- scedule --\n", `x.txtar:3: unknown section "scedule" (did you mean "schedule"?)`),
		Entry("a section twice", "A story.\n-- scenario --\n-- scenario --\n", `x.txtar:3: a second section "scenario"`),
		Entry("a finding", "A story.\n-- scenario --\n-- findings --\nPAR-3\n", "x.txtar:4: a finding has to begin with mutant:NAME"),
		Entry("a finding without rule", "A story.\n-- scenario --\n-- findings --\nmutant:x\n", "mutant x has no rule"),
		Entry("no UTF-8", "A story\xff.\n-- scenario --\n", "not UTF-8"),
	)

	It("tells everything that is wrong at once, in order", func() {
		_, err := scenarioOf("tolls: [a]\nmodel: [{gate: 1}]\n-- schedule --\nfoo\n")
		Expect(strings.Split(err.Error(), "\n")).To(HaveLen(3))
	})
})

// TestFormatCase shows how a case is written.
func TestFormatCase(t *testing.T) {
	f, err := harness.ParseCase("everything.txtar", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	goldie.New(t, goldie.WithNameSuffix(".txtar")).Assert(t, "everything", harness.FormatCase(f))
}

// drawnCase is a case with texts and values that are hard to write in YAML.
func drawnCase(t *rapid.T) *harness.CaseFile {
	text := func(name string) string {
		return rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[-?:,\[\]{}#&*!|>'"%@`+"`"+` ~\n\t=<a0]{0,6}`),
			rapid.SampledFrom([]string{"null", "~", "yes", "No", "0x1f", "1e3", "-.inf", "2001-01-01", "- a", "a: b", "a #b", " a", "a ", "---", "...", "<<", "\u0085", "\u2028", "\ufeff"}),
		).Draw(t, name)
	}
	value := func(name string) trace.Value {
		raw, err := json.Marshal(map[string]any{text(name + " key"): []any{text(name), rapid.Float64().Draw(t, "number"), nil, true}})
		if err != nil {
			t.Skip("no UTF-8")
		}
		return raw
	}
	id := "c" + text("id")
	throw := text("throw")
	return &harness.CaseFile{Name: "x", Story: "A story.", Case: harness.Case{Scenario: &harness.Scenario{
		Name: "x",
		Model: []scriptedmodel.Turn{{
			Text:  text("text"),
			Calls: []scriptedmodel.Call{{ID: id, Name: "t" + text("tool"), Args: value("args")}},
			Usage: value("usage"),
		}},
		Calls: map[string]harness.ToolScript{id: {
			Sync:  []*trace.Result{{Content: trace.TextContent(text("update")), Details: value("details")}},
			Throw: &throw,
		}},
		User: []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: text("prompt")}}},
	}}}
}

func TestCasesWithHardTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawnCase(t)
		f.Case.Scenario.Complete()
		written := harness.FormatCase(f)
		again, err := harness.ParseCase("x.txtar", written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if !reflect.DeepEqual(again, f) {
			t.Fatalf("it came back as\n%s\nfrom\n%s", harness.FormatCase(again), written)
		}
	})
}

// FuzzParseCase looks whether every input is either refused or stays the same
// once it was written.
func FuzzParseCase(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("A story.\n-- scenario --\n{}\n"))
	f.Add([]byte("-- scenario --\nuser: [prompt: \"a\\u0000\\ud83d\"]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := harness.ParseCase("x.txtar", data)
		if err != nil {
			return
		}
		written := harness.FormatCase(first)
		again, err := harness.ParseCase("x.txtar", written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, written)
		}
		if second := harness.FormatCase(again); string(second) != string(written) {
			t.Fatalf("written twice, it is not the same:\n%s\n%s", written, second)
		}
	})
}
