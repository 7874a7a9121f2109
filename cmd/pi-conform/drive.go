package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance/dialect"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/fixtures"
	"github.com/pi-conform/pi-conform/harness/drive"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/subject"
)

type driveFlags struct {
	api     string
	repeat  int
	timeout time.Duration
	log     string
	normal  bool
	check   checkFlags
}

func (p *program) driveCommand() *cobra.Command {
	f := &driveFlags{}
	cmd := &cobra.Command{
		Use:   "drive pi-rpc|pi-json|acp SCRIPT [pi@VERSION] [flags] [-- CMD...]",
		Short: "drive a whole agent program against a scripted model",
		Long: `Starts an agent program in an empty home, with a scripted model in the place of its provider,
drives it by a script (one of the file names below fixtures/drive, or a file), and judges what it
printed. Without CMD it is the program pi, which is installed on first use. A program of ACP finds
the address of the model in PI_CONFORM_MODEL, and in pi's models.json.

A whole program is not deterministic to the bit. What can be compared is the normal form of a
recording: --repeat does so.`,
		Example: `  pi-conform drive pi-rpc abort-mid-batch pi@1.6.0
  pi-conform drive pi-json two-calls --repeat 3
  pi-conform drive acp acp-cancel -- my-agent --acp`,
		Args: arguments(2, 3, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := splitArgs(cmd, args)
			return p.drive(cmd.Context(), f, names, command)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.api, "api", string(drive.Completions), "what provider the model is to pi: openai-completions, openai-responses or anthropic-messages")
	flags.IntVar(&f.repeat, "repeat", 1, "drive `N` times, and compare the normal forms")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "how long one drive may take")
	flags.StringVar(&f.log, "log", "", "write what the program printed to `FILE`")
	flags.BoolVar(&f.normal, "normal", false, "write the normal form")
	flags.StringVar(&f.check.edition, "edition", "", "edition to judge by, or any (default: of pi its own; of a CMD any)")
	flags.StringVar(&f.check.profile, "profile", "spec", "for acp: spec or seed")
	flags.BoolVar(&f.check.json, "json", false, "write the report as JSON")
	flags.BoolVarP(&f.check.verbose, "verbose", "v", false, "name every rule")
	return cmd
}

func (p *program) drive(ctx context.Context, f *driveFlags, names, command []string) error {
	mode := drive.Mode(names[0])
	if err := oneOf("mode", names[0], string(drive.PiRPC), string(drive.PiJSON), string(drive.ACP)); err != nil {
		return err
	}
	if err := oneOf("api", f.api, string(drive.Completions), string(drive.Responses), string(drive.Messages)); err != nil {
		return err
	}
	if f.repeat < 1 {
		return exit.Usagef("--repeat has to be at least 1")
	}
	f.check.dialect = string(dialect.Auto)
	o, err := f.check.options()
	if err != nil {
		return err
	}
	script, err := driveScript(names[1])
	if err != nil {
		return err
	}
	if command, err = p.driven(ctx, f, mode, names[2:], command, &o); err != nil {
		return err
	}
	options := drive.Options{Mode: mode, Command: command, API: drive.API(f.api), Timeout: f.timeout}
	return p.driveRepeatedly(ctx, f, names[1], script, options, o)
}

// driveScript reads a script by its name among ours, or from a file.
func driveScript(name string) (*drive.Script, error) {
	text, err := fixtures.FS.ReadFile("drive/" + name + ".yaml")
	if err != nil {
		if text, err = os.ReadFile(name); err != nil {
			return nil, exit.Usagef("there is no script %q: it has to be a file, or one of %s", name, strings.Join(driveNames(), ", "))
		}
	}
	script, err := drive.Parse(text)
	if err != nil {
		return nil, exit.Usagef("%s: %w", name, err)
	}
	return script, nil
}

func driveNames() []string {
	var names []string
	for _, file := range fixtures.Drives() {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "drive/"), ".yaml"))
	}
	return names
}

// driven is the command of the program; pi is installed if need be.
func (p *program) driven(ctx context.Context, f *driveFlags, mode drive.Mode, names, command []string, o *dialect.Options) ([]string, error) {
	if len(command) > 0 {
		if len(names) > 0 {
			return nil, exit.Usagef("give either %s or a command after --, not both", names[0])
		}
		return command, nil
	}
	if mode == drive.ACP {
		return nil, exit.Usagef("give the command of an agent after --")
	}
	version := ""
	if len(names) > 0 {
		name, given, _ := strings.Cut(names[0], "@")
		if name != "pi" {
			return nil, exit.Usagef("unknown program %q: it has to be pi or pi@VERSION, or a command after --", names[0])
		}
		version = given
	}
	argv, err := subject.PiProgram(ctx, version, subject.Options{Progress: noteWriter{p}})
	if err != nil {
		return nil, exit.With(exit.Subject, err)
	}
	if f.check.edition == "" && version != "" {
		o.Edition = edition.ForRelease(version)
	}
	return argv, nil
}

// noteWriter writes lines of progress.
type noteWriter struct{ p *program }

func (w noteWriter) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		w.p.note(strings.TrimRight(line, "\r\n"))
	}
	return len(text), nil
}

// driveRepeatedly drives, judges each recording and compares their normal forms.
func (p *program) driveRepeatedly(ctx context.Context, f *driveFlags, name string, script *drive.Script, options drive.Options, o dialect.Options) error {
	first, code := "", exit.OK
	for n := range f.repeat {
		rec, err := drive.Run(ctx, script, options)
		if rec != nil && f.log != "" {
			if err := os.WriteFile(f.log, rec.Log, 0o644); err != nil {
				return err
			}
		}
		if err != nil {
			if rec != nil && len(rec.Log) > 0 {
				_, _ = p.judgeDrive(f, name, rec, o, true) // that it did not end is what counts
			}
			return p.driveFailed(ctx, err)
		}
		judged, err := p.judgeDrive(f, name, rec, o, n == 0)
		if err != nil {
			return err
		}
		code = max(code, judged)
		normal, err := dialect.Normal(bytes.NewReader(rec.Log))
		if err != nil {
			return unreadable(name, err)
		}
		switch {
		case n == 0:
			first = normal
		case normal != first:
			p.notes.Printf("%s drive %d has another normal form than the first\n", p.notes.Warn("note"), n+1)
		}
	}
	if f.normal {
		p.out.Printf("%s", first)
	}
	if f.repeat > 1 && !f.check.json {
		p.out.Printf("driven %d times\n", f.repeat)
	}
	return exit.Silently(code)
}

func (p *program) driveFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fault, ok := errors.AsType[*drive.Error](err); ok {
		for _, line := range fault.Stderr {
			p.notes.Printf("  stderr: %s\n", line)
		}
		return exit.With(exit.Subject, fmt.Errorf("the drive could not be carried through: %w", err))
	}
	return err
}

// judgeDrive judges one recording.
func (p *program) judgeDrive(f *driveFlags, name string, rec *drive.Recording, o dialect.Options, show bool) (exit.Code, error) {
	log, err := dialect.Open(bytes.NewReader(rec.Log), dialect.Auto)
	if errors.Is(err, dialect.ErrEmpty) {
		return exit.Nothing, nil
	}
	if err != nil {
		return 0, unreadable("what the program printed", err)
	}
	if o.Profile == "" {
		o.Profile = acp.Spec
	}
	for i := range rec.Requests {
		o.Requests = append(o.Requests, rec.Requests[i].Shown())
	}
	rep, err := dialect.Judge(log, o)
	if err != nil {
		return 0, unreadable("what the program printed", err)
	}
	rep.Notes = append(rep.Notes, fmt.Sprintf("%d requests to the model; a whole program is not deterministic to the bit: only normal forms can be compared", len(rec.Requests)))
	if show || rep.Broken() {
		if err := p.showLog(p.out, &f.check, name, rep, false); err != nil {
			return 0, err
		}
	}
	switch {
	case rep.Broken():
		return exit.Broken, nil
	case !rep.Exercised():
		return exit.Nothing, nil
	}
	return exit.OK, nil
}
