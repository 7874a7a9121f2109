//go:build !windows

package protocol_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/harness/protocol"
)

// Messages of a subject, and whether they are right. Both checks have to agree.
var replies = []struct {
	line string
	want string // in the error; nothing if it is right
}{
	{`{"type":"ok","re":1}`, ""},
	{`{"type":"ok","re":1,"later":{"x":1}}`, ""},
	{`{"type":"ok"}`, "'re'"},
	{`{"type":"error","re":3,"code":"call","message":"no","stack":null}`, ""},
	{`{"type":"error","re":3}`, "'code'"},
	{`{"type":"error","re":"3","code":"x"}`, "/re"},
	{`{"type":"helloOk","re":1,"protocol":1,"nonce":"n","subject":{"name":"x"},"barrier":"quiescent","capabilities":[]}`, ""},
	{`{"type":"helloOk","re":1,"protocol":1,"nonce":"n","subject":{"name":"x"},"barrier":"quiescent"}`, "'capabilities'"},
	{`{"type":"helloOk","re":1,"protocol":1,"nonce":"n","subject":{},"barrier":"quiescent","capabilities":[]}`, "/subject"},
	{`{"type":"helloOk","re":1,"protocol":1,"nonce":"n","subject":{"name":"x"},"barrier":"soft","capabilities":[]}`, "/barrier"},
	{`{"type":"synced","re":1,"idle":true,"waitingOn":[],"events":0}`, ""},
	{`{"type":"synced","re":1,"idle":true,"waitingOn":null,"events":0}`, "/waitingOn"},
	{`{"type":"synced","re":1,"waitingOn":[],"events":0}`, "'idle'"},
	{`{"type":"synced","re":1,"idle":false,"waitingOn":[],"events":0,"wakeMs":2000}`, ""},
	{`{"type":"reduced","re":1,"view":{"phase":"idle"}}`, ""},
	{`{"type":"reduced","re":1,"view":{},"before":{},"eventAfter":{"type":"x"}}`, ""},
	{`{"type":"reduced","re":1}`, "'view'"},
	{`{"type":"event","session":"s1","n":0,"event":{"type":"turn_end","message":null,"toolResults":[]}}`, ""},
	{`{"type":"event","session":"s1","n":0,"event":{"type":"x_new","more":[1,{"a":2}]},"state":{"isStreaming":true,"pendingToolCalls":[],"messages":1}}`, ""},
	{`{"type":"event","session":"s1","n":0,"event":{"type":"message_end","message":{"role":"alien","content":"hi","mood":7}}}`, ""},
	{`{"type":"event","session":"s1","event":{"type":"x"}}`, "'n'"},
	{`{"type":"event","n":0,"event":{"type":"x"}}`, "'session'"},
	{`{"type":"event","session":"s1","n":0,"event":{}}`, "/event"},
	{`{"type":"event","session":"s1","n":0,"event":{"type":7}}`, "/event/type"},
	{`{"type":"event","session":"s1","n":0,"event":{"type":"message_end","message":{"content":"hi"}}}`, "/event/message"},
	{`{"type":"event","session":"s1","n":0,"event":{"type":"message_end","message":{"role":"user","content":[{"text":"x"}]}}}`, "/event/message/content/0"},
	{`{"type":"event","session":"s1","n":0,"event":{"type":"message_end","message":{"role":"user","content":5}}}`, "/event/message/content"},
	{`{"type":"event","session":"s1","n":0,"event":{"type":"agent_end","messages":[null]}}`, "/event/messages/0"},
	{`{"type":"call","session":"s1","name":"tool/c1","payload":{"toolCallId":"c1","args":null,"signal":true}}`, ""},
	{`{"type":"call","session":"s1","name":"tool/c1","auto":true,"payload":{},"answer":{"result":{"content":[]}}}`, ""},
	{`{"type":"call","session":"s1","name":"tool/c1","payload":{"signal":"yes"}}`, "/payload/signal"},
	{`{"type":"call","session":"s1","name":"tool/c1"}`, "'payload'"},
	{`{"type":"call","session":"s1","name":"wool/c1","payload":{}}`, "/name"},
	{`{"type":"read","session":"s1","name":"model/0","n":0}`, ""},
	{`{"type":"read","session":"s1","name":"model/0"}`, "'n'"},
	{`{"type":"cancelled","session":"s1","name":"tool/c1"}`, ""},
	{`{"type":"cancelled","session":"s1"}`, "'name'"},
	{`{"type":"settled","session":"s1","name":"prompt/0","outcome":"ok"}`, ""},
	{`{"type":"settled","session":"s1","name":"prompt/0","outcome":"complete"}`, "/outcome"},
	{`{"type":"retained","session":"s1","changed":[1,2]}`, ""},
	{`{"type":"retained","session":"s1"}`, "'changed'"},
	{`{"type":"log","text":"x"}`, ""},
	{`{"type":"hello","id":1}`, "unknown type \"hello\" (this type goes from the harness to the subject"},
	{`{"level":"info","msg":"started"}`, "no type (if this is a log line"},
}

func TestRepliesAreCheckedTwiceAlike(t *testing.T) {
	for _, r := range replies {
		_, err := protocol.DecodeReply(protocol.Line{Number: 4, Offset: 100, Bytes: []byte(r.line)})
		schema := protocol.Validate(protocol.FromSubject, []byte(r.line))
		if (err == nil) != (schema == nil) {
			t.Errorf("%s\n decoding: %v\n schema: %v", r.line, err, schema)
		}
		if (err == nil) != (r.want == "") || err != nil && !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s\n error %v\n want %q in it", r.line, err, r.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "line 4, byte 100: ") {
			t.Errorf("%s\n error %v names no place", r.line, err)
		}
	}
}

var requests = []struct {
	line string
	good bool
}{
	{`{"type":"hello","id":1,"protocol":[1],"nonce":"n"}`, true},
	{`{"type":"hello","id":1,"nonce":"n"}`, false},
	{`{"type":"hello","protocol":[1],"nonce":"n"}`, false},
	{`{"type":"open","id":2,"session":"s1","form":"agent","edition":"0.84.3","config":{},"script":{"modelElse":{"steps":[]}}}`, true},
	{`{"type":"open","id":2,"session":"s1","form":"agent","edition":"0.84.3","config":{},"script":null}`, false},
	{`{"type":"user","id":3,"session":"s1","name":"prompt/0","kind":"prompt","answer":{"text":"go"}}`, true},
	{`{"type":"user","id":3,"session":"s1","name":"abort","kind":"abort"}`, true},
	{`{"type":"user","id":3,"session":"s1","name":"abort"}`, false},
	{`{"type":"answer","id":4,"session":"s1","call":"tool/c1","answer":{}}`, true},
	{`{"type":"answer","id":4,"session":"s1","call":"tool/c1"}`, false},
	{`{"type":"sync","id":5,"session":"s1"}`, true},
	{`{"type":"sync","id":5}`, false},
	{`{"type":"clock","id":6,"session":"s1","advanceMs":5}`, true},
	{`{"type":"clock","id":6,"session":"s1"}`, false},
	{`{"type":"reduce","id":6,"event":{"type":"agent_start"}}`, true},
	{`{"type":"reduce","id":6,"view":{},"event":{"type":"agent_start"}}`, true},
	{`{"type":"reduce","id":6,"view":{}}`, false},
	{`{"type":"reduce","id":6,"event":{}}`, false},
	{`{"type":"bye","id":7}`, true},
	{`{"type":"x-new","id":8}`, true},
	{`{"id":8}`, false},
}

func TestRequestsAreCheckedTwiceAlike(t *testing.T) {
	for _, r := range requests {
		_, err := protocol.DecodeRequest(protocol.Line{Bytes: []byte(r.line)})
		schema := protocol.Validate(protocol.ToSubject, []byte(r.line))
		if (err == nil) != r.good || (schema == nil) != r.good {
			t.Errorf("%s\n decoding: %v\n schema: %v", r.line, err, schema)
		}
	}
}

func TestLinesThatAreNoMessages(t *testing.T) {
	cases := []struct{ line, want string }{
		{"", "an empty line"},
		{"INFO started", "this looks like a log line"},
		{"\x1b[32mready\x1b[0m", "this looks like a log line"},
		{"\xef\xbb\xbf{}", "byte order mark"},
		{"{\x00}\x00", "invalid character"},
		{"\xff\xfe{\x00}\x00", "UTF-16"},
		{"Content-Length: 77", "framing of a language server"},
		{`[{"type":"ok","re":1}]`, "an array"},
		{"{", "does not end on its line"},
		{`  "type": "ok",`, "indented JSON"},
		{"}", "indented JSON"},
		{`{"type":"ok","re":1}{"type":"ok","re":2}`, "one object a line"},
		{`{"type":"ok","re":1} done`, "one object a line"},
		{`{"type":"ok","re":1,"re":2}`, "only once"},
		{`{"type":"log","more":{"a":1,"a":2}}`, "only once"},
		{"{\"type\":\"log\",\"text\":\"caf\xe9\"}", "write UTF-8"},
		{"{\"type\":\"log\",\"more\":\"caf\xe9\"}", "write UTF-8"},
		{`{"type":"log","more":NaN}`, "use a JSON writer"},
		{`{'type':'ok'}`, "use a JSON writer"},
	}
	for _, c := range cases {
		_, err := protocol.DecodeReply(protocol.Line{Number: 1, Bytes: []byte(c.line)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q\n error %v\n want %q in it", c.line, err, c.want)
		}
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("z", protocol.MaxLine)
	r := protocol.NewLineReader(strings.NewReader("a\r\n\nb\u2028c\n" + long + "\n" + long + "zzz\n"))
	want := []struct {
		text   string
		offset int64
	}{{"a", 0}, {"", 3}, {"b\u2028c", 4}, {long, 10}}
	for i, w := range want {
		line, err := r.Next()
		if err != nil || string(line.Bytes) != w.text || line.Number != i+1 || line.Offset != w.offset {
			t.Fatalf("line %d: %.20q at %d, %v", line.Number, line.Bytes, line.Offset, err)
		}
	}
	if r.Returns != 1 {
		t.Errorf("%d carriage returns", r.Returns)
	}
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "line 5, byte 16777227: a line of more than 16 MiB") {
		t.Error(err)
	}
	r = protocol.NewLineReader(strings.NewReader("a\nb"))
	_, _ = r.Next()
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "middle of a line") {
		t.Error(err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error(err)
	}
}

func TestServeKeepsTalkingAfterBadMessages(t *testing.T) {
	in := strings.Join([]string{
		"garbage",
		`{"type":"sync","id":1,"session":"s9"}`,
		`{"type":"hello","id":2,"protocol":[7],"nonce":"n"}`,
		`{"type":"x-odd","id":3}`,
		`{"type":"user","id":4,"session":"s1"}`,
		`{"type":"bye","id":5}`,
		"",
	}, "\n")
	var out bytes.Buffer
	if err := protocol.Serve(strings.NewReader(in), &out, &fakeDriver{}, protocol.ServeOptions{Strict: true}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{`"code":"malformed"`, `"code":"session"`, `"code":"version"`, `"code":"unsupported"`, `"code":"malformed"`, `"type":"ok","re":5`} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d of %q: no %s", i, lines, want)
		}
	}
}

func BenchmarkDecodeReply(b *testing.B) {
	line := protocol.Line{Bytes: []byte(benchLine)}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := protocol.DecodeReply(line); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("schema", func(b *testing.B) {
		for b.Loop() {
			if err := protocol.Validate(protocol.FromSubject, line.Bytes); err != nil {
				b.Fatal(err)
			}
		}
	})
}

const benchLine = `{"type":"event","session":"s1","n":4,"event":{"type":"message_update","message":{"role":"assistant","content":[{"type":"text","text":"let me look"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}],"stopReason":"stop","timestamp":1},"assistantMessageEvent":{"type":"toolcall_end","contentIndex":1,"toolCall":{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}},"partial":{"role":"assistant","content":[{"type":"text","text":"let me look"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}],"stopReason":"stop","timestamp":1}}},"state":{"isStreaming":true,"pendingToolCalls":[],"messages":2,"last":"user: go","streaming":"assistant"}}`

func BenchmarkBarrier(b *testing.B) {
	p := protocol.NewProcess(fakeCommand(b), protocol.Options{})
	defer p.Close()
	s, err := p.Open(b.Context(), scenario())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := do(s, prompt("refuse")); err != nil {
			b.Fatal(err)
		}
	}
}
