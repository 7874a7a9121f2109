package fuzz

import (
	"maps"
	"slices"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

// cut makes a scenario simpler in one place. It may change the scenario in
// place: it is given a clone.
type cut func(sc *harness.Scenario)

// cuts are all ways to make the scenario simpler in one place, those that take
// away most first.
func cuts(sc *harness.Scenario) []cut {
	var c cutter
	c.turns(sc)
	c.hooks(sc)
	c.listeners(sc)
	c.user(sc)
	c.calls(sc)
	c.scripts(sc)
	c.streams(sc)
	c.config(sc)
	return c
}

type cutter []cut

func (c *cutter) add(do cut) { *c = append(*c, do) }

// when adds a cut only if there is something to be cut.
func (c *cutter) when(ok bool, do cut) {
	if ok {
		c.add(do)
	}
}

func (c *cutter) turns(sc *harness.Scenario) {
	for i := 1; i < len(sc.Model); i++ {
		c.add(func(sc *harness.Scenario) { sc.Model = sc.Model[:i] })
	}
	for i := range sc.Model {
		c.add(func(sc *harness.Scenario) { sc.Model = slices.Delete(sc.Model, i, i+1) })
	}
}

func (c *cutter) hooks(sc *harness.Scenario) {
	for _, name := range slices.Sorted(maps.Keys(sc.Hooks)) {
		c.add(func(sc *harness.Scenario) { delete(sc.Hooks, name) })
		hook := sc.Hooks[name]
		change := func(do func(*harness.HookScript)) {
			c.add(func(sc *harness.Scenario) {
				h := sc.Hooks[name]
				do(&h)
				sc.Hooks[name] = h
			})
		}
		if hook.Gate {
			change(func(h *harness.HookScript) { h.Gate = false })
		}
		if !plainReply(hook.Else) {
			change(func(h *harness.HookScript) { h.Else = harness.HookReply{} })
		}
		if len(hook.Answers) > 1 {
			change(func(h *harness.HookScript) { h.Answers = nil })
		}
		for _, key := range slices.Sorted(maps.Keys(hook.Answers)) {
			change(func(h *harness.HookScript) { delete(h.Answers, key) })
		}
	}
}

func (c *cutter) listeners(sc *harness.Scenario) {
	for i := len(sc.Config.Listeners) - 1; i >= 0; i-- {
		if !subscribes(sc) {
			c.add(func(sc *harness.Scenario) { sc.Config.Listeners = slices.Delete(sc.Config.Listeners, i, i+1) })
		}
		l := &sc.Config.Listeners[i]
		for k := range l.Gate {
			c.add(func(sc *harness.Scenario) {
				l := &sc.Config.Listeners[i]
				l.Gate = slices.Delete(l.Gate, k, k+1)
			})
		}
		for _, at := range slices.Sorted(maps.Keys(l.Throw)) {
			c.add(func(sc *harness.Scenario) { delete(sc.Config.Listeners[i].Throw, at) })
		}
	}
}

// subscribes reports whether the user's actions name listeners by number.
func subscribes(sc *harness.Scenario) bool {
	return slices.ContainsFunc(sc.User, func(a harness.UserAction) bool { return a.Answer.Listener != nil })
}

func (c *cutter) user(sc *harness.Scenario) {
	for i := len(sc.User) - 1; i >= 0; i-- {
		c.add(func(sc *harness.Scenario) { sc.User = slices.Delete(sc.User, i, i+1) })
		c.when(sc.User[i].Busy, func(sc *harness.Scenario) { sc.User[i].Busy = false })
		c.when(len(sc.User[i].Answer.Images) > 0, func(sc *harness.Scenario) { sc.User[i].Answer.Images = nil })
	}
}

func (c *cutter) calls(sc *harness.Scenario) {
	name := toolName(sc)
	for i := len(sc.Model) - 1; i >= 0; i-- {
		for k := len(sc.Model[i].Calls) - 1; k >= 0; k-- {
			c.add(func(sc *harness.Scenario) { dropCall(sc, i, k) })
			call := &sc.Model[i].Calls[k]
			c.when(call.Args != nil, func(sc *harness.Scenario) { sc.Model[i].Calls[k].Args = nil })
			c.when(name != "" && call.Name != name, func(sc *harness.Scenario) { sc.Model[i].Calls[k].Name = name })
			c.when(name != "" && call.Name != name && call.Args != nil, func(sc *harness.Scenario) {
				sc.Model[i].Calls[k].Name, sc.Model[i].Calls[k].Args = name, nil
			})
		}
	}
}

// dropCall takes a call out of a turn. A turn without calls says something
// instead.
func dropCall(sc *harness.Scenario, turn, k int) {
	t := &sc.Model[turn]
	t.Calls = slices.Delete(t.Calls, k, k+1)
	if len(t.Calls) == 0 && t.Text == "" {
		t.Text = "done"
	}
}

func (c *cutter) scripts(sc *harness.Scenario) {
	for _, key := range slices.Sorted(maps.Keys(sc.Calls)) {
		s := sc.Calls[key]
		c.add(func(sc *harness.Scenario) { delete(sc.Calls, key) })
		c.add(func(sc *harness.Scenario) { sc.Calls[key] = harness.ToolScript{Gate: true} })
		change := func(ok bool, do func(*harness.ToolScript)) {
			c.when(ok, func(sc *harness.Scenario) {
				s := sc.Calls[key]
				do(&s)
				sc.Calls[key] = s
			})
		}
		change(len(s.Updates) > 1, func(s *harness.ToolScript) { s.Updates = s.Updates[:1:1] })
		change(len(s.Updates) > 0, func(s *harness.ToolScript) { s.Updates = nil })
		change(len(s.Late) > 1, func(s *harness.ToolScript) { s.Late = s.Late[:1:1] })
		change(len(s.Late) > 0, func(s *harness.ToolScript) { s.Late = nil })
		change(len(s.Sync) > 1, func(s *harness.ToolScript) { s.Sync = s.Sync[:1:1] })
		change(len(s.Sync) > 0, func(s *harness.ToolScript) { s.Sync = nil })
		change(s.Notice, func(s *harness.ToolScript) { s.Notice = false })
		change(s.Abort, func(s *harness.ToolScript) { s.Abort = false })
		change(s.Gate, func(s *harness.ToolScript) {
			*s = harness.ToolScript{Sync: s.Sync, Return: s.Return, Throw: s.Throw}
		})
		change(s.Throw != nil, func(s *harness.ToolScript) { s.Throw = nil })
		change(s.Return != nil, func(s *harness.ToolScript) { s.Return = nil })
		change(s.Return != nil && s.Return.Terminate != nil, func(s *harness.ToolScript) { s.Return = without(s.Return, "terminate") })
		change(s.Return != nil && s.Return.Details != nil, func(s *harness.ToolScript) { s.Return = without(s.Return, "details") })
		change(s.Return != nil && s.Return.Usage != nil, func(s *harness.ToolScript) { s.Return = without(s.Return, "usage") })
	}
}

func without(r *trace.Result, member string) *trace.Result {
	c := *r
	switch member {
	case "details":
		c.Details = nil
	case "usage":
		c.Usage = nil
	default:
		c.Terminate = nil
	}
	return &c
}

func (c *cutter) streams(sc *harness.Scenario) {
	for i := range sc.Model {
		t := &sc.Model[i]
		change := func(ok bool, do func(*scriptedmodel.Turn)) {
			c.when(ok, func(sc *harness.Scenario) { do(&sc.Model[i]) })
		}
		change(t.Stream != "", func(t *scriptedmodel.Turn) { t.Stream = "" })
		change(t.Gate, func(t *scriptedmodel.Turn) { t.Gate = false })
		change(t.End != "" || t.Throw != "" || t.Result != "", func(t *scriptedmodel.Turn) { t.End, t.Throw, t.Result = "", "", "" })
		change(t.Result != "", func(t *scriptedmodel.Turn) { t.Result = "" })
		change(t.Stop != "", func(t *scriptedmodel.Turn) { t.Stop, t.Error = "", "" })
		change(t.Error != "", func(t *scriptedmodel.Turn) { t.Error = "" })
		change(t.Thinking != "", func(t *scriptedmodel.Turn) { t.Thinking = "" })
		change(t.Text != "" && len(t.Calls) > 0, func(t *scriptedmodel.Turn) { t.Text = "" })
		change(t.Usage != nil, func(t *scriptedmodel.Turn) { t.Usage = nil })
	}
}

func (c *cutter) config(sc *harness.Scenario) {
	cfg := &sc.Config
	c.when(cfg.ToolExecution != "", func(sc *harness.Scenario) { sc.Config.ToolExecution = "" })
	c.when(cfg.SteeringMode != "", func(sc *harness.Scenario) { sc.Config.SteeringMode = "" })
	c.when(cfg.FollowUpMode != "", func(sc *harness.Scenario) { sc.Config.FollowUpMode = "" })
	c.when(cfg.SystemPrompt != "", func(sc *harness.Scenario) { sc.Config.SystemPrompt = "" })
	c.when(cfg.Level != "", func(sc *harness.Scenario) { sc.Config.Level = "" })
	c.when(cfg.APIKey != "", func(sc *harness.Scenario) { sc.Config.APIKey = "" })
	c.when(len(cfg.Messages) > 0, func(sc *harness.Scenario) { sc.Config.Messages = nil })
	for i := len(cfg.Tools) - 1; i >= 0; i-- {
		t := &cfg.Tools[i]
		c.when(!called(sc, t.Name), func(sc *harness.Scenario) { sc.Config.Tools = slices.Delete(sc.Config.Tools, i, i+1) })
		c.when(t.ExecutionMode != "", func(sc *harness.Scenario) { sc.Config.Tools[i].ExecutionMode = "" })
		c.when(t.PrepareArguments, func(sc *harness.Scenario) {
			sc.Config.Tools[i].PrepareArguments = false
			delete(sc.Hooks, trace.HookPrepareArguments)
		})
		c.when(t.Parameters != nil, func(sc *harness.Scenario) { sc.Config.Tools[i].Parameters = nil })
	}
	c.when(len(sc.Tags) > 0, func(sc *harness.Scenario) { sc.Tags = nil })
}

func called(sc *harness.Scenario, tool string) bool {
	return slices.ContainsFunc(sc.Model, func(t scriptedmodel.Turn) bool {
		return slices.ContainsFunc(t.Calls, func(c scriptedmodel.Call) bool { return c.Name == tool })
	})
}
