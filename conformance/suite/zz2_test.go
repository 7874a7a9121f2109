package suite_test

import (
	"context"
	"os"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestZZDump(t *testing.T) {
	rec, _ := harness.Run(context.Background(), reference.New(), threeTools(), harness.NewRandom(1), harness.Limits{})
	f, err := os.Create("/tmp/three.jsonl")
	if err != nil { t.Fatal(err) }
	trace.Write(f, rec.Trace); f.Close()
}
