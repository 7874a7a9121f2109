package report

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Bounds on the traces that go into the JSON form. One that is left out can be
// made again by the replay command of its finding.
const (
	mostTrace  = 1 << 20  // bytes of one trace
	mostTraces = 32 << 20 // bytes of all traces together
)

// written is the JSON form: the report, and apart from it the traces, because one
// schedule may break several rules.
type written struct {
	Report
	Traces []recorded `json:"traces,omitzero"`
}

// recorded is what was recorded of one schedule of a case. Each trace is the
// lines of its own format: the header, then the entries.
type recorded struct {
	Case      string           `json:"case"`
	Number    int              `json:"number,omitzero"`
	Subject   []jsontext.Value `json:"subject,omitzero"`
	Reference []jsontext.Value `json:"reference,omitzero"`
}

// Write writes the report as indented JSON, with the traces of its findings as
// far as they are not too long.
func Write(w io.Writer, r *Report) error {
	out := written{Report: *r, Traces: recordings(r)}
	if err := json.MarshalWrite(w, &out, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

type recordingKey struct {
	name   string
	number int
}

func recordings(r *Report) []recorded {
	var all []recorded
	seen := map[recordingKey]bool{}
	left := mostTraces
	for i := range r.Findings {
		f := &r.Findings[i]
		key := recordingKey{f.Case, f.Number}
		if f.Trace == nil || seen[key] {
			continue
		}
		seen[key] = true
		rec := recorded{Case: f.Case, Number: f.Number, Subject: traceLines(f.Trace, &left)}
		if f.Reference != nil {
			rec.Reference = traceLines(f.Reference, &left)
		}
		if rec.Subject != nil || rec.Reference != nil {
			all = append(all, rec)
		}
	}
	return all
}

// traceLines are the lines of a trace, if they fit into what is left.
func traceLines(t *trace.Trace, left *int) []jsontext.Value {
	var text bytes.Buffer
	if err := trace.Write(&text, t); err != nil || text.Len() > min(mostTrace, *left) {
		return nil
	}
	*left -= text.Len()
	var lines []jsontext.Value
	for line := range bytes.Lines(text.Bytes()) {
		lines = append(lines, jsontext.Value(bytes.TrimSpace(line)))
	}
	return lines
}

// Read reads what [Write] wrote. The error for a report that was cut off, or that
// another version of the program wrote, says so.
func Read(r io.Reader) (*Report, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(text); err != nil {
		return nil, err
	}
	var in written
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	return &in.Report, in.link()
}

// checkVersion looks at the version before all else, so that a report of another
// version is not called malformed.
func checkVersion(text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return errors.New("the file is empty")
	}
	var head struct {
		Schema string `json:"schema"`
	}
	err := json.Unmarshal(text, &head)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the report is cut off: its end is missing")
	case err != nil:
		return fmt.Errorf("this is not a report: %w", err)
	case head.Schema == "":
		return errors.New("this is not a report: it names no schema")
	case head.Schema != Schema && strings.HasPrefix(head.Schema, "pi-conform/report/"):
		return fmt.Errorf("the report has the schema %q, written by another version; this one reads %q", head.Schema, Schema)
	case head.Schema != Schema:
		return fmt.Errorf("the report has the schema %q, not %q", head.Schema, Schema)
	}
	return nil
}

// link gives the findings their traces back.
func (in *written) link() error {
	type pair struct{ subject, reference *trace.Trace }
	traces := map[recordingKey]pair{}
	for _, rec := range in.Traces {
		subject, err := readLines(rec.Subject)
		if err != nil {
			return fmt.Errorf("trace of case %s: %w", rec.Case, err)
		}
		reference, err := readLines(rec.Reference)
		if err != nil {
			return fmt.Errorf("trace of the reference in case %s: %w", rec.Case, err)
		}
		traces[recordingKey{rec.Case, rec.Number}] = pair{subject, reference}
	}
	for i := range in.Findings {
		f := &in.Findings[i]
		have := traces[recordingKey{f.Case, f.Number}]
		if have.subject == nil {
			continue
		}
		for _, entry := range f.Entries {
			if entry < 0 || entry >= len(have.subject.Entries) {
				return fmt.Errorf("finding %s in case %s: its trace has no entry %d", f.Rule, f.Case, entry)
			}
		}
		f.Trace, f.Reference = have.subject, have.reference
	}
	return nil
}

func readLines(lines []jsontext.Value) (*trace.Trace, error) {
	if lines == nil {
		return nil, nil
	}
	var text bytes.Buffer
	for _, line := range lines {
		if err := line.Compact(); err != nil {
			return nil, err
		}
		text.Write(line)
		text.WriteByte('\n')
	}
	return trace.Decode(&text)
}

// JSONSchema is the JSON Schema of what [Write] writes.
//
//go:embed schema.json
var JSONSchema []byte
