package httpmodel

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Request is what was asked, and what became of it.
type Request struct {
	N        int            // from 0
	Endpoint string         // chat, responses or messages
	Turn     int            // of the script; -1 if there was none left
	Stream   bool           // a stream was asked for
	Body     jsontext.Value // as it came
	Complete bool           // the answer was given to its end
}

// Server answers requests from a script. It is an [http.Handler].
type Server struct {
	turns []Turn

	mu       sync.Mutex
	used     []bool
	requests []*Request
	gates    map[string]*gate
	changed  func() // called after each change, without the lock
}

type gate struct {
	open    chan struct{}
	waiting bool
}

// New gives a server of a script, which has to be sound: see [Check].
func New(turns []Turn) *Server {
	s := &Server{turns: turns, used: make([]bool, len(turns)), gates: map[string]*gate{}, changed: func() {}}
	for _, t := range turns {
		for _, g := range t.Gates {
			s.gates[g.Name] = &gate{open: make(chan struct{})}
		}
	}
	return s
}

// OnChange sets what is called whenever a request comes, ends or waits at a gate.
func (s *Server) OnChange(changed func()) { s.changed = changed }

// Open opens a gate, for good. It reports whether there is such a gate.
func (s *Server) Open(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[name]
	if g == nil {
		return false
	}
	select {
	case <-g.open:
	default:
		close(g.open)
	}
	return true
}

// Waiting reports whether a request waits at a gate.
func (s *Server) Waiting(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[name]
	return g != nil && g.waiting
}

// Requests are the requests so far, in the order in which they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.requests))
	for i, r := range s.requests {
		all[i] = *r
	}
	return all
}

// wire is how one provider puts answers into words.
type wire interface {
	// begin, piece and close give the chunks of a stream, without the blank line
	// after each.
	begin(a *answer) []string
	piece(a *answer, p *piece) []string
	// whole is an answer that is not streamed.
	whole(a *answer) any
	// fault is the body of an error.
	fault(kind, message string) any
}

// answer is one answer that is being given.
type answer struct {
	turn  *Turn
	model string
	id    string
	open  int // content block that is open, of the wires that have some; -1 if none
	kind  pieceKind
	items []any // that are complete, of the wires that give them again at the end
	text  string
}

func wireFor(path string) (name string, w wire) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return "chat", chat{}
	case strings.HasSuffix(path, "/responses"):
		return "responses", responses{}
	case strings.HasSuffix(path, "/messages"):
		return "messages", messages{}
	}
	return "", nil
}

// longest is how much of a request is read.
const longest = 64 << 20

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, wire := wireFor(r.URL.Path)
	if wire == nil || r.Method != http.MethodPost {
		http.Error(w, "POST to …/chat/completions, …/responses or …/messages", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked struct {
		Model  string         `json:"model"`
		Stream bool           `json:"stream"`
		Rest   jsontext.Value `json:",embed"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		respond(w, http.StatusBadRequest, wire.fault("invalid_request_error", err.Error()))
		return
	}
	request, turn := s.take(name, asked.Stream, body)
	defer s.changed()
	if turn == nil {
		respond(w, http.StatusBadRequest, wire.fault("invalid_request_error", "the script has no turn left for this request"))
		return
	}
	a := &answer{turn: turn, model: asked.Model, id: "answer_" + strconv.Itoa(request.N), open: -1}
	if s.give(r.Context(), w, wire, a, asked.Stream) {
		s.mu.Lock()
		request.Complete = true
		s.mu.Unlock()
	}
}

// take records a request and takes the turn that it is to get.
func (s *Server) take(endpoint string, stream bool, body []byte) (*Request, *Turn) {
	s.mu.Lock()
	r := &Request{N: len(s.requests), Endpoint: endpoint, Turn: -1, Stream: stream, Body: body}
	s.requests = append(s.requests, r)
	said := lastUserText(body)
	for i := range s.turns {
		if !s.used[i] && strings.Contains(said, s.turns[i].For) {
			s.used[i], r.Turn = true, i
			break
		}
	}
	s.mu.Unlock()
	s.changed()
	if r.Turn < 0 {
		return r, nil
	}
	return r, &s.turns[r.Turn]
}

// give gives an answer and reports whether it came to its end.
func (s *Server) give(ctx context.Context, w http.ResponseWriter, wire wire, a *answer, stream bool) bool {
	t := a.turn
	if t.Status != 0 {
		if t.RetryAfter != "" {
			w.Header().Set("Retry-After", t.RetryAfter)
		}
		respond(w, t.Status, wire.fault(errorKind(t.Status), t.Error))
		return true
	}
	if !stream {
		return s.giveWhole(ctx, w, wire, a)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &chunks{w: w}
	out.send(wire.begin(a))
	for _, p := range t.pieces() {
		if !s.pass(ctx, t, p.name) {
			return false
		}
		if p.kind == endPiece && t.End != EndDone {
			return s.breakOff(ctx, out, wire, a)
		}
		out.send(wire.piece(a, &p))
		if ctx.Err() != nil || out.failed {
			return false
		}
	}
	return true
}

func (s *Server) giveWhole(ctx context.Context, w http.ResponseWriter, wire wire, a *answer) bool {
	for _, p := range a.turn.pieces() {
		if !s.pass(ctx, a.turn, p.name) {
			return false
		}
	}
	switch a.turn.End {
	case EndStalls:
		<-ctx.Done()
		return false
	case EndCut, EndSilent:
		panic(http.ErrAbortHandler)
	case EndDone:
	}
	respond(w, http.StatusOK, wire.whole(a))
	return true
}

// breakOff ends a stream as it should not.
func (s *Server) breakOff(ctx context.Context, out *chunks, wire wire, a *answer) bool {
	switch a.turn.End {
	case EndStalls:
		<-ctx.Done()
	case EndCut:
		if last := wire.piece(a, &piece{kind: endPiece}); len(last) > 0 {
			out.raw(last[0][:len(last[0])/2])
		}
		panic(http.ErrAbortHandler)
	case EndSilent, EndDone:
	}
	return false
}

// pass waits at the gate before a piece, if there is one.
func (s *Server) pass(ctx context.Context, t *Turn, name string) bool {
	i := slices.IndexFunc(t.Gates, func(g Gate) bool { return g.Before == name })
	if i < 0 {
		return true
	}
	s.mu.Lock()
	g := s.gates[t.Gates[i].Name]
	g.waiting = true
	s.mu.Unlock()
	s.changed()
	select {
	case <-g.open:
		return true
	case <-ctx.Done():
		return false
	}
}

// chunks writes server-sent events.
type chunks struct {
	w      http.ResponseWriter
	failed bool
}

func (c *chunks) send(events []string) {
	for _, e := range events {
		c.raw(e + "\n\n")
	}
}

func (c *chunks) raw(text string) {
	if _, err := io.WriteString(c.w, text); err != nil {
		c.failed = true
		return
	}
	if flusher, ok := c.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text(body)) // the client may have gone
}

func text(value any) string {
	out, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(err) // only this package's own values come here
	}
	return string(out)
}

func errorKind(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "authentication_error"
	case status == 529, status == http.StatusServiceUnavailable:
		return "overloaded_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// lastUserText is what the user said last, in a body of any provider.
func lastUserText(body []byte) string {
	type message struct {
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
	}
	var asked struct {
		Messages []message      `json:"messages"`
		Input    jsontext.Value `json:"input"`
	}
	if json.Unmarshal(body, &asked) != nil {
		return ""
	}
	if len(asked.Input) > 0 && asked.Input.Kind() == '[' {
		_ = json.Unmarshal(asked.Input, &asked.Messages) // items of other kinds have no role
	}
	for _, m := range slices.Backward(asked.Messages) {
		if m.Role == "user" && !strings.Contains(string(m.Content), `"tool_result"`) {
			return string(m.Content)
		}
	}
	return ""
}
