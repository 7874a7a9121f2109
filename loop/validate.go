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
	s := compiled(tool.Parameters)
	if s.err != nil {
		return fmt.Errorf("the schema of the tool %q is not usable: %w", tool.Name, s.err)
	}
	if text := s.check(args); text != "" {
		return fmt.Errorf("the arguments of %q are not valid: %s", tool.Name, text)
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

	// What is wrong with arguments that were seen before, by their text; the same
	// ones come again and again where a loop is tested.
	mu   sync.Mutex
	seen map[string]string
}

// maxSchemas and maxSeen bound what is kept; a program that makes up schemas or
// arguments without end just has them looked at again. Long arguments are not
// kept.
const (
	maxSchemas = 1024
	maxSeen    = 256
	longArgs   = 256 // bytes
)

// check says what is wrong with arguments; empty if nothing is.
func (s *compiledSchema) check(args trace.Value) string {
	if len(args) > longArgs {
		return s.look(args)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, known := s.seen[string(args)]
	if known {
		return text
	}
	if s.seen == nil || len(s.seen) >= maxSeen {
		s.seen = map[string]string{}
	}
	text = s.look(args)
	s.seen[string(args)] = text
	return text
}

func (s *compiledSchema) look(args trace.Value) string {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err == nil {
		err = s.schema.Validate(value)
	}
	if err == nil {
		return ""
	}
	return faults(err)
}

func compiled(text trace.Value) *compiledSchema {
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
	return s
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
