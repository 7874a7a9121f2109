package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// version says what this program is.
type version struct {
	Version  string            `json:"version"`
	Commit   string            `json:"commit,omitempty"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Protocol string            `json:"protocol"`
	Editions []edition.Edition `json:"editions"`
}

func currentVersion() version {
	v := version{
		Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocol: protocol.Name, Editions: edition.Known(),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Commit = setting.Value
		}
	}
	return v
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "version, protocol and editions of this program",
		Args:  arguments(0, 0, false),
		RunE: func(*cobra.Command, []string) error {
			v := currentVersion()
			if asJSON {
				return p.writeJSON(v)
			}
			var editions []string
			for _, e := range v.Editions {
				editions = append(editions, string(e))
			}
			p.out.Printf("pi-conform %s (%s, %s)\nprotocol %s\neditions %s\n",
				v.Version, v.Go, v.Platform, v.Protocol, strings.Join(editions, ", "))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
