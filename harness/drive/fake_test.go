package drive_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// fake is a small agent that speaks ACP, asks the scripted model, and runs the
// one tool that there is.
type fake struct {
	mood string

	mu       sync.Mutex
	sessions map[string]*fakeSession
}

type fakeSession struct {
	cancel chan struct{}
	cards  [][]any // updates that a replay gives again
}

type fakeMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Cwd       string `json:"cwd"`
		Prompt    []struct {
			Text string `json:"text"`
		} `json:"prompt"`
	} `json:"params"`
}

type object = map[string]any

func fakeAgent(mood string) int {
	f := &fake{mood: mood, sessions: map[string]*fakeSession{}}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m fakeMessage
		if json.Unmarshal(in.Bytes(), &m) != nil {
			return 1
		}
		f.hear(&m)
	}
	return 0
}

func (f *fake) say(value object) {
	value["jsonrpc"] = "2.0"
	line, _ := json.Marshal(value)
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Printf("%s\n", line)
}

func (f *fake) answer(m *fakeMessage, result any) { f.say(object{"id": m.ID, "result": result}) }

func (f *fake) update(session string, update object) {
	f.say(object{"method": "session/update", "params": object{"sessionId": session, "update": update}})
}

func (f *fake) hear(m *fakeMessage) {
	id := m.Params.SessionID
	switch m.Method {
	case "initialize":
		if f.mood == "chatters" {
			fmt.Println("ready to serve")
		}
		f.answer(m, object{"protocolVersion": 1, "agentCapabilities": object{"loadSession": true}})
	case "session/new":
		id = fmt.Sprint("session-", len(f.sessions))
		f.sessions[id] = &fakeSession{}
		f.answer(m, object{"sessionId": id})
	case "session/prompt":
		switch f.mood {
		case "dies":
			fmt.Fprintln(os.Stderr, "something is wrong")
			os.Exit(1)
		case "sleeps":
			return
		}
		s := f.sessions[id]
		s.cancel = make(chan struct{})
		go f.turn(m, id, s)
	case "session/cancel":
		close(f.sessions[id].cancel)
	case "session/load":
		for _, u := range f.sessions[id].cards {
			f.update(id, object{"sessionUpdate": "tool_call", "toolCallId": u[0], "title": "bash", "status": "pending"})
			if f.mood == "loads progress" {
				f.update(id, object{"sessionUpdate": "tool_call_update", "toolCallId": u[0], "status": "in_progress"})
			}
			f.update(id, object{"sessionUpdate": "tool_call_update", "toolCallId": u[0], "status": u[1]})
		}
		f.answer(m, nil)
	}
}

// turn asks the model until it asks for no more tools.
func (f *fake) turn(m *fakeMessage, id string, s *fakeSession) {
	history := []object{{"role": "user", "content": m.Params.Prompt[0].Text}}
	for {
		answer, failed := f.ask(history, s.cancel)
		switch {
		case failed == "cancelled":
			f.cancelled(m)
			return
		case failed != "":
			f.say(object{"id": m.ID, "error": object{"code": -32000, "message": failed}})
			return
		}
		history = append(history, answer)
		if text, _ := answer["content"].(string); text != "" {
			f.update(id, object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": text}})
		}
		calls, _ := answer["tool_calls"].([]any)
		if len(calls) == 0 {
			f.answer(m, object{"stopReason": "end_turn"})
			if f.mood == "late" {
				f.update(id, object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": "bye"}})
			}
			return
		}
		for _, c := range calls {
			result, cancelled := f.run(c.(object), id, s)
			if cancelled {
				f.cancelled(m)
				return
			}
			history = append(history, result)
		}
	}
}

func (f *fake) cancelled(m *fakeMessage) {
	if f.mood == "error when cancelled" {
		f.say(object{"id": m.ID, "error": object{"code": -32000, "message": "aborted"}})
		return
	}
	f.answer(m, object{"stopReason": "cancelled"})
}

func (f *fake) ask(history []object, cancel <-chan struct{}) (answer object, failed string) {
	body, _ := json.Marshal(object{"model": "m", "messages": history})
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err := http.Post(os.Getenv("PI_CONFORM_MODEL")+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
		if err != nil {
			failed = err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		var got struct {
			Choices []struct {
				Message object `json:"message"`
			} `json:"choices"`
		}
		if json.Unmarshal(text, &got) != nil || len(got.Choices) == 0 {
			failed = string(text)
			return
		}
		answer = got.Choices[0].Message
	}()
	select {
	case <-done:
		return answer, failed
	case <-cancel:
		return nil, "cancelled"
	}
}

// run runs a call, and says whether it was cancelled.
func (f *fake) run(call object, session string, s *fakeSession) (result object, cancelled bool) {
	id := call["id"].(string)
	var args struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(call["function"].(object)["arguments"].(string)), &args)
	f.update(session, object{"sessionUpdate": "tool_call", "toolCallId": id, "title": "bash", "status": "pending"})
	f.update(session, object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"})
	cmd := exec.Command("sh", "-c", args.Command)
	done := make(chan []byte, 1)
	go func() {
		out, _ := cmd.Output()
		done <- out
	}()
	end := func(status string) {
		if f.mood == "open" {
			return
		}
		to := session
		if f.mood == "shares calls" {
			to = "session-0"
		}
		s.cards = append(s.cards, []any{id, status})
		f.update(to, object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status})
	}
	select {
	case out := <-done:
		end("completed")
		return object{"role": "tool", "tool_call_id": id, "content": string(out)}, false
	case <-s.cancel:
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
		end("failed")
		return nil, true
	}
}
