package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/go-json-experiment/json"
)

// Hash is the digest of a trace's normal form, 32 hexadecimal digits.
//
// The entries enter, as the JSON lines of the normal form, and nothing of the
// header: it says what the surroundings were, what capabilities and evidence
// there were, not what happened.
func Hash(t *Trace) string {
	sum := sha256.New()
	entries := Normalize(t).Entries
	for i := range entries {
		hashEntry(sum, &entries[i])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func hashEntry(sum hash.Hash, e *Entry) {
	if err := json.MarshalWrite(sum, e, writeOptions); err != nil {
		// Nothing that a Reader gave; two such entries differ if they look
		// different.
		fmt.Fprintf(sum, "%+v", e)
	}
	sum.Write([]byte{'\n'})
}

// FirstDiff is the index of the first entry in which the normal forms of two
// traces differ, with a text that shows both sides; -1 if they agree.
func FirstDiff(a, b *Trace) (int, string) {
	left, right := Normalize(a).Entries, Normalize(b).Entries
	for i := range max(len(left), len(right)) {
		l, r := at(left, i), at(right, i)
		lJSON, rJSON := entryJSON(l), entryJSON(r)
		if bytes.Equal(lJSON, rJSON) {
			continue
		}
		return i, describe(i, l, r, lJSON, rJSON)
	}
	return -1, ""
}

func at(entries []Entry, i int) *Entry {
	if i < len(entries) {
		return &entries[i]
	}
	return nil
}

func entryJSON(e *Entry) []byte {
	if e == nil {
		return nil
	}
	b, err := json.Marshal(e, writeOptions)
	if err != nil {
		return fmt.Appendf(nil, "%+v", e)
	}
	return b
}

func describe(i int, l, r *Entry, lJSON, rJSON []byte) string {
	lLine, rLine := sideLine(l), sideLine(r)
	if lLine == rLine {
		lLine, rLine = excerpts(lJSON, rJSON)
	}
	return fmt.Sprintf("entry %d differs:\n  a: %s\n  b: %s", i, lLine, rLine)
}

func sideLine(e *Entry) string {
	if e == nil {
		return "(nothing more)"
	}
	return fmt.Sprintf("step %d: %s", e.Step, Line(e))
}

// Excerpts are the surroundings of the first difference between the JSON of two
// entries, for where their lines look the same.
func Excerpts(a, b *Entry) (string, string) { return excerpts(entryJSON(a), entryJSON(b)) }

// excerpts are the surroundings of the first difference between two JSON texts
// whose lines look the same.
func excerpts(a, b []byte) (string, string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return excerpt(a, same), excerpt(b, same)
}

func excerpt(b []byte, place int) string {
	const before, after = 60, 100
	first, last := max(0, place-before), min(len(b), place+after)
	text := string(bytes.ToValidUTF8(b[first:last], nil))
	if first > 0 {
		text = "…" + text
	}
	if last < len(b) {
		text += "…"
	}
	return text
}
