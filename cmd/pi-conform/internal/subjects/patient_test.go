package subjects

import (
	"os"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance/suite"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// serveVariable makes the test binary serve the reference.
const serveVariable = "PI_CONFORM_TEST_SERVES"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) == "" {
		os.Exit(m.Run())
	}
	if err := protocol.Serve(os.Stdin, os.Stdout, reference.New(), protocol.ServeOptions{}); err != nil {
		os.Exit(1)
	}
}

// TestPatientSleeps: a process keeps what it says of its clock when nobody minds that
// a case goes wrong.
func TestPatientSleeps(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := suite.Cases()
	if err != nil {
		t.Fatal(err)
	}
	p := protocol.NewProcess(protocol.Command{Argv: []string{self}, Env: []string{serveVariable + "=1"}}, protocol.Options{})
	t.Cleanup(func() { p.Close() })
	for _, c := range cases {
		if c.Case.Scenario.Form != trace.FormSession {
			continue
		}
		rec, err := harness.RunCase(t.Context(), &patient{p, func(string) {}}, c.Case, harness.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Skipped) > 0 {
			t.Errorf("%s: skipped %q", c.Name, rec.Skipped)
		}
	}
}
