//go:build race

package chanloop_test

import (
	"testing"

	"github.com/pi-conform/pi-conform/conformance/conformancetest/internal/chanloop"
)

// TestDataRaceIsSeen: goroutines that write to one variable within one step are seen by
// the race detector, and the verdict has the schedule.
func TestDataRaceIsSeen(t *testing.T) {
	expectSeen(t, chanloop.DataRace, `--- FAIL: TestPlanted/ends`, `WARNING: DATA RACE`, `chanloop\.\(\*call\)\.work`, `schedule: `)
}
