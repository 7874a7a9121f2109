package suite

import (
	"fmt"
	"math/rand/v2"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// fate is what becomes of a call. The plan decides it, so that it is the same in
// a twin.
type fate uint8

const (
	succeeds fate = iota
	fails
	panics
	isAborted
	isRefused // before the body is entered
	workerDies
	fates
)

// plan is what is going to happen, apart from the order.
type plan struct {
	seed     uint64
	every    int
	quiet    bool   // nobody reports, no observer fails
	tool     string // name of the tools
	calls    []plannedCall
	closes   string // session that is closed while its tools run, or empty
	disposes bool   // the bridge is taken down while tools run
}

type plannedCall struct {
	agent, id string
	card      *rules.Card
	fate      fate
	reports   int // by the body
	early     bool
	timer     int // reports by a timer
	thread    int // reports by another goroutine of the tool
	nested    bool
	invalid   bool
}

var agents = []string{"a", "b"}

func sessionOf(agent string) string {
	if agent == "" {
		return ""
	}
	return "session-" + agent
}

var cards = []*rules.Card{
	{Title: "Run it", Generic: true, Kind: "other"},
	{Title: "Edit main.go", Kind: "edit", Locations: trace.Value(`[{"path":"/p/main.go"}]`), Fixed: []trace.Value{
		trace.Value(`{"type":"diff","path":"/p/main.go","oldText":"a","newText":"b"}`),
	}},
	{Title: "Run make", Kind: "execute", Fixed: []trace.Value{trace.Value(`{"type":"terminal","terminalId":"t1"}`)}},
}

func drawPlan(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := plan{seed: seed, tool: "workflow"}
	if rng.IntN(4) == 0 {
		p.every = 3
	}
	switch rng.IntN(8) {
	case 0, 1:
		p.closes = sessionOf("a")
	case 2:
		p.disposes = true
	}
	for _, agent := range agents {
		for k := range 1 + rng.IntN(2) {
			p.calls = append(p.calls, plannedCall{
				agent: agent, id: fmt.Sprintf("c%d", k+1), card: cards[rng.IntN(len(cards))], fate: fate(rng.IntN(int(fates))),
				reports: rng.IntN(4), early: rng.IntN(3) == 0, timer: rng.IntN(3), thread: rng.IntN(3), nested: rng.IntN(3) == 0, invalid: rng.IntN(4) == 0,
			})
		}
	}
	if rng.IntN(3) == 0 {
		p.calls = append(p.calls, plannedCall{id: "c1", reports: 1})
	}
	return p
}

// able is the plan for a channel that may have no setting for how many views are
// let through.
func (p plan) able(throttle bool) plan {
	if !throttle {
		p.every = 0
	}
	return p
}

// watcher is one observer and what it does with what it is told.
type watcher struct {
	name, scope string
	does        manner
}

// manner is what an observer does. The words are those of the protocol.
type manner string

const (
	doLook   manner = "look"
	doKeep   manner = "keep"   // it keeps the view, to look at it at the end
	doMeddle manner = "meddle" // it changes the view that it was given
	doPanic  manner = "panic"  // on each fifth report
	doFail   manner = "fail"   // on each fourth report
	doWait   manner = "wait"   // it is slow
	doReport manner = "report" // on each third report, on the execution that it is told of
)

// watchers are those who watch a plan being played.
func (p *plan) watchers() []watcher {
	all := []watcher{{"keeper", "", doKeep}, {"meddler", "", doMeddle}}
	if !p.quiet {
		all = append(all, watcher{"panicking", "", doPanic}, watcher{"failing", "", doFail})
	}
	return append(all, watcher{"slow", "", doWait}, watcher{"reporting", "", doReport},
		watcher{"of a", "a", doLook}, watcher{"of b", "b", doLook}, watcher{"last", "", doLook})
}

// breaksOn reports whether an observer fails on a report.
func (m manner) breaksOn(number int) bool {
	return m == doPanic && number%5 == 0 || m == doFail && number%4 == 0
}

// foreign are views in JSON, most of which say what a view cannot say.
var foreign = []string{
	`{"title":"half"}`, `{"content":[{"type":"text","text":"half"}]}`, `{"title":"x","kind":"edit"}`, `{"rawInput":{}}`,
	`{"locations":[]}`, `{"title":"x","status":"completed"}`, `{"card":"diff"}`,
}
