package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the program, and a subject that misbehaves on demand, commands
// of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"pi-conform": main,
		"fake":       func() { fake(os.Args[1]) },
	})
}

// TestScripts runs the scripts in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"cases": cases,
		},
	})
}

// exits runs a command and wants it to end with that exit code:
//
//	exits 2 pi-conform run nonsense
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cases makes files of cases out of files in which == stands for the archiveMarks of an
// archive, because a script is an archive itself.
func cases(ts *testscript.TestScript, _ bool, files []string) {
	for _, file := range files {
		text := archiveMarks.ReplaceAllString(ts.ReadFile(file), "-- $1 --")
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o644))
	}
}

var archiveMarks = regexp.MustCompile(`(?m)^== (.*) ==$`)
