// Package config reads pi-conform.yaml, in which a project says what its subjects
// are:
//
//	subjects:
//	  my-loop:
//	    build: cargo build --quiet
//	    command: target/debug/adapter
//	    dir: .
//	    env: {RUST_BACKTRACE: "1"}
//	    edition: 0.84.3
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/harness/edition"
)

// Name is the name of the file.
const Name = "pi-conform.yaml"

// File is what the file says. The first subject is the default one.
type File struct {
	Subjects []Subject
}

// Subject is a subject of the project.
type Subject struct {
	Name string
	// Build makes the subject; empty if there is nothing to be made. One word is a
	// line for the system's shell, several are a command with its arguments.
	Build   []string
	Command []string
	Env     []string // KEY=VALUE
	Dir     string   // where both are run
	Edition string   // empty means the newest that the subject declares
}

// Error is one thing that is wrong with the file.
type Error struct {
	File    string
	Line    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

// Load reads the file of a directory. Without one the File is nil. An error names
// everything that is wrong.
func Load(dir string) (*File, error) {
	path := filepath.Join(dir, Name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads the text of a file that lies at the path.
func Parse(path string, data []byte) (*File, error) {
	r := &reader{path: path}
	f := r.file(data)
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return f, nil
}

type reader struct {
	path   string
	faults []error
}

func (r *reader) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, &Error{r.path, line, fmt.Sprintf(format, args...)})
}

func (r *reader) file(data []byte) *File {
	body := r.body(data)
	if body == nil {
		r.fault(1, "there are no subjects")
		return nil
	}
	f := &File{}
	r.members(body, "the file", fields{
		"subjects": func(n ast.Node) { f.Subjects = r.subjects(n) },
	})
	if len(f.Subjects) == 0 && len(r.faults) == 0 {
		r.fault(1, "there are no subjects")
	}
	return f
}

// body parses the text. The YAML parser is known to panic on some.
func (r *reader) body(data []byte) (body ast.Node) {
	defer func() {
		if recover() != nil {
			r.fault(1, "this is no YAML that can be read")
		}
	}()
	tree, err := parser.ParseBytes(data, 0)
	switch {
	case err != nil:
		r.syntax(err)
	case len(tree.Docs) > 1:
		r.fault(1, "there is more than one YAML document")
	case len(tree.Docs) == 1:
		body = tree.Docs[0].Body
	}
	return body
}

func (r *reader) syntax(err error) {
	at, ok := errors.AsType[interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}](err)
	if !ok || at.GetToken() == nil {
		r.fault(1, "%v", err)
		return
	}
	r.fault(at.GetToken().Position.Line, "%s", at.GetMessage())
}

// fields are the keys that a mapping may have, with what reads them.
type fields map[string]func(ast.Node)

func (r *reader) members(n ast.Node, what string, known fields) {
	seen := map[string]bool{}
	for _, m := range r.mapping(n, what) {
		key, line := m.Key.GetToken().Value, m.Key.GetToken().Position.Line
		read := known[key]
		switch {
		case read == nil:
			var names []string
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			r.fault(line, "unknown key %q%s: %s may have %s", key, pick.DidYouMean(key, names), what, strings.Join(names, ", "))
		case seen[key]:
			r.fault(line, "key %q is there already", key)
		default:
			read(m.Value)
		}
		seen[key] = true
	}
}

func (r *reader) mapping(n ast.Node, what string) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	r.fault(line(n), "%s has to be a mapping of keys to values", what)
	return nil
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

func (r *reader) subjects(n ast.Node) []Subject {
	var subjects []Subject
	for _, m := range r.mapping(n, "subjects") {
		name := m.Key.GetToken().Value
		at := m.Key.GetToken().Position.Line
		s := Subject{Name: name, Dir: filepath.Dir(r.path)}
		before := len(r.faults)
		r.subject(&s, m.Value)
		switch {
		case len(r.faults) > before:
		case len(s.Command) == 0:
			r.fault(at, "subject %q has no command", name)
		case reserved(name):
			r.fault(at, "a subject cannot be named %q: that is a subject of pi-conform itself", name)
		case slices.ContainsFunc(subjects, func(have Subject) bool { return have.Name == name }):
			r.fault(at, "subject %q is there already", name)
		}
		subjects = append(subjects, s)
	}
	return subjects
}

// reserved: names that mean something else on a command line.
func reserved(name string) bool {
	kind, _, _ := strings.Cut(name, "@")
	return name == "" || name[0] == '-' || strings.HasPrefix(name, "mutant:") || slices.Contains([]string{"reference", "pi", "oh-my-pi"}, kind)
}

func (r *reader) subject(s *Subject, n ast.Node) {
	r.members(n, fmt.Sprintf("subject %q", s.Name), fields{
		"build":   func(n ast.Node) { s.Build = r.build(n) },
		"command": func(n ast.Node) { s.Command = r.command(n) },
		"dir":     func(n ast.Node) { s.Dir = r.dir(n) },
		"env":     func(n ast.Node) { s.Env = r.env(n) },
		"edition": func(n ast.Node) { s.Edition = r.edition(n) },
	})
}

func (r *reader) build(n ast.Node) []string {
	if _, ok := n.(*ast.SequenceNode); ok {
		return r.words(n)
	}
	if text := r.text(n, "build"); text != "" {
		return []string{text}
	}
	return nil
}

// command is a list of words, or a text that is cut at its blanks.
func (r *reader) command(n ast.Node) []string {
	if _, ok := n.(*ast.SequenceNode); ok {
		return r.words(n)
	}
	text := r.text(n, "command")
	if strings.ContainsAny(text, `"'`) {
		r.fault(line(n), "a command with quotes has to be written as a list of its words")
	}
	return strings.Fields(text)
}

func (r *reader) words(n ast.Node) []string {
	var words []string
	for _, item := range n.(*ast.SequenceNode).Values {
		words = append(words, r.text(item, "a word of a command"))
	}
	return words
}

func (r *reader) dir(n ast.Node) string {
	dir := filepath.FromSlash(r.text(n, "dir"))
	if filepath.IsAbs(dir) {
		return dir
	}
	dir = filepath.Join(filepath.Dir(r.path), dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		r.fault(line(n), "dir: there is no directory %s", dir)
	}
	return dir
}

func (r *reader) env(n ast.Node) []string {
	var env []string
	for _, m := range r.mapping(n, "env") {
		env = append(env, m.Key.GetToken().Value+"="+r.text(m.Value, "a variable of env"))
	}
	return env
}

func (r *reader) edition(n ast.Node) string {
	text := r.text(n, "edition")
	var known []string
	for _, e := range edition.Known() {
		known = append(known, string(e))
	}
	if _, err := edition.Parse(text); err != nil && text != "" {
		r.fault(line(n), "%v%s", err, pick.DidYouMean(text, known))
	}
	return text
}

// text is a value that is neither a list nor a mapping, as it is written.
func (r *reader) text(n ast.Node, what string) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	r.fault(line(n), "%s has to be text", what)
	return ""
}
