package doctor_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/doctor"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

func examine(t *testing.T, command protocol.Command, scale float64) []doctor.Stage {
	t.Helper()
	return doctor.Examine(context.Background(), doctor.Options{Command: command, TimeoutScale: scale})
}

// faulty is this test program as an adapter with that fault.
func faulty(t *testing.T, fault string) protocol.Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Command{Argv: []string{self}, Env: []string{faultVariable + "=" + fault}}
}

func codes(stages []doctor.Stage) []doctor.Code {
	var all []doctor.Code
	for _, s := range stages {
		if s.Result == doctor.Failed {
			all = append(all, s.Code)
		}
	}
	return all
}

func TestAHealthyAdapter(t *testing.T) {
	t.Parallel()
	stages := examine(t, faulty(t, ""), 1)
	for _, s := range stages {
		if s.Result != doctor.OK && s.Name != doctor.StageShow { // the reference declares no progress
			t.Errorf("%+v", s)
		}
	}
	if len(stages) != len(doctor.Stages()) {
		t.Errorf("%d stages of %d", len(stages), len(doctor.Stages()))
	}
}

// TestEveryFaultIsNamed holds every code to an adapter that is broken in that
// way alone.
func TestEveryFaultIsNamed(t *testing.T) {
	t.Parallel()
	for _, a := range doctor.Ailments() {
		t.Run(string(a.Code), func(t *testing.T) {
			t.Parallel()
			command := faulty(t, string(a.Code))
			if a.Code == "no-program" {
				command = protocol.Command{Argv: []string{"./there-is-no-such-adapter"}}
			} else if fakes[string(a.Code)] == nil {
				t.Fatal("no adapter is broken in that way")
			}
			stages := examine(t, command, 0.4)
			if got := codes(stages); !slices.Equal(got, []doctor.Code{a.Code}) {
				t.Errorf("found %q", got)
				for _, s := range stages {
					t.Logf("%+v", s)
				}
			}
		})
	}
}

func TestAilmentsAreWhole(t *testing.T) {
	seen := map[doctor.Code]bool{}
	for _, a := range doctor.Ailments() {
		if seen[a.Code] || a.Sign == "" || a.Cause == "" || a.Cure == "" || !slices.Contains(doctor.Stages(), a.Stage) {
			t.Errorf("%+v", a)
		}
		seen[a.Code] = true
	}
	for fault := range fakes {
		if fault != "" && !seen[doctor.Code(fault)] {
			t.Errorf("no ailment is called %q", fault)
		}
	}
}
