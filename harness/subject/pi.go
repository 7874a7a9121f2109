package subject

import (
	"context"
	"path/filepath"

	"github.com/pi-conform/pi-conform/harness/protocol"
)

// pi is the loop of the contract. No version of it was published under both names.
var pi = &published{
	name:     "pi",
	packages: []string{"@earendil-works/pi-agent-core", "@mariozechner/pi-agent-core"},
	folder:   "pi-agent-core-",
	example:  "0.84.3",
}

// Pi is a release of the npm loop, such as 0.84.3, or the newest one if version
// is empty. What is missing is fetched with npm; an [Error] says why that did
// not work, and what to do. Nothing is started yet.
func Pi(ctx context.Context, version string, opts Options) (*protocol.Process, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	folder, err := opts.release(ctx, cache, pi, version)
	if err != nil {
		return nil, err
	}
	node, err := opts.node(ctx, cache)
	if err != nil {
		return nil, err
	}
	adapters, err := writeAdapters(ctx, cache, opts.Adapters, "js", "pi")
	if err != nil {
		return nil, err
	}
	return Command(protocol.Command{
		Argv: []string{node, filepath.Join(adapters, "pi", "pi.mjs")},
		Env:  []string{PackageVariable + "=" + folder},
	}, opts), nil
}
