package protocol

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Direction says who wrote a message. It is the name of the schema's file.
type Direction string

// The directions.
const (
	ToSubject   Direction = "to-subject"
	FromSubject Direction = "from-subject"
)

// Schemas are the JSON Schemas of the protocol, in the folder schema:
// to-subject.json, from-subject.json, and types.json, to which both refer.
//
//go:embed schema/*.json
var Schemas embed.FS

// Validate checks a line against the schema of its direction. It does not see
// what a schema cannot say, such as duplicate keys.
func Validate(d Direction, text []byte) error {
	s, err := schemas()
	if err != nil {
		return err
	}
	return check(s.whole[d], text)
}

type schemaSet struct {
	compiler *jsonschema.Compiler
	whole    map[Direction]*jsonschema.Schema
	kinds    map[string]*jsonschema.Schema // by direction and type of message
}

// schemas compiles the embedded schemas, which takes some milliseconds.
var schemas = sync.OnceValues(compile)

// The schemas refer to each other by file name, so any base will do.
const base = "file:///schema/"

func compile() (*schemaSet, error) {
	s := &schemaSet{
		compiler: jsonschema.NewCompiler(),
		whole:    map[Direction]*jsonschema.Schema{},
		kinds:    map[string]*jsonschema.Schema{},
	}
	for _, name := range []string{"types", string(ToSubject), string(FromSubject)} {
		if err := s.add(name + ".json"); err != nil {
			return nil, err
		}
	}
	for d, types := range map[Direction][]string{ToSubject: requestTypes, FromSubject: replyTypes} {
		whole, err := s.compiler.Compile(base + string(d) + ".json")
		if err != nil {
			return nil, err
		}
		s.whole[d] = whole
		for _, t := range types {
			kind, err := s.compiler.Compile(base + string(d) + ".json#/$defs/" + t)
			if err != nil {
				return nil, err
			}
			s.kinds[string(d)+" "+t] = kind
		}
	}
	return s, nil
}

func (s *schemaSet) add(name string) error {
	text, err := Schemas.ReadFile("schema/" + name)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return s.compiler.AddResource(base+name, doc)
}

func check(schema *jsonschema.Schema, text []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(doc)
}

// explain says, in the words of the schema of that one type, what is wrong with
// a message; nothing if the schema finds no fault.
func explain(text []byte, d Direction, messageType string) string {
	s, err := schemas()
	if err != nil {
		return ""
	}
	kind, ok := s.kinds[string(d)+" "+messageType]
	if !ok {
		return ""
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](check(kind, text))
	if !ok {
		return ""
	}
	return strings.TrimPrefix(deepest(invalid).Error(), "at '': ")
}

// deepest is the cause that lies deepest in the message: of the branches of an
// anyOf it is the last one that went furthest before it failed: the first is often «null».
func deepest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e
	for _, cause := range e.Causes {
		if c := deepest(cause); len(c.InstanceLocation) >= len(best.InstanceLocation) {
			best = c
		}
	}
	return best
}
