package main

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// writeJSON writes a value to standard output.
func (p *program) writeJSON(value any) error {
	if err := json.MarshalWrite(p.raw, value, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := io.WriteString(p.raw, "\n")
	return err
}

// writeLine writes a value to standard output as one line.
func (p *program) writeLine(value any) error {
	line, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = p.raw.Write(append(line, '\n'))
	return err
}
