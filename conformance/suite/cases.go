package suite

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pi-conform/pi-conform/fixtures"
	"github.com/pi-conform/pi-conform/harness"
)

// Cases are the cases of the standard suite, in order of their names. The name
// of a case is its path below fixtures/cases without the ending, such as
// "par/three-reversed".
func Cases() ([]*harness.CaseFile, error) {
	var cases []*harness.CaseFile
	err := fs.WalkDir(fixtures.FS, "cases", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".txtar" {
			return err
		}
		data, err := fs.ReadFile(fixtures.FS, file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "cases/"), ".txtar")
		c, err := harness.ParseCase(name, data)
		if err != nil {
			return fmt.Errorf("fixtures: %w", err)
		}
		cases = append(cases, c)
		return nil
	})
	return cases, err
}
