package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
)

// hook is a writer that does something at the first byte.
type hook struct {
	bytes.Buffer
	first func()
}

func (h *hook) Write(text []byte) (int, error) {
	if h.first != nil {
		first := h.first
		h.first = nil
		first()
	}
	return h.Buffer.Write(text)
}

func TestInterruptReportsWhatWasDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	notes := &hook{first: cancel}
	code := newProgram(strings.NewReader(""), &out, notes).run(ctx, []string{"run", "--jobs", "1"})
	if code != exit.Interrupted {
		t.Errorf("exit code %d, want %d", code, exit.Interrupted)
	}
	if !strings.Contains(out.String(), "partial") {
		t.Errorf("the report does not say that it is partial:\n%s", &out)
	}
}

func TestFaultOfTheProgram(t *testing.T) {
	var notes bytes.Buffer
	out := &hook{first: func() { panic("broken on purpose") }}
	code := newProgram(strings.NewReader(""), out, &notes).run(t.Context(), []string{"version"})
	if code != exit.Fault {
		t.Errorf("exit code %d, want %d", code, exit.Fault)
	}
	for _, want := range []string{"broken on purpose", "Please report this"} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("the message lacks %q:\n%s", want, &notes)
		}
	}
}

// TestNoColour: what is no terminal gets no colour, whatever is asked for.
func TestNoColour(t *testing.T) {
	t.Setenv("CLICOLOR_FORCE", "1")
	var out bytes.Buffer
	newProgram(strings.NewReader(""), &out, io.Discard).run(t.Context(), []string{"run", "--schedules", "0"})
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("colour where there is no terminal:\n%s", &out)
	}
}
