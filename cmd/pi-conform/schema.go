package main

import (
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "a JSON Schema of the protocol or the report; without a name, their names",
		Args:  arguments(0, 1, false),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return schemaNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				p.out.Printf("%s\n", strings.Join(schemaNames(), "\n"))
				return nil
			}
			return p.schema(args[0])
		},
	}
}

const reportSchema = "report"

func schemaNames() []string {
	files, _ := fs.Glob(protocol.Schemas, "schema/*.json") // the pattern is well-formed
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".json"))
	}
	return append(names, reportSchema)
}

func (p *program) schema(name string) error {
	if err := oneOf("schema", name, schemaNames()...); err != nil {
		return err
	}
	text := report.JSONSchema
	if name != reportSchema {
		var err error
		if text, err = protocol.Schemas.ReadFile("schema/" + name + ".json"); err != nil {
			return err
		}
	}
	_, err := p.raw.Write(text)
	return err
}
