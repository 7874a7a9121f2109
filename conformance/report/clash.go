package report

import (
	"fmt"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// ClashLines are the entries that clash, as a person reads them; none if the
// finding came without its trace.
func (f *Finding) ClashLines() []string {
	if f.Trace == nil {
		return nil
	}
	var lines []string
	for _, i := range f.Entries {
		if i < 0 || i >= len(f.Trace.Entries) {
			continue
		}
		e := &f.Trace.Entries[i]
		lines = append(lines, fmt.Sprintf("step %d: %s", e.Step, trace.Line(e)))
	}
	return lines
}
