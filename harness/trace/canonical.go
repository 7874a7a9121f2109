package trace

import (
	"bytes"

	"github.com/go-json-experiment/json"
)

// canonical is a JSON value in canonical form, without the members that differ
// from run to run and without null members, at any depth. A null is absent.
func canonical(v Value) Value {
	if len(v) == 0 || string(v) == "{}" {
		return v
	}
	c := v.Clone()
	if c.Canonicalize() != nil {
		return v // not JSON: only a program can have made it, nothing to forgive
	}
	if string(c) == "null" {
		return nil
	}
	if !mayHold(c) {
		return c
	}
	var value any
	if json.Unmarshal(c, &value) != nil {
		return c
	}
	pruned, err := json.Marshal(prune(value))
	if err != nil {
		return c
	}
	c = pruned
	if c.Canonicalize() != nil {
		return v
	}
	return c
}

// mayHold spares most values the way through Go values.
func mayHold(v Value) bool {
	return bytes.Contains(v, []byte("null")) ||
		bytes.Contains(v, []byte(`"timestamp"`)) ||
		bytes.Contains(v, []byte(`"durationMs"`))
}

func prune(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if member == nil || name == "timestamp" || name == "durationMs" {
				delete(value, name)
				continue
			}
			value[name] = prune(member)
		}
	case []any:
		for i := range value {
			value[i] = prune(value[i])
		}
	}
	return value
}

// extra is canonical for the unknown members of an object; none is absent.
func extra(v Value) Value {
	if v = canonical(v); string(v) == "{}" {
		return nil
	}
	return v
}
