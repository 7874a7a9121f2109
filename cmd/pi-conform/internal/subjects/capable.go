package subjects

import (
	"maps"
	"slices"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Lacks is a capability that the scenario needs and that the subject has not
// declared; empty if there is none. Only a subject that declares nothing at all is
// taken to have everything.
func (s *Subject) Lacks(sc *harness.Scenario) string {
	declared := s.Driver.Info().Capabilities
	for _, need := range needs(sc) {
		if len(declared) > 0 && !slices.Contains(declared, need) {
			return need
		}
	}
	return ""
}

// needs are the capabilities without which a scenario, which has been completed,
// cannot be opened.
func needs(sc *harness.Scenario) []string {
	form := sc.Form
	if form == "" {
		form = trace.FormAgent
	}
	all := []string{"forms:" + string(form)}
	for _, name := range slices.Sorted(maps.Keys(sc.Config.Hooks)) {
		all = append(all, "hooks:"+name)
	}
	if slices.ContainsFunc(sc.Config.Tools, func(t trace.Tool) bool { return t.PrepareArguments }) {
		all = append(all, "hooks:"+trace.HookPrepareArguments)
	}
	return all
}
