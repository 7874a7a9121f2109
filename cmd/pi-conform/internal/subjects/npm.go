package subjects

import (
	"context"
	"regexp"
	"strings"

	"github.com/pi-conform/pi-conform/adapters"
	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/subject"
)

var release = regexp.MustCompile(`^\d+\.\d+\.\d+(-.*)?$`)

// published are the loops that npm has, by the name before the @.
var published = map[string]func(context.Context, string, subject.Options) (*protocol.Process, error){
	"pi":       subject.Pi,
	"oh-my-pi": subject.OhMyPi,
}

// openNPM starts a release of a loop that npm has, which is installed if need be.
func openNPM(ctx context.Context, r Request, kind, version string) (*Subject, error) {
	if version != "" && !release.MatchString(version) {
		return nil, exit.Usagef("%q is no version of %s: give a whole one, such as %s", version, kind, examples[kind])
	}
	process, err := published[kind](ctx, version, subject.Options{
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
	info := process.Info()
	return &Subject{
		Name: kind + "@" + info.Version, Driver: &patient{process, r.Log}, Oracle: reference.New(), Edition: newest(info.Editions),
	}, nil
}

var examples = map[string]string{"pi": "pi@0.84.3", "oh-my-pi": "oh-my-pi@18.2.3"}

// lines is a writer that passes on each line.
type lines func(line string)

func (l lines) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		l(strings.TrimRight(line, "\r\n"))
	}
	return len(text), nil
}
