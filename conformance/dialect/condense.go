package dialect

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pi-conform/pi-conform/harness/trace"
)

const (
	longText = 1 << 10 // longer texts are put in short
	headText = 512     // what is kept of them
)

// condense is a text in short: its beginning and a digest of the whole. No rule
// looks into long texts; they only compare them.
func condense(text []byte) string {
	if len(text) <= longText {
		return string(text)
	}
	return string(text[:headText]) + "…" + digest(text)
}

// condenseValue puts a JSON value in short, so that values that mean the same
// stay the same.
func condenseValue(raw []byte) trace.Value {
	if len(raw) <= longText {
		return trace.Value(raw).Clone()
	}
	value := trace.Value(raw).Clone()
	if err := value.Canonicalize(); err != nil {
		value = trace.Value(raw)
	}
	return trace.Value(`"` + digest(value) + `"`)
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
