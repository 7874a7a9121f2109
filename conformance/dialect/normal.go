package dialect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Normal is what two recordings of the same happening have in common, as text: of
// each run its messages and turns in order, and then for each call its beginning
// and its end. In which order calls overlapped, what they reported meanwhile and
// how an answer was cut into pieces is left out.
func Normal(log io.Reader) (string, error) {
	l, err := Open(log, Auto)
	if err != nil {
		return "", err
	}
	if l.Dialect == ACP {
		return normalMessages(l)
	}
	var text strings.Builder
	for {
		run, err := l.Next()
		if err == io.EOF {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		normalRun(&text, run)
	}
}

func normalRun(text *strings.Builder, run *Run) {
	fmt.Fprintf(text, "run %d\n", run.Number)
	var calls []string // in the order of their starts
	ofCall := map[string][]string{}
	flush := func() {
		for _, id := range calls {
			for _, line := range ofCall[id] {
				fmt.Fprintf(text, "    %s\n", line)
			}
		}
		calls = nil
		clear(ofCall)
	}
	for i := range run.Trace.Entries {
		e := run.Trace.Entries[i].Event
		if e == nil || e.Type == trace.MessageUpdate || e.Type == trace.ToolExecutionUpdate {
			continue
		}
		if e.Type == trace.ToolExecutionStart || e.Type == trace.ToolExecutionEnd {
			if !slices.Contains(calls, e.ToolCallID) {
				calls = append(calls, e.ToolCallID)
			}
			ofCall[e.ToolCallID] = append(ofCall[e.ToolCallID], textOf(run.Trace, i))
			continue
		}
		flush()
		fmt.Fprintf(text, "  %s\n", textOf(run.Trace, i))
	}
	flush()
}

func normalMessages(l *Log) (string, error) {
	n := acp.NewNormal()
	for {
		line, err := l.line()
		if err == io.EOF {
			return n.String(), nil
		}
		if err != nil {
			return "", err
		}
		n.Line(line)
	}
}
