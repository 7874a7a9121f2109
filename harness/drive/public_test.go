package drive_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pi-conform/pi-conform/conformance/dialect"
	"github.com/pi-conform/pi-conform/harness/drive"
)

// publicAgent is a public adapter that makes an ACP agent of the program pi.
const publicAgent = "pi-acp@0.0.34"

// TestPublicACPAgent holds what docs/LOGS.md says of the adapter: what it breaks,
// and nothing else. It serves one session at a time, so that the script of two
// sessions is no script for it.
func TestPublicACPAgent(t *testing.T) {
	pi := realPi(t, releases[0])
	folder := t.TempDir()
	if out, err := exec.Command("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--silent", publicAgent).CombinedOutput(); err != nil {
		t.Fatalf("npm install %s: %v\n%s", publicAgent, err, out)
	}
	o := drive.Options{
		Mode:    drive.ACP,
		Command: []string{pi[0], filepath.Join(folder, "node_modules", "pi-acp", "dist", "index.js")},
		Env: []string{
			"PI_ACP_PI_COMMAND=" + pi[1],
			"PATH=" + filepath.Dir(pi[0]) + string(os.PathListSeparator) + os.Getenv("PATH"), // pi is a script for the node beside it
		},
	}
	for name, known := range map[string][]string{
		"acp-cancel":              nil,
		"acp-cancel-in-arguments": {"ACP-4 robust"}, // only if the call was announced before the cancel
		"acp-load-after-failure":  {"ACP-12 should"},
	} {
		t.Run(name, func(t *testing.T) {
			rec, rep := judged(t, name, o, dialect.Options{})
			if !rep.Exercised() {
				t.Errorf("nothing was exercised\n%s", rec.Log)
			}
			for _, f := range rep.Findings {
				if found := fmt.Sprint(f.Rule, " ", f.Level); !slices.Contains(known, found) {
					t.Errorf("%s, which docs/LOGS.md does not list: %+v\n%s", found, f, rec.Log)
				}
			}
		})
	}
}
