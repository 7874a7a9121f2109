package report

import (
	_ "embed"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Write writes the report as indented JSON. Traces are left out: the replay
// command of a finding makes them again.
func Write(w io.Writer, r *Report) error {
	if err := json.MarshalWrite(w, r, json.Deterministic(true), jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Read reads what [Write] wrote.
func Read(r io.Reader) (*Report, error) {
	rep := &Report{}
	if err := json.UnmarshalRead(r, rep); err != nil {
		return nil, err
	}
	if rep.Schema != Schema {
		return nil, fmt.Errorf("the report has the schema %q, not %q", rep.Schema, Schema)
	}
	return rep, nil
}

// Exercised reports whether any rule was exercised at all.
func (r *Report) Exercised() bool {
	for _, rule := range r.Rules {
		if rule.Exercised > 0 {
			return true
		}
	}
	return false
}

// Unsteady is the outcome of a schedule that gave different traces when it was
// recorded several times.
const Unsteady trace.Outcome = "unsteady"

// JSONSchema is the JSON Schema of what [Write] writes.
//
//go:embed schema.json
var JSONSchema []byte
