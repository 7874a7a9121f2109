package protocol

import (
	"os"
	"os/exec"
)

// Windows has no process groups that a signal could be sent to: only the
// process itself is ended.

func setGroup(*exec.Cmd)               {}
func dumpStacks(*os.Process)           {}
func terminateGroup(p *os.Process)     { _ = p.Kill() }
func killGroup(p *os.Process)          { _ = p.Kill() }
func signalOf(*os.ProcessState) string { return "" }
