package chanloop_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/conformance/conformancetest"
	"github.com/pi-conform/pi-conform/conformance/conformancetest/internal/chanloop"
	"github.com/pi-conform/pi-conform/harness"
)

func TestConformance(t *testing.T) {
	conformancetest.Run(t, chanloop.Subject(""))
}

func TestInProcess(t *testing.T) {
	conformancetest.Run(t, chanloop.Subject(""), conformancetest.InProcess(), conformancetest.Found(t.TempDir()))
}

const (
	plantVariable = "PI_CONFORM_TEST_PLANT"
	foundVariable = "PI_CONFORM_TEST_FOUND"
)

// TestPlanted tests a loop with a fault. It is what the others run as a process.
func TestPlanted(t *testing.T) {
	plant, planted := os.LookupEnv(plantVariable)
	if !planted {
		t.Skip("it fails, and is run by other tests")
	}
	conformancetest.Run(t, chanloop.Subject(chanloop.Plant(plant)), conformancetest.Found(os.Getenv(foundVariable)),
		conformancetest.Cases("par", "updates", "tool", "abort", "queue"), conformancetest.Schedules(1), conformancetest.Seeds(60),
		conformancetest.Repeat(5),
		conformancetest.Patience(time.Second))
}

// testPlanted runs a test of this binary on a loop with a fault, and gives what it
// printed. The test has to fail.
func testPlanted(t *testing.T, plant chanloop.Plant, found string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlanted$", "-test.v")
	cmd.Env = append(os.Environ(), plantVariable+"="+string(plant), foundVariable+"="+found)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("the test of a loop with the fault %q passes:\n%s", plant, out)
	}
	return string(out)
}

// TestFaultsAreSeen: faults of goroutines are verdicts with a schedule. The data race
// is seen by the race detector alone.
func TestFaultsAreSeen(t *testing.T) {
	for plant, words := range map[chanloop.Plant][]string{
		chanloop.SelectRace: {"--- FAIL: TestPlanted/UPD-2", "> tool/c1/late/0", "replay: PI_CONFORM_REPLAY="},
		chanloop.Panic:      {"--- FAIL: TestPlanted/ends", "panic: planted: a tool call failed", "chanloop.(*call).execute", "replay: "},
		chanloop.Leak:       {"--- FAIL: TestPlanted/ends", "leaked", "chan receive in chanloop.(*call).work", "replay: "},
		chanloop.Mutex:      {"--- FAIL: TestPlanted/ends", "hung", "sync.Mutex.Lock in chanloop.", "replay: "},
		chanloop.Deadlock:   {"--- FAIL: TestPlanted/", "deadlock", "replay: "},
	} {
		t.Run(string(plant), func(t *testing.T) {
			t.Parallel()
			out := testPlanted(t, plant, t.TempDir())
			for _, word := range words {
				if !strings.Contains(out, word) {
					t.Errorf("there is no %q in:\n%s", word, out)
				}
			}
		})
	}
}

func BenchmarkBubble(b *testing.B) {
	_ = harness.Limits{}
}
