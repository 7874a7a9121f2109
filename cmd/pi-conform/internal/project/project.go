// Package project writes adapter projects: an adapter that runs at once, on a toy
// loop, with what it takes to judge it here and in CI.
package project

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/pi-conform/pi-conform/adapters"
)

// Options say which project is wanted.
type Options struct {
	Lang string
	Dir  string
	// Version of pi-conform, such as v1.2.0; empty if this program has none.
	Version string
	// Source is where pi-conform's own source lies; empty if it is to be fetched.
	// Only Go projects need Version or Source.
	Source string
}

// ErrNoSource says that a Go project can neither fetch pi-conform nor find it.
var ErrNoSource = errors.New("this build of pi-conform has no version that a Go project could require: " +
	"set PI_CONFORM_SOURCE to a checkout of pi-conform")

// Write writes a project and gives the names of its files. It changes no file that
// exists, and writes nothing if one of its files does.
func Write(o Options) ([]string, error) {
	l, ok := lookup(o.Lang)
	if !ok {
		return nil, fmt.Errorf("there is no project for the language %q", o.Lang)
	}
	if l.Name == "go" && o.Version == "" && o.Source == "" {
		return nil, ErrNoSource
	}
	files, err := l.files(o)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(o.Dir, f.name)); err == nil {
			return nil, fmt.Errorf("%s exists already: give a directory that has no such file", filepath.Join(o.Dir, f.name))
		}
		names = append(names, f.name)
	}
	for _, f := range files {
		if err := f.write(o.Dir); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// content is a file that is to be written.
type content struct {
	name string
	data []byte
}

func (c content) write(dir string) error {
	name := filepath.Join(dir, filepath.FromSlash(c.name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, c.data, 0o644)
}

// common are the files of every project.
var common = []file{
	{Name: "pi-conform.yaml", From: "project/pi-conform.yaml.tmpl"},
	{Name: ".github/workflows/pi-conform.yml", From: "project/workflow.yml.tmpl"},
	{Name: "README.md", From: "project/README.md.tmpl"},
}

func (l *language) files(o Options) ([]content, error) {
	files := []content{{".gitignore", []byte(l.Ignore)}}
	for _, f := range append(l.Files[:len(l.Files):len(l.Files)], common...) {
		more, err := l.read(f, o)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	if l.Name == "go" && o.Source != "" {
		return append(files, sums(o.Source)...), nil
	}
	return files, nil
}

// sums are the checksums of the modules that pi-conform itself needs, so that none
// has to be asked for.
func sums(source string) []content {
	data, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return nil // then the go command asks
	}
	return []content{{"go.sum", data}}
}

// read gives a file, or the files of a pattern.
func (l *language) read(f file, o Options) ([]content, error) {
	dir, isDir := strings.CutSuffix(f.Name, "/")
	if !isDir {
		data, err := l.data(f.From, o)
		return []content{{f.Name, data}}, err
	}
	names, err := fs.Glob(adapters.Projects, f.From)
	if err != nil {
		return nil, err
	}
	var files []content
	for _, name := range names {
		data, err := adapters.Projects.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, content{path.Join(dir, path.Base(name)), data})
	}
	return files, nil
}

func (l *language) data(name string, o Options) ([]byte, error) {
	data, err := adapters.Projects.ReadFile(name)
	if err != nil || !strings.HasSuffix(name, ".tmpl") {
		return data, err
	}
	t, err := template.New(path.Base(name)).Parse(string(data))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, l.values(o))
	return out.Bytes(), err
}

// values are what templates are filled with.
func (l *language) values(o Options) map[string]any {
	var shown []file
	for _, f := range l.Files {
		if f.About != "" {
			shown = append(shown, f)
		}
	}
	return map[string]any{
		"Name": "my-loop", "Language": l.Language, "Build": l.Build, "Command": l.Command, "Needs": l.Needs, "Adapter": l.Adapter,
		"Files": shown, "Hints": l.Hints, "Setup": l.Setup, "SetupWith": l.SetupWith,
		"Tool": cmp.Or(o.Version, "latest"), "Version": cmp.Or(o.Version, "v0.0.0"), "Source": filepath.ToSlash(o.Source),
	}
}
