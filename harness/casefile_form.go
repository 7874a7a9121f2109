package harness

import (
	"maps"
	"slices"
	"strconv"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// form is how a type stands in the YAML of a case, in both directions.
type form[T any] struct {
	read  func(r *caseReader, n *node, to *T)
	write func(from *T) *node
	zero  func(from *T) bool // a member of that value is left out
}

// field is one member of a mapping that is bound to a place in memory.
type field struct {
	name  string
	read  func(r *caseReader, n *node)
	write func() *node // nil if it is left out
}

func member[T any](name string, at *T, f form[T]) field {
	return field{
		name: name,
		read: func(r *caseReader, n *node) { f.read(r, n, at) },
		write: func() *node {
			if f.zero(at) {
				return nil
			}
			return f.write(at)
		},
	}
}

// readFields reads the members of a mapping. What names the mapping in errors.
func (r *caseReader) readFields(n *node, what string, fields []field) {
	if n.kind != nodeObject {
		r.fault(n.line, "%s has to be a mapping, not %s", what, n.what())
		return
	}
	for _, p := range n.pairs {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == p.name })
		if i < 0 {
			r.fault(p.line, "unknown key %q in %s%s", p.name, what, didYouMean(p.name, fieldNames(fields)))
			continue
		}
		outer := r.at
		r.at = p.name
		fields[i].read(r, p.value)
		r.at = outer
	}
}

func fieldNames(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

func writeFields(fields []field) *node {
	n := &node{kind: nodeObject}
	for _, f := range fields {
		if value := f.write(); value != nil {
			n.pairs = append(n.pairs, pair{name: f.name, value: value})
		}
	}
	return n
}

// wrong notes that a member has the wrong kind of value.
func (r *caseReader) wrong(n *node, want string) {
	r.fault(n.line, "%s has to be %s, not %s", r.at, want, n.what())
}

// object is the form of a struct of which every member has a key.
func object[T any](what string, fields func(*T) []field) form[T] {
	return form[T]{
		read:  func(r *caseReader, n *node, to *T) { r.readFields(n, what, fields(to)) },
		write: func(from *T) *node { return writeFields(fields(from)) },
		zero: func(from *T) bool {
			return !slices.ContainsFunc(fields(from), func(f field) bool { return f.write() != nil })
		},
	}
}

var textForm = form[string]{
	read: func(r *caseReader, n *node, to *string) {
		if n.kind == nodeString || n.kind == nodeLiteral && !n.isNull() {
			*to = n.text
			return
		}
		r.wrong(n, "text")
	},
	write: func(from *string) *node { return textNode(*from) },
	zero:  func(from *string) bool { return *from == "" },
}

var flagForm = form[bool]{
	read: func(r *caseReader, n *node, to *bool) {
		if n.kind != nodeLiteral || n.text != "true" && n.text != "false" {
			r.wrong(n, "true or false")
			return
		}
		*to = n.text == "true"
	},
	write: func(from *bool) *node { return literal(strconv.FormatBool(*from)) },
	zero:  func(from *bool) bool { return !*from },
}

var numberForm = form[int]{
	read: func(r *caseReader, n *node, to *int) {
		i, err := strconv.Atoi(n.text)
		if n.kind != nodeLiteral || err != nil || i < 0 {
			r.wrong(n, "a number from 0")
			return
		}
		*to = i
	},
	write: func(from *int) *node { return literal(strconv.Itoa(*from)) },
	zero:  func(from *int) bool { return *from == 0 },
}

var millisForm = form[int64]{
	read: func(r *caseReader, n *node, to *int64) {
		i, err := strconv.ParseInt(n.text, 10, 64)
		if n.kind != nodeLiteral || err != nil {
			r.wrong(n, "a number of milliseconds")
			return
		}
		*to = i
	},
	write: func(from *int64) *node { return literal(strconv.FormatInt(*from, 10)) },
	zero:  func(from *int64) bool { return *from == 0 },
}

// valueForm is any JSON value, null included.
var valueForm = form[trace.Value]{
	read:  func(_ *caseReader, n *node, to *trace.Value) { *to = n.json() },
	write: func(from *trace.Value) *node { return nodeOf(*from) },
	zero:  func(from *trace.Value) bool { return *from == nil },
}

// oneOf is text that has to be one of the words. The empty word is written as
// an absent member.
func oneOf[T ~string](words ...T) form[T] {
	known := make([]string, len(words))
	for i, w := range words {
		known[i] = string(w)
	}
	return form[T]{
		read: func(r *caseReader, n *node, to *T) {
			text := ""
			textForm.read(r, n, &text)
			if text != "" && !slices.Contains(known, text) {
				r.fault(n.line, "unknown %s %q%s", r.at, text, didYouMean(text, known))
				return
			}
			*to = T(text)
		},
		write: func(from *T) *node { return textNode(string(*from)) },
		zero:  func(from *T) bool { return *from == "" },
	}
}

func listOf[T any](f form[T]) form[[]T] {
	return form[[]T]{
		read: func(r *caseReader, n *node, to *[]T) {
			if n.kind != nodeList {
				r.wrong(n, "a list")
				return
			}
			for _, item := range n.items {
				var value T
				f.read(r, item, &value)
				*to = append(*to, value)
			}
		},
		write: func(from *[]T) *node {
			n := &node{kind: nodeList}
			for i := range *from {
				n.items = append(n.items, f.write(&(*from)[i]))
			}
			return n
		},
		zero: func(from *[]T) bool { return len(*from) == 0 },
	}
}

func mapOf[T any](f form[T]) form[map[string]T] {
	return mapBy(func(string) form[T] { return f })
}

// mapBy is a mapping whose values have a form that depends on the key.
func mapBy[T any](formOf func(key string) form[T]) form[map[string]T] {
	return form[map[string]T]{
		read: func(r *caseReader, n *node, to *map[string]T) {
			if n.kind != nodeObject {
				r.wrong(n, "a mapping")
				return
			}
			for _, p := range n.pairs {
				if *to == nil {
					*to = map[string]T{}
				}
				var value T
				formOf(p.name).read(r, p.value, &value)
				(*to)[p.name] = value
			}
		},
		write: func(from *map[string]T) *node {
			n := &node{kind: nodeObject}
			for _, key := range slices.Sorted(maps.Keys(*from)) {
				value := (*from)[key]
				n.pairs = append(n.pairs, pair{name: key, value: formOf(key).write(&value)})
			}
			return n
		},
		zero: func(from *map[string]T) bool { return len(*from) == 0 },
	}
}

func pointerTo[T any](f form[T]) form[*T] {
	return form[*T]{
		read: func(r *caseReader, n *node, to **T) {
			if *to == nil {
				*to = new(T)
			}
			f.read(r, n, *to)
		},
		write: func(from **T) *node { return f.write(*from) },
		zero:  func(from **T) bool { return *from == nil },
	}
}

// withCheck looks at what was read.
func withCheck[T any](f form[T], check func(*T) (why string)) form[T] {
	read := f.read
	f.read = func(r *caseReader, n *node, to *T) {
		read(r, n, to)
		if why := check(to); why != "" {
			r.fault(n.line, "%s", why)
		}
	}
	return f
}

// orText lets plain text stand for a struct, and writes it where it can. Of is
// what the text stands for, and textOf the text of what it can stand for.
func orText[T any](f form[T], of func(string) T, textOf func(*T) (string, bool)) form[T] {
	read, write := f.read, f.write
	f.read = func(r *caseReader, n *node, to *T) {
		if n.kind == nodeObject {
			read(r, n, to)
			return
		}
		text := ""
		textForm.read(r, n, &text)
		*to = of(text)
	}
	f.write = func(from *T) *node {
		if text, ok := textOf(from); ok {
			return textNode(text)
		}
		return write(from)
	}
	return f
}

// without is the form of a member that is not written if it follows from others.
func without[T any](f form[T], implied bool) form[T] {
	zero := f.zero
	f.zero = func(from *T) bool { return implied || zero(from) }
	return f
}
