package subject

import (
	"io"
	"io/fs"

	"github.com/pi-conform/pi-conform/harness/protocol"
)

// Options say where a subject comes from and how it is talked to.
type Options struct {
	// Adapters holds the adapter programs, in the folders js, pi and oh-my-pi.
	Adapters fs.FS
	// Progress gets a line now and then while something is fetched; nil means
	// nobody wants to know.
	Progress io.Writer
	Protocol protocol.Options
}

func (o *Options) progress() io.Writer {
	if o.Progress == nil {
		return io.Discard
	}
	return o.Progress
}

// Command is a subject that the user has a command for.
func Command(c protocol.Command, opts Options) *protocol.Process {
	return protocol.NewProcess(c, opts.Protocol)
}

// PackageVariable tells an adapter in which folder the package is.
const PackageVariable = "PI_CONFORM_PACKAGE"
