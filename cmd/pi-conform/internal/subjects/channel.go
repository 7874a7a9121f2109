package subjects

import (
	"context"

	"github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/conformance/progress/suite"
	"github.com/pi-conform/pi-conform/harness/protocol"
)

// Channel is a channel of progress that is ready to be run.
type Channel struct {
	// Lacks are the reasons for which rules are not applicable.
	Lacks map[string]string

	process *protocol.Process
}

func newChannel(p *protocol.Process) *Channel {
	return &Channel{suite.RemoteLacks(p.Info().Capabilities), p}
}

// Record is what the channel does under a seed.
func (c *Channel) Record(ctx context.Context, seed uint64) (*progress.Record, error) {
	open := func() (*protocol.Channel, error) { return c.process.Progress(ctx) }
	return suite.RemoteCalls(open, c.process.Info().Capabilities, seed)
}
