package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness"
)

// part is a case with those of its schedules that this shard runs.
type part struct {
	file      *harness.CaseFile
	schedules []int // numbers; 0 is the case's own
}

// plan writes down what is to be run, and gives what of it falls to this shard.
//
// All schedules of all cases are dealt out like cards, one after the other, so
// that the shards differ by one schedule at most and together are just the whole.
func (r *run) plan(cases []*harness.CaseFile) []part {
	var mine []part
	dealt := 0
	for _, c := range cases {
		p := part{file: c}
		for n := range 1 + r.o.Schedules {
			if r.o.Shard.Count <= 1 || dealt%r.o.Shard.Count == r.o.Shard.Index-1 {
				p.schedules = append(p.schedules, n)
			}
			dealt++
		}
		if p.schedules != nil {
			mine = append(mine, p)
		}
	}
	r.describe(cases, mine)
	return mine
}

// describe says in the report what the run sets out to do.
func (r *run) describe(cases []*harness.CaseFile, mine []part) {
	info := r.driver.Info()
	r.shared = report.Report{
		Schema:  report.Schema,
		Tool:    r.o.Tool,
		Subject: report.Subject{Name: info.Name, Version: info.Version, Language: info.Language, Barrier: info.Barrier},
		Edition: string(r.o.Edition),
		Seed:    r.o.Seed,
		Plan:    report.Plan{ID: r.planID(cases), Cases: len(cases), Schedules: r.o.Schedules},
	}
	if r.o.Shard.Count > 0 {
		r.shared.Shard = &r.o.Shard
	}
	for _, p := range mine {
		r.shared.Results = append(r.shared.Results, report.Result{
			Case: p.file.Name, Status: report.StatusNotRun, Message: "the run ended before its turn came",
		})
	}
}

// planID is a digest of all that decides what is run and how it is judged.
func (r *run) planID(cases []*harness.CaseFile) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%d\n%d\n", r.o.Tool, r.o.Edition, r.o.Seed, r.o.Schedules)
	for _, c := range cases {
		fmt.Fprintf(sum, "case %q\n", c.Name)
	}
	for _, rule := range r.o.Rules {
		fmt.Fprintf(sum, "rule %s\n", rule.ID)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
