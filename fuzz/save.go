package fuzz

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
)

// CaseFile is the finding as a case file with a story and the line that replays it
// from a directory. Its name is made of the rule and of what is in it.
func (f *Finding) CaseFile(dir, subject string) *harness.CaseFile {
	c := &harness.CaseFile{Case: harness.Case{Scenario: clone(f.Case.Scenario), Schedule: f.Case.Schedule}, Pinned: true}
	sum := fnv.New32a()
	sum.Write(harness.FormatCase(c))
	c.Name = fmt.Sprintf("%s-%08x", fileName(f.Kind), sum.Sum32())
	c.Story = f.story(subject) + "\n\nreplay: pi-conform replay " + filepath.Join(dir, c.Name+".txtar") + " " + subject
	c.Case.Scenario.Name = c.Name
	return c
}

func fileName(kind string) string { return strings.ReplaceAll(strings.ToLower(kind), " ", "-") }

// story says in one sentence what the case shows, and where it comes from.
func (f *Finding) story(subject string) string {
	what := sentence(f.Kind)
	return fmt.Sprintf("%s\n\nBroken by %s: %s. Found in %s.", what, subject, strings.TrimSuffix(firstLine(f.Message), "."), f.Origin)
}

func sentence(kind string) string {
	switch kind {
	case Differential:
		return "The subject does not do what the oracle does, and breaks no rule by it."
	case NotDeterministic:
		return "The same case goes in different ways."
	}
	if rule, err := conformance.Lookup(kind); err == nil {
		return rule.ID + ": " + rule.Sentence
	}
	return "The recording did not come to its end: " + kind + "."
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// save writes the case of the finding into the directory.
func (f *Finding) save(dir, subject string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c := f.CaseFile(dir, subject)
	f.File = filepath.Join(dir, c.Name+".txtar")
	return os.WriteFile(f.File, harness.FormatCase(c), 0o644)
}

// Saved are the cases in a directory, in order of their names; none if there is no
// such directory.
func Saved(dir string) ([]*harness.CaseFile, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var cases []*harness.CaseFile
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c, err := harness.ParseCase(file, data)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}
