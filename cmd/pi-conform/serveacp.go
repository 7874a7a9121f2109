package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/acpagent"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
)

func (p *program) serveACPCommand() *cobra.Command {
	tick := 100 * time.Millisecond // a workflow takes about a second
	cmd := &cobra.Command{
		Use:   "serve-acp",
		Short: "be an agent of the Agent Client Protocol, to try clients on",
		Long: `Speaks the Agent Client Protocol over standard input and output: the reference loop with a scripted
model, whose tools report progress. To each prompt the model answers with a workflow, an edit with a
diff, and a call of a tool that there is not. Sessions can be cancelled and loaded.`,
		Args: arguments(0, 0, false),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tick <= 0 {
				return exit.Usagef("--tick has to be longer than nothing")
			}
			ticker := time.NewTicker(tick)
			defer ticker.Stop()
			return acpagent.Serve(cmd.Context(), acpagent.Options{In: p.in, Out: p.raw, Ticks: ticker.C})
		},
	}
	cmd.Flags().DurationVar(&tick, "tick", tick, "how long a second of the workflow's clock takes")
	return cmd
}
