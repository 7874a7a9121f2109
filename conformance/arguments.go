package conformance

import (
	"bytes"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// surelyValid reports whether the prepared arguments of a call keep the schema
// that its tool gives. It is only ever sure of that: arguments that do not keep
// it may have been turned into some that do, by a loop that reads "1" as 1.
func (h *history) surelyValid(c *call) bool {
	tool := h.tool(c.block.Name)
	if tool == nil || len(tool.Parameters) == 0 {
		return false
	}
	args := c.block.Arguments
	if c.prepare != none {
		if prepared := h.hookAnswer(c.prepare).Args; len(prepared) > 0 {
			args = prepared
		}
	}
	schema := compile(tool.Parameters)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	return schema != nil && err == nil && schema.Validate(value) == nil
}

func compile(text trace.Value) *jsonschema.Schema {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // to judge must not read files
	const name = "schema:parameters"
	if compiler.AddResource(name, document) != nil {
		return nil
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return nil
	}
	return schema
}
