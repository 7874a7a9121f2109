package chanloop_test
import ("testing"
"github.com/pi-conform/pi-conform/conformance/conformancetest"
"github.com/pi-conform/pi-conform/conformance/conformancetest/internal/chanloop"
)
func TestZZ(t *testing.T){
	conformancetest.Run(t, chanloop.Subject(chanloop.SelectRace), conformancetest.Found("/tmp/fd9"),
		conformancetest.Cases("par", "updates", "tool", "abort", "queue"), conformancetest.Schedules(1), conformancetest.Seeds(0), conformancetest.Repeat(5))
}
