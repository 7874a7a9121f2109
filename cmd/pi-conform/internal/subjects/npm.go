package subjects

import (
	"context"
	"regexp"
	"strings"

	"github.com/pi-conform/pi-conform/adapters"
	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/subject"
)

var release = regexp.MustCompile(`^\d+\.\d+\.\d+(-.*)?$`)

// openNPM starts a release of the npm loop, which is installed if need be.
func openNPM(ctx context.Context, r Request, version string) (*Subject, error) {
	if version != "" && !release.MatchString(version) {
		return nil, exit.Usagef("%q is no version of pi: give a whole one, such as pi@0.84.3", version)
	}
	process, err := subject.Pi(ctx, version, subject.Options{
		Adapters: adapters.Files, Progress: lines(r.Log), Protocol: options(r),
	})
	if err == nil {
		err = process.Start(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, exit.With(exit.Subject, err)
	}
	found := process.Info().Version
	return &Subject{
		Name: "pi@" + found, Driver: &patient{process, r.Log}, Oracle: reference.New(), Edition: edition.ForRelease(found),
	}, nil
}

// lines is a writer that passes on each line.
type lines func(line string)

func (l lines) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		l(strings.TrimRight(line, "\r\n"))
	}
	return len(text), nil
}
