package drive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/scriptedmodel/httpmodel"
)

// Mode is how a program is spoken to.
type Mode string

// The modes.
const (
	PiRPC  Mode = "pi-rpc"
	PiJSON Mode = "pi-json"
	ACP    Mode = "acp"
)

// API is the provider that the model pretends to be, as pi names it.
type API string

// The providers.
const (
	Completions API = "openai-completions"
	Responses   API = "openai-responses"
	Messages    API = "anthropic-messages"
)

// Options say what is driven, and how.
type Options struct {
	Mode    Mode
	Command []string // the program; what puts pi into its mode is added
	API     API      // Completions if empty
	// Timeout bounds the whole drive; 0 means a minute. It is no part of what is
	// measured: a drive that reaches it has failed.
	Timeout time.Duration
	Env     []string // more for the environment of the program
}

// Recording is what a drive gave.
type Recording struct {
	// Log is what the program printed, line by line as it came; of ACP both
	// sides, with a mark before each line.
	Log      []byte
	Requests []httpmodel.Request
	Stderr   []string // its last lines
}

// Error says that a drive could not be carried through.
type Error struct {
	Why    string
	Stderr []string // last lines of the program's standard error
}

func (e *Error) Error() string { return e.Why }

// Run drives a program by a script. With an [Error] the recording holds what had
// come before.
func Run(ctx context.Context, s *Script, o Options) (*Recording, error) {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	model := httpmodel.New(s.Model)
	d := &driver{script: s, options: &o, model: model, wake: make(chan struct{}, 1)}
	model.OnChange(d.poke) // before anybody can ask
	base, stop, err := serve(model)
	if err != nil {
		return nil, err
	}
	defer stop()
	home, err := newHome(base, o.API)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	d.folder = filepath.Join(home, "project")
	failed := d.run(ctx, home, base)
	rec := &Recording{Log: d.log.Bytes(), Requests: model.Requests(), Stderr: d.stderr.lines()}
	if failed != nil {
		return rec, &Error{Why: failed.Error(), Stderr: rec.Stderr}
	}
	return rec, nil
}

// serve starts the model on a port of this machine.
func serve(model *httpmodel.Server) (base string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("the scripted model cannot listen: %w", err)
	}
	server := &http.Server{Handler: model, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with an error, always
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// newHome makes a folder that holds nothing but where the model is, and an empty
// folder to work in.
func newHome(base string, api API) (string, error) {
	home, err := os.MkdirTemp("", "pi-conform-home-")
	if err != nil {
		return "", err
	}
	if api == "" {
		api = Completions
	}
	if api != Messages {
		base += "/v1"
	}
	models, err := json.Marshal(map[string]any{"providers": map[string]any{"scripted": map[string]any{
		"baseUrl": base, "api": string(api), "apiKey": "none", "models": []any{map[string]any{"id": "scripted-1"}},
	}}})
	if err != nil {
		return "", err
	}
	settings := `{"defaultProvider":"scripted","defaultModel":"scripted-1","retry":{"baseDelayMs":10}}`
	agent := filepath.Join(home, ".pi", "agent")
	return home, errors.Join(
		os.MkdirAll(agent, 0o755), os.MkdirAll(filepath.Join(home, "project"), 0o755),
		os.WriteFile(filepath.Join(agent, "models.json"), models, 0o600),
		os.WriteFile(filepath.Join(agent, "settings.json"), []byte(settings), 0o600),
	)
}

// environment is what the program sees: nothing of the user's but where programs
// are.
func environment(home, base string, more []string) []string {
	env := []string{
		"HOME=" + home, "USERPROFILE=" + home, "PI_OFFLINE=1", "NO_COLOR=1", "LANG=C.UTF-8", "NO_PROXY=127.0.0.1",
		"PI_CONFORM_MODEL=" + base,
	}
	for _, name := range []string{"PATH", "TMPDIR", "SystemRoot", "TEMP", "TMP"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, more...)
}

// arguments are what puts the program into its mode.
func (o *Options) arguments(s *Script) []string {
	if o.Mode == ACP {
		return nil
	}
	args := []string{"--mode", strings.TrimPrefix(string(o.Mode), "pi-"), "--model", "scripted/scripted-1", "--no-session", "--no-extensions"}
	if o.Mode == PiJSON {
		args = append(args, s.Prompt)
	}
	return args
}
