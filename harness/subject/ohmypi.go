package subject

import (
	"context"
	"path/filepath"

	"github.com/pi-conform/pi-conform/harness/protocol"
)

// ohMyPi is a loop that was forked from the contract's.
var ohMyPi = &published{
	name:     "oh-my-pi",
	packages: []string{"@oh-my-pi/pi-agent-core"},
	folder:   "oh-my-pi-agent-core-",
	example:  "18.2.3",
}

// OhMyPi is a release of oh-my-pi's loop, such as 18.2.3, or the newest one if
// version is empty. It runs on a Bun that npm packages. What is missing is fetched
// with npm; an [Error] says why that did not work, and what to do. Nothing is
// started yet.
func OhMyPi(ctx context.Context, version string, opts Options) (*protocol.Process, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	folder, err := opts.release(ctx, cache, ohMyPi, version)
	if err != nil {
		return nil, err
	}
	bun, err := opts.bun(ctx, cache)
	if err != nil {
		return nil, err
	}
	adapters, err := writeAdapters(ctx, cache, opts.Adapters, "js", "pi", "oh-my-pi")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(adapters, "oh-my-pi")
	return Command(protocol.Command{
		// Bun would otherwise install what it does not find, and read settings of
		// the folder that it is started in.
		Argv: []string{bun, "run", "--no-install", "--no-env-file", filepath.Join(dir, "oh-my-pi.mjs")},
		Dir:  dir,
		Env: []string{
			PackageVariable + "=" + folder,
			"PI_DIALECT=",
			"BUN_RUNTIME_TRANSPILER_CACHE_PATH=" + filepath.Join(cache, "bun"),
		},
	}, opts), nil
}
