package subjects

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/config"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// project is what the working directory's pi-conform.yaml says; it has no subjects
// if there is none.
func project() (*config.File, error) {
	f, err := config.Load(".")
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if f == nil {
		f = &config.File{}
	}
	return f, nil
}

// Configured are the subjects of pi-conform.yaml in the working directory, the
// default one first.
func Configured() ([]Kind, error) {
	f, err := project()
	if err != nil {
		return nil, err
	}
	var kinds []Kind
	for i, s := range f.Subjects {
		about := config.Name + ": " + strings.Join(s.Command, " ")
		if i == 0 {
			about += " (the default here)"
		}
		kinds = append(kinds, Kind{s.Name, about})
	}
	return kinds, nil
}

// configured finds the subject that the request means, or nil if it means none of
// those in pi-conform.yaml.
func configured(r *Request) (*config.Subject, error) {
	if len(r.Command) > 0 || !r.Project {
		return nil, nil
	}
	f, err := project()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(f.Subjects, func(s config.Subject) bool { return s.Name == r.Name })
	if r.Name == "" && len(f.Subjects) > 0 {
		i = 0
	}
	if i < 0 {
		return nil, nil
	}
	return &f.Subjects[i], nil
}

// openConfigured builds a subject and starts it.
func openConfigured(ctx context.Context, r Request, s *config.Subject) (*Subject, error) {
	if err := build(ctx, r, s); err != nil {
		return nil, err
	}
	opened, err := openProcess(ctx, r, commandOf(s))
	if err != nil {
		return nil, err
	}
	opened.Name = s.Name
	if s.Edition != "" {
		opened.Edition = edition.Edition(s.Edition)
	}
	return opened, nil
}

func commandOf(s *config.Subject) protocol.Command {
	return protocol.Command{Argv: s.Command, Env: s.Env, Dir: s.Dir}
}

// shellLine is a command that hands a line to the system's shell.
func shellLine(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}
	}
	return []string{"sh", "-c", line}
}

// buildOutputShown is how many lines of a failed build are shown.
const buildOutputShown = 30

// build makes the subject, if it has to be made.
func build(ctx context.Context, r Request, s *config.Subject) error {
	if len(s.Build) == 0 || r.built {
		return nil
	}
	line := strings.Join(s.Build, " ")
	argv := s.Build
	if len(argv) == 1 {
		argv = shellLine(line)
	}
	r.Log(fmt.Sprintf("building %s: %s", s.Name, line))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Dir, append(os.Environ(), s.Env...), time.Second
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		return nil
	}
	return exit.With(exit.Subject, fmt.Errorf("building %s failed (%w): %s%s", s.Name, err, line, indentedEnd(string(output))))
}

// indentedEnd is the end of an output, a line each.
func indentedEnd(output string) string {
	output = strings.TrimRight(output, "\r\n\t ")
	if output == "" {
		return "\n  (it printed nothing)"
	}
	lines := strings.Split(output, "\n")
	var b strings.Builder
	if left := len(lines) - buildOutputShown; left > 0 {
		fmt.Fprintf(&b, "\n  (%d lines before these)", left)
		lines = lines[left:]
	}
	for _, line := range lines {
		b.WriteString("\n  " + strings.TrimRight(line, "\r"))
	}
	return b.String()
}
