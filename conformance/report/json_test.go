package report_test

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func example() *report.Report {
	seed := uint64(7)
	return &report.Report{
		Schema: report.Schema, Tool: "pi-conform", Edition: "0.84.3", Cases: 1, Schedules: 2,
		Subject: report.Subject{Name: "mutant", Barrier: "quiescent"},
		Rules:   []report.Rule{{ID: "UPD-2", Level: conformance.Must, Status: conformance.StatusFail, Exercised: 3, Schedules: 2, Findings: 1}},
		Findings: []report.Finding{{
			Rule: "UPD-2", Level: conformance.Must, Message: "late", Case: "upd/late", Schedule: []string{"prompt/0"},
			Seed: &seed, Entries: []int{1, 2}, Count: 1, Replay: "pi-conform replay upd/late@7",
		}},
		Unclear: []report.Unclear{{Case: "upd/late", Outcome: trace.OutcomeHung, Message: "no sign of life"}},
		Partial: true,
	}
}

func TestJSON(t *testing.T) {
	for _, r := range []*report.Report{example(), {Schema: report.Schema}} {
		var first, again bytes.Buffer
		if err := report.Write(&first, r); err != nil {
			t.Fatal(err)
		}
		if err := keepsSchema(t, first.Bytes()); err != nil {
			t.Errorf("%v\n%s", err, &first)
		}
		read, err := report.Read(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Write(&again, read); err != nil || again.String() != first.String() {
			t.Errorf("read and written again (%v):\n%s\nwas\n%s", err, &again, &first)
		}
	}
	if _, err := report.Read(bytes.NewReader([]byte(`{"schema":"other/1"}`))); err == nil {
		t.Error("a report of another schema was read")
	}
}

func keepsSchema(t *testing.T, text []byte) error {
	t.Helper()
	parse := func(text []byte) any {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("report.json", parse(report.JSONSchema)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(parse(text))
}
