package subjects

import (
	"context"
	"os"
	"strings"

	"github.com/pi-conform/pi-conform/adapters"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/harness/subject"
)

// Command is how the subject is started as a process. Nothing is started, but
// what is missing is installed. A loop in process is served by this program itself.
func Command(ctx context.Context, r Request) (protocol.Command, error) {
	kind, version, _ := strings.Cut(r.Name, "@")
	switch {
	case len(r.Command) > 0 && r.Name == "":
		return protocol.Command{Argv: r.Command}, nil
	case published[kind] != nil:
		process, err := published[kind](ctx, version, subject.Options{
			Adapters: adapters.Files, Progress: lines(r.Log), Protocol: options(r),
		})
		if err != nil {
			return protocol.Command{}, exit.With(exit.Subject, err)
		}
		return process.Command(), nil
	}
	if _, err := InProcess(r.Name); err == nil {
		self, err := os.Executable()
		return protocol.Command{Argv: []string{self, "serve", r.Name}}, err
	}
	s, err := Open(ctx, r)
	if err != nil {
		return protocol.Command{}, err
	}
	defer s.Close()
	if process, ok := s.Driver.(*patient); ok {
		return process.Process.Command(), nil
	}
	return protocol.Command{}, exit.Usagef("unknown subject %q%s", r.Name, pick.DidYouMean(r.Name, Names()))
}
