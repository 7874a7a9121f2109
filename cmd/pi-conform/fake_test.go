package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/loop"
)

// atStart are the ways to misbehave before any case.
var atStart = map[string]func(){
	"refuses": func() {
		fmt.Fprintln(os.Stderr, "no module named loop")
		os.Exit(9)
	},
	"chatters": func() { fmt.Println("Listening on port 3000") },
	"outdated": func() {
		fmt.Println(`{"type":"helloOk","re":1,"protocol":2,"nonce":"n","subject":{"name":"fake"},"editions":[],"barrier":"quiescent","capabilities":[]}`)
	},
	"mute": func() {},
}

// inCase are the ways to misbehave in a case.
var inCase = map[string]func(session string){
	"dies": func(string) {
		fmt.Fprintln(os.Stderr, "out of patience")
		os.Exit(7)
	},
	"hangs":   func(string) { select {} },
	"garbles": func(string) { fmt.Println("tool c2 done") },
	"floods": func(session string) {
		out := bufio.NewWriter(os.Stdout)
		for n := 0; ; n++ {
			fmt.Fprintf(out, `{"type":"event","session":%q,"n":%d,"event":{"type":"message_update"}}`+"\n", session, n)
		}
	},
}

// moods are the ways to be sound in some sessions, counted from 1, and not in
// others.
var moods = map[string]func(session int) bool{
	"leaks": func(session int) bool { return session <= 3 },
	"races": func(session int) bool { return session%2 == 1 },
}

// moody is the reference, or the reference with a defect, as the mood is.
type moody struct {
	harness.Driver
	defective harness.Driver
	sound     func(session int) bool
	opened    int
}

func (m *moody) Open(ctx context.Context, sc *harness.Scenario) (harness.Session, error) {
	m.opened++
	if m.sound(m.opened) {
		return m.Driver.Open(ctx, sc)
	}
	return m.defective.Open(ctx, sc)
}

// fake is the reference over stdio, with one fault: either from the start, or in
// every case that has a second call, or in some sessions.
func fake(fault string) {
	if misbehave := atStart[fault]; misbehave != nil {
		misbehave()
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	var driver harness.Driver = reference.New()
	if sound := moods[fault]; sound != nil {
		driver = &moody{Driver: driver, defective: reference.New(loop.LateUpdateAccepted), sound: sound}
	}
	in, feed := io.Pipe()
	go pass(feed, inCase[fault])
	if err := protocol.Serve(in, os.Stdout, driver, protocol.ServeOptions{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pass hands on the messages of the harness, until one begins a run in a case
// with a second call.
func pass(feed *io.PipeWriter, misbehave func(session string)) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	bad := map[string]bool{}
	for in.Scan() {
		line := in.Text()
		session := valueOf(line, "session")
		if valueOf(line, "type") == "open" && strings.Contains(line, `"c2"`) {
			bad[session] = true
		}
		if misbehave != nil && bad[session] && valueOf(line, "type") == "user" {
			misbehave(session)
		}
		fmt.Fprintln(feed, line)
	}
	feed.Close()
}

// valueOf is the first string member of that name in a line of JSON.
func valueOf(line, name string) string {
	_, after, _ := strings.Cut(line, `"`+name+`":"`)
	value, _, _ := strings.Cut(after, `"`)
	return value
}
