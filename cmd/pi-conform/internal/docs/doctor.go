package docs

import (
	"fmt"
	"strings"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/doctor"
)

const doctorIntro = "«pi-conform doctor [SUBJECT] [-- CMD...]» starts an adapter and talks to it in small steps. The first step that fails is named by a code; " +
	"those after it are not tried, but for the last one, which has a process of its own. It exits with 0 if every stage is passed and with 3 if not. " +
	"It examines the adapter and not the loop: «pi-conform run» judges that.\n\n" +
	"The patience for one answer is 5 s (10 s for the first one); `--timeout-scale` multiplies it.\n"

// Doctor is the document of all that the doctor knows.
func Doctor() string {
	var b strings.Builder
	b.WriteString("# What can be wrong with an adapter\n\n" + generated + doctorIntro)
	for i, stage := range doctor.Stages() {
		fmt.Fprintf(&b, "\n## %d. %s\n", i+1, upper(stage))
		for _, a := range doctor.Ailments() {
			if a.Stage == stage {
				fmt.Fprintf(&b, "\n### %s\n\n%s\n\n- Cause: %s\n- Cure: %s\n", a.Code, a.Sign, a.Cause, a.Cure)
			}
		}
	}
	return b.String()
}
