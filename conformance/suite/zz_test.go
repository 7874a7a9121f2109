package suite_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
)

func TestZZ(t *testing.T) {
	runner, judge, sc := harness.NewRunner(reference.New(), harness.Limits{}), conformance.NewJudge(conformance.Catalogue()), threeTools()
	for round := range 8 {
		var a, b syscall.Rusage
		syscall.Getrusage(0, &a)
		began := time.Now()
		for seed := range uint64(20000) {
			rec, err := runner.Run(context.Background(), sc, harness.NewRandom(seed))
			if err != nil {
				t.Fatal(err)
			}
			if round%2 == 0 {
				judge.Check(rec.Trace)
			}
		}
		syscall.Getrusage(0, &b)
		t.Log(round%2 == 0, time.Since(began)/20000, "user", time.Duration(b.Utime.Nano()-a.Utime.Nano())/20000, "sys", time.Duration(b.Stime.Nano()-a.Stime.Nano())/20000)
	}
}
