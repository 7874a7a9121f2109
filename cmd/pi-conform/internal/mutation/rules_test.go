package mutation

import (
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
)

// TestEveryRuleHasAMutant: there is no rule that cannot fail. What every loop is
// free to do, the robust rules, is broken by the releases themselves.
func TestEveryRuleHasAMutant(t *testing.T) {
	named := map[string]bool{}
	for _, m := range subjects.Mutants() {
		if m.Equivalent == "" {
			named[m.Rule] = true
		}
	}
	for _, r := range conformance.Catalogue() {
		if r.Level != conformance.Robust && !named[r.ID] {
			t.Errorf("no mutant names %s", r.ID)
		}
	}
}
