package report

import (
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/progress"
)

// Sentence is what a rule says, be it about the loop or about progress, and why.
// Both are empty if there is no such rule.
func Sentence(id string) (sentence, why string) {
	if r, ok := progress.Lookup(id); ok {
		return r.Sentence, r.Why
	}
	r, err := conformance.Lookup(id)
	if err != nil {
		return "", ""
	}
	return r.Sentence, r.Why
}

// sentence is what a rule says.
func sentence(id string) string {
	text, _ := Sentence(id)
	return text
}
