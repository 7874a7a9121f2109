package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
)

func modelScript(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte("model: [{text: hello, gates: [{name: g, before: end}]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestServeModelOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var notes bytes.Buffer
	code := newProgram(strings.NewReader(""), io.Discard, &notes).run(context.Background(), []string{"serve-model", modelScript(t), "--listen", taken.Addr().String()})
	if code != exit.Usage || !strings.Contains(notes.String(), "is taken by another program") {
		t.Errorf("%d %s", code, notes.String())
	}
}

// TestServeModel asks the model, opens its gate and reads what is told of the
// request.
func TestServeModel(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	in, gates := io.Pipe()
	told, out := io.Pipe()
	said, notes := io.Pipe()
	ended := make(chan exit.Code, 1)
	go func() {
		ended <- newProgram(in, out, notes).run(ctx, []string{"serve-model", modelScript(t), "--listen", "127.0.0.1:0"})
	}()
	buffer := make([]byte, 1000)
	n, err := said.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	address := regexp.MustCompile(`http://\S+`).FindString(string(buffer[:n]))
	answer := make(chan string, 1)
	go func() {
		response, err := http.Post(address+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answer <- string(text)
	}()
	n, err = told.Read(buffer)
	if want := `{"n":0,"endpoint":"chat","turn":0,"stream":false,"body":{"model":"m"}}` + "\n"; err != nil || string(buffer[:n]) != want {
		t.Errorf("%s %v", buffer[:n], err)
	}
	if _, err := io.WriteString(gates, "g\n"); err != nil {
		t.Fatal(err)
	}
	if text := <-answer; !strings.Contains(text, "hello") {
		t.Error(text)
	}
	cancel()
	if code := <-ended; code != exit.OK {
		t.Error(code)
	}
}
