package report

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/conformance"
)

// Badge is what badge services draw: a label, a message and a colour.
type Badge struct {
	SchemaVersion int    `json:"schemaVersion"`
	Label         string `json:"label"`
	Message       string `json:"message"`
	Color         string `json:"color"`
	IsError       bool   `json:"isError,omitzero"`
}

// BadgeOf is the badge of a report. Only a whole run without a fault is green;
// one that was partial, or measured nothing, is grey whatever it found.
func BadgeOf(r *Report) Badge {
	b := Badge{SchemaVersion: 1, Label: "pi-conform " + r.Edition}
	broken := brokenRules(r.Broken(conformance.Must))
	switch {
	case r.Partial || r.Shard != nil:
		b.Message, b.Color = "partial", "lightgrey"
	case !r.Exercised():
		b.Message, b.Color = "nothing measured", "lightgrey"
	case broken > 0:
		b.Message, b.Color, b.IsError = fmt.Sprintf("%d MUST broken", broken), "red", true
	case len(r.Unexpected()) > 0:
		b.Message, b.Color = "inconclusive", "lightgrey"
	case r.ExpectedFailures() > 0:
		b.Message, b.Color = fmt.Sprintf("%d rules, %d known failures", r.Counts()[conformance.StatusPass], r.ExpectedFailures()), "yellow"
	default:
		b.Message, b.Color = fmt.Sprintf("conforms · %d rules", r.Counts()[conformance.StatusPass]), "brightgreen"
	}
	return b
}

func brokenRules(findings []Finding) int {
	ids := map[string]bool{}
	for _, f := range findings {
		ids[f.Rule] = true
	}
	return len(ids)
}

// WriteBadge writes the badge of a report as JSON.
func WriteBadge(w io.Writer, r *Report) error {
	if err := json.MarshalWrite(w, BadgeOf(r), json.Deterministic(true)); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
