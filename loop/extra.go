package loop

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// Extra members are one JSON object. These helpers never change the one they
// are given; a nil object has no members.

// member is the member's value, or nil.
func member(object trace.Value, name string) trace.Value {
	if object == nil {
		return nil
	}
	return members(object)[name]
}

func withMember(object trace.Value, name string, value trace.Value) trace.Value {
	if object == nil {
		return trace.Value(`{"` + name + `":` + string(value) + `}`)
	}
	all := members(object)
	all[name] = value
	return objectOf(all)
}

func withoutMember(object trace.Value, name string) trace.Value {
	if object == nil {
		return nil
	}
	all := members(object)
	if _, there := all[name]; !there {
		return object
	}
	delete(all, name)
	return objectOf(all)
}

func members(object trace.Value) map[string]trace.Value {
	all := map[string]trace.Value{}
	if object != nil {
		_ = json.Unmarshal(object, &all) // what is no object has no members
	}
	return all
}

func objectOf(all map[string]trace.Value) trace.Value {
	if len(all) == 0 {
		return nil
	}
	object, err := json.Marshal(all, json.Deterministic(true))
	if err != nil {
		return nil // cannot be: the values were read from JSON
	}
	return object
}

func quoted(text string) trace.Value {
	v, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return trace.Value(`""`)
	}
	return v
}

func number(n int64) trace.Value { return strconv.AppendInt(nil, n, 10) }
