package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report/html"
	"github.com/pi-conform/pi-conform/conformance/report/lanes"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func (p *program) traceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "show a recorded trace in lanes, or what differs between two",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.viewTrace(), p.diffTraces())
	return cmd
}

func (p *program) viewTrace() *cobra.Command {
	var page string
	var mermaid, text bool
	cmd := &cobra.Command{
		Use:   "view FILE",
		Short: "a trace in lanes: in the terminal, as a page, or as a Mermaid diagram",
		Long: `Draws a trace that was recorded (with «run --trace-dir» or «replay --trace»), in lanes for the
user, the loop, the model, each tool call, hooks and listeners. Entries that break a MUST rule
are marked. A FILE of - is standard input.`,
		Args: arguments(1, 1, false),
		RunE: func(_ *cobra.Command, args []string) error {
			if mermaid && text || page != "" && (mermaid || text) {
				return exit.Usagef("only one of --html, --mermaid and --text can be given")
			}
			if err := writable(page); err != nil {
				return exit.With(exit.Usage, fmt.Errorf("--html: %w", err))
			}
			t, err := p.readTrace(args[0])
			if err != nil {
				return err
			}
			verdict := conformance.Check(t, conformance.Catalogue())
			marked := broken(&verdict)
			switch {
			case page != "":
				return p.writeFile(page, func(w io.Writer) error { return html.WriteTrace(w, titleOf(t, args[0]), t, nil, marked) })
			case mermaid:
				return lanes.WriteMermaid(p.raw, t, marked...)
			case text:
				p.out.Trace(t, marked...)
				return nil
			}
			p.out.Lanes(t, marked...)
			return nil
		},
	}
	cmd.Flags().StringVar(&page, "html", "", "write one offline page to `FILE` (- for standard output)")
	cmd.Flags().BoolVar(&mermaid, "mermaid", false, "write a Mermaid sequence diagram, for issues and pull requests")
	cmd.Flags().BoolVar(&text, "text", false, "without lanes: a line an entry, whole, with the agent's state")
	return cmd
}

func (p *program) diffTraces() *cobra.Command {
	var page string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "two traces beside each other: exit code 1 if they differ",
		Args:  arguments(2, 2, false),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writable(page); err != nil {
				return exit.With(exit.Usage, fmt.Errorf("--html: %w", err))
			}
			return p.compareTraces(args[0], args[1], page)
		},
	}
	cmd.Flags().StringVar(&page, "html", "", "write one offline page to `FILE` (- for standard output)")
	return cmd
}

func (p *program) compareTraces(fileA, fileB, page string) error {
	a, err := p.readTrace(fileA)
	if err != nil {
		return err
	}
	b, err := p.readTrace(fileB)
	if err != nil {
		return err
	}
	if page != "" {
		title := titleOf(a, fileA) + " and " + titleOf(b, fileB)
		return p.writeFile(page, func(w io.Writer) error { return html.WriteTrace(w, title, a, b, nil) })
	}
	if p.out.Aligned(a, b) {
		return exit.Silently(exit.Broken)
	}
	p.out.Printf("the traces are the same\n")
	return nil
}

// readTrace reads a whole trace. One that was cut off is shown as far as it
// goes, with a note.
func (p *program) readTrace(file string) (*trace.Trace, error) {
	text, err := p.readInput(file)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	t, err := trace.Decode(bytes.NewReader(text))
	if err != nil && (t == nil || len(t.Entries) == 0) {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s: %w", file, err))
	}
	if err != nil {
		p.notes.Printf("%s %s: %v\n", p.notes.Warn("note:"), file, err)
	}
	return t, nil
}

func (p *program) readInput(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(p.in)
	}
	return os.ReadFile(file)
}

func titleOf(t *trace.Trace, file string) string {
	if t.Header.Case != "" {
		return t.Header.Case
	}
	return filepath.Base(file)
}

// broken are the entries at which MUST rules are broken.
func broken(v *conformance.Verdict) []int {
	var entries []int
	for i := range v.Findings {
		if v.Findings[i].Level == conformance.Must {
			entries = append(entries, v.Findings[i].Entries...)
		}
	}
	return entries
}
