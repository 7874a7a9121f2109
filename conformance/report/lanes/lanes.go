// Package lanes lays a trace out for people: who did each thing, in which order,
// and beside which entry of another trace it stands. How that is drawn is up to
// others.
package lanes

import (
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Kind says whose lane it is.
type Kind string

// The kinds of lanes, in the order in which they stand.
const (
	User     Kind = "user"
	Loop     Kind = "loop"
	Model    Kind = "model"
	Tool     Kind = "tool" // one for each execution of a tool
	Hook     Kind = "hook"
	Listener Kind = "listener"
	View     Kind = "view" // a user interface's reducer
)

// Lane is one of those who act.
type Lane struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// Row is one entry of a trace.
type Row struct {
	Entry int    `json:"entry"` // index in the trace
	Step  int    `json:"step"`
	Time  int64  `json:"time,omitzero"` // virtual milliseconds
	From  int    `json:"from"`          // lane from which it goes out
	To    int    `json:"to"`            // lane that it reaches; the same as From if it stays there
	Kind  string `json:"kind"`
	Text  string `json:"text"`
}

// Layout is a trace in lanes.
type Layout struct {
	Lanes []Lane `json:"lanes"`
	Rows  []Row  `json:"rows"`
}

// mostTools bounds the lanes of tool calls; what is beyond shares the last one.
const mostTools = 8

// Of lays out a trace. Lanes in which nothing happens are left out, but for the
// user's and the loop's.
func Of(t *trace.Trace) *Layout {
	l := &Layout{Lanes: lanesOf(t), Rows: make([]Row, len(t.Entries))}
	for i := range t.Entries {
		e := &t.Entries[i]
		from, to := l.ends(e)
		l.Rows[i] = Row{
			Entry: i, Step: e.Step, Time: e.Time, From: from, To: to, Kind: string(e.Kind), Text: trace.Line(e),
		}
	}
	return l
}

func lanesOf(t *trace.Trace) []Lane {
	used := map[Kind]bool{User: true, Loop: true}
	var tools []Lane
	seen := map[string]bool{}
	for i := range t.Entries {
		who := of(&t.Entries[i])
		used[who.Kind] = true
		if who.Kind == Tool && !seen[who.Name] {
			seen[who.Name] = true
			tools = append(tools, who)
		}
	}
	if len(tools) > mostTools {
		tools = append(tools[:mostTools-1], Lane{Tool, "more tools"})
	}
	all := []Lane{{User, "user"}, {Loop, "loop"}}
	if used[Model] {
		all = append(all, Lane{Model, "model"})
	}
	all = append(all, tools...)
	for _, lane := range []Lane{{Hook, "hooks"}, {Listener, "listeners"}, {View, "view"}} {
		if used[lane.Kind] {
			all = append(all, lane)
		}
	}
	return all
}

// ends are the lanes between which an entry happens: an action comes from
// outside to the loop, a call goes from the loop outside.
func (l *Layout) ends(e *trace.Entry) (from, to int) {
	who, loop := l.place(of(e)), 1
	switch e.Kind {
	case trace.KindAction:
		return who, loop
	case trace.KindCall, trace.KindRead, trace.KindCancelled, trace.KindSettled:
		return loop, who
	case trace.KindEvent, trace.KindRetained, trace.KindView, trace.KindEnd:
	}
	return who, who
}

func (l *Layout) place(who Lane) int {
	last := 1
	for i, lane := range l.Lanes {
		if lane == who || lane.Kind == who.Kind && who.Kind != Tool {
			return i
		}
		if lane.Kind == who.Kind {
			last = i
		}
	}
	return last
}

// of is whose entry it is, besides the loop.
func of(e *trace.Entry) Lane {
	switch e.Kind {
	case trace.KindEvent, trace.KindEnd:
		return Lane{Kind: Loop}
	case trace.KindRetained:
		return Lane{Kind: Listener}
	case trace.KindView:
		return Lane{Kind: View}
	case trace.KindAction, trace.KindCall, trace.KindRead, trace.KindCancelled, trace.KindSettled:
	}
	if tool, ok := toolOf(e.Label); ok {
		return Lane{Tool, tool}
	}
	kind, rest, _ := strings.Cut(e.Name, "/")
	switch kind {
	case "model":
		return Lane{Kind: Model}
	case "hook":
		return Lane{Kind: Hook}
	case "listener":
		return Lane{Kind: Listener}
	case "tool":
		return Lane{Tool, rest}
	}
	return Lane{Kind: User}
}

// toolOf gives the tool execution that an action is about: a late one, such as
// tool/c1/late/0, answers no call that its name could tell.
func toolOf(label string) (string, bool) {
	rest, ok := strings.CutPrefix(label, "tool/")
	if !ok {
		return "", false
	}
	for _, verb := range [...]string{"/late/", "/update/", "/return", "/throw", "/aborted"} {
		if i := strings.LastIndex(rest, verb); i >= 0 {
			return rest[:i], true
		}
	}
	return rest, true
}
