package harness

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// node is a value of a YAML document, so far as cases use YAML: what JSON can
// say, with lines and with the order of members.
type node struct {
	line  int
	kind  nodeKind
	text  string // of a string what it says, of a literal its JSON
	items []*node
	pairs []pair
}

type nodeKind int

const (
	nodeString nodeKind = iota
	nodeLiteral
	nodeList
	nodeObject
)

type pair struct {
	name  string
	line  int
	value *node
}

var nullLiteral = "null"

func (n *node) isNull() bool { return n.kind == nodeLiteral && n.text == nullLiteral }

// what is the kind of value, for errors.
func (n *node) what() string {
	switch n.kind {
	case nodeString:
		return "text"
	case nodeList:
		return "a list"
	case nodeObject:
		return "a mapping"
	case nodeLiteral:
	}
	return n.text
}

// parseYAML reads one document. An empty one is an empty mapping.
func (r *caseReader) parseYAML(data []byte) *node {
	file, err := parseSafely(data)
	if err != nil {
		line, why := syntaxFault(err)
		r.fault(line, "%s", why)
		return nil
	}
	if len(file.Docs) > 1 {
		r.fault(1, "a scenario is one YAML document, not %d", len(file.Docs))
		return nil
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return &node{line: 1, kind: nodeObject}
	}
	if _, ok := file.Docs[0].Body.(*ast.CommentGroupNode); ok {
		return &node{line: 1, kind: nodeObject}
	}
	return r.tree(file.Docs[0].Body, 0)
}

// parseSafely makes an error of what the YAML parser cannot cope with.
func parseSafely(data []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this is no YAML that can be read")
		}
	}()
	return parser.ParseBytes(data, 0)
}

// syntaxFault takes line and message out of an error of the YAML parser.
func syntaxFault(err error) (int, string) {
	at, ok := errors.AsType[interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}](err)
	if !ok {
		return 1, err.Error()
	}
	line := 1
	if t := at.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return line, at.GetMessage()
}

// maxDepth bounds how deep a scenario nests.
const maxDepth = 100

// tree turns the parser's node into ours. What is wrong becomes null.
func (r *caseReader) tree(from ast.Node, depth int) *node {
	n := &node{line: 1, kind: nodeLiteral, text: nullLiteral}
	if from == nil {
		return n
	}
	if t := from.GetToken(); t != nil && t.Position != nil {
		n.line = t.Position.Line
	}
	if depth > maxDepth {
		r.fault(n.line, "the scenario nests too deep")
		return n
	}
	switch from := from.(type) {
	case *ast.StringNode:
		n.text = from.Value
		if from.Token.Type != token.StringType || !jsonNumber.MatchString(n.text) {
			n.kind = nodeString // and not 1e3, which the parser leaves to us
		}
	case *ast.LiteralNode:
		n.kind, n.text = nodeString, from.Value.Value
	case *ast.BoolNode:
		n.text = strconv.FormatBool(from.Value)
	case *ast.NullNode:
	case *ast.IntegerNode:
		n.text = r.numeral(n.line, from.Token.Value)
	case *ast.FloatNode:
		n.text = r.numeral(n.line, from.Token.Value)
	case *ast.SequenceNode:
		n.kind, n.text = nodeList, ""
		for _, item := range from.Values {
			n.items = append(n.items, r.tree(item, depth+1))
		}
	case *ast.MappingNode:
		n.kind, n.text = nodeObject, ""
		for _, member := range from.Values {
			r.member(n, member, depth)
		}
	case *ast.MappingValueNode:
		n.kind, n.text = nodeObject, ""
		r.member(n, from, depth)
	default:
		r.fault(n.line, "cases use plain YAML only, without anchors, aliases, tags, and numbers that JSON does not have")
	}
	return n
}

func (r *caseReader) member(to *node, from *ast.MappingValueNode, depth int) {
	key := r.tree(from.Key, depth+1)
	if from.Key.GetToken() != nil && key.kind == nodeLiteral {
		key.text = from.Key.GetToken().Value // a number as it was written
	}
	if key.kind != nodeString && key.kind != nodeLiteral {
		r.fault(key.line, "a key has to be text")
		return
	}
	for _, have := range to.pairs {
		if have.name == key.text {
			r.fault(key.line, "key %q is there already", key.text)
		}
	}
	to.pairs = append(to.pairs, pair{name: key.text, line: key.line, value: r.tree(from.Value, depth+1)})
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// numeral is the number as JSON writes it: unchanged, if JSON can.
func (r *caseReader) numeral(line int, text string) string {
	if jsonNumber.MatchString(text) {
		return text
	}
	plain := strings.ReplaceAll(text, "_", "")
	if i, ok := new(big.Int).SetString(plain, 0); ok {
		return i.String()
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil {
		if number := strconv.FormatFloat(f, 'g', -1, 64); jsonNumber.MatchString(number) {
			return number
		}
	}
	r.fault(line, "%s is no number that JSON can write", text)
	return nullLiteral
}

// json is the value in compact JSON, members in the order of the file.
func (n *node) json() trace.Value {
	var b bytes.Buffer
	n.appendJSON(&b)
	return b.Bytes()
}

func (n *node) appendJSON(b *bytes.Buffer) {
	switch n.kind {
	case nodeString:
		b.Write(quoted(n.text))
	case nodeLiteral:
		b.WriteString(n.text)
	case nodeList:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.appendJSON(b)
		}
		b.WriteByte(']')
	case nodeObject:
		b.WriteByte('{')
		for i, p := range n.pairs {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoted(p.name))
			b.WriteByte(':')
			p.value.appendJSON(b)
		}
		b.WriteByte('}')
	}
}

// quoted is the text as a JSON string.
func quoted(text string) []byte {
	b, _ := jsontext.AppendQuote(nil, text) // the error is bad UTF-8, which has been replaced
	return b
}

// yamlQuoted is the text as a JSON string that YAML reads as the same: without
// characters that YAML does not let stand for themselves.
func yamlQuoted(text string) string {
	var b strings.Builder
	for _, c := range string(quoted(text)) {
		if c >= 0x7f && !unicode.IsPrint(c) && c <= 0xffff {
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// nodeOf is the tree of a JSON value. What is no JSON becomes null.
func nodeOf(v trace.Value) *node {
	n, err := readJSON(jsontext.NewDecoder(bytes.NewReader(v)))
	if err != nil {
		return literal(nullLiteral)
	}
	return n
}

func readJSON(d *jsontext.Decoder) (*node, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '"':
		return textNode(tok.String()), nil
	case '[':
		n := &node{kind: nodeList}
		for d.PeekKind() != ']' {
			item, err := readJSON(d)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = d.ReadToken()
		return n, err
	case '{':
		n := &node{kind: nodeObject}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			value, err := readJSON(d)
			if err != nil {
				return nil, err
			}
			n.pairs = append(n.pairs, pair{name: key, value: value})
		}
		_, err = d.ReadToken()
		return n, err
	default:
	}
	return literal(tok.String()), nil
}

func textNode(text string) *node { return &node{kind: nodeString, text: text} }

func literal(text string) *node { return &node{kind: nodeLiteral, text: text} }

// plainText is what may stand in YAML without quotes and stays text.
var plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./~-]*( [A-Za-z0-9_./~-]+)*$`)

// taken are words that mean something else without quotes, here or in an older
// YAML.
var taken = regexp.MustCompile(`(?i)^(null|true|false|yes|no|on|off|nan|inf)$`)

// plainKey are keys of digits, which need no quotes either: every key is text.
var plainKey = regexp.MustCompile(`^[0-9]+$`)

func yamlText(text string) string {
	if plainText.MatchString(text) && !taken.MatchString(text) {
		return text
	}
	return yamlQuoted(text)
}

func yamlKey(name string) string {
	if plainKey.MatchString(name) {
		return name
	}
	return yamlText(name)
}

// flow writes the value on one line.
func (n *node) flow() string {
	var parts []string
	switch n.kind {
	case nodeString:
		return yamlText(n.text)
	case nodeLiteral:
		return n.text
	case nodeList:
		for _, item := range n.items {
			parts = append(parts, item.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case nodeObject:
		for _, p := range n.pairs {
			parts = append(parts, yamlKey(p.name)+": "+p.value.flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return nullLiteral
}

// document writes a mapping as a document: its members in blocks, what is in
// those on a line each.
func (n *node) document() string {
	var b strings.Builder
	for _, p := range n.pairs {
		switch {
		case p.value.kind == nodeList && len(p.value.items) > 0 && p.name != "tools":
			fmt.Fprintf(&b, "%s:\n", yamlKey(p.name))
			for _, item := range p.value.items {
				fmt.Fprintf(&b, "  - %s\n", item.entry())
			}
		case p.value.kind == nodeObject && len(p.value.pairs) > 0:
			fmt.Fprintf(&b, "%s:\n", yamlKey(p.name))
			for _, q := range p.value.pairs {
				fmt.Fprintf(&b, "  %s: %s\n", yamlKey(q.name), q.value.flow())
			}
		default:
			fmt.Fprintf(&b, "%s: %s\n", yamlKey(p.name), p.value.flow())
		}
	}
	if b.Len() == 0 {
		return "{}\n"
	}
	return b.String()
}

// entry is the value as an entry of a list: a mapping of one member needs no
// braces.
func (n *node) entry() string {
	if n.kind == nodeObject && len(n.pairs) == 1 {
		return yamlKey(n.pairs[0].name) + ": " + n.pairs[0].value.flow()
	}
	return n.flow()
}
