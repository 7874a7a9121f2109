package dialect_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/dialect"
	"github.com/pi-conform/pi-conform/fixtures"
)

// again gives a text over and over, as if it were one long log.
type again struct {
	text []byte
	at   int
	left int64
}

func (r *again) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	r.left -= int64(n)
	return n, nil
}

// allLogs are the recorded logs of pi, one after the other.
func allLogs(tb testing.TB) []byte {
	tb.Helper()
	var all []byte
	for _, name := range fixtures.Logs() {
		text, err := fs.ReadFile(fixtures.FS, name)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, text...)
	}
	return all
}

// BenchmarkCheck judges 1 GiB of logs on one core. What it takes in memory is
// reported too.
func BenchmarkCheck(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const size = 1 << 30
	text := allLogs(b)
	whole := int64(size / len(text) * len(text))
	b.SetBytes(whole)
	for b.Loop() {
		l, err := dialect.Open(&again{text: text, left: whole}, dialect.PiJSON)
		if err != nil {
			b.Fatal(err)
		}
		r, err := dialect.Judge(l, dialect.Options{})
		if err != nil || r.Broken() {
			b.Fatal(err, r.Findings)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
}

// BenchmarkJQ copies a part of the same logs with jq, to compare with.
func BenchmarkJQ(b *testing.B) {
	jq, err := exec.LookPath("jq")
	if err != nil {
		b.Skip("SKIPPED: jq is not installed")
	}
	const size = 64 << 20
	text := allLogs(b)
	file := filepath.Join(b.TempDir(), "log.jsonl")
	if err := os.WriteFile(file, bytes.Repeat(text, size/len(text)), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size / len(text) * len(text)))
	for b.Loop() {
		if err := exec.Command(jq, "-c", ".", file).Run(); err != nil {
			b.Fatal(err)
		}
	}
}
