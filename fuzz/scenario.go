package fuzz

import (
	"maps"
	"slices"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// clone copies a scenario so far as the minimiser changes it in place: messages,
// results and answers are shared.
func clone(sc *harness.Scenario) *harness.Scenario {
	c := *sc
	c.Model = slices.Clone(sc.Model)
	for i := range c.Model {
		c.Model[i].Calls = slices.Clone(c.Model[i].Calls)
	}
	c.Calls = maps.Clone(sc.Calls)
	c.Hooks = maps.Clone(sc.Hooks)
	for name, hook := range c.Hooks {
		hook.Answers = maps.Clone(hook.Answers)
		c.Hooks[name] = hook
	}
	c.User = slices.Clone(sc.User)
	c.Config.Tools = slices.Clone(sc.Config.Tools)
	c.Config.Hooks = maps.Clone(sc.Config.Hooks)
	c.Config.Messages = slices.Clone(sc.Config.Messages)
	c.Config.Listeners = slices.Clone(sc.Config.Listeners)
	for i := range c.Config.Listeners {
		l := &c.Config.Listeners[i]
		l.Gate, l.Throw = slices.Clone(l.Gate), maps.Clone(l.Throw)
	}
	return &c
}

// tidy drops scripts of calls that the model never makes, and notes again which
// hooks there are.
func tidy(sc *harness.Scenario) {
	made := map[string]int{}
	for i := range sc.Model {
		for _, call := range sc.Model[i].Calls {
			made[call.ID]++
		}
	}
	maps.DeleteFunc(sc.Calls, func(key string, _ harness.ToolScript) bool { return !reached(made, key) })
	for _, name := range callHooks {
		maps.DeleteFunc(sc.Hooks[name].Answers, func(key string, _ harness.HookReply) bool { return !reached(made, key) })
	}
	sc.Config.Hooks = nil
	sc.Complete()
}

// reached reports whether there are enough calls for the key, an id or id~1.
func reached(made map[string]int, key string) bool {
	if made[key] > 0 {
		return true
	}
	id, repeat := splitRepeat(key)
	return made[id] > repeat
}

// splitRepeat parts id~2 into the id and 2.
func splitRepeat(key string) (id string, repeat int) {
	for i := len(key) - 1; i > 0; i-- {
		switch c := key[i]; {
		case c == '~':
			for _, digit := range key[i+1:] {
				repeat = 10*repeat + int(digit-'0')
			}
			return key[:i], repeat
		case c < '0' || c > '9':
			return key, 0
		}
	}
	return key, 0
}

// sizeOf says how much there is in a scenario: what takes a reader longer to
// understand weighs more.
func sizeOf(sc *harness.Scenario) int {
	n := 4 * len(sc.User)
	for i := range sc.User {
		n += weight(sc.User[i].Busy) + len(sc.User[i].Answer.Images) + len(sc.User[i].Answer.Messages)
	}
	for i := range sc.Model {
		t := &sc.Model[i]
		n += 6 + 8*len(t.Calls) + weight(t.Gate, t.Text != "", t.Thinking != "", t.Stream != "", t.End != "",
			t.Result != "", t.Stop != "", t.Error != "", t.Throw != "", t.Usage != nil)
		for _, call := range t.Calls {
			n += weight(call.Args != nil, call.Name != toolName(sc))
		}
	}
	for _, s := range sc.Calls {
		n += 1 + 2*(len(s.Updates)+len(s.Late)+len(s.Sync)) + weight(s.Gate, s.Notice, s.Abort, s.Throw != nil)
		if s.Return != nil {
			n += 1 + weight(s.Return.Terminate != nil, s.Return.Details != nil, s.Return.Usage != nil)
		}
	}
	for _, hook := range sc.Hooks {
		n += 5 + weight(hook.Gate, !plainReply(hook.Else))
		for _, reply := range hook.Answers {
			n += 1 + weight(!plainReply(reply))
		}
	}
	return n + sizeOfConfig(&sc.Config) + len(sc.Tags)
}

func sizeOfConfig(c *trace.Config) int {
	n := 2*len(c.Tools) + 3*len(c.Messages)
	for _, t := range c.Tools {
		n += weight(t.ExecutionMode != "", t.Parameters != nil, t.PrepareArguments)
	}
	for _, l := range c.Listeners {
		n += 5 + 2*len(l.Gate) + 2*len(l.Throw) + weight(l.Late)
	}
	return n + weight(c.SystemPrompt != "", c.Level != "", c.APIKey != "", c.ToolExecution != "", c.SteeringMode != "", c.FollowUpMode != "")
}

// weight is the number of facts that hold.
func weight(facts ...bool) int {
	n := 0
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}

// toolName is the name of the tool that a call is given if nothing speaks
// against it.
func toolName(sc *harness.Scenario) string {
	if len(sc.Config.Tools) == 0 {
		return ""
	}
	return sc.Config.Tools[0].Name
}

func plainReply(r harness.HookReply) bool {
	v := &r.Value
	return r.Throw == nil && !r.Abort && !v.Block && v.Reason == "" && v.Terminate == nil && v.Content == nil &&
		v.Details == nil && v.Usage == nil && v.IsError == nil && v.Args == nil && v.Drop == 0 && v.Append == nil &&
		v.Without == nil && v.SystemPrompt == nil && v.Model == "" && v.Level == "" && v.Messages == nil && !v.Stop &&
		v.Action == "" && v.Key == ""
}
