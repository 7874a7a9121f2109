package conformance

import (
	"os"
	"sort"
	"testing"
	"time"
	"fmt"

	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestZZ(t *testing.T) {
	f, _ := os.Open("/tmp/three.jsonl")
	tr, err := trace.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	j := NewJudge(Catalogue())
	v := j.Check(tr)
	type c struct { id string; d time.Duration; seen int }
	var cs []c
	var total time.Duration
	for _, i := range j.plan.applicable {
		r := &j.rules[i]
		if r.check == nil { continue }
		best := time.Hour
		for range 20 {
			began := time.Now()
			for range 300 {
				j.h.expected = r.ID != "x" && j.h.expected
				before := j.begin(i); r.check(&j.h, &j.one); j.end(i, before)
			}
			best = min(best, time.Since(began)/300)
		}
		total += best
		cs = append(cs, c{r.ID, best, v.Rules[i].Exercised})
	}
	sort.Slice(cs, func(a, b int) bool { return cs[a].d > cs[b].d })
	best := time.Hour
	for range 20 {
		began := time.Now()
		for range 300 { j.h.read(tr, j.h.edition) }
		best = min(best, time.Since(began)/300)
	}
	fmt.Println("read", best, "total rules", total, len(cs), "entries", len(tr.Entries))
	var unused time.Duration
	for _, x := range cs { fmt.Print(x.id, " ", x.d, " ", x.seen, "; "); if x.seen == 0 { unused += x.d } }
	fmt.Println("\nnot exercised:", unused)
}
