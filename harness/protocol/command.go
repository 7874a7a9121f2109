package protocol

import (
	"os"
	"os/exec"
)

// Command is how the subject is started.
func (p *Process) Command() Command { return p.command }

// Exec gives the command ready to be started, in the environment and the process
// group that a subject has.
func (c *Command) Exec() *exec.Cmd {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = c.environment(os.Environ())
	setGroup(cmd)
	return cmd
}

// Kill ends a command of [Command.Exec] that has been started, with whatever it
// started itself.
func Kill(cmd *exec.Cmd) { killGroup(cmd.Process) }
