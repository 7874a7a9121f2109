package config_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/config"
)

func TestParse(t *testing.T) {
	f, err := config.Parse("pi-conform.yaml", []byte(`
subjects:
  first:
    build: make adapter && make check
    command: ./adapter --fast
    env: {LEVEL: 3, QUIET: "yes"}
    edition: 1.6
  second:
    build: [go, build, ./...]
    command: [python3, "my adapter.py"]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Subject{
		{
			Name: "first", Build: []string{"make adapter && make check"}, Command: []string{"./adapter", "--fast"},
			Env: []string{"LEVEL=3", "QUIET=yes"}, Dir: ".", Edition: "1.6",
		},
		{Name: "second", Build: []string{"go", "build", "./..."}, Command: []string{"python3", "my adapter.py"}, Dir: "."},
	}
	if !reflect.DeepEqual(f.Subjects, want) {
		t.Errorf("got %+v\nwant %+v", f.Subjects, want)
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":         "pi-conform.yaml:1: there are no subjects",
		"# none":   "pi-conform.yaml:1: ",
		"subject:": `pi-conform.yaml:1: unknown key "subject" (did you mean "subjects"?)`,
		"subjects:\n  a:\n    comand: x\n": `pi-conform.yaml:3: unknown key "comand" (did you mean "command"?): ` +
			`subject "a" may have build, command, dir, edition, env`,
		"subjects:\n  a:\n    build: make\n":                   `pi-conform.yaml:2: subject "a" has no command`,
		"subjects:\n  a:\n    command: {x: y}\n":               "pi-conform.yaml:3: command has to be text",
		"subjects:\n  a:\n    command: sh -c 'x y'\n":          "pi-conform.yaml:3: a command with quotes has to be written as a list",
		"subjects:\n  pi:\n    command: x\n":                   `pi-conform.yaml:2: a subject cannot be named "pi"`,
		"subjects:\n  a:\n    command: x\n    dir: nowhere\n":  "pi-conform.yaml:4: dir: there is no directory nowhere",
		"subjects:\n  a:\n    command: x\n    edition: 0.84\n": "pi-conform.yaml:4: unknown edition",
		"subjects:\n  a:\n    command: [x\n":                   "pi-conform.yaml:3: ",
		"subjects: [a, b]":                                     "pi-conform.yaml:1: subjects has to be a mapping",
		"- a":                                                  "pi-conform.yaml:1: the file has to be a mapping",
	} {
		_, err := config.Parse("pi-conform.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestDirIsSeenFromTheFile: where it lies, not where the program was started.
func TestDirIsSeenFromTheFile(t *testing.T) {
	dir := t.TempDir()
	f, err := config.Parse(filepath.Join(dir, config.Name), []byte("subjects:\n  a:\n    command: x\n    dir: .\n"))
	if err != nil || f.Subjects[0].Dir != dir {
		t.Errorf("%v, %v", f, err)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	if f, err := config.Load(t.TempDir()); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
}
