package fuzz

import (
	"maps"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// able is what a subject has declared. Only one that declares nothing at all is
// taken to have everything that an agent has.
type able struct{ harness.SubjectInfo }

func (a able) form(f trace.Form) bool {
	return a.Declares("forms:"+string(f)) && (len(a.Capabilities) > 0 || f == trace.FormAgent)
}

func (a able) hook(name string) bool { return a.Declares("hooks:" + name) }

// scenario draws a scenario without the hooks that the subject lacks: with them it
// would say nothing.
func (x *explorer) scenario(c Chooser, size Size) *harness.Scenario {
	sc := Scenario(c, x.o.Edition, size)
	lacks := func(name string) bool { return !x.able.hook(name) }
	maps.DeleteFunc(sc.Hooks, func(name string, _ harness.HookScript) bool { return lacks(name) })
	maps.DeleteFunc(sc.Config.Hooks, func(name string, _ trace.Mode) bool { return lacks(name) })
	for i := range sc.Config.Tools {
		t := &sc.Config.Tools[i]
		t.PrepareArguments = t.PrepareArguments && !lacks(trace.HookPrepareArguments)
	}
	return sc
}
