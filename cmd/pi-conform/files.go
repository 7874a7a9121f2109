package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// writeTraces writes, for every finding, the trace and what the reference did.
func writeTraces(dir string, rep *report.Report) error {
	if dir == "" {
		return nil
	}
	for i := range rep.Findings {
		f := &rep.Findings[i]
		base := filepath.Join(dir, traceName(f))
		if err := writeTrace(base+".jsonl", f.Trace); err != nil {
			return fmt.Errorf("--trace-dir: %w", err)
		}
		if err := writeTrace(base+".reference.jsonl", f.Reference); err != nil {
			return fmt.Errorf("--trace-dir: %w", err)
		}
	}
	return nil
}

// traceName is the same for all rules that one schedule breaks. A case that was
// read from a file may lie anywhere.
func traceName(f *report.Finding) string {
	name := strings.TrimLeft(strings.ReplaceAll(filepath.ToSlash(f.Case), "..", "_"), "/")
	if f.Seed == nil {
		return filepath.FromSlash(name)
	}
	return filepath.FromSlash(fmt.Sprintf("%s@%d", name, *f.Seed))
}

func writeTrace(file string, t *trace.Trace) error {
	if t == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := trace.Write(out, t); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
