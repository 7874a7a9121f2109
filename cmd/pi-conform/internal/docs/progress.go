package docs

import (
	"fmt"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
)

// progressRules are the rules about progress.
func progressRules(b *strings.Builder) {
	byRule := map[string][]string{}
	for _, m := range suite.Mutants() {
		byRule[m.Rule] = append(byRule[m.Rule], m.Name)
	}
	b.WriteString("\nThe rules that follow are about progress, not about the loop, and are judged on records of their own: see [PROGRESS.md](PROGRESS.md).\n")
	family := conformance.Family("")
	for _, r := range progress.Rules() {
		if r.Family != family {
			family = r.Family
			fmt.Fprintf(b, "\n## %s\n", family)
		}
		fmt.Fprintf(b, "\n### %s\n\n%s\n\nWhy: %s\n\nlevel: %s · source: %s · mutants: %s\n",
			r.ID, sentence(r.Sentence), sentence(r.Why), r.Level, r.Source, strings.Join(byRule[r.ID], ", "))
	}
}
