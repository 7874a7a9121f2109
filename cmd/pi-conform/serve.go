package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

func (p *program) serveCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "serve reference|mutant:NAME",
		Short: "let the reference or a mutant be a subject over standard input and output",
		Example: `  pi-conform run -- pi-conform serve reference
  pi-conform run -- pi-conform serve mutant:late-update-accepted`,
		Args:              arguments(1, 1, false),
		ValidArgsFunction: completeSubjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.serve(cmd.Context(), args[0], strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "check every message in both directions against its schema")
	return cmd
}

func (p *program) serve(ctx context.Context, name string, strict bool) error {
	driver, err := subjects.InProcess(name)
	if err != nil {
		return err
	}
	defer driver.Close()
	return untilDone(ctx, func() error {
		return protocol.Serve(p.in, p.raw, driver, protocol.ServeOptions{Strict: strict})
	})
}

// untilDone waits for serve, which may be reading, or for the end of ctx.
func untilDone(ctx context.Context, serve func() error) error {
	done := make(chan error, 1)
	go func() { done <- serve() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
