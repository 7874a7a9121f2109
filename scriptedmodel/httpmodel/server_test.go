package httpmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/scriptedmodel/httpmodel"
)

func serve(t *testing.T, script string) (*httpmodel.Server, string) {
	t.Helper()
	turns, err := httpmodel.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	model := httpmodel.New(turns)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	return model, server.URL
}

func post(t *testing.T, url, body string) *http.Response {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// events are the data of the server-sent events of a stream.
func events(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var value map[string]any
		if err := json.Unmarshal([]byte(data), &value); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		all = append(all, value)
	}
	return all
}

const calls = `
model:
  - thinking: Let me think.
    text: Reading two.
    pieces: 3
    calls:
      - {id: call_1, name: read, args: {path: a.txt, deep: {n: 1}}}
      - {id: call_2, name: read}
`

var endpoints = map[string]string{
	"/v1/chat/completions": `"finish_reason":"tool_calls"`, "/v1/responses": `"type":"response.completed"`, "/v1/messages": `"stop_reason":"tool_use"`,
}

// TestStreams holds that what is streamed puts together to what is not.
func TestStreams(t *testing.T) {
	for endpoint, stop := range endpoints {
		t.Run(endpoint, func(t *testing.T) {
			model, url := serve(t, calls+strings.TrimPrefix(calls, "\nmodel:\n"))
			response := post(t, url+endpoint, `{"model":"m","stream":true,"messages":[]}`)
			text, err := io.ReadAll(response.Body)
			if err != nil || response.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatal(err, response.Header)
			}
			var arguments strings.Builder
			for _, e := range events(t, string(text)) {
				arguments.WriteString(pieceOf(e))
			}
			if want := `{"deep":{"n":1},"path":"a.txt"}{}`; arguments.String() != want {
				t.Errorf("the arguments are %s", arguments.String())
			}
			for _, want := range []string{stop, "call_1", "call_2", "Read"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s is missing in\n%s", want, text)
				}
			}
			whole, err := io.ReadAll(post(t, url+endpoint, `{"model":"m","messages":[]}`).Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"Reading two.", "Let me think.", "call_1", "a.txt"} {
				if !json.Valid(whole) || !strings.Contains(string(whole), want) {
					t.Errorf("%s is missing in\n%s", want, whole)
				}
			}
			if requests := model.Requests(); len(requests) != 2 || !requests[0].Stream || requests[1].Stream || requests[1].Turn != 1 || !requests[0].Complete {
				t.Errorf("%+v", requests)
			}
		})
	}
}

// pieceOf is the piece of a call's arguments that an event of any provider holds.
func pieceOf(e map[string]any) string {
	if e["type"] == "response.function_call_arguments.delta" {
		return e["delta"].(string)
	}
	if delta, ok := e["delta"].(map[string]any); ok {
		text, _ := delta["partial_json"].(string)
		return text
	}
	choices, _ := e["choices"].([]any)
	if len(choices) == 0 {
		return ""
	}
	made, _ := choices[0].(map[string]any)["delta"].(map[string]any)["tool_calls"].([]any)
	if len(made) == 0 {
		return ""
	}
	text, _ := made[0].(map[string]any)["function"].(map[string]any)["arguments"].(string)
	return text
}

func TestStops(t *testing.T) {
	for endpoint, words := range map[string]string{
		"/chat/completions": `"finish_reason":"length"`, "/responses": "max_output_tokens", "/messages": `"stop_reason":"max_tokens"`,
	} {
		_, url := serve(t, "model: [{text: cut, stop: length}]")
		if text, err := io.ReadAll(post(t, url+endpoint, `{"stream":true}`).Body); err != nil || !strings.Contains(string(text), words) {
			t.Errorf("%s: %v\n%s", endpoint, err, text)
		}
	}
}

func TestErrors(t *testing.T) {
	for endpoint := range endpoints {
		_, url := serve(t, `model: [{status: 429, error: slow down, retryAfter: "7"}]`)
		response := post(t, url+endpoint, `{"stream":true}`)
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 429 || response.Header.Get("Retry-After") != "7" || !strings.Contains(string(text), "slow down") {
			t.Errorf("%s: %v %v\n%s", endpoint, err, response, text)
		}
		if response := post(t, url+endpoint, `{}`); response.StatusCode != http.StatusBadRequest {
			t.Errorf("a request without a turn gets %d", response.StatusCode)
		}
	}
	_, url := serve(t, "model: [{text: x}]")
	if response := post(t, url+"/v1/other", `{}`); response.StatusCode != http.StatusNotFound {
		t.Error(response.Status)
	}
	if response := post(t, url+"/messages", `{`); response.StatusCode != http.StatusBadRequest {
		t.Error(response.Status)
	}
}

func TestBrokenEnds(t *testing.T) {
	for endpoint, stop := range endpoints {
		_, url := serve(t, "model: [{text: x, end: silent}, {text: x, end: cut}, {text: x, end: stalls}]")
		text, err := io.ReadAll(post(t, url+endpoint, `{"stream":true}`).Body)
		if err != nil || strings.Contains(string(text), stop) || len(events(t, string(text))) == 0 {
			t.Errorf("%s, silent: %v\n%s", endpoint, err, text)
		}
		if text, err := io.ReadAll(post(t, url+endpoint, `{"stream":true}`).Body); !errors.Is(err, io.ErrUnexpectedEOF) || strings.HasSuffix(string(text), "\n") {
			t.Errorf("%s, cut: %v\n%s", endpoint, err, text)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+endpoint, strings.NewReader(`{"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_, err = io.ReadAll(response.Body)
			response.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, stalls: %v", endpoint, err)
		}
		cancel()
	}
}

func TestGates(t *testing.T) {
	model, url := serve(t, "model: [{text: one two, gates: [{name: g, before: text/1}]}]")
	changed := make(chan struct{}, 10)
	model.OnChange(func() { changed <- struct{}{} })
	response := post(t, url+"/chat/completions", `{"stream":true}`)
	for !model.Waiting("g") {
		<-changed
	}
	if model.Open("other") || !model.Open("g") || !model.Open("g") {
		t.Error("the gates are not those of the script")
	}
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "[DONE]") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestFor holds that a turn waits for the request that it is for.
func TestFor(t *testing.T) {
	for endpoint, body := range map[string]string{
		"/chat/completions": `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"x"},{"role":"user","content":"SECOND"},{"role":"tool","content":"r"}]}`,
		"/messages":         `{"messages":[{"role":"user","content":"SECOND"},{"role":"user","content":[{"type":"tool_result","content":"r"}]}]}`,
		"/responses":        `{"input":[{"role":"user","content":[{"type":"input_text","text":"SECOND"}]},{"type":"function_call_output","output":"r"}]}`,
	} {
		_, url := serve(t, "model: [{for: FIRST, text: no}, {for: SECOND, text: yes indeed}]")
		if text, err := io.ReadAll(post(t, url+endpoint, body).Body); err != nil || !strings.Contains(string(text), "yes indeed") {
			t.Errorf("%s: %v\n%s", endpoint, err, text)
		}
	}
}
