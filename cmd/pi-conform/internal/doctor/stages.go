package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// start starts the process, and sees that it does not end at once.
func (e *examination) start() error {
	if len(e.o.Command.Argv) == 0 {
		return found("no-program", "the command is empty")
	}
	t, err := begin(e.o.Command, e.limit)
	if err != nil {
		return found("no-program", err.Error())
	}
	e.t = t
	// Loading takes longer than an answer.
	t.limit = 2 * e.limit
	e.hello, err = t.ask(hello())
	t.limit = e.limit
	if errors.Is(err, errEnded) {
		return found("ends-early", "it ended "+t.how())
	}
	if e.hello == nil && err != nil {
		return e.notHeard(err)
	}
	return nil
}

// how says how the process ended.
func (t *talk) how() string {
	code, ok := t.exitsWithin(t.limit)
	if !ok {
		return "its output, and goes on"
	}
	return fmt.Sprintf("with exit code %d", code)
}

const nonce = "a nonce of the doctor"

func hello() map[string]any {
	var editions []string
	for _, known := range edition.Known() {
		editions = append(editions, string(known))
	}
	return map[string]any{"type": "hello", "protocol": []int{1}, "harness": "pi-conform doctor", "editions": editions, "nonce": nonce}
}

// notHeard keeps for the next stage that hello was not answered: the process did
// start.
func (e *examination) notHeard(err error) error {
	e.hello = nil
	e.deaf = err
	return nil
}

// speak looks at the answer to hello.
func (e *examination) speak() error {
	if e.deaf != nil {
		return e.whySilent()
	}
	m := e.hello
	switch {
	case m.Re == nil || *m.Re != 1:
		return found("bad-hello", "re is not the id of hello: "+shortly(m))
	case m.Type != "helloOk":
		return found("bad-hello", "hello was answered with "+shortly(m))
	case m.Protocol != 1:
		return found("bad-hello", fmt.Sprintf("protocol is %d", m.Protocol))
	case m.Nonce != nonce:
		return found("bad-hello", fmt.Sprintf("the nonce %q came back as %q", nonce, m.Nonce))
	case m.Subject == nil || m.Subject.Name == "":
		return found("bad-hello", "the subject has no name")
	case e.edition() == "":
		return found("bad-hello", fmt.Sprintf("editions %q has none of those that were offered", m.Editions))
	case e.form() == "" && !e.needsNoForm():
		return found("bad-hello", fmt.Sprintf("capabilities %q has no form", m.Can))
	case m.Barrier != "quiescent" && m.Barrier != "none":
		return found("bad-hello", fmt.Sprintf("barrier is %q", m.Barrier))
	}
	e.spoke = true
	return nil
}

// whySilent finds out whether an answer is only held back.
func (e *examination) whySilent() error {
	if n, ok := errors.AsType[*noise](e.deaf); ok {
		return found("noise", n.Error())
	}
	_ = e.t.stdin.Close()
	m, err := e.t.next(time.After(e.limit))
	if err == nil {
		return found("unflushed", "only when the input ended there came "+shortly(m))
	}
	return because("silent", e.deaf)
}

// edition is one that both know, and form one that can be opened.
func (e *examination) edition() string {
	for _, known := range edition.Known() {
		if slices.Contains(e.hello.Editions, string(known)) {
			return string(known)
		}
	}
	return ""
}

func (e *examination) form() string {
	for _, form := range []string{"agent", "loop", "stream"} {
		if slices.Contains(e.hello.Can, "forms:"+form) {
			return form
		}
	}
	return ""
}

// needsNoForm reports whether there is something to judge besides a loop.
func (e *examination) needsNoForm() bool {
	return slices.Contains(e.hello.Can, protocol.CapReducer) || slices.Contains(e.hello.Can, protocol.CapProgress)
}

// ofLoop is a stage that needs a loop.
func (e *examination) ofLoop(do func() error) func() error {
	return func() error {
		if e.form() == "" {
			return errSkipped
		}
		return do()
	}
}

func (e *examination) unknown() error {
	m, err := e.t.ask(map[string]any{"type": "x-doctor"})
	if err != nil {
		return e.orDead("unknown-type", err)
	}
	if m.Type != "error" || m.Code != "unsupported" {
		return found("unknown-type", "it was answered with "+shortly(m))
	}
	greeting := hello()
	greeting["x-doctor"] = map[string]any{"later": true}
	m, err = e.t.ask(greeting)
	if err != nil {
		return e.orDead("unknown-member", err)
	}
	if m.Type != "helloOk" {
		return found("unknown-member", "hello with another member was answered with "+shortly(m))
	}
	return nil
}

// orDead is the code, with how the process ended if it did.
func (e *examination) orDead(code Code, err error) error {
	if errors.Is(err, errEnded) {
		return found(code, "the process ended "+e.t.how())
	}
	return because(code, err)
}

// orDies is the code, unless the process ended in the middle of a session.
func (e *examination) orDies(code Code, err error) error {
	if errors.Is(err, errEnded) {
		return found("dies", "the process ended "+e.t.how())
	}
	return because(code, err)
}

// lines sends messages of an unknown type, of which nothing but the answer is
// expected, in lines that are easily read wrongly.
func (e *examination) lines() error {
	for _, odd := range []struct {
		code Code
		text string
		end  string
	}{
		{"line-separator", "before\u2028after\u2029\u0085", "\n"},
		{"carriage-return", "", "\r\n"},
		{"long-line", strings.Repeat("0123456789", 200_000), "\n"},
	} {
		e.t.id++
		e.t.writing.Wait()
		e.t.write(fmt.Appendf(nil, `{"type":"x-doctor","id":%d,"text":"%s"}%s`, e.t.id, odd.text, odd.end))
		m, err := e.t.reply(e.t.id)
		if err != nil {
			return e.orDead(odd.code, err)
		}
		if m.Type != "error" || m.Code != "unsupported" {
			return found(odd.code, "it was answered with "+shortly(m))
		}
	}
	return nil
}

func (e *examination) open() error { return e.begin("d1") }

// begin opens a session in which model and tool wait, and prompts.
func (e *examination) begin(session string) error {
	e.session = session
	gate := map[string]any{"gate": true}
	m, err := e.t.ask(map[string]any{
		"type": "open", "session": session, "form": e.form(), "edition": e.edition(),
		"config": map[string]any{"model": "scripted-1", "tools": []any{map[string]any{"name": "scan"}}},
		"script": map[string]any{
			"model": []any{gate}, "modelElse": map[string]any{"steps": []any{done("stop", "done")}}, "tools": map[string]any{"c1": gate},
		},
	})
	if err != nil {
		return e.orDies("no-open", err)
	}
	if m.Type != "ok" {
		return found("no-open", "open was answered with "+shortly(m))
	}
	m, err = e.user("prompt/0", "prompt", map[string]any{
		"messages": []any{map[string]any{"role": "user", "content": "go", "timestamp": 1}},
	})
	if err != nil {
		return e.orDies("no-prompt", err)
	}
	if m.Type != "ok" {
		return found("no-prompt", "the prompt was answered with "+shortly(m))
	}
	return nil
}

func (e *examination) user(name, kind string, answer map[string]any) (*message, error) {
	request := map[string]any{"type": "user", "session": e.session, "name": name, "kind": kind}
	if answer != nil {
		request["answer"] = answer
	}
	return e.t.ask(request)
}

func (e *examination) say(call string, answer map[string]any) (*message, error) {
	return e.t.ask(map[string]any{"type": "answer", "session": e.session, "call": call, "answer": answer})
}

// rest asks for a barrier while the run waits for the model.
func (e *examination) rest() error {
	if err := e.barrier(); err != nil {
		return err
	}
	if e.rested.Idle {
		return found("not-idle", "the model has not answered yet, and synced says idle")
	}
	return nil
}

// barrier asks for a barrier, and sees that nothing more comes after it.
func (e *examination) barrier() error {
	m, err := e.t.ask(map[string]any{"type": "sync", "session": e.session})
	if err != nil {
		return e.orDies("no-rest", err)
	}
	if m.Type != "synced" {
		return found("no-rest", "sync was answered with "+shortly(m))
	}
	e.rested = m
	if e.hello.Barrier == "quiescent" {
		late, err := e.t.quiet()
		if err != nil {
			return e.orDies("early-rest", err)
		}
		if late != nil {
			return found("early-rest", "after synced there came "+shortly(late))
		}
	}
	return e.counted()
}

// counted sees that events are numbered as they should be.
func (e *examination) counted() error {
	events := 0
	for _, m := range e.t.outputs {
		if m.Session != e.session || m.Type != "event" {
			continue
		}
		if m.N == nil || *m.N != events {
			return found("events-miscounted", fmt.Sprintf("event number %d of the session is %s", events, shortly(&m)))
		}
		events++
	}
	if e.hello.Barrier == "quiescent" && e.rested.Events != events {
		return found("events-miscounted", fmt.Sprintf("%d events were written, and synced says %d", events, e.rested.Events))
	}
	return nil
}

// names looks for the request to the model.
func (e *examination) names() error { return e.waits("model/", "model/0", "no-model-call") }

// waits sees that a callback was reported under its name, and waits.
func (e *examination) waits(kind, name string, none Code) error {
	var calls []string
	for _, m := range e.t.outputs {
		if m.Session == e.session && m.Type == "call" && strings.HasPrefix(m.Name, kind) {
			calls = append(calls, m.Name)
		}
	}
	switch {
	case len(calls) == 0:
		return found(none, fmt.Sprintf("no call %s was reported; waiting are %q", name, e.rested.WaitingOn))
	case !slices.Contains(calls, name):
		return found("call-names", fmt.Sprintf("%s is reported as %q", name, calls[0]))
	case !slices.Contains(e.rested.WaitingOn, name):
		return found("not-waiting", fmt.Sprintf("%s was reported, and waiting are %q", name, e.rested.WaitingOn))
	}
	return nil
}

// answer lets the model call a tool.
func (e *examination) answer() error {
	for _, step := range []map[string]any{start(), done("toolUse", "")} {
		m, err := e.say("model/0", step)
		if err != nil {
			return e.orDies("answer-lost", err)
		}
		if m.Type != "ok" {
			return found("answer-refused", "an event of model/0 was answered with "+shortly(m))
		}
	}
	if err := e.barrier(); err != nil {
		return err
	}
	return e.waits("tool/", "tool/c1", "answer-lost")
}

func (e *examination) abort() error {
	m, err := e.user("abort", "abort", nil)
	if err == nil && m.Type != "ok" {
		return found("no-cancel", "the abort was answered with "+shortly(m))
	}
	if err == nil {
		err = e.barrier()
	}
	if err != nil {
		return e.orDies("no-cancel", err)
	}
	if !slices.Contains(e.hello.Can, "signals") {
		return errSkipped
	}
	for _, m := range e.t.outputs {
		if m.Session == e.session && m.Type == "cancelled" && m.Name == "tool/c1" {
			return nil
		}
	}
	return found("no-cancel", "there is no cancelled of tool/c1")
}

// lateUpdate lets the tool return and then make progress.
func (e *examination) lateUpdate() error {
	result := map[string]any{"content": []any{map[string]any{"type": "text", "text": "found"}}}
	for _, step := range []struct{ what, member string }{{"the return of the tool", "result"}, {"its late update", "partial"}} {
		m, err := e.say("tool/c1", map[string]any{step.member: result})
		if err != nil {
			return e.orDead("late-update", err)
		}
		if m.Type != "ok" {
			return found("late-update", step.what+" was answered with "+shortly(m))
		}
		err = e.barrier()
		if t, ok := errors.AsType[*trouble](err); ok && t.code == "dies" {
			return found("late-update", t.detail)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const requestsMost = 3 // after an abort

// settle lets whatever the loop still asks of the model end as aborted.
func (e *examination) settle() error {
	for range requestsMost {
		if e.rested.Idle && e.settled() {
			break
		}
		for _, name := range e.rested.WaitingOn {
			if !strings.HasPrefix(name, "model/") {
				continue
			}
			if _, err := e.say(name, aborted()); err != nil {
				return e.orDies("never-settles", err)
			}
		}
		if err := e.barrier(); err != nil {
			return e.orDies("never-settles", err)
		}
	}
	if !e.settled() {
		return found("never-settles", fmt.Sprintf("idle is %v, waiting are %q, and there is no settled of prompt/0", e.rested.Idle, e.rested.WaitingOn))
	}
	if !e.rested.Idle {
		return found("not-idle", "the prompt has settled, and synced does not say idle")
	}
	return nil
}

func (e *examination) settled() bool {
	return slices.ContainsFunc(e.t.outputs, func(m message) bool {
		return m.Session == e.session && m.Type == "settled" && m.Name == "prompt/0"
	})
}

// again closes the session and begins another one.
func (e *examination) again() error {
	m, err := e.t.ask(map[string]any{"type": "close", "session": e.session})
	if err == nil && m.Type != "ok" {
		return found("not-again", "close was answered with "+shortly(m))
	}
	if err == nil {
		err = e.begin("d2")
	}
	if err == nil {
		err = e.barrier()
	}
	if err == nil {
		err = e.names()
	}
	if err == nil {
		_, err = e.t.ask(map[string]any{"type": "close", "session": e.session})
	}
	if t, ok := errors.AsType[*trouble](err); ok {
		return found("not-again", t.detail)
	}
	if err != nil {
		return e.orDead("not-again", err)
	}
	return nil
}

// show lets a channel of progress report once, and looks for what was seen of it.
func (e *examination) show() error {
	if !slices.Contains(e.hello.Can, protocol.CapProgress) {
		return errSkipped
	}
	e.session = "d3"
	view := map[string]any{"content": []any{map[string]any{"type": "text", "text": "a/c1: step 1"}}}
	for _, act := range []map[string]any{
		{"do": "open"},
		{"do": "observe", "observer": "doctor", "does": "look"},
		{"do": "prepare", "execution": 1, "agent": "a", "call": "c1", "tool": "scan", "args": map[string]any{}},
		{"do": "dispatch", "execution": 1},
		{"do": "report", "execution": 1, "report": map[string]any{"number": 1, "by": "body", "view": view}},
		{"do": "finalize", "execution": 1, "text": "done"},
	} {
		m, err := e.t.ask(map[string]any{"type": "progress", "session": e.session, "act": act})
		if err != nil {
			return e.orDies("no-progress", err)
		}
		if m.Type != "ok" {
			return found("no-progress", fmt.Sprintf("%s was answered with %s", act["do"], shortly(m)))
		}
		if err := e.barrier(); err != nil {
			return err
		}
	}
	return e.shown()
}

// shown looks for the entries of one execution with one report.
func (e *examination) shown() error {
	var kinds []string
	accepted := false
	for _, m := range e.t.outputs {
		if m.Session == e.session && m.Type == "progress" {
			kinds = append(kinds, m.Entry.Kind)
			accepted = accepted || m.Entry.Accepted
		}
	}
	for _, kind := range []string{"prepared", "durable", "report", "observed", "returned", "boundary", "outcome"} {
		if !slices.Contains(kinds, kind) {
			return found("no-progress", fmt.Sprintf("there is no entry of the kind %s among %q", kind, kinds))
		}
	}
	if !accepted {
		return found("no-progress", "a plain report within the tool's body was not accepted")
	}
	return nil
}

func (e *examination) bye() error {
	m, err := e.t.ask(map[string]any{"type": "bye"})
	if err != nil && !errors.Is(err, errEnded) {
		return because("bye-ignored", err)
	}
	if err == nil && m.Type != "ok" {
		return found("bye-ignored", "bye was answered with "+shortly(m))
	}
	_ = e.t.stdin.Close()
	code, ok := e.t.exitsWithin(e.limit)
	if !ok {
		return found("bye-ignored", fmt.Sprintf("it was still running %v later", e.limit))
	}
	if code != 0 {
		return found("bye-exit-code", fmt.Sprintf("the exit code is %d", code))
	}
	return nil
}

// inputEnds closes the input of a process of its own.
func (e *examination) inputEnds() error {
	t, err := begin(e.o.Command, 2*e.limit)
	if err != nil {
		return found("no-program", err.Error())
	}
	e.t = t
	if _, err := t.ask(hello()); err != nil {
		return because("silent", err)
	}
	_ = t.stdin.Close()
	if _, ok := t.exitsWithin(e.limit); !ok {
		return found("end-ignored", fmt.Sprintf("it was still running %v later", e.limit))
	}
	return nil
}

func shortly(m *message) string {
	const most = 200
	if len(m.line) > most {
		return m.line[:most] + "…"
	}
	return m.line
}

// ---- what the model says ----

func assistant(stop string, content ...any) map[string]any {
	return map[string]any{
		"role": "assistant", "content": append([]any{}, content...), "api": "scripted", "provider": "scripted", "model": "scripted-1",
		"stopReason": stop, "timestamp": 1,
	}
}

func start() map[string]any {
	return map[string]any{"event": map[string]any{"type": "start", "partial": assistant("stop")}}
}

// done is a message with that text, or with a call of the tool if it stops for one.
func done(stop, text string) map[string]any {
	block := map[string]any{"type": "text", "text": text}
	if stop == "toolUse" {
		block = map[string]any{"type": "toolCall", "id": "c1", "name": "scan", "arguments": map[string]any{}}
	}
	return map[string]any{"event": map[string]any{"type": "done", "reason": stop, "message": assistant(stop, block)}}
}

func aborted() map[string]any {
	message := assistant("aborted")
	message["errorMessage"] = "the request was aborted"
	return map[string]any{"event": map[string]any{"type": "error", "reason": "aborted", "error": message}}
}
