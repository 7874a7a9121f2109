package conformancetest

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Subject is a loop to be tested. Name and Join are all that is needed of a loop
// without hooks.
type Subject struct {
	Name string
	// Join makes a loop and joins it to its surroundings, once for each case. It is
	// called in the case's bubble. [With] helps.
	Join func(s *harness.Surroundings) (harness.Loop, error)
	// Hooks that the loop asks, by the names that the contract gives them. Cases
	// that need another one are left out.
	Hooks []string
	// Editions that the loop follows; the first is the one that it is tested in.
	// Nil means the default one.
	Editions []edition.Edition
	// Forms in which it can be run; nil means as an agent.
	Forms []trace.Form
	// Lacks says what a recording of it does not show, of «state», «polls»,
	// «reads», «listeners» and «signals». Rules that need it do not apply.
	Lacks []string
}

var shown = []string{"state", "polls", "reads", "listeners", "signals"}

func (s *Subject) info() harness.SubjectInfo {
	info := harness.SubjectInfo{
		Name: s.Name, Language: "Go", Barrier: harness.BarrierQuiescent,
		Evidence: []trace.Evidence{trace.EvidenceEvents, trace.EvidenceCallbacks, trace.EvidenceRequests, trace.EvidenceActions},
	}
	evidence := map[string]trace.Evidence{
		"state": trace.EvidenceState, "polls": trace.EvidencePolls, "reads": trace.EvidenceReads, "listeners": trace.EvidenceListeners,
	}
	for _, what := range shown {
		if slices.Contains(s.Lacks, what) {
			continue
		}
		info.Capabilities = append(info.Capabilities, what)
		if e, ok := evidence[what]; ok {
			info.Evidence = append(info.Evidence, e)
		}
	}
	for _, e := range s.editions() {
		info.Editions = append(info.Editions, string(e))
	}
	for _, form := range s.forms() {
		info.Capabilities = append(info.Capabilities, "forms:"+string(form))
	}
	info.Capabilities = append(info.Capabilities, "hooks:none") // as no list at all would mean any
	for _, hook := range s.Hooks {
		info.Capabilities = append(info.Capabilities, "hooks:"+hook)
	}
	return info
}

func (s *Subject) editions() []edition.Edition {
	if s.Editions == nil {
		return []edition.Edition{edition.Default}
	}
	return s.Editions
}

func (s *Subject) forms() []trace.Form {
	if s.Forms == nil {
		return []trace.Form{trace.FormAgent}
	}
	return s.Forms
}
