//go:build unix

package adapters_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/adapters"
	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/fuzz"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/subject"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// BenchmarkCompare measures, in one run and on one scenario, how many cases a CPU
// second is good for: fast-check's scheduler with the npm loop in process, the npm
// loop over stdio, and the reference in process, each with its checks. The ratios
// to fast-check are what counts. «make bench-compare» runs it.
func BenchmarkCompare(b *testing.B) {
	if os.Getenv("PI_CONFORM_COMPARE") == "" {
		b.Skip("SKIPPED: set PI_CONFORM_COMPARE=1; npm installs the loop and fast-check")
	}
	ctx := context.Background()
	loop, err := subject.Pi(ctx, "0.84.3", subject.Options{Adapters: adapters.Files, Progress: b.Output()})
	if err != nil {
		b.Fatal(err)
	}
	const rounds, runs = 5, 3000
	usually := fastCheck(b)
	var usual, one, four, inProcess []float64
	for range rounds { // a machine is not as fast all the time
		cases := usually(loop.Command(), runs)
		usual = append(usual, cases)
		one = append(one, overStdio(b, loop.Command(), runs, 1)/cases)
		four = append(four, overStdio(b, loop.Command(), runs, 4)/cases)
		inProcess = append(inProcess, perSecond(10*runs, func(n int) { playThreeTools(b, nil, 0, n) })/cases)
	}
	b.ReportMetric(median(usual), "fast-check-cases/cpu-s")
	b.ReportMetric(median(one), "stdio/fast-check")
	b.ReportMetric(median(four), "stdio-four-jobs/fast-check")
	b.ReportMetric(median(inProcess), "reference/fast-check")
	b.ReportMetric(twoJobs(b), "two-jobs/one")
	schedules, cpu := exhaustSmall(b)
	b.ReportMetric(schedules, "exhausted-schedules")
	b.ReportMetric(cpu, "exhausting-cpu-s")
	b.ReportMetric(0, "ns/op")
}

// twoJobs is how many times as many runs two jobs do in the same time as one.
func twoJobs(b *testing.B) float64 {
	b.Helper()
	spent := func(jobs int) time.Duration {
		began := time.Now()
		o := fuzz.Options{Runs: 20_000, Jobs: jobs, Policy: harness.PolicySpec{Kind: harness.PolicyRandom}, Scenario: threeTools()}
		if _, err := fuzz.Explore(context.Background(), reference.New(), o); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	spent(1) // warm
	best := 0.0
	for range 3 {
		best = max(best, float64(spent(1))/float64(spent(2)))
	}
	return best
}

// exhaustSmall goes through all schedules of twenty small scenarios, with all rules,
// and tells the CPU seconds that it takes.
func exhaustSmall(b *testing.B) (schedules, cpu float64) {
	b.Helper()
	before := cpuSeconds()
	for seed := range uint64(20) {
		size := fuzz.Wide()
		size.Turns, size.Calls, size.Updates, size.Prompts = 1, 2, 1, 1
		sc := fuzz.Scenario(fuzz.NewSeeded(seed), edition.Default, size)
		o := fuzz.Options{Runs: 2_000, Policy: harness.PolicySpec{Kind: harness.PolicyExhaustive}, Scenario: sc}
		r, err := fuzz.Explore(context.Background(), reference.New(), o)
		if err != nil {
			b.Fatal(err)
		}
		schedules += float64(r.Runs)
	}
	return schedules, cpuSeconds() - before
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}

// fastCheck installs fast-check beside nothing else, and gives how many runs a CPU
// second is good for if the same Node runs it.
func fastCheck(b *testing.B) func(command protocol.Command, runs int) float64 {
	b.Helper()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o644); err != nil {
		b.Fatal(err)
	}
	install := exec.Command("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "fast-check@4")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		b.Fatalf("npm install fast-check: %v\n%s", err, out)
	}
	script, err := filepath.Abs("pi/bench/fast-check.mjs")
	if err != nil {
		b.Fatal(err)
	}
	return func(command protocol.Command, runs int) float64 {
		folder := ""
		for _, entry := range command.Env {
			if value, ok := strings.CutPrefix(entry, subject.PackageVariable+"="); ok {
				folder = value
			}
		}
		cmd := exec.Command(command.Argv[0], script, folder, filepath.Join(dir, "node_modules", "fast-check"), strconv.Itoa(runs))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		var told struct {
			Runs       int
			CPUSeconds float64
		}
		if err := json.Unmarshal(out, &told); err != nil {
			b.Fatalf("%v in %q", err, out)
		}
		return float64(told.Runs) / told.CPUSeconds
	}
}

// overStdio is how many runs a CPU second is good for over stdio, of both processes
// together, with that many jobs. As for fast-check, starting the subject and warming
// it up do not count. What a process has used is known once it has ended: so they
// are measured with one that does nothing else.
func overStdio(b *testing.B, command protocol.Command, runs, jobs int) float64 {
	b.Helper()
	const warm = 200
	cost := func(runs int) float64 {
		loop := protocol.NewProcess(command, protocol.Options{})
		before := cpuSeconds()
		playJobs(b, loop, warm, jobs)
		playJobs(b, loop, runs, jobs)
		if err := loop.Close(); err != nil {
			b.Fatal(err)
		}
		return cpuSeconds() - before
	}
	starting := cost(0)
	return float64(runs) / (cost(runs) - starting)
}

// playJobs has several cases under way on one process: while one is judged, the
// subject has the next.
func playJobs(b *testing.B, d harness.Driver, runs, jobs int) {
	var group sync.WaitGroup
	for job := range jobs {
		group.Go(func() { playThreeTools(b, d, job*runs/jobs, (job+1)*runs/jobs) })
	}
	group.Wait()
}

// perSecond is how many runs a CPU second is good for, of this process.
func perSecond(runs int, play func(n int)) float64 {
	play(runs / 20) // warm
	before := cpuSeconds()
	play(runs)
	return float64(runs) / (cpuSeconds() - before)
}

func cpuSeconds() float64 {
	total := 0.0
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		_ = syscall.Getrusage(who, &usage)
		total += float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
	}
	return total
}

// playThreeTools runs the scenario by the schedules that those seeds draw, with all
// rules: on the subject as predicted by the reference, or on the reference alone.
func playThreeTools(b *testing.B, d harness.Driver, from, to int) {
	oracle, sc, judge := reference.New(), threeTools(), conformance.NewJudge(conformance.Catalogue())
	defer oracle.Close()
	check := func(rec *harness.Recording, err error) (ok bool) {
		if err != nil {
			b.Error(err)
			return false
		}
		if v := judge.Check(rec.Trace); v.Outcome != conformance.Pass {
			b.Error(v.Findings)
			return false
		}
		return true
	}
	if d != nil {
		playAhead(d, oracle, sc, from, to, check)
		return
	}
	runner := harness.NewRunner(oracle, harness.Limits{})
	for seed := from; seed < to; seed++ {
		if !check(runner.Run(context.Background(), sc, harness.NewRandom(uint64(seed)))) {
			return
		}
	}
}

// playAhead has as many cases under way as fuzz has.
func playAhead(d, oracle harness.Driver, sc *harness.Scenario, from, to int, check func(*harness.Recording, error) bool) {
	const ahead = 16
	runners := make([]*harness.PredictedRunner, ahead)
	for i := range runners {
		runners[i] = harness.NewPredictedRunner(d, oracle, harness.Limits{})
	}
	begun := from
	for seed := from; seed < to; seed++ {
		if begun-seed <= ahead/2 {
			for ; begun < min(to, seed+ahead); begun++ {
				runners[begun%ahead].Begin(context.Background(), sc, harness.NewRandom(uint64(begun)))
			}
		}
		if !check(runners[seed%ahead].Finish()) {
			return
		}
	}
}

// threeTools is the scenario of all speed comparisons: three tools in parallel,
// two updates each, in any order.
func threeTools() *harness.Scenario {
	sc := &harness.Scenario{
		Config: trace.Config{Tools: []trace.Tool{{Name: "a"}}},
		Model: []scriptedmodel.Turn{
			{Calls: []scriptedmodel.Call{{ID: "c1", Name: "a"}, {ID: "c2", Name: "a"}, {ID: "c3", Name: "a"}}},
			{Text: "done"},
		},
		Calls: map[string]harness.ToolScript{},
		User:  []harness.UserAction{{Kind: harness.UserPrompt, Answer: trace.Answer{Text: "go"}}},
	}
	for _, id := range []string{"c1", "c2", "c3"} {
		update := &trace.Result{Content: trace.TextContent("u" + id)}
		sc.Calls[id] = harness.ToolScript{Gate: true, Updates: []*trace.Result{update, update}}
	}
	sc.Complete()
	return sc
}
