//go:build explore

package reference_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fixtures"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/loop"
)

func TestExplore(t *testing.T) {
	rules := conformance.Catalogue()
	ds := append([]loop.Defect{""}, loop.KnownDefects()...)
	only := os.Getenv("ONLY")
	show := os.Getenv("SHOW")
	n := 1
	fmt.Sscan(os.Getenv("SCHED"), &n)
	for _, d := range ds {
		if only != "" && !strings.Contains(","+only+",", ","+string(d)+",") {
			continue
		}
		var cases []*harness.CaseFile
		for _, f := range fixtures.Cases() {
			data, _ := fixtures.FS.ReadFile(f)
			c, err := harness.ParseCase(f, data)
			if err != nil {
				t.Fatal(err)
			}
			cases = append(cases, c)
		}
		driver := reference.New()
		if d != "" {
			driver = reference.New(d)
		}
		begin := time.Now()
		for _, e := range edition.Known() {
			firsts := map[string][]string{}
			odd := map[string][]string{}
			for _, c := range cases {
				if w := c.Case.Scenario.Edition; w != "" && w != e {
					continue
				}
				for k := 0; k <= n; k++ {
					sc := *c.Case.Scenario
					sc.Name, sc.Edition = c.Name, e
					var p harness.Policy = harness.NewReplay(c.Case.Schedule)
					if k > 0 {
						h := fnv.New32a()
						fmt.Fprintf(h, "%s/%d/%d", c.Name, 1, k)
						p = harness.NewRandom(uint64(h.Sum32()))
					}
					rec, err := harness.Run(context.Background(), driver, &sc, p, harness.Limits{Steps: 1000})
					if err != nil {
						odd["ERR "+err.Error()] = append(odd["ERR "+err.Error()], c.Name)
						continue
					}
					v := conformance.Check(rec.Trace, rules, conformance.InEdition(e))
					f := v.First()
					name := c.Name
					if k > 0 {
						name += fmt.Sprint("@", k)
					}
					end := rec.Trace.Entries[len(rec.Trace.Entries)-1]
					if end.Outcome != trace.OutcomeComplete {
						odd[string(end.Outcome)] = append(odd[string(end.Outcome)], name)
					}
					if f != nil && f.Level == conformance.Must {
						firsts[f.Rule] = append(firsts[f.Rule], name)
						if show != "" && name == show {
							fmt.Println(trace.Text(rec.Trace))
							for _, f := range v.Findings {
								fmt.Println(f.Rule, f.Level, f.Message, f.Entries)
							}
						}
					} else if show != "" && name == show {
						fmt.Println(trace.Text(rec.Trace))
					}
				}
			}
			fmt.Printf("%-40s %-7s", d, e)
			var keys []string
			for k := range firsts {
				keys = append(keys, k)
			}
			sort.Slice(keys, func(i, j int) bool { return len(firsts[keys[i]]) > len(firsts[keys[j]]) })
			for _, k := range keys {
				fmt.Printf(" %s:%d(%s)", k, len(firsts[k]), firsts[k][0])
			}
			if len(keys) == 0 {
				fmt.Print(" --none--")
			}
			for k, v := range odd {
				fmt.Printf("  [%s:%d %s]", k, len(v), v[0])
			}
			fmt.Println()
		}
		if time.Since(begin) > 20*time.Second {
			fmt.Println("   slow", time.Since(begin))
		}
	}
}
