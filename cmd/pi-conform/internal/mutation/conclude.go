package mutation

import (
	"fmt"
	"slices"
	"strings"
)

// conclude counts, and says what falls short.
func (s *Score) conclude() {
	for _, e := range s.Editions {
		s.judgeEdition(&e)
	}
	for i := range s.Mutants {
		s.judgeMutant(&s.Mutants[i])
	}
	for i := range s.Rules {
		s.judgeRule(&s.Rules[i])
	}
}

func (s *Score) short(format string, args ...any) {
	s.Short = append(s.Short, fmt.Sprintf(format, args...))
}

func (s *Score) judgeEdition(e *Edition) {
	if len(e.Broken) > 0 {
		s.short("the reference breaks %s in edition %s", strings.Join(e.Broken, ", "), e.Name)
	}
	if e.Inconclusive > 0 {
		s.short("%d schedules of the reference are inconclusive in edition %s", e.Inconclusive, e.Name)
	}
}

func (s *Score) judgeMutant(m *Mutant) {
	if m.Racy {
		return
	}
	if m.Equivalent != "" {
		if len(m.Findings) > 0 {
			s.short("mutant:%s is said to be equivalent, but %s finds it", m.Name, strings.Join(m.Findings, ", "))
		}
		return
	}
	s.Counted++
	switch {
	case m.Killed:
		s.Killed++
	case len(m.Findings) == 0:
		s.short("mutant:%s survives: %s should find it", m.Name, m.Rule)
	default:
		s.short("mutant:%s is found by %s, but never first by %s", m.Name, strings.Join(m.Findings, ", "), m.Rule)
	}
}

func (s *Score) judgeRule(r *Rule) {
	for _, m := range s.Mutants {
		if !slices.Contains(m.Findings, r.ID) {
			continue
		}
		r.Kills++
		if len(m.Findings) == 1 {
			r.Only++
		}
	}
	if r.Exercised > 0 {
		return
	}
	reason := ""
	if len(r.Reasons) > 0 {
		reason = " (" + strings.Join(r.Reasons, "; ") + ")"
	}
	s.short("%s is never exercised%s", r.ID, reason)
}
