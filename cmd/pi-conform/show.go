package main

import (
	"context"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/harness"
)

func (p *program) showCommand() *cobra.Command {
	var editionName string
	cmd := &cobra.Command{
		Use:   "show CASE",
		Short: "a case: its story, scenario, schedule, and what the reference does",
		Args:  arguments(1, 1, false),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return completeCases(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.show(cmd.Context(), args[0], editionName)
		},
	}
	cmd.Flags().StringVar(&editionName, "edition", "", "edition in which the reference is run")
	return cmd
}

func (p *program) show(ctx context.Context, text, editionName string) error {
	t, err := parseToken(text)
	if err != nil {
		return err
	}
	if editionName == "" {
		editionName = pinnedTo(t.Case)
	}
	subject, err := subjects.Open(ctx, subjects.Request{Edition: editionName, Log: p.note})
	if err != nil {
		return err
	}
	defer subject.Close()
	p.showCase(t.Case)
	rec, err := subject.Record(ctx, scenarioIn(t.Case, subject.Edition), t.policy())
	if err != nil {
		return err
	}
	p.out.Heading("what the reference does, in edition " + string(subject.Edition))
	p.out.Trace(rec.Trace)
	return nil
}

func (p *program) showCase(c *harness.CaseFile) {
	p.out.Printf("%s\n\n", p.out.Bold(c.Name))
	if c.Story != "" {
		p.out.Printf("%s\n\n", c.Story)
	}
	if c.Origin != "" {
		p.out.Printf("origin: %s\n\n", c.Origin)
	}
	written := txtar.Parse(harness.FormatCase(c))
	for _, section := range written.Files {
		if section.Name != "trace" {
			p.out.Heading(section.Name)
			p.out.Printf("%s\n", indented(string(section.Data)))
		}
	}
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
