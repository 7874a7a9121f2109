package subject

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// piProgram is the agent program around the loop of the contract.
var piProgram = &published{
	name:     "pi",
	packages: []string{"@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"},
	folder:   "pi-coding-agent-",
	example:  "1.6.0",
}

// PiProgram is the command of a release of the program pi, such as 1.6.0, or of
// the newest one if version is empty. What is missing is fetched with npm; an
// [Error] says why that did not work, and what to do.
func PiProgram(ctx context.Context, version string, opts Options) (argv []string, err error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	folder, err := opts.release(ctx, cache, piProgram, version)
	if err != nil {
		return nil, err
	}
	node, err := opts.node(ctx, cache)
	if err != nil {
		return nil, err
	}
	script, err := binary(folder, "pi")
	if err != nil {
		return nil, err
	}
	return []string{node, script}, nil
}

// binary is the file that a package has as a command.
func binary(folder, command string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Bin map[string]string `json:"bin"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil || manifest.Bin[command] == "" {
		return "", &Error{Problem: fmt.Sprintf("the package in %s has no command %s", folder, command)}
	}
	return filepath.Join(folder, filepath.FromSlash(manifest.Bin[command])), nil
}
