package html

import (
	"html/template"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/conformance/report/lanes"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Bounds on the traces that the page carries.
const (
	mostData    = 32 << 20 // bytes of all together
	mostPayload = 16 << 10 // bytes of one entry
)

// traceData is what the script draws one finding from. It lies in the page as
// JSON that is read only when the finding is opened.
type traceData struct {
	N    int
	JSON template.JS
}

type drawing struct {
	Subject   *side    `json:"subject"`
	Reference *side    `json:"reference,omitzero"`
	Pairs     [][3]int `json:"pairs,omitzero"` // entry, entry, likeness; see lanes.Pair
}

type side struct {
	Lanes []lanes.Lane `json:"lanes"`
	Rows  []row        `json:"rows"`
}

// row is an entry. One of the reference that is the same as one of the subject
// only says which, because most are.
type row struct {
	As      *int           `json:"as,omitzero"`
	Row     *lanes.Row     `json:"row,omitzero"`
	Payload jsontext.Value `json:"payload,omitzero"`
}

// store adds the data of a pair of traces, and gives its number; -1 if there is
// no room left for them.
func (v *view) store(t, reference *trace.Trace) int {
	d := drawing{Subject: sideOf(t)}
	if reference != nil {
		d.Reference = sideOf(reference)
		d.align(lanes.Align(t, reference))
	}
	text, err := json.Marshal(&d, json.Deterministic(true), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || len(text) > v.left {
		return -1
	}
	v.left -= len(text)
	v.Data = append(v.Data, traceData{N: len(v.Data), JSON: template.JS(text)})
	return len(v.Data) - 1
}

// align notes what stands beside what.
func (d *drawing) align(pairs []lanes.Pair) {
	alike := slices.Equal(d.Subject.Lanes, d.Reference.Lanes)
	for _, p := range pairs {
		d.Pairs = append(d.Pairs, [3]int{p.A, p.B, int(p.Like)})
		if alike && p.Like == lanes.Same && p.A == p.B {
			d.Reference.Rows[p.B] = row{As: &p.A}
		}
	}
}

func sideOf(t *trace.Trace) *side {
	layout := lanes.Of(t)
	s := &side{Lanes: layout.Lanes, Rows: make([]row, len(layout.Rows))}
	for i := range layout.Rows {
		s.Rows[i] = row{Row: &layout.Rows[i], Payload: payload(&t.Entries[i])}
	}
	return s
}

// payload is the whole entry as JSON, unless it is too long to be read.
func payload(e *trace.Entry) jsontext.Value {
	text, err := json.Marshal(e, json.Deterministic(true), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || len(text) > mostPayload {
		return nil
	}
	return text
}
