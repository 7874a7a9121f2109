package dialect_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect"
	"github.com/pi-conform/pi-conform/fixtures"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func judge(t *testing.T, text string, name dialect.Name, options ...dialect.Option) (*dialect.Report, error) {
	t.Helper()
	l, err := dialect.Open(strings.NewReader(text), name, options...)
	if err != nil {
		return nil, err
	}
	return dialect.Judge(l, dialect.Options{})
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(fixtures.FS, "recorded/pi-json/"+name+".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const twoCalls = "1.6.0-two-parallel-bash-calls"

func rule(r *dialect.Report, id string) conformance.RuleResult {
	return r.Rules[slices.IndexFunc(r.Rules, func(r conformance.RuleResult) bool { return r.Rule == id })]
}

func TestDialects(t *testing.T) {
	for name, want := range map[string]dialect.Name{
		twoCalls: dialect.PiJSON, "1.6.0-rpc-steer": dialect.PiRPC,
	} {
		r, err := judge(t, recorded(t, name), dialect.Auto)
		if err != nil || r.Dialect != want || r.Runs != 1 || r.Broken() {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	text, err := fs.ReadFile(fixtures.FS, "acp/04-left-open.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	r, err := judge(t, string(text), dialect.Auto)
	if err != nil || r.Dialect != dialect.ACP || len(r.Findings) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEvidence holds that what a log does not show makes a rule not applicable.
func TestEvidence(t *testing.T) {
	r, err := judge(t, recorded(t, twoCalls), dialect.Auto)
	if err != nil {
		t.Fatal(err)
	}
	for id, reason := range map[string]string{
		"UPD-1": "a pi-json log does not show what the loop called out for", "STATE-1": "the agent's state", "ABRT-4": "when something was done from outside",
		"TURN-10": "decided to go on", "TURN-8": "",
	} {
		got := rule(r, id)
		if got.Status != conformance.StatusNotApplicable || !strings.Contains(got.Reason, reason) {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if len(r.Kept) != len(edition.Known()) {
		t.Errorf("keeps %v", r.Kept)
	}
}

func TestSeveralRuns(t *testing.T) {
	one := recorded(t, twoCalls)
	r, err := judge(t, strings.Repeat(one, 3), dialect.Auto)
	if err != nil || r.Runs != 3 || r.Broken() {
		t.Errorf("%+v, %v", r, err)
	}
	lines := strings.SplitAfter(one, "\n")
	damaged := one + strings.Join(slices.Delete(lines, 41, 42), "") + one
	r, err = judge(t, damaged, dialect.Auto, dialect.Following())
	if err != nil || r.Runs != 3 || len(r.Findings) == 0 || r.Findings[0].Run != 2 || r.Findings[0].Lines[1] != 51+42 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCutOff(t *testing.T) {
	one := recorded(t, twoCalls)
	r, err := judge(t, one[:len(one)*2/3], dialect.Auto)
	if err != nil || r.Broken() || r.Cut != 1 || len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "in part only") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestGzip(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, recorded(t, twoCalls)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := judge(t, packed.String(), dialect.Auto); err != nil || r.Runs != 1 || r.Lines != 51 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := judge(t, packed.String()[:packed.Len()/2], dialect.Auto); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Error(err)
	}
}

func TestBadInput(t *testing.T) {
	one := recorded(t, twoCalls)
	lines := strings.SplitAfter(one, "\n")
	with := func(line string) string { return strings.Join(slices.Insert(slices.Clone(lines), 9, line+"\n"), "") }
	for name, c := range map[string]struct {
		text    string
		dialect dialect.Name
		line    int
		words   string
	}{
		"no log":            {"Hello\nworld\n", dialect.Auto, 1, "not a JSON object"},
		"other JSON":        {`{"a":1}` + "\n", dialect.Auto, 1, "no dialect that is known"},
		"array":             {"[\n{}\n]\n", dialect.Auto, 1, "not a JSON object"},
		"printed in lines":  {"{\n  \"type\": \"session\"\n}\n", dialect.Auto, 1, "one object a line"},
		"a log line":        {with("Warning: slow"), dialect.Auto, 10, "no JSON object"},
		"cut line":          {with(lines[30][:40]), dialect.Auto, 10, "ends in the middle"},
		"cut update":        {with(lines[10][:60]), dialect.Auto, 10, "ends in the middle"},
		"interleaved":       {with(lines[30][:40] + strings.TrimSpace(lines[31])), dialect.Auto, 10, "two programs"},
		"interleaved later": {with(strings.TrimSpace(lines[10]) + strings.TrimSpace(lines[11])), dialect.Auto, 10, "two programs"},
		"NUL":               {with("{\"type\":\"x\x00\"}"), dialect.Auto, 10, "NUL"},
		"UTF-16":            {"{\x00\"\x00", dialect.Auto, 1, "UTF-16"},
		"bad UTF-8":         {with("{\"type\":\"\xff\"}"), dialect.Auto, 10, "UTF-8"},
		"byte order mark":   {"\xef\xbb\xbf" + one, dialect.Auto, 1, "byte order mark"},
		"wrong dialect":     {one, dialect.ACP, 1, "looks like pi-json"},
		"wrong dialect too": {one, dialect.PiSession, 1, "--dialect pi-json"},
		"mixed":             {one + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", dialect.Auto, 52, "looks like acp"},
		"no type":           {with(`{"a":1}`), dialect.Auto, 10, "without a type"},
		"of a later format": {`{"format":"pi-conform/trace/9"}` + "\n", dialect.Auto, 1, "can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := judge(t, c.text, c.dialect)
			fault, ok := errors.AsType[*dialect.InputError](err)
			if !ok || fault.Line != c.line || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := judge(t, "\n \n", dialect.Auto); !errors.Is(err, dialect.ErrEmpty) {
		t.Error(err)
	}
}

func TestLongLines(t *testing.T) {
	one := recorded(t, twoCalls)
	long := `{"type":"x","text":"` + strings.Repeat("y", 3<<20) + `"}` + "\n"
	if r, err := judge(t, one+long+one, dialect.Auto); err != nil || r.Runs != 2 || r.Lines != 103 {
		t.Errorf("%+v, %v", r, err)
	}
	l, err := dialect.Open(io.MultiReader(strings.NewReader(one), &again{text: []byte(strings.Repeat("z", 1<<20)), left: 100 << 20}), dialect.Auto)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dialect.Judge(l, dialect.Options{}); err == nil || !strings.Contains(err.Error(), "line 52: the line is longer") {
		t.Error(err)
	}
}

// TestLongTexts holds that long texts are told apart although they are put in
// short.
func TestLongTexts(t *testing.T) {
	one := recorded(t, twoCalls)
	long := strings.Repeat("y", 5000)
	all := strings.ReplaceAll(one, `one\n`, long)
	if r, err := judge(t, all, dialect.Auto); err != nil || r.Broken() {
		t.Errorf("%+v, %v", r, err)
	}
	lines := strings.SplitAfter(all, "\n")
	lines[35] = strings.Replace(lines[35], long, long[1:]+"z", 1)
	if r, err := judge(t, strings.Join(lines, ""), dialect.Auto); err != nil || rule(r, "TOOL-13").Status != conformance.StatusFail {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSequential holds that a batch which was run one call at a time is not
// judged as if its calls had to overlap.
func TestSequential(t *testing.T) {
	event := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + "\n" }
	message := `{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"edit","arguments":{}},{"type":"toolCall","id":"b","name":"edit","arguments":{}}],"stopReason":"toolUse"}`
	result := func(id string) string {
		return fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"edit","content":[{"type":"text","text":"ok"}],"isError":false}`, id)
	}
	var text strings.Builder
	text.WriteString(event(`{"type":"agent_start"}`) + event(`{"type":"turn_start"}`) + event(`{"type":"message_start","message":%s}`, message) + event(`{"type":"message_end","message":%s}`, message))
	for _, id := range []string{"a", "b"} {
		text.WriteString(event(`{"type":"tool_execution_start","toolCallId":%q,"toolName":"edit","args":{}}`, id))
		text.WriteString(event(`{"type":"tool_execution_end","toolCallId":%q,"toolName":"edit","result":{"content":[{"type":"text","text":"ok"}]},"isError":false}`, id))
		text.WriteString(event(`{"type":"message_start","message":%s}`, result(id)) + event(`{"type":"message_end","message":%s}`, result(id)))
	}
	text.WriteString(event(`{"type":"turn_end","message":%s,"toolResults":[%s,%s]}`, message, result("a"), result("b")))
	r, err := judge(t, text.String(), dialect.Auto)
	if err != nil || r.Broken() || rule(r, "TOOL-1").Exercised != 2 || r.Cut != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOwnTraces(t *testing.T) {
	var text bytes.Buffer
	tr := &trace.Trace{
		Header: trace.Header{Edition: "1.6", Form: trace.FormAgent, Evidence: []trace.Evidence{trace.EvidenceEvents}},
		Entries: []trace.Entry{
			{Step: 1, Kind: trace.KindAction, Label: "prompt/0", Name: "prompt/0"},
			{Step: 1, Kind: trace.KindEvent, Event: &trace.Event{Type: trace.AgentStart}},
			{Step: 1, Kind: trace.KindEvent, N: 1, Event: &trace.Event{Type: trace.AgentStart}},
			{Step: 1, Kind: trace.KindEnd, Outcome: trace.OutcomeComplete},
		},
	}
	for range 2 {
		if err := trace.Write(&text, tr); err != nil {
			t.Fatal(err)
		}
	}
	r, err := judge(t, text.String(), dialect.Auto)
	if err != nil || r.Dialect != dialect.Pi || r.Runs != 2 || len(r.Findings) == 0 || !slices.Equal(r.Findings[len(r.Findings)-1].Lines, []int{8, 9}) {
		t.Errorf("%+v, %v", r, err)
	}
	cut := text.String()[:text.Len()-20]
	if r, err := judge(t, cut, dialect.Auto); err != nil || r.Cut != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

const sessionFile = `{"type":"session","version":3,"id":"s","cwd":"/home/user"}
{"type":"model_change","id":"1","parentId":null}
{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":"go"}}
{"type":"message","id":"3","parentId":"2","message":{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"read"},{"type":"toolCall","id":"b","name":"read"}],"stopReason":"toolUse"}}
{"type":"message","id":"4","parentId":"3","message":{"role":"toolResult","toolCallId":"a","toolName":"read","content":[]}}
{"type":"message","id":"5","parentId":"4","message":{"role":"toolResult","toolCallId":"b","toolName":"read","content":[]}}
{"type":"message","id":"6","parentId":"2","message":{"role":"assistant","content":[],"stopReason":"stop"}}
`

func TestSessionFile(t *testing.T) {
	r, err := judge(t, sessionFile, dialect.Auto)
	if err != nil || r.Dialect != dialect.PiSession || r.Broken() || r.Runs != 2 || rule(r, "TOOL-14").Exercised == 0 || rule(r, "PAR-4").Exercised == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := rule(r, "RUN-1"); got.Status != conformance.StatusNotApplicable || !strings.Contains(got.Reason, "session file") {
		t.Errorf("%+v", got)
	}
	doubled := strings.Replace(sessionFile, `"toolCallId":"b"`, `"toolCallId":"a"`, 1)
	if r, err := judge(t, doubled, dialect.Auto); err != nil || len(r.Findings) == 0 || r.Findings[0].Rule != "TOOL-14" || !slices.Contains(r.Findings[0].Lines, 6) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEditions holds that something is a finding only if every edition has it.
func TestEditions(t *testing.T) {
	lines := strings.SplitAfter(recorded(t, "1.6.0-truncated-call"), "\n")
	for _, e := range edition.Known() {
		l, err := dialect.Open(strings.NewReader(strings.Join(slices.Delete(slices.Clone(lines), 1, 2), "")), dialect.Auto)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := dialect.Judge(l, dialect.Options{Edition: e}); err != nil || !r.Broken() || len(r.Kept) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// FuzzJudge holds that no log makes it panic.
func FuzzJudge(f *testing.F) {
	for _, name := range fixtures.Logs() {
		text, err := fs.ReadFile(fixtures.FS, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(sessionFile))
	f.Fuzz(func(t *testing.T, text []byte) {
		if l, err := dialect.Open(bytes.NewReader(text), dialect.Auto); err == nil {
			_, _ = dialect.Judge(l, dialect.Options{})
		}
	})
}

// TestRequests holds that what the model was shown is judged, where it was
// recorded.
func TestRequests(t *testing.T) {
	user, answer := "user: go", "assistant toolUse [call_1 call_2 call_3]: Reading two."
	result := func(id string) string { return "toolResult " + id + ": x" }
	for name, c := range map[string]struct {
		second []string
		broken string
		status conformance.Status
	}{
		"kept":      {[]string{"system: ", user, answer, result("call_1"), result("call_2"), result("call_3")}, "", conformance.StatusPass},
		"reordered": {[]string{user, answer, result("call_2"), result("call_1"), result("call_3")}, "TOOL-15", conformance.StatusPass},
		"missing":   {[]string{user, answer, result("call_1"), result("call_3")}, "CTX-5", conformance.StatusFail},
		"unknown":   {[]string{user, "assistant stop []: hello", result("call_3")}, "", conformance.StatusNotApplicable},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := dialect.Open(strings.NewReader(recorded(t, twoCalls)), dialect.Auto)
			if err != nil {
				t.Fatal(err)
			}
			r, err := dialect.Judge(l, dialect.Options{Edition: edition.V16, Requests: [][]string{{user}, c.second}})
			if err != nil || r.Broken() != (c.broken != "") || rule(r, "CTX-5").Status != c.status {
				t.Errorf("%+v, %+v, %v", r.Findings, rule(r, "CTX-5"), err)
			}
			if c.broken != "" && (r.Findings[0].Rule != c.broken || r.Findings[0].Lines[1] != 44) {
				t.Errorf("%+v", r.Findings)
			}
		})
	}
}
