package fuzz

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// compact closes the gaps in the numbers of a schedule's labels: what was named
// model/1 or abort/2 is the first of its kind once the scenario has lost the ones
// before it.
func compact(labels []string) []string {
	numbers := map[string][]int{} // of models, listeners and hooks, by kind
	for _, label := range labels {
		if kind, n, _, ok := numbered(label); ok && !isUser(kind) && !slices.Contains(numbers[kind], n) {
			numbers[kind] = append(numbers[kind], n)
		}
	}
	for _, of := range numbers {
		slices.Sort(of)
	}
	seen := map[string]int{} // user actions of a kind so far
	closed := make([]string, len(labels))
	for i, label := range labels {
		kind, n, rest, ok := numbered(label)
		switch {
		case !ok:
			closed[i] = label
		case isUser(kind):
			closed[i] = userLabel(kind, seen[kind])
			seen[kind]++
		default:
			closed[i] = kind + "/" + strconv.Itoa(slices.Index(numbers[kind], n)) + "/" + rest
		}
	}
	return closed
}

// numbered parses a label that has a number: of hooks the third part, else the
// second.
func numbered(label string) (kind string, n int, rest string, ok bool) {
	if label == string(harness.UserAbort) {
		return label, 0, "", true
	}
	kind, rest, _ = strings.Cut(label, "/")
	if kind == "hook" {
		name, after, _ := strings.Cut(rest, "/")
		kind, rest = kind+"/"+name, after
	}
	number, rest, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	return kind, n, rest, err == nil
}

func isUser(kind string) bool {
	return kind != "model" && kind != "listener" && kind != "tool" && !strings.HasPrefix(kind, "hook/")
}

func userLabel(kind string, n int) string {
	if kind == string(harness.UserAbort) && n == 0 {
		return kind
	}
	return kind + "/" + strconv.Itoa(n)
}

// renamed gives the calls the names c1, c2, … in the order of the script. It is
// false if they have them, or if listeners ask for them by name.
func renamed(c harness.Case) (harness.Case, bool) {
	names := map[string]string{}
	for i := range c.Scenario.Model {
		for _, call := range c.Scenario.Model[i].Calls {
			if _, known := names[call.ID]; !known {
				names[call.ID] = "c" + strconv.Itoa(len(names)+1)
			}
		}
	}
	same := true
	for from, to := range names {
		same = same && from == to
	}
	if same || asksByName(c.Scenario) {
		return c, false
	}
	sc := clone(c.Scenario)
	for i := range sc.Model {
		for k := range sc.Model[i].Calls {
			sc.Model[i].Calls[k].ID = names[sc.Model[i].Calls[k].ID]
		}
	}
	sc.Calls = map[string]harness.ToolScript{}
	for key, script := range c.Scenario.Calls {
		sc.Calls[renameKey(names, key)] = renameTexts(names, script)
	}
	for _, name := range callHooks {
		hook, ok := sc.Hooks[name]
		if !ok {
			continue
		}
		hook.Answers = map[string]harness.HookReply{}
		for key, reply := range c.Scenario.Hooks[name].Answers {
			hook.Answers[renameKey(names, key)] = reply
		}
		sc.Hooks[name] = hook
	}
	labels := make([]string, len(c.Schedule))
	for i, label := range c.Schedule {
		parts := strings.Split(label, "/")
		for k := range parts {
			parts[k] = renameKey(names, parts[k])
		}
		labels[i] = strings.Join(parts, "/")
	}
	return harness.Case{Scenario: sc, Schedule: labels}, true
}

var callHooks = [...]string{trace.HookPrepareArguments, trace.HookBeforeToolCall, trace.HookAfterToolCall}

func asksByName(sc *harness.Scenario) bool {
	return slices.ContainsFunc(sc.Config.Listeners, func(l trace.ListenerConfig) bool {
		return slices.ContainsFunc(l.Gate, func(pattern string) bool {
			return strings.HasPrefix(pattern, "tool_execution_") && strings.Contains(pattern, "/")
		})
	})
}

// renameKey renames an id, or the id of a key such as c3~1.
func renameKey(names map[string]string, key string) string {
	if to, ok := names[key]; ok {
		return to
	}
	id, repeat := splitRepeat(key)
	if to, ok := names[id]; ok && repeat > 0 {
		return to + "~" + strconv.Itoa(repeat)
	}
	return key
}

// renameTexts renames the call in the results that the generator made for it.
func renameTexts(names map[string]string, s harness.ToolScript) harness.ToolScript {
	rename := func(r *trace.Result) *trace.Result {
		if r == nil || len(r.Content.Blocks) != 1 {
			return r
		}
		c := *r
		block := c.Content.Blocks[0]
		words := strings.Split(block.Text, " ")
		for i, word := range words {
			if to, ok := names[word]; ok {
				words[i] = to
			} else if to, ok := names[strings.TrimPrefix(word, "r")]; ok {
				words[i] = "r" + to
			}
		}
		block.Text = strings.Join(words, " ")
		c.Content.Blocks = []trace.Block{block}
		return &c
	}
	all := func(of []*trace.Result) []*trace.Result {
		of = slices.Clone(of)
		for i := range of {
			of[i] = rename(of[i])
		}
		return of
	}
	s.Sync, s.Updates, s.Late, s.Return = all(s.Sync), all(s.Updates), all(s.Late), rename(s.Return)
	return s
}
