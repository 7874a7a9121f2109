package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/conformance/report/html"
)

// outputs are where the report of a run goes besides the console.
type outputs struct {
	files  map[string]*string // by the flag that names them
	github bool
}

// formats are the forms of a report that go into a file.
var formats = []struct {
	flag, about string
	write       func(io.Writer, *report.Report) error
}{
	{"json", "the report as JSON", report.Write},
	{"junit", "the report as JUnit XML", report.WriteJUnit},
	{"html", "the report as one offline page", html.Write},
	{"md", "a summary in Markdown", report.WriteMarkdown},
	{"badge", "a badge as JSON", report.WriteBadge},
}

func (o *outputs) add(cmd *cobra.Command) {
	o.files = map[string]*string{}
	for _, format := range formats {
		o.files[format.flag] = cmd.Flags().String(format.flag, "", "write "+format.about+" to `FILE` (- for standard output)")
	}
	cmd.Flags().BoolVar(&o.github, "github", false, "write the step summary, annotations and outputs that GitHub shows")
}

// check finds out before a run whether its report can be written.
func (o *outputs) check() error {
	streams := 0
	for _, format := range formats {
		file := *o.files[format.flag]
		if file == "-" {
			streams++
		}
		if err := writable(file); err != nil {
			return exit.With(exit.Usage, fmt.Errorf("--%s: %w", format.flag, err))
		}
	}
	if streams > 1 {
		return exit.Usagef("standard output can take one report, not %d", streams)
	}
	return nil
}

// onStream reports whether standard output is taken.
func (o *outputs) onStream() bool {
	for _, file := range o.files {
		if *file == "-" {
			return true
		}
	}
	return false
}

// writable leaves everything as it is.
func writable(file string) error {
	if file == "" || file == "-" {
		return nil
	}
	_, err := os.Stat(file)
	fresh := errors.Is(err, os.ErrNotExist)
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	out.Close()
	if fresh {
		return os.Remove(file)
	}
	return nil
}

// write writes the report in all its forms. Of several errors it gives all, for
// one full disk should not cost the others.
func (p *program) write(o *outputs, rep *report.Report) error {
	var faults []error
	for _, format := range formats {
		file := *o.files[format.flag]
		if file == "" {
			continue
		}
		if err := p.writeFile(file, func(w io.Writer) error { return format.write(w, rep) }); err != nil {
			faults = append(faults, fmt.Errorf("--%s: %w", format.flag, err))
		}
	}
	if o.github {
		faults = append(faults, p.writeGitHub(rep))
	}
	return errors.Join(faults...)
}

// writeFile writes a whole file or nothing: whoever looks meanwhile never sees
// the half of it. What is no file, such as a pipe, is written to as it is.
func (p *program) writeFile(file string, write func(io.Writer) error) error {
	if file == "-" {
		return write(p.raw)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(file, text.Bytes(), 0o644)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".pi-conform-*")
	if err != nil { // a folder that takes no new file may hold one that can be written
		return os.WriteFile(file, text.Bytes(), 0o644)
	}
	defer os.Remove(temp.Name())
	if _, err := temp.Write(text.Bytes()); err != nil {
		temp.Close()
		return err
	}
	if err := errors.Join(temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), file)
}

// writeGitHub writes what GitHub reads: files that its environment names, and
// workflow commands on standard output.
func (p *program) writeGitHub(rep *report.Report) error {
	if err := report.WriteAnnotations(p.raw, rep); err != nil {
		return err
	}
	return errors.Join(
		appendTo(os.Getenv("GITHUB_STEP_SUMMARY"), rep, report.WriteStepSummary),
		appendTo(os.Getenv("GITHUB_OUTPUT"), rep, report.WriteOutputs),
	)
}

func appendTo(file string, rep *report.Report, write func(io.Writer, *report.Report) error) error {
	if file == "" {
		return nil
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("--github: %w", err)
	}
	return errors.Join(write(out, rep), out.Close())
}
