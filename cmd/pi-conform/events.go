package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance/report"
)

// eventLog is the file of --events; nil if nobody asked for it.
type eventLog struct {
	*report.Events
	file *os.File
}

func openEvents(file string) (*eventLog, error) {
	if file == "" {
		return nil, nil
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("--events: %w", err))
	}
	return &eventLog{report.NewEvents(out), out}, nil
}

func (l *eventLog) start(cases int) {
	if l != nil {
		l.Start(tool(), cases)
	}
}

func (l *eventLog) done(number int, result report.Result, findings []report.Finding) {
	if l != nil {
		l.Case(number, result, findings)
	}
}

func (l *eventLog) end(rep *report.Report, code exit.Code) error {
	if l == nil {
		return nil
	}
	if err := errors.Join(l.End(rep, int(code)), l.file.Close()); err != nil {
		return fmt.Errorf("--events: %w", err)
	}
	return nil
}
