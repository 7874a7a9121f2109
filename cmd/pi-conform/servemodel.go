package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/scriptedmodel/httpmodel"
)

func (p *program) serveModelCommand() *cobra.Command {
	listen := "127.0.0.1:8471"
	cmd := &cobra.Command{
		Use:   "serve-model SCRIPT [--listen ADDR]",
		Short: "serve a scripted model over HTTP",
		Long: `Answers requests from a script, as OpenAI chat completions (…/chat/completions), OpenAI
responses (…/responses) and Anthropic messages (…/messages), streamed or not. Every request
is written to standard output as one line of JSON. Standard input opens gates: one name a line.`,
		Example: `  pi-conform serve-model fixtures/drive/two-calls.yaml
  pi-conform serve-model script.yaml --listen 127.0.0.1:0`,
		Args: arguments(1, 1, false),
		RunE: func(cmd *cobra.Command, args []string) error { return p.serveModel(cmd.Context(), args[0], listen) },
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "where to listen; port 0 takes a free one")
	return cmd
}

func (p *program) serveModel(ctx context.Context, file, listen string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	turns, err := httpmodel.Parse(text)
	if err != nil {
		return exit.Usagef("%s: %w", file, err)
	}
	listener, err := net.Listen("tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return exit.Usagef("%s is taken by another program: choose another port with --listen, or 0 for a free one", listen)
	}
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("--listen: %w", err))
	}
	p.warnOpen(listener.Addr())
	p.notes.Printf("the scripted model listens at http://%s (%d turns)\n", listener.Addr(), len(turns))
	model := httpmodel.New(turns)
	told := make(chan struct{}, 1)
	model.OnChange(func() {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	go p.openGates(model)
	server := &http.Server{Handler: model, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	return p.tellRequests(ctx, model, told, failed, server)
}

// warnOpen says when other machines can reach the model.
func (p *program) warnOpen(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		p.notes.Printf("%s other machines can reach it\n", p.notes.Warn("note"))
	}
}

// openGates opens the gates that standard input names.
func (p *program) openGates(model *httpmodel.Server) {
	for {
		var name string
		if _, err := fmt.Fscanln(p.in, &name); err != nil && name == "" {
			return
		}
		if !model.Open(name) {
			p.notes.Printf("there is no gate %q\n", name)
		}
	}
}

type requestJSON struct {
	N        int    `json:"n"`
	Endpoint string `json:"endpoint"`
	Turn     int    `json:"turn"`
	Stream   bool   `json:"stream"`
	Body     any    `json:"body"`
}

// tellRequests writes each request as it comes, until the server ends.
func (p *program) tellRequests(ctx context.Context, model *httpmodel.Server, told <-chan struct{}, failed <-chan error, server *http.Server) error {
	written := 0
	for {
		select {
		case <-ctx.Done():
			_ = server.Close()
			return nil
		case err := <-failed:
			return err
		case <-told:
		}
		for _, r := range model.Requests()[written:] {
			if err := p.writeLine(requestJSON{r.N, r.Endpoint, r.Turn, r.Stream, r.Body}); err != nil {
				return err
			}
			written++
		}
	}
}
