package progress

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// line is a line of the wire, as far as it is about a card.
type line struct {
	entry   int
	report  int
	replay  bool
	session string
	members []string // that the update has
	cardLine
}

type cardLine struct {
	Update    string        `json:"sessionUpdate"`
	ID        string        `json:"toolCallId"`
	Title     string        `json:"title"`
	Kind      string        `json:"kind"`
	Status    string        `json:"status"`
	RawInput  trace.Value   `json:"rawInput"`
	Locations trace.Value   `json:"locations"`
	Content   []trace.Value `json:"content"`
}

func (l *line) isCall() bool     { return l.Update == "tool_call" }
func (l *line) isUpdate() bool   { return l.Update == "tool_call_update" }
func (l *line) isProgress() bool { return l.isUpdate() && !l.isTerminal() }
func (l *line) isTerminal() bool { return l.Status == "completed" || l.Status == "failed" }

func parseLine(i int, e *Entry) *line {
	var text struct {
		Params struct {
			Session string      `json:"sessionId"`
			Update  trace.Value `json:"update"`
		} `json:"params"`
	}
	l := &line{entry: i, report: e.Report, replay: e.Replay}
	if json.Unmarshal(e.Value, &text) != nil {
		return l
	}
	l.session, l.members = text.Params.Session, members(text.Params.Update)
	_ = json.Unmarshal(text.Params.Update, &l.cardLine) // what is not there is empty, and judged as that
	return l
}

// members are the names of an object's members.
func members(object trace.Value) []string {
	var m map[string]trace.Value
	if json.Unmarshal(object, &m) != nil {
		return nil
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// card is what a client has made of the lines about a call.
type card struct {
	title, kind, status string
	rawInput, locations string
	content             []string
}

// fold takes a line in as a client does: what is there replaces what was there.
func (c *card) fold(l *line) {
	set := func(name string, to *string, value string) {
		if slices.Contains(l.members, name) {
			*to = value
		}
	}
	set("title", &c.title, l.Title)
	set("kind", &c.kind, l.Kind)
	set("status", &c.status, l.Status)
	set("rawInput", &c.rawInput, canonical(l.RawInput))
	set("locations", &c.locations, canonical(l.Locations))
	if slices.Contains(l.members, "content") {
		c.content = nil
		for _, item := range l.Content {
			c.content = append(c.content, canonical(item))
		}
	}
}

func (c *card) equal(o *card) bool {
	return c.title == o.title && c.kind == o.kind && c.status == o.status && c.rawInput == o.rawInput &&
		c.locations == o.locations && slices.Equal(c.content, o.content)
}

// canonical is JSON in a form in which the order of members does not count.
func canonical(v trace.Value) string {
	if v == nil {
		return ""
	}
	own := v.Clone()
	if own.Canonicalize() != nil {
		return string(v)
	}
	return string(own)
}

type cardKey struct{ session, call string }

// folded is what a client makes of lines.
func folded(lines []*line) map[cardKey]*card {
	cards := map[cardKey]*card{}
	for _, l := range lines {
		key := cardKey{l.session, l.ID}
		if cards[key] == nil || l.isCall() {
			cards[key] = &card{}
		}
		cards[key].fold(l)
	}
	return cards
}

// chosen are the lines for which keep holds.
func chosen(lines []*line, keep func(*line) bool) []*line {
	var kept []*line
	for _, l := range lines {
		if keep(l) {
			kept = append(kept, l)
		}
	}
	return kept
}

// viewTexts are the texts of a view.
func viewTexts(view trace.Value) []string {
	var v struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(view, &v) != nil {
		return nil
	}
	var texts []string
	for _, b := range v.Content {
		texts = append(texts, b.Text)
	}
	return texts
}

// shows reports whether a line holds all the texts.
func shows(l *line, texts []string) bool {
	var shown []string
	for _, item := range l.Content {
		var c struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if json.Unmarshal(item, &c) == nil {
			shown = append(shown, c.Content.Text)
		}
	}
	return !slices.ContainsFunc(texts, func(text string) bool { return !slices.Contains(shown, text) })
}
