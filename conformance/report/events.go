package report

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Events writes what happens in a run while it goes on, as JSON lines: one start,
// a line for each case that is done and before it one for each of its findings,
// and one end.
type Events struct {
	w   io.Writer
	err error
}

// NewEvents writes to w.
func NewEvents(w io.Writer) *Events { return &Events{w: w} }

type event struct {
	Type    string   `json:"type"` // start, finding, case, end
	Tool    string   `json:"tool,omitempty"`
	Cases   int      `json:"cases,omitzero"` // start: to be run
	Done    int      `json:"done,omitzero"`  // case: so far
	Result  *Result  `json:"result,omitzero"`
	Finding *Finding `json:"finding,omitzero"`

	Conclusion string `json:"conclusion,omitempty"` // end
	Partial    bool   `json:"partial,omitzero"`
	ExitCode   *int   `json:"exitCode,omitzero"`
}

// Start says that a run begins.
func (e *Events) Start(tool string, cases int) {
	e.put(&event{Type: "start", Tool: tool, Cases: cases})
}

// Case says that a case is done, with what it broke.
func (e *Events) Case(done int, result Result, findings []Finding) {
	for i := range findings {
		e.put(&event{Type: "finding", Finding: &findings[i]})
	}
	e.put(&event{Type: "case", Done: done, Result: &result})
}

// End says how the run ended, and gives the first error of writing.
func (e *Events) End(r *Report, exitCode int) error {
	e.put(&event{Type: "end", Conclusion: r.Conclusion(), Partial: r.Partial, ExitCode: &exitCode})
	return e.err
}

// put writes a line with a single call, so that whoever follows the file sees
// whole lines.
func (e *Events) put(v *event) {
	if e.err != nil {
		return
	}
	line, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		_, err = e.w.Write(append(line, '\n'))
	}
	e.err = err
}
