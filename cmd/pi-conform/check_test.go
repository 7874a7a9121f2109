package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/fixtures"
)

// checkLog runs «check» on a log and gives the exit code and the report.
func checkLog(t *testing.T, text string, flags ...string) (exit.Code, *logJSON) {
	t.Helper()
	var out, notes bytes.Buffer
	code := newProgram(strings.NewReader(text), &out, &notes).run(context.Background(), append([]string{"check", "-", "--json"}, flags...))
	rep := &logJSON{}
	if err := json.Unmarshal(out.Bytes(), rep); err != nil && out.Len() > 0 {
		t.Fatal(err)
	}
	if notes.Len() > 0 {
		t.Log(notes.String())
	}
	return code, rep
}

func readLog(t *testing.T, name string) string {
	t.Helper()
	text, err := fixtures.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCheckRecorded judges what was recorded from the real program.
func TestCheckRecorded(t *testing.T) {
	logs := fixtures.Logs()
	if len(logs) < 7 {
		t.Fatalf("only %d logs", len(logs))
	}
	for _, name := range logs {
		if code, rep := checkLog(t, readLog(t, name)); code != exit.OK {
			t.Errorf("%s: exit code %d, %+v", name, code, rep.Findings)
		}
	}
}

// damaged are recorded logs with a damage, the rule that it breaks, and the line
// of the damaged log at which that becomes evident.
var damaged = []struct {
	log    string // which one: see logOf
	change string // see damage
	rule   string
	line   int
}{
	{"two", "drop 2", "RUN-1", 2},
	{"two", "double 2", "RUN-1", 3},
	{"two", "swap 2", "RUN-1", 2},
	{"two", "move 2 after 7", "RUN-1", 2},
	{"two", "drop 3", "TURN-1", 3},
	{"two", "double 3", "TURN-1", 4},
	{"two", "swap 3", "RUN-1", 3},
	{"two", "drop 4", "MSG-1", 4},
	{"two", "drop 5", "MSG-1", 5},
	{"two", "drop 6", "MSG-1", 6},
	{"two", "double 6", "MSG-1", 7},
	{"two", "swap 6", "MSG-1", 6},
	{"two", "drop 7", "RUN-3", 49},
	{"two", "double 7", "MSG-1", 8},
	{"two", "drop 8", "MSG-2", 8},
	{"two", "double 8", "MSG-1", 9},
	{"two", "swap 8", "MSG-2", 8},
	{"two", "move 24 after 25", "MSG-2", 25},
	{"two", "move 24 after 40", "MSG-2", 40},
	{"two", "drop 25", "TOOL-2", 25},
	{"two", "double 25", "TURN-2", 43},
	{"two", "move 25 after 28", "TOOL-2", 25},
	{"two", "drop 26", "TOOL-1", 41},
	{"two", "double 26", "TOOL-1", 27},
	{"two", "move 26 after 30", "UPD-4", 30},
	{"two", "edit 26 call_1 call_9", "PAR-8", 26},
	{"two", "edit 26 sleep slept", "TOOL-5", 26},
	{"two", "drop 27", "TOOL-1", 41},
	{"two", "double 28", "TOOL-1", 29},
	{"two", "drop 29", "TOOL-9", 39},
	{"two", "double 29", "TOOL-1", 30},
	{"two", "edit 29 call_3 call_2", "TOOL-1", 33},
	{"two", "edit 30 call_1 call_9", "UPD-4", 30},
	{"two", "edit 30 call_1 call_3", "UPD-4", 30},
	{"two", "edit 30 sleep slept", "TOOL-5", 30},
	{"two", "move 32 after 33", "UPD-4", 33},
	{"two", "move 32 after 42", "UPD-4", 42},
	{"two", "move 32 after 50", "RUN-2", 50},
	{"two", "move 32 after 51", "RUN-2", 51},
	{"two", "drop 33", "TOOL-9", 37},
	{"two", "double 33", "TOOL-1", 34},
	{"two", "edit 33 call_2 call_1", "TOOL-1", 35},
	{"two", "edit 33 two\\n too\\n", "TOOL-13", 38},
	{"two", "move 34 after 35", "UPD-4", 35},
	{"two", "move 34 after 45", "UPD-4", 45},
	{"two", "drop 35", "TOOL-9", 35},
	{"two", "double 35", "TOOL-1", 36},
	{"two", "swap 35", "PAR-5", 36},
	{"two", "edit 35 \"isError\":false \"isError\":true", "TOOL-13", 36},
	{"two", "drop 36", "MSG-1", 36},
	{"two", "double 36", "TOOL-14", 37},
	{"two", "edit 36 call_1 call_9", "TOOL-14", 36},
	{"two", "edit 36 bash read", "TOOL-13", 36},
	{"two", "edit 36 one\\n won\\n", "TOOL-13", 36},
	{"two", "drop 37", "TURN-3", 41},
	{"two", "double 37", "TURN-4", 43},
	{"two", "block 36-37 after 39", "PAR-4", 38},
	{"two", "block 36-37 after 42", "TURN-3", 41},
	{"two", "double 40", "TOOL-14", 41},
	{"two", "drop 41", "TURN-4", 41},
	{"two", "swap 41", "TURN-3", 42},
	{"two", "drop 42", "TURN-1", 42},
	{"two", "double 42", "TURN-1", 43},
	{"two", "edit 42 Reading Writing", "TURN-2", 42},
	{"two", "drop 43", "TURN-1", 43},
	{"two", "double 43", "TURN-1", 44},
	{"two", "drop 48", "TURN-2", 48},
	{"two", "edit 48 \"text\":\"done\" \"text\":\"gone\"", "TURN-2", 49},
	{"two", "drop 49", "TURN-1", 49},
	{"two", "double 49", "TURN-1", 50},
	{"two", "drop 50", "RUN-2", 50},
	{"two", "double 50", "RUN-2", 51},
	{"two", "swap 49", "RUN-2", 50},
	{"two", "edit 50 \"text\":\"go\" \"text\":\"no\"", "RUN-3", 50},
	{"old", "drop 2", "RUN-1", 2},
	{"old", "drop 27", "TOOL-9", 37},
	{"duplicate", "double 23", "TOOL-1", 24},
	{"retry", "drop 9", "TURN-2", 9},
	{"retry", "drop 11", "RUN-2", 11},
	{"retry", "drop 14", "RUN-1", 14},
	{"retry", "double 14", "RUN-1", 15},
	{"retry", "drop 22", "TURN-1", 22},
	{"retry", "drop 23", "RUN-2", 23},
	{"retry", "double 23", "RUN-2", 24},
	{"abort", "double 3", "TURN-1", 4},
	{"abort", "edit 6 \"role\":\"assistant\" \"role\":\"user\"", "MSG-2", 7},
	{"abort", "drop 35", "RUN-2", 35},
	{"steer", "drop 5", "MSG-1", 5},
	{"truncated", "drop 17", "LEN-2", 20},
	{"truncated", "edit 18 \\\"bash\\\" it", "LEN-3", 18},
	{"truncated", "edit 18 \"isError\":true \"isError\":false", "LEN-2", 18},
	{"truncated", "swap 18", "TOOL-9", 19},
	{"truncated", "drop 28", "TURN-1", 28},
}

var logOf = map[string]string{
	"two": "1.6.0-two-parallel-bash-calls", "old": "0.84.3-two-parallel-bash-calls", "duplicate": "1.6.0-duplicate-call-id",
	"retry": "1.6.0-http-500-then-retry", "abort": "1.6.0-rpc-abort-mid-batch", "steer": "1.6.0-rpc-steer", "truncated": "1.6.0-truncated-call",
}

// damage changes a log: «drop N», «double N», «swap N» with the next line,
// «move N after M», «block N-M after L», «edit N OLD NEW». Numbers are those of the
// lines before the change.
func damage(t *testing.T, lines []string, change string) []string {
	t.Helper()
	words := strings.Fields(change)
	from, to, _ := strings.Cut(words[1], "-")
	first := number(t, from)
	last := first
	if to != "" {
		last = number(t, to)
	}
	block := slices.Clone(lines[first-1 : last])
	switch words[0] {
	case "drop":
		return slices.Delete(slices.Clone(lines), first-1, last)
	case "double":
		return slices.Insert(slices.Clone(lines), first, block...)
	case "swap":
		return damage(t, lines, fmt.Sprintf("move %d after %d", first, first+1))
	case "move", "block":
		after := number(t, words[3])
		return slices.Delete(slices.Insert(slices.Clone(lines), after, block...), first-1, last)
	case "edit":
		changed := slices.Clone(lines)
		changed[first-1] = strings.ReplaceAll(lines[first-1], words[2], words[3])
		if changed[first-1] == lines[first-1] {
			t.Fatalf("%s changes nothing", change)
		}
		return changed
	}
	t.Fatalf("unknown change %q", change)
	return nil
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCheckDamaged(t *testing.T) {
	if len(damaged) < 60 {
		t.Fatalf("only %d damaged logs", len(damaged))
	}
	for _, d := range damaged {
		t.Run(d.log+" "+d.change, func(t *testing.T) {
			lines := strings.SplitAfter(readLog(t, "recorded/pi-json/"+logOf[d.log]+".jsonl"), "\n")
			code, rep := checkLog(t, strings.Join(damage(t, lines, d.change), ""))
			found := slices.ContainsFunc(rep.Findings, func(f findingJSON) bool {
				return f.Rule == d.rule && f.Level == "must" && f.Lines[len(f.Lines)-1] == d.line
			})
			if code != exit.Broken || !found {
				t.Errorf("exit code %d, no finding of %s at line %d in %v", code, d.rule, d.line, rep.Findings)
			}
		})
	}
}
