package trace_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/harness/trace"
)

const header = `{"format":"pi-conform/trace/1","edition":"0.84.3","form":"agent","config":{},"evidence":["E"]}`

const end = `{"step":1,"kind":"end","outcome":"complete"}`

// sample has every member of every type of a trace that is not zero.
func sample() *trace.Trace {
	message := &trace.Message{
		Role: trace.RoleAssistant,
		Content: trace.Content{Blocks: []trace.Block{
			{Type: trace.BlockThinking, Thinking: "hm"},
			{Type: trace.BlockText, Text: "line\n\"é\u2028"},
			{Type: trace.BlockToolCall, ID: "c1", Name: "read", Arguments: trace.Value(`{"b":1.0,"a":1e3}`), Extra: trace.Value(`{"cache":true}`)},
		}},
		Model: "scripted-1", StopReason: trace.StopToolUse,
		Usage: trace.Value(`{"input":12345678901234567890}`), Timestamp: 1700000000000,
		Extra: trace.Value(`{"x":null,"y":"\u0041"}`),
	}
	result := &trace.Result{Content: trace.TextContent("A"), Details: trace.Value(`null`), Terminate: new(false), Extra: trace.Value(`{"z":[]}`)}
	user := &trace.Message{Role: trace.RoleUser, Content: trace.Content{Text: "go", IsText: true}}
	return &trace.Trace{
		Header: trace.Header{
			Format: trace.Format, Case: "sample", Edition: "0.84.3", Form: trace.FormAgent,
			Config: trace.Config{
				Tools:     []trace.Tool{{Name: "read", Parameters: trace.Value(`{"type":"object"}`)}},
				Hooks:     map[string]trace.Mode{"b": trace.ModeAuto, "a": trace.ModeGate},
				Listeners: []trace.ListenerConfig{{Gate: []string{"*"}, Throw: map[string]string{"turn_end": "no"}}},
				Messages:  []*trace.Message{user},
			},
			Evidence: []trace.Evidence{trace.EvidenceEvents, trace.EvidenceCallbacks},
			Tags:     []string{"e5"},
		},
		Entries: []trace.Entry{
			{Step: 1, Kind: trace.KindAction, Label: "prompt/0", Name: "prompt/0", Answer: &trace.Answer{Messages: []*trace.Message{user}}},
			{
				Step: 1, Kind: trace.KindEvent, Event: &trace.Event{Type: "message_end", Message: message},
				State: &trace.State{IsStreaming: true, Pending: []string{}, Messages: 2, Last: "user: go"},
			},
			{Step: 1, Kind: trace.KindEvent, N: 1, Event: &trace.Event{
				Type: "message_update", Message: message,
				StreamEvent: &trace.StreamEvent{Type: "text_delta", ContentIndex: new(0), Delta: "x", Partial: message},
			}},
			{
				Step: 1, Kind: trace.KindCall, Name: "hook/afterToolCall/c1", Auto: true,
				Payload: &trace.Payload{ToolCallID: "c1", Args: trace.Value(`{}`), Result: result, IsError: new(false), Context: []string{}, Signal: new(true)},
				Answer:  &trace.Answer{Hook: &trace.HookAnswer{Content: &trace.Content{Blocks: []trace.Block{}}, Terminate: new(true)}},
			},
			{Step: 1, Kind: trace.KindRead, Name: "model/0", N: 2},
			{Step: 1, Kind: trace.KindCancelled, Name: "tool/c1"},
			{Step: 1, Kind: trace.KindEvent, N: 2, Event: &trace.Event{Type: "tool_execution_end", ToolCallID: "c1", Result: result, IsError: new(false), DurationMs: new(int64(0))}},
			{Step: 1, Kind: trace.KindEvent, N: 3, Event: &trace.Event{Type: "x_news", Extra: trace.Value(`{"who":{"me":1}}`)}},
			{Step: 1, Kind: trace.KindEvent, N: 4, Event: &trace.Event{Type: "turn_end", Message: message, ToolResults: []*trace.Message{}}},
			{Step: 1, Time: 1500, Kind: trace.KindSettled, Name: "prompt/0", Outcome: trace.OutcomeError, Message: "no"},
			{Step: 1, Kind: trace.KindRetained, Changed: []int{1, 2}},
			{Step: 1, Kind: trace.KindEnd, Outcome: trace.OutcomeDeadlock, Pending: []string{"tool/c1"}},
		},
	}
}

func encode(t testing.TB, tr *trace.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(t testing.TB, b []byte) *trace.Trace {
	t.Helper()
	tr, err := trace.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	b := encode(t, want)
	got := decode(t, b)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("a trace changed on its way:\n%s", b)
	}
	if again := encode(t, got); !bytes.Equal(again, b) {
		t.Errorf("the text changed on its way:\n%s\n%s", b, again)
	}
}

func TestDecodeTolerates(t *testing.T) {
	for name, input := range map[string]string{
		"carriage returns":      header + "\r\n" + end + "\r\n",
		"no line feed at end":   header + "\n" + end,
		"a long line":           header + "\n" + `{"step":1,"kind":"action","label":"` + strings.Repeat("x", 1<<20) + "\"}\n" + end + "\n",
		"unknown subject parts": header + "\n" + `{"step":1,"kind":"event","event":{"type":"t","message":{"role":"r","q":{"a":[1]}},"z":1}}` + "\n" + end,
	} {
		if _, err := trace.Decode(strings.NewReader(input)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	entry := func(line string) string { return header + "\n" + line + "\n" + end + "\n" }
	// The header line is 95 bytes with its line feed.
	for _, c := range []struct{ name, input, want string }{
		{"nothing", "", "line 1, offset 0: the input is empty (nothing was recorded)"},
		{"no header", end + "\n", "line 1, offset 0: the first line is not a header with a format (the beginning is missing, or this is not a trace)"},
		{"another version", `{"format":"pi-conform/trace/9","new":1}` + "\n", `line 1, offset 0: format "pi-conform/trace/9", but only pi-conform/trace/1 can be read (written by another version)`},
		{"unknown member of the header", strings.Replace(header, `"form"`, `"from"`, 1), `line 1, offset 50: unknown member "from" (a misspelling, or written by a newer version)`},
		{"unknown member of the config", strings.Replace(header, `"config":{`, `"config":{"a":1`, 1), `line 1, offset 75: unknown member "a" in /config (a misspelling, or written by a newer version)`},
		{"unknown member of an entry", entry(`{"step":1,"kind":"read","name":"model/0","note":1}`), `line 2, offset 136: unknown member "note" (`},
		{"unknown member of a payload", entry(`{"step":1,"kind":"call","name":"model/0","payload":{"modle":""}}`), `line 2, offset 147: unknown member "modle" in /payload (`},
		{"unknown member of an answer", entry(`{"step":1,"kind":"action","label":"a","answer":{"hook":{"stops":true}}}`), `line 2, offset 151: unknown member "stops" in /answer/hook (`},
		{"unknown kind", entry(`{"step":1,"kind":"evnet"}`), `line 2, offset 95: unknown entry kind "evnet"`},
		{"no kind", entry(`{"step":1}`), `line 2, offset 95: an entry without kind`},
		{"no event", entry(`{"step":1,"kind":"event"}`), `line 2, offset 95: an entry of kind event without event`},
		{"duplicate key", entry(`{"step":1,"kind":"read","step":2}`), `line 2, offset 119: duplicate member "step" (JSON put together by hand`},
		{"duplicate key of the subject", entry(`{"step":1,"kind":"event","event":{"type":"t","q":{"a":1,"a":2}}}`), `duplicate member "a" in /event/q (`},
		{"bad UTF-8", entry("{\"step\":1,\"kind\":\"action\",\"label\":\"\xff\"}"), `line 2, offset 130: bad UTF-8 in /label (`},
		{"half a surrogate pair", entry(`{"step":1,"kind":"action","label":"\ud800"}`), `bad UTF-8 in /label (`},
		{"NUL", entry("{\"step\":1,\x00}"), `line 2, offset 105: a NUL byte (`},
		{"byte order mark", "\xef\xbb\xbf" + header, `line 1, offset 0: a byte order mark (`},
		{"log line", entry("starting up"), `line 2, offset 95: not a JSON object (this looks like a log line: write logs to stderr)`},
		{"array", "[" + header + "]", `line 1, offset 0: not a JSON object but an array (`},
		{"empty line", entry(""), `line 2, offset 95: an empty line`},
		{"two objects on a line", entry(end + end), "invalid character '{' after top-level value"},
		{"wrong type", entry(`{"step":"1"}`), `line 2, offset 103: string in /step has the wrong type`},
		{"wrong number", entry(`{"step":1.5}`), `line 2, offset 103: bad number in /step: invalid syntax`},
		{"wrong content", entry(`{"step":1,"kind":"event","event":{"type":"t","message":{"role":"r","content":3}}}`), `message content must be a string or an array of blocks in /event/message/content`},
		{"indented", header + "\n{\n\"step\":1}\n", `line 2, offset 96: the object does not end on its line (one object a line: do not print it indented)`},
		{"last line cut off", header + "\n" + end[:20], `line 2, offset 115: the last line is cut off (the recording stopped before its end)`},
		{"no end", header + "\n", `line 2, offset 95: the trace has no end entry (the recording stopped before its end)`},
		{"after the end", entry(end), `line 3, offset 140: a line after the end entry (two traces in one file)`},
		{"line too long", header + "\n" + strings.Repeat(" ", trace.MaxLine) + "\n", `the line is longer than 16 MiB (`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trace.Decode(strings.NewReader(c.input))
			if _, ok := errors.AsType[*trace.FormatError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestDecodeGivesWhatStoodBefore(t *testing.T) {
	tr, err := trace.Decode(strings.NewReader(header + "\n" + `{"step":1,"kind":"action","label":"abort"}` + "\n" + end[:9]))
	if !errors.Is(err, io.ErrUnexpectedEOF) || tr == nil || len(tr.Entries) != 1 {
		t.Errorf("got %v, %v", tr, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, e := range map[string]trace.Entry{
		"unknown kind":    {Kind: "evnet"},
		"no event":        {Kind: trace.KindEvent},
		"bad UTF-8":       {Kind: trace.KindAction, Label: "\xff"},
		"bad JSON":        {Kind: trace.KindCall, Name: "tool/c1", Payload: &trace.Payload{Args: trace.Value("{")}},
		"too long a line": {Kind: trace.KindAction, Label: strings.Repeat("x", trace.MaxLine)},
		"a member twice":  {Kind: trace.KindEvent, Event: &trace.Event{Type: "t", Extra: trace.Value(`{"type":1}`)}},
	} {
		if err := trace.Write(io.Discard, &trace.Trace{Entries: []trace.Entry{e}}); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	if err := trace.Write(io.Discard, &trace.Trace{Header: trace.Header{Format: "other"}}); err == nil {
		t.Error("another format: written")
	}
}

// FuzzDecode holds that no input breaks the decoder, that all of its errors say
// where, and that what it reads is written and read again without change.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, sample()))
	f.Add([]byte(header + "\n" + end))
	f.Add([]byte(header + "\n{\"step\":1,"))
	f.Fuzz(func(t *testing.T, input []byte) {
		tr, err := trace.Decode(bytes.NewReader(input))
		if err != nil {
			if at, ok := errors.AsType[*trace.FormatError](err); !ok || at.Line < 1 || at.Offset < 0 || at.Offset > int64(len(input)) {
				t.Fatalf("%v", err)
			}
			return
		}
		b := encode(t, tr)
		if again := encode(t, decode(t, b)); !bytes.Equal(b, again) {
			t.Fatalf("not the same again:\n%s\n%s", b, again)
		}
		once := trace.Normalize(tr)
		if i, diff := trace.FirstDiff(tr, once); i >= 0 {
			t.Fatalf("not normal: %s", diff)
		}
		trace.Text(tr)
	})
}
