package chanloop_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/conformance/conformancetest"
	"github.com/pi-conform/pi-conform/conformance/conformancetest/internal/chanloop"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/bubble"
)

func TestConformance(t *testing.T) {
	conformancetest.Run(t, chanloop.Subject(""))
}

func TestInProcess(t *testing.T) {
	conformancetest.Run(t, chanloop.Subject(""), conformancetest.InProcess(), conformancetest.Found(t.TempDir()))
}

const (
	plantVariable     = "PI_CONFORM_TEST_PLANT"
	foundVariable     = "PI_CONFORM_TEST_FOUND"
	inProcessVariable = "PI_CONFORM_TEST_IN_PROCESS"
	seedsVariable     = "PI_CONFORM_TEST_SEEDS"
)

// shownBy is which cases show a fault.
var shownBy = map[chanloop.Plant]string{
	chanloop.SelectRace: "updates", chanloop.DataRace: "par", chanloop.Panic: "par", chanloop.Leak: "par",
	chanloop.Mutex: "queue", chanloop.Deadlock: "abort",
}

// TestPlanted tests a loop with a fault. It is what the others run as a process.
func TestPlanted(t *testing.T) {
	plant, planted := os.LookupEnv(plantVariable)
	if !planted {
		t.Skip("it fails, and is run by other tests")
	}
	seeds, err := strconv.Atoi(cmp.Or(os.Getenv(seedsVariable), "30"))
	if err != nil {
		t.Fatal(err)
	}
	options := []conformancetest.Option{
		conformancetest.Found(os.Getenv(foundVariable)), conformancetest.Cases(shownBy[chanloop.Plant(plant)]),
		conformancetest.Schedules(1), conformancetest.Seeds(seeds), conformancetest.Repeat(5), conformancetest.Patience(2 * time.Second),
	}
	if os.Getenv(inProcessVariable) != "" {
		options = append(options, conformancetest.InProcess())
	}
	conformancetest.Run(t, chanloop.Subject(chanloop.Plant(plant)), options...)
}

// testPlanted runs a test of this binary on a loop with a fault, and gives what it
// printed. The test has to fail.
func testPlanted(t *testing.T, plant chanloop.Plant, found string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlanted$")
	cmd.Env = append(os.Environ(), plantVariable+"="+string(plant), foundVariable+"="+found)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("the test of a loop with the fault %q passes:\n%s", plant, out)
	}
	return string(out)
}

// TestFaultsAreSeen: faults of goroutines are verdicts with a schedule. Of a race that
// select decides, one run says that a rule is broken and the next that the loop is not
// deterministic.
func TestFaultsAreSeen(t *testing.T) {
	for plant, patterns := range map[chanloop.Plant][]string{
		chanloop.SelectRace: {`--- FAIL: TestPlanted/(UPD-2|deterministic)`, `tool_execution_update c1 "too late"`},
		chanloop.Panic:      {`--- FAIL: TestPlanted/ends`, `panic: planted: a tool call failed`, `chanloop\.\(\*call\)\.execute`},
		chanloop.Leak:       {`--- FAIL: TestPlanted/RUN-14`, `leaked`, `chan receive in chanloop\.\(\*call\)\.work`},
		chanloop.Mutex:      {`--- FAIL: TestPlanted/ends`, `hung`, `sync.Mutex.Lock in chanloop\.`, `schedule: prompt/0 steer/0`},
		chanloop.Deadlock:   {`--- FAIL: TestPlanted/ABRT-7`, `end deadlock`},
	} {
		t.Run(string(plant), func(t *testing.T) { expectSeen(t, plant, patterns...) })
	}
}

func expectSeen(t *testing.T, plant chanloop.Plant, patterns ...string) {
	t.Helper()
	out := testPlanted(t, plant, t.TempDir())
	for _, pattern := range append(patterns, `replay: PI_CONFORM_REPLAY=\S+ go test`) {
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("nothing matches %q in:\n%s", pattern, out)
		}
	}
}

// TestCasesOfTheSuiteAreShrunk: what a case of the suite shows is made smaller and
// saved, as is what exploration finds.
func TestCasesOfTheSuiteAreShrunk(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(seedsVariable, "0")
	out := testPlanted(t, chanloop.Deadlock, dir)
	saved, _ := filepath.Glob(filepath.Join(dir, "abrt-7-*.txtar"))
	if len(saved) != 1 {
		t.Fatalf("%q were saved:\n%s", saved, out)
	}
	data, err := os.ReadFile(saved[0])
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`Found in case abort/\S+, shrunk\.`).Match(data) || !strings.Contains(out, "shrunk, saved as "+saved[0]) {
		t.Errorf("%s\n%s", data, out)
	}
}

// TestCrashIsTakenUp: a process that was ended by the loop has left the case, which the
// next one runs first.
func TestCrashIsTakenUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "found")
	t.Setenv(inProcessVariable, "1")
	if out := testPlanted(t, chanloop.Panic, dir); !strings.Contains(out, "planted: a tool call failed") {
		t.Errorf("the process did not end by the panic:\n%s", out)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "running-*.txtar"))
	if err != nil || len(left) != 1 {
		t.Fatalf("%q were left, error %v", left, err)
	}
	t.Setenv(inProcessVariable, "")
	out := testPlanted(t, chanloop.Panic, dir)
	if saved, _ := filepath.Glob(filepath.Join(dir, "crashed-*.txtar")); len(saved) == 0 {
		t.Errorf("the case was not saved:\n%s", out)
	}
	if !strings.Contains(out, "saved case "+dir) {
		t.Errorf("the saved case was not run:\n%s", out)
	}
}

func BenchmarkCases(b *testing.B) {
	cases, err := suite.Cases()
	if err != nil {
		b.Fatal(err)
	}
	subject := chanloop.Subject("")
	d := &bubble.Driver{About: harness.SubjectInfo{Capabilities: []string{"forms:agent", "hooks:none"}}, Join: subject.Join}
	run := 0
	for n := 0; b.Loop(); n++ {
		c := cases[n%len(cases)]
		if _, err := harness.RunCase(b.Context(), d, c.Case, harness.Limits{}); err == nil {
			run++
		}
	}
	b.ReportMetric(float64(run)/b.Elapsed().Seconds(), "cases/s")
}
