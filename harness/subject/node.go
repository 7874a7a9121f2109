package subject

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	// oldestNode is the oldest Node.js that every release of the loop runs on.
	oldestNode = "22.19.0"
	// nodeMajor is the line of Node.js that is fetched where there is none.
	nodeMajor = "22"
)

// node gives a Node.js that is new enough: the one on the PATH, or one that npm
// packages as a plain program.
func (o *Options) node(ctx context.Context, cache string) (string, error) {
	found := "there is no node on the PATH"
	if program, err := exec.LookPath("node"); err == nil {
		version, err := nodeVersion(ctx, program)
		if err == nil && compareReleases(version, oldestNode) >= 0 {
			return program, nil
		}
		found = "the node on the PATH is " + version
		if err != nil {
			found = "the node on the PATH does not run: " + err.Error()
		}
	}
	program, err := o.fetchNode(ctx, cache)
	if err != nil {
		return "", &Error{
			Problem: fmt.Sprintf("Node.js %s or newer is needed, %s, and fetching one failed: %v", oldestNode, found, err),
			Cure:    "install Node.js from your system's package manager or its makers",
		}
	}
	return program, nil
}

func nodeVersion(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// nodePackage is the npm package that holds the Node.js program for a platform.
func nodePackage(goos, goarch string) (string, error) {
	system := map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win"}[goos]
	processor := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	if system == "" || processor == "" {
		return "", fmt.Errorf("npm has no Node.js for %s on %s", goos, goarch)
	}
	return "node-" + system + "-" + processor, nil
}

func (o *Options) fetchNode(ctx context.Context, cache string) (string, error) {
	name, err := nodePackage(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "npm", name+"-"+nodeMajor)
	program := filepath.Join(dir, "node_modules", name, "bin", "node")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if !exists(dir) {
		n, err := findNPM(o.progress())
		if err != nil {
			return "", err
		}
		if err := n.install(ctx, dir, name+"@"+nodeMajor); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(program, 0o755); err != nil {
		return "", fmt.Errorf("%s holds no program: %w", name, err)
	}
	version, err := nodeVersion(ctx, program)
	if err != nil {
		return "", fmt.Errorf("%s does not run here: %w", program, err)
	}
	if compareReleases(version, oldestNode) < 0 {
		return "", errors.New(program + " is only " + version)
	}
	return program, nil
}
