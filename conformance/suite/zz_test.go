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
	for _, B := range []int{1, 4, 8, 16, 32, 64} {
		var runners []*harness.Runner
		var judges []*conformance.Judge
		d := reference.New()
		cat := conformance.Catalogue()
		for range B {
			runners = append(runners, harness.NewRunner(d, harness.Limits{}))
			judges = append(judges, conformance.NewJudge(cat))
		}
		sc := threeTools()
		best := time.Hour
		var bestRun time.Duration
		for range 12 {
			var a, b, c syscall.Rusage
			var runs, checks time.Duration
			const N = 6400
			for i := 0; i < N; i += B {
				syscall.Getrusage(0, &a)
				t0 := time.Now()
				recs := make([]*harness.Recording, B)
				for k := range B {
					recs[k], _ = runners[k].Run(context.Background(), sc, harness.NewRandom(uint64(i+k)))
				}
				t1 := time.Now()
				for k := range B {
					judges[k].Check(recs[k].Trace)
				}
				runs += t1.Sub(t0)
				checks += time.Since(t1)
			}
			_, _ = b, c
			if (runs+checks)/N < best {
				best, bestRun = (runs+checks)/N, runs/N
			}
		}
		t.Log(B, best, "run", bestRun, "rules", best-bestRun)
	}
}
