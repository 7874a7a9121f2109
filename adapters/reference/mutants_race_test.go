//go:build race

package reference_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/loop"
)

const inner = "PI_CONFORM_RACE"

// TestRaceIsSeen: of the mutant with a data race the race detector says so, on
// goroutines. It runs in a process of its own, which the detector fails.
func TestRaceIsSeen(t *testing.T) {
	if os.Getenv(inner) != "" {
		newSuite(t, edition.Default).each(t, reference.NewBubble(loop.RaceOnResults), 0, func(*judged) {})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRaceIsSeen$")
	cmd.Env = append(os.Environ(), inner+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "DATA RACE") {
		t.Errorf("the race is not seen: %v\n%s", err, out)
	}
}
