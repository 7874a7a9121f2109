package harness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// labelFault says what is wrong with the form of a label; empty if nothing.
// Whether the action is ever possible is not looked at: a replay notes that.
func labelFault(label string) string {
	kind, rest, _ := strings.Cut(label, "/")
	switch kind {
	case "model":
		n, answer, _ := strings.Cut(rest, "/")
		return firstFault(
			numberFault(n, "model/N"),
			answerFault(answer, []string{"end", "throw", "aborted"}, []string{"event"}))
	case "tool":
		return toolLabelFault(rest)
	case "hook":
		name, rest, _ := strings.Cut(rest, "/")
		if !slices.Contains(hookNames, name) {
			return fmt.Sprintf("unknown hook %q%s", name, didYouMean(name, hookNames))
		}
		key, answer, found := cutLast(rest, "/")
		if !found || key == "" {
			return "a hook's label is hook/NAME/CALL/return, or hook/NAME/N/return"
		}
		return answerFault(answer, []string{"return", "throw"}, nil)
	case "listener":
		return listenerLabelFault(rest)
	case "clock":
		if _, err := time.ParseDuration(rest); err != nil {
			return "a clock's label is clock/DURATION, such as clock/30s"
		}
		return ""
	}
	return userLabelFault(kind, rest, label)
}

func userLabelFault(kind, rest, label string) string {
	if !slices.Contains(userKinds, kind) {
		return fmt.Sprintf("unknown action %q%s", kind,
			didYouMean(kind, append([]string{"model", "tool", "hook", "listener", "clock"}, userKinds...)))
	}
	if kind == string(UserAbort) {
		switch {
		case label == "abort":
			return ""
		case rest == "0":
			return "the first abort is just «abort»"
		}
	}
	return numberFault(rest, kind+"/N")
}

func toolLabelFault(rest string) string {
	id, answer, found := cutLast(rest, "/")
	if found {
		if _, err := strconv.Atoi(answer); err == nil {
			var many string
			id, many, found = cutLast(id, "/")
			answer = many + "/" + answer
		}
	}
	if !found || id == "" {
		return "a tool's label is tool/CALL/return, tool/CALL/update/N and the like"
	}
	return answerFault(answer, []string{"return", "throw", "aborted"}, []string{"update", "late"})
}

func listenerLabelFault(rest string) string {
	index, rest, _ := strings.Cut(rest, "/")
	if why := numberFault(index, "listener/N"); why != "" {
		return why
	}
	delivery, answer, _ := cutLast(rest, "/")
	about, count, found := cutLast(delivery, "/")
	if !found {
		return "a listener's label is listener/N/EVENT/K/done, or listener/N/EVENT/ABOUT/K/done"
	}
	event, _, _ := strings.Cut(about, "/")
	if !slices.Contains(eventTypes, event) {
		return fmt.Sprintf("unknown event %q%s", event, didYouMean(event, eventTypes))
	}
	return firstFault(numberFault(count, "the count"), answerFault(answer, []string{"done", "throw"}, nil))
}

// answerFault looks at the last part of a label: one of the plain words, or one
// of the others with a number.
func answerFault(answer string, plain, numbered []string) string {
	word, n, has := strings.Cut(answer, "/")
	if slices.Contains(numbered, word) {
		return numberFault(n, word+"/N")
	}
	if slices.Contains(plain, word) && !has {
		return ""
	}
	return fmt.Sprintf("unknown answer %q%s", answer, didYouMean(word, append(plain[:len(plain):len(plain)], numbered...)))
}

func numberFault(text, what string) string {
	if n, err := strconv.Atoi(text); err != nil || n < 0 || strconv.Itoa(n) != text {
		return fmt.Sprintf("%s needs a number from 0, not %q", what, text)
	}
	return ""
}

// firstFault is the first fault that there is.
func firstFault(faults ...string) string {
	for _, why := range faults {
		if why != "" {
			return why
		}
	}
	return ""
}
