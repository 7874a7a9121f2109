package baseline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
)

// fields are what an entry may say, with where it goes.
var fields = map[string]func(*Entry, string) error{
	"match":   func(e *Entry, text string) error { e.Match = text; return nil },
	"rule":    func(e *Entry, text string) error { e.Rule = text; return nil },
	"status":  setStatus,
	"message": func(e *Entry, text string) error { e.Message = text; return nil },
	"reason":  func(e *Entry, text string) error { e.Reason = text; return nil },
	"issue":   func(e *Entry, text string) error { e.Issue = text; return nil },
	"expires": setExpires,
}

var fieldNames = []string{"match", "rule", "status", "message", "reason", "issue", "expires"}

func setStatus(e *Entry, text string) error {
	e.Status = Status(text)
	if slices.Contains(statuses, text) {
		return nil
	}
	return fmt.Errorf("unknown status %q%s: it has to be one of %s", text, pick.DidYouMean(text, statuses), strings.Join(statuses, ", "))
}

func setExpires(e *Entry, text string) (err error) {
	if e.Expires, err = time.Parse(time.DateOnly, text); err != nil {
		return fmt.Errorf("expires: %q is no date: write it as 2027-01-31", text)
	}
	return nil
}

// Parse reads the text of a baseline: a list of entries.
func Parse(path, text string) (f *File, err error) {
	f = &File{Path: path, lines: strings.SplitAfter(text, "\n")}
	defer func() {
		if fault := recover(); fault != nil { // the YAML parser is not sure of its footing
			f, err = nil, fmt.Errorf("%s: no YAML that can be read: %v", path, fault)
		}
	}()
	tree, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("%s: %s", path, first)
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return f, nil
	}
	list, ok := tree.Docs[0].Body.(*ast.SequenceNode)
	if !ok || len(tree.Docs) > 1 {
		return nil, fmt.Errorf("%s: a baseline is one list, each entry beginning with «- match:»", path)
	}
	return f, f.fill(list)
}

func (f *File) fill(list *ast.SequenceNode) error {
	for i, value := range list.Values {
		e := Entry{Line: value.GetToken().Position.Line, Status: Fail}
		if i < len(list.Entries) && list.Entries[i].Start != nil {
			e.Line = list.Entries[i].Start.Position.Line
		}
		if err := f.entry(&e, value); err != nil {
			return err
		}
		f.Entries = append(f.Entries, e)
	}
	f.bounds()
	return nil
}

func (f *File) entry(e *Entry, from ast.Node) error {
	for _, member := range members(from) {
		line := member.Key.GetToken().Position.Line
		key := member.Key.GetToken().Value
		set := fields[key]
		if set == nil {
			return fmt.Errorf("%s:%d: unknown field %q%s: it has to be one of %s", f.Path, line, key,
				pick.DidYouMean(key, fieldNames), strings.Join(fieldNames, ", "))
		}
		text, ok := scalar(member.Value)
		if !ok {
			return fmt.Errorf("%s:%d: %s has to be a text", f.Path, line, key)
		}
		if err := set(e, text); err != nil {
			return fmt.Errorf("%s:%d: %w", f.Path, line, err)
		}
	}
	if fault := e.incomplete(); fault != "" {
		return fmt.Errorf("%s:%d: %s", f.Path, e.Line, fault)
	}
	return nil
}

func members(from ast.Node) []*ast.MappingValueNode {
	switch node := from.(type) {
	case *ast.MappingNode:
		return node.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}
	}
	return nil
}

// scalar is the text of a value that is no list and no map.
func scalar(from ast.Node) (string, bool) {
	switch node := from.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.LiteralNode:
		return node.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return node.GetToken().Value, true
	}
	return "", false
}

func (e *Entry) incomplete() string {
	needsRule := e.Status == Fail
	forbidsRule := e.Status == Crash || e.Status == Timeout
	switch {
	case e.Match == "":
		return "the entry has no match: which cases is it about?"
	case needsRule && e.Rule == "":
		return "the entry has no rule: which one do they break?"
	case forbidsRule && e.Rule != "":
		return fmt.Sprintf("an entry with the status %s has no rule: the subject breaks none", e.Status)
	case strings.TrimSpace(e.Reason) == "":
		return "the entry has no reason"
	}
	return ""
}

// bounds finds the lines that each entry takes up. Comments right above one
// belong to it.
func (f *File) bounds() {
	for i := range f.Entries {
		first := f.Entries[i].Line - 1
		for first > 0 && strings.HasPrefix(strings.TrimSpace(f.lines[first-1]), "#") && (i > 0 || !f.isHead(first-1)) {
			first--
		}
		f.Entries[i].first, f.Entries[i].end = first, len(f.lines)
		if i > 0 {
			f.Entries[i-1].end = first
		}
	}
}

// isHead reports whether a comment stands at the very top of the file, where it
// is about the file.
func (f *File) isHead(line int) bool {
	for i := range line + 1 {
		if !strings.HasPrefix(strings.TrimSpace(f.lines[i]), "#") {
			return false
		}
	}
	return true
}
