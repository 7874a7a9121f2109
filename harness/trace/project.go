package trace

import (
	"slices"
	"strings"
)

// Project leaves out what is no part of the given evidence, so that recordings
// of subjects that can show different things can be compared:
//
//	Project(a, b.Header.Evidence...) and Project(b, a.Header.Evidence...)
//
// Project before [Normalize]: an entry that is left out no longer bounds what
// may be sorted. Evidence that one side lacks is left out of the header too.
// The input is not changed.
func Project(t *Trace, keep ...Evidence) *Trace {
	out := &Trace{Header: t.Header}
	out.Header.Evidence = slices.DeleteFunc(slices.Clone(t.Header.Evidence), func(e Evidence) bool {
		return !slices.Contains(keep, e)
	})
	for i := range t.Entries {
		e := t.Entries[i]
		if needs, some := e.evidence(); some && !slices.Contains(keep, needs) {
			continue
		}
		if !slices.Contains(keep, EvidenceState) {
			e.State = nil
		}
		out.Entries = append(out.Entries, e)
	}
	return out
}

// evidence is what an entry is part of; false for what every recording has.
func (e *Entry) evidence() (Evidence, bool) {
	switch e.Kind {
	case KindEvent:
		return EvidenceEvents, true
	case KindCall, KindCancelled:
		return nameEvidence(e.Name), true
	case KindRead:
		return EvidenceReads, true
	case KindAction, KindSettled:
		return EvidenceActions, true
	case KindRetained:
		return EvidenceKept, true
	case KindView:
		return EvidenceViews, true
	default:
	}
	return "", false
}

func nameEvidence(name string) Evidence {
	kind, rest, _ := strings.Cut(name, "/")
	hook, _, _ := strings.Cut(rest, "/")
	switch {
	case kind == "model":
		return EvidenceRequests
	case kind == "listener":
		return EvidenceListeners
	case kind == "hook" && (hook == HookPollSteering || hook == HookPollFollowUp):
		return EvidencePolls
	}
	return EvidenceCallbacks
}
