package loop

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// validate checks arguments against the tool's schema. It never changes them.
func validate(tool *Tool, args trace.Value) error {
	if tool.Parameters == nil {
		return nil
	}
	schema, err := compiled(tool.Parameters)
	if err != nil {
		return fmt.Errorf("the schema of the tool %q is not usable: %w", tool.Name, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return fmt.Errorf("the arguments of %q are not valid: %s", tool.Name, faults(err))
	}
	return nil
}

// faults names every place that is not valid, in a fixed order: the validator
// walks objects in any.
func faults(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	texts := leaves(nil, invalid)
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

func leaves(texts []string, e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		if extra, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
			slices.Sort(extra.Properties)
		}
		return append(texts, e.Error())
	}
	for _, cause := range e.Causes {
		texts = leaves(texts, cause)
	}
	return texts
}

// schemas are the compiled schemas by their text, so that tools that come and
// go with the same schema share one.
var schemas = struct {
	sync.Mutex
	byText map[string]*compiledSchema
}{byText: map[string]*compiledSchema{}}

type compiledSchema struct {
	schema *jsonschema.Schema
	err    error
}

// maxSchemas bounds what is kept; a program that makes up schemas without end
// just compiles them again.
const maxSchemas = 1024

func compiled(text trace.Value) (*jsonschema.Schema, error) {
	schemas.Lock()
	defer schemas.Unlock()
	s := schemas.byText[string(text)]
	if s == nil {
		if len(schemas.byText) >= maxSchemas {
			clear(schemas.byText)
		}
		s = &compiledSchema{}
		s.schema, s.err = compile(text)
		schemas.byText[string(text)] = s
	}
	return s.schema, s.err
}

func compile(text trace.Value) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // a schema must not make the loop read files
	const name = "schema:parameters"
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}
