package session

import (
	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// event makes an event of the session; its members are given as name, value,
// name, value and so on.
func event(name string, members ...any) *trace.Event {
	all := map[string]any{}
	for i := 0; i+1 < len(members); i += 2 {
		all[members[i].(string)] = members[i+1]
	}
	extra, err := json.Marshal(all, json.Deterministic(true))
	if err != nil {
		extra = trace.Value("{}") // cannot be: the values are texts, numbers and flags
	}
	return &trace.Event{Type: name, Extra: extra}
}
