package conformancetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pi-conform/pi-conform/harness"
)

// journal is a driver that writes every case into a file before it is run, and every
// action before it is done: if the process dies, the file says of what.
type journal struct {
	harness.Driver
	path string
}

// journalPath is the file of a test's journal. It stands beside the directory of what
// was found.
func journalPath(t *testing.T, s *Subject, dir string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ' ' || r == ':' {
			return '-'
		}
		return r
	}, t.Name()+"-"+s.Name)
	return filepath.Join(filepath.Dir(dir), "running-"+name+".txtar")
}

// Open begins a case.
func (j *journal) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	if err := os.MkdirAll(filepath.Dir(j.path), 0o755); err != nil {
		return nil, err
	}
	c := &harness.CaseFile{Story: sc.Name + ": the process ended while it ran.", Pinned: true, Case: harness.Case{Scenario: sc}}
	text := string(harness.FormatCase(c)) + "-- schedule --\n"
	if err := os.WriteFile(j.path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	session, err := j.Driver.Open(ctx, sc)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &journaled{session, file}, nil
}

type journaled struct {
	harness.Session
	file *os.File
}

// Do hands over one action.
func (j *journaled) Do(a *harness.Action) error {
	if _, err := j.file.WriteString(a.Label + "\n"); err != nil {
		return err
	}
	return j.Session.Do(a)
}

// NextWake is the subject's.
func (j *journaled) NextWake() (d time.Duration, ok bool) {
	if sleeper, is := j.Session.(harness.Sleeper); is {
		return sleeper.NextWake()
	}
	return 0, false
}

// Close ends the case.
func (j *journaled) Close() error {
	err := j.Session.Close()
	j.file.Close()
	os.Remove(j.file.Name())
	return err
}

// crashPrefix begins the names of saved cases in which the process ended.
const crashPrefix = "crashed-"

// takeUp saves the case that a journal was left with, and gives its file; empty if
// there is none.
func takeUp(path, dir string) (string, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if _, err := harness.ParseCase(path, data); err != nil {
		return "", os.Remove(path) // it had only just been begun
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	sum := fnv.New32a()
	sum.Write(data)
	file := filepath.Join(dir, fmt.Sprintf("%s%08x.txtar", crashPrefix, sum.Sum32()))
	return file, os.Rename(path, file)
}
