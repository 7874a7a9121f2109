package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness/edition"
)

const editionsIntro = `An edition is the contract as it stood at one time, named after the release of the npm loop that first behaved so. Two are
complete: ` + "`0.84.3`" + `, which the documents describe and which is the default, and ` + "`1.6`" + `. A loop can be run and judged in either; the
releases between them only bound single behaviours. Editions are data: which rules hold, which hooks there are and in which order, what
an abort does. A release is judged by the newest edition that is not newer than itself, and never by one older than 0.84.3.

All of this was measured: by running the cases on the releases of [MATRIX.md](MATRIX.md), and where a finding was not understood by reading both
releases. A test holds it: every MUST rule that a release breaks has to be named by a change below that lies between the release and the
edition.

`

const turnEnd = `
## Around the end of a turn

| edition | another turn follows | the run ends |
|---|---|---|
| 0.84.3 | turn_end → prepareNextTurn → shouldStopAfterTurn → poll steering → turn_start → transformContext → model | turn_end → prepareNextTurn → shouldStopAfterTurn → poll steering → poll follow-ups → agent_end |
| 1.6 | finishTurn → turn_end → poll steering → prepareNextTurn → poll steering → turn_start → prepareRequest → transformContext → model | finishTurn → turn_end → poll steering → poll follow-ups → agent_end |

## An abort, three calls

| | before 0.75.4 | 0.75.4 to 0.84.4 | 0.85.0 to 1.5.2 | 1.6 |
|---|---|---|---|---|
| sequential, abort while the first runs | all run | the others are left unanswered | the same | all are answered |
| parallel, abort in the hook before the second | all run | the first runs with a signal that has fired, the second is an error, the third unanswered | the first is an error and does not run | all are answered |
| parallel, abort while all run | all finish with their results; one more turn follows, whose message is aborted | the same | the same | the same |
`

// Editions says what differs between editions and which rules tell them apart.
func Editions() string {
	var b strings.Builder
	b.WriteString("# Editions of the contract\n\n" + generated + editionsIntro)
	b.WriteString("## What changed\n\n| since | | before | since then | rules | reports |\n|---|---|---|---|---|---|\n")
	for _, c := range edition.Changes() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			c.Since, c.About, cell(c.Was), cell(c.Is), strings.Join(c.Rules, " "), strings.Join(c.Reports, ", "))
	}
	b.WriteString(turnEnd)
	edgeList(&b)
	return b.String()
}

func edgeList(b *strings.Builder) {
	b.WriteString("\n## Edges\n\nWhat every release does since listeners are waited for, however odd, is never a violation. A rule names the edges under which it does\nnot apply.\n\n| edge | what happens | rules that do not apply |\n|---|---|---|\n")
	for _, e := range edition.Edges() {
		fmt.Fprintf(b, "| e%d | %s | %s |\n", e.Number, e.Text, excused(e.Number))
	}
	b.WriteString("\n## Beyond the contract\n\nWhat a careful loop does better than every release. It is reported apart, and never fails a run.\n\n")
	for _, r := range conformance.Catalogue() {
		if r.Level == conformance.Robust {
			fmt.Fprintf(b, "- %s: %s\n", r.ID, sentence(r.Sentence))
		}
	}
}

const few = 20

// excused are the rules that do not apply under an edge.
func excused(number int) string {
	var ids []string
	for _, r := range conformance.Catalogue() {
		if slices.Contains(r.Edges, number) {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) > few {
		return fmt.Sprintf("%d, for what is left of the run", len(ids))
	}
	return strings.Join(ids, " ")
}
