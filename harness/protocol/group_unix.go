//go:build !windows

package protocol

import (
	"os"
	"os/exec"
	"syscall"
)

// A subject gets a process group of its own, so that what it starts can be
// ended with it.

func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// The errors of signals are of no interest: the process may be gone already.

func dumpStacks(p *os.Process)     { _ = p.Signal(syscall.SIGQUIT) }
func terminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }
func killGroup(p *os.Process)      { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// signalOf is the name of the signal that ended a process, if one did.
func signalOf(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	return status.Signal().String()
}
