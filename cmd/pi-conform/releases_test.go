package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/docs"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/matrix"
	"github.com/pi-conform/pi-conform/conformance"
)

// releases are the MUST rules that each release of the npm loop breaks, none
// more and none fewer. Each of them follows from a change of edition.Changes; a
// new finding here is a mistake of the harness, or a change that is not yet known.
var releases = []struct {
	name, edition string // empty means the newest edition not above the release
	broken        string
}{
	{"pi@0.73.1", "", `RUN-7 RUN-13 TOOL-8 TOOL-10 TOOL-13 UPD-2 UPD-4 LEN-1 LEN-2 LEN-3
		ABRT-2 ABRT-3 ABRT-6 STATE-3 STATE-5 STATE-7 CTX-2`},
	{"pi@0.75.5", "", "RUN-13 TOOL-8 TOOL-10 TOOL-13 UPD-2 UPD-4 LEN-1 LEN-2 LEN-3 STATE-3 STATE-5 STATE-7"},
	{"pi@0.80.2", "", "RUN-13 TOOL-8 TOOL-10 TOOL-13 LEN-1 LEN-2 LEN-3 STATE-3 STATE-5 STATE-7"},
	{"pi@0.84.3", "", ""},
	{"pi@0.84.4", "", "TURN-11 QUE-2"},
	{"pi@0.87.1", "", "RUN-13 TURN-9 TURN-11 PAR-6 QUE-2 CTX-2 CTX-6"},
	{"pi@1.6.0", "", ""},
	{"pi@1.6.0", "0.84.3", "RUN-13 TURN-9 TURN-11 TOOL-10 TOOL-19 PAR-6 ABRT-6 QUE-2 CTX-2 CTX-6"},
	{"oh-my-pi@18.2.3", "", `RUN-3 RUN-5 RUN-7 RUN-9 RUN-13 RUN-14 TURN-2 MSG-4 MSG-6 MSG-9
		TOOL-3 TOOL-7 TOOL-10 TOOL-15 TOOL-18 TOOL-19 PAR-3 PAR-4 PAR-5 PAR-6 PAR-7 UPD-2 UPD-3 UPD-4 UPD-8
		LEN-3 ABRT-1 ABRT-6 STATE-3 STATE-5 STATE-7 LIS-1 LIS-3 LIS-4 LIS-6 CTX-2`},
}

func TestReleases(t *testing.T) {
	if os.Getenv("PI_CONFORM_NPM") == "" && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: NO REAL LOOP IS JUDGED. They are installed with npm, which needs a network: set PI_CONFORM_NPM=1")
	}
	for _, release := range releases {
		t.Run(strings.TrimSpace(release.name+" "+release.edition), func(t *testing.T) {
			p := newProgram(nil, io.Discard, io.Discard)
			f := &matrixFlags{subjectFlags: subjectFlags{edition: release.edition, timeoutScale: 4}, schedules: 10, seed: 1}
			result, err := p.survey(context.Background(), f, release.name)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Report.Unclear) > 0 {
				t.Errorf("inconclusive: %+v", result.Report.Unclear)
			}
			broken := explained(t, matrix.New([]matrix.Result{*result}, f.schedules))
			if want := strings.Fields(release.broken); !slices.Equal(broken, want) {
				t.Errorf("broken are\n%s\nnot\n%s", strings.Join(broken, " "), strings.Join(want, " "))
			}
		})
	}
}

// explained are the MUST rules that the one subject breaks. What is known has to
// explain each of them.
func explained(t *testing.T, m *matrix.Matrix) []string {
	t.Helper()
	var broken []string
	for _, row := range m.Rules {
		c := row.Cells[0]
		if c.Status != conformance.StatusFail || c.Level != conformance.Must {
			continue
		}
		broken = append(broken, row.ID)
		if len(c.Why) == 0 {
			t.Errorf("nothing explains that %s is broken: %s\n%s", row.ID, c.Message, c.Replay)
		}
	}
	return broken
}

// TestMatrixDocument holds the table for people to the one for machines.
func TestMatrixDocument(t *testing.T) {
	file, err := os.Open("../../docs/matrix.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := matrix.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/MATRIX.md")
	if err != nil || string(got) != docs.Matrix(m) {
		t.Errorf("docs/MATRIX.md is not what docs/matrix.json says (%v): run «make matrix»", err)
	}
}
