package subject

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// bunVersion is the Bun that is used, always the same one: what it does between
// two turns of its event loop is part of what is observed.
const bunVersion = "1.3.14"

// bun gives the Bun that npm packages as a plain program.
func (o *Options) bun(ctx context.Context, cache string) (string, error) {
	name, err := bunPackage(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", &Error{Problem: err.Error()}
	}
	dir := filepath.Join(cache, "npm", "bun-"+bunVersion)
	program := filepath.Join(dir, "node_modules", filepath.FromSlash(name), "bin", "bun")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if !exists(dir) {
		n, err := findNPM(o.progress())
		if err != nil {
			return "", err
		}
		if err := n.install(ctx, dir, name+"@"+bunVersion); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(program, 0o755); err != nil {
		return "", &Error{Problem: fmt.Sprintf("%s holds no program: %v", name, err), Cure: "remove " + dir + " and try again"}
	}
	return program, nil
}

// bunPackage is the npm package that holds the Bun program for a platform.
func bunPackage(goos, goarch string) (string, error) {
	processor := map[string]string{"amd64": "x64", "arm64": "aarch64"}[goarch]
	system := map[string]string{"linux": "linux", "darwin": "darwin", "windows": "windows"}[goos]
	if system == "" || processor == "" {
		return "", fmt.Errorf("npm has no Bun for %s on %s", goos, goarch)
	}
	return "@oven/bun-" + system + "-" + processor, nil
}
