package chanprogress_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/conformancetest"
	"github.com/pi-conform/pi-conform/conformance/conformancetest/internal/chanprogress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
)

func TestProgress(t *testing.T) {
	conformancetest.RunProgress(t, chanprogress.Subject(""), conformancetest.Seeds(200))
}

// TestReference tests one that has a bridge and a producer too.
func TestReference(t *testing.T) {
	conformancetest.RunProgress(t, suite.Reference(), conformancetest.Seeds(60), conformancetest.Found(t.TempDir()))
}

const plantVariable, foundVariable = "PI_CONFORM_TEST_PLANT", "PI_CONFORM_TEST_FOUND"

// TestPlanted tests a registry with a defect. It is what the others run as a process.
func TestPlanted(t *testing.T) {
	plant, planted := os.LookupEnv(plantVariable)
	if !planted {
		t.Skip("it fails, and is run by other tests")
	}
	conformancetest.RunProgress(t, chanprogress.Subject(chanprogress.Plant(plant)),
		conformancetest.Seeds(60), conformancetest.Found(os.Getenv(foundVariable)))
}

// testPlanted runs a test of this binary on a registry with a defect, and gives what
// it printed. The test has to fail.
func testPlanted(t *testing.T, plant chanprogress.Plant, found string, more ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlanted$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(append(os.Environ(), plantVariable+"="+string(plant), foundVariable+"="+found), more...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("the test of a registry with the defect %q passes:\n%s", plant, out)
	}
	return string(out)
}

// shownBy is the subtest that shows each defect.
var shownBy = map[chanprogress.Plant]string{
	chanprogress.Shared: "PROG-1", chanprogress.Late: "PROG-4", chanprogress.Impatient: "PROG-3", chanprogress.Fragile: "PROG-6",
	chanprogress.Gossip: "PROG-8", chanprogress.Lenient: "PROG-9", chanprogress.Eager: "PROG-12", chanprogress.Stuck: "ends", chanprogress.Panicky: "ends",
	chanprogress.Chatty: "PROG-10", chanprogress.NestedCalls: "PROG-11",
}

// TestDefectsAreFound holds that each defect is found by its rule, saved, and told
// of with the command that shows it again.
func TestDefectsAreFound(t *testing.T) {
	for plant, rule := range shownBy {
		t.Run(string(plant), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := testPlanted(t, plant, dir)
			if !strings.Contains(out, "--- FAIL: TestPlanted/"+rule) {
				t.Fatalf("not found by %s:\n%s", rule, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "progress-"+rule+".json")); err != nil {
				t.Error(err)
			}
			if !regexp.MustCompile(`replay: PI_CONFORM_REPLAY=calls@\S+@\d+ go test`).MatchString(out) {
				t.Errorf("no replay line:\n%s", out)
			}
		})
	}
}

// TestReplay holds that the command in a finding shows it again, and that what was
// saved is run first.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	out := testPlanted(t, chanprogress.Late, dir)
	m := regexp.MustCompile(`replay: (PI_CONFORM_REPLAY=\S+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal(out)
	}
	if again := testPlanted(t, chanprogress.Late, dir, m[1]); !strings.Contains(again, "PROG-4") || !strings.Contains(again, `"kind":"boundary"`) {
		t.Errorf("not shown again:\n%s", again)
	}
	if !strings.Contains(testPlanted(t, chanprogress.Late, dir), "--- FAIL: TestPlanted/PROG-4") {
		t.Error("not found again")
	}
}

// TestNotApplicable holds that what a subject lacks is said, and is not passed.
func TestNotApplicable(t *testing.T) {
	out := testPlanted(t, chanprogress.Late, t.TempDir())
	for _, want := range []string{
		"NOT APPLICABLE, as the subject has no bridge to the Agent Client Protocol: BRIDGE-1 ", "NOT APPLICABLE, as the subject has no producer",
		"--- SKIP: TestPlanted/BRIDGE-5", "--- SKIP: TestPlanted/FLOW-1",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
}
