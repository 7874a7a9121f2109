package subject

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Error says why a subject cannot be had, and what to do.
type Error struct {
	Problem string
	Cure    string
}

func (e *Error) Error() string {
	if e.Cure == "" {
		return e.Problem
	}
	return e.Problem + "; " + e.Cure
}

// npm is the user's own client, with the user's own settings.
type npm struct {
	program  string
	progress io.Writer
}

func findNPM(progress io.Writer) (*npm, error) {
	program, err := exec.LookPath("npm")
	if err != nil {
		return nil, &Error{
			Problem: "npm is not on the PATH",
			Cure:    "install Node.js, which brings it",
		}
	}
	return &npm{program: program, progress: progress}, nil
}

// versions lists the published versions of a package; none if there is no such
// package.
func (n *npm) versions(ctx context.Context, name string) ([]string, error) {
	out, err := n.run(ctx, "", "view", name, "versions", "--json")
	if fault, ok := errors.AsType[*npmFault](err); ok && fault.code == "E404" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseVersions(out)
}

// parseVersions reads a list of versions. A list of one is written without
// brackets.
func parseVersions(out []byte) ([]string, error) {
	var one string
	if json.Unmarshal(out, &one) == nil {
		return []string{one}, nil
	}
	var all []string
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, &Error{Problem: fmt.Sprintf("npm printed no list of versions but %.80q", out)}
	}
	return all, nil
}

// install puts one package and what it needs into the folder dir of its own.
// Scripts of packages are not run.
func (n *npm) install(ctx context.Context, dir, spec string) error {
	return place(ctx, dir, func(temp string) error {
		fmt.Fprintf(n.progress, "installing %s into %s (only once)\n", spec, dir)
		done := n.keepSaying("still installing " + spec)
		defer done()
		// A manifest keeps npm from taking a folder further up for the project.
		if err := os.WriteFile(filepath.Join(temp, "package.json"), []byte(`{"private":true}`+"\n"), 0o644); err != nil {
			return err
		}
		_, err := n.run(ctx, temp, "install", "--ignore-scripts", "--no-audit", "--no-fund",
			"--omit-lockfile-registry-resolved=true", "--save-exact", spec)
		return err
	})
}

// sayEvery is short enough that nobody thinks that nothing goes on.
const sayEvery = 5 * time.Second

// keepSaying shows that something goes on, until done is called.
func (n *npm) keepSaying(what string) (done func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(sayEvery):
				fmt.Fprintf(n.progress, "%s (%d s)\n", what, int(time.Since(began).Seconds()))
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// npmFault is a failure that npm reported.
type npmFault struct {
	code    string // such as E404
	problem Error
}

func (f *npmFault) Error() string { return f.problem.Error() }

func (f *npmFault) Unwrap() error { return &f.problem }

func (n *npm) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, n.program, append(args, "--no-update-notifier", "--loglevel=error", "--no-progress")...)
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, npmError(args[0], errs.String(), err)
	}
	return out.Bytes(), nil
}

var networkCodes = []string{
	"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH",
	"ERR_SOCKET_TIMEOUT", "ENOTCACHED", "EPROTO", "CERT_", "SELF_SIGNED",
}

func npmError(command, stderr string, err error) error {
	fault := &npmFault{code: npmCode(stderr)}
	for _, code := range networkCodes {
		if strings.Contains(stderr, code) {
			fault.problem.Problem = "npm cannot reach its registry (" + code + ")"
			fault.problem.Cure = "connect to the network, or see «npm config get registry» and «npm config get proxy»"
			return fault
		}
	}
	fault.problem.Problem = fmt.Sprintf("npm %s failed (%v): %s", command, err, lastWords(stderr))
	return fault
}

// npmCode is the error code that npm prints, in either of its forms.
func npmCode(stderr string) string {
	for line := range strings.Lines(stderr) {
		fields := strings.Fields(line)
		for i, word := range fields[:max(0, len(fields)-1)] {
			if word == "code" {
				return fields[i+1]
			}
		}
	}
	return ""
}

// lastWords are the lines in which npm says what is wrong, without those in
// which it says where its log is.
func lastWords(stderr string) string {
	var words []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "npm error"), "npm ERR!"))
		if line != "" && !strings.Contains(line, "complete log of this run") && !strings.HasSuffix(line, "-debug-0.log") {
			words = append(words, line)
		}
	}
	if len(words) > 4 {
		words = words[:4]
	}
	if len(words) == 0 {
		return "it printed nothing"
	}
	return strings.Join(words, " / ")
}
