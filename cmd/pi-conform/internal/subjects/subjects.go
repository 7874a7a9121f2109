// Package subjects makes the loop that a command line names ready to run cases.
package subjects

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/adapters/reference"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/protocol"
	"github.com/pi-conform/pi-conform/loop/view"
)

// Kind is one kind of subject, for people who look for one.
type Kind struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// Kinds are the ways to name a subject.
func Kinds() []Kind {
	return []Kind{
		{"reference", "the reference loop, in process (the default)"},
		{"mutant:NAME", "the reference loop with one defect; «pi-conform list mutants» names them"},
		{"pi[@VERSION]", "a release of the npm loop; installed into the user's cache on first use"},
		{"oh-my-pi[@VERSION]", "a release of oh-my-pi's loop, a fork of that one, with a Bun to run it; installed likewise"},
		{"NAME", "one of pi-conform.yaml in the working directory, where it is built, and the first the default"},
		{"-- CMD...", "any program that speaks the protocol on its standard input and output"},
	}
}

// Request is what the command line says of the subject.
type Request struct {
	Name         string            // empty means the default, unless there is a command
	Command      []string          // what stands after --
	Project      bool              // look for subjects, and for the default one, in pi-conform.yaml
	Edition      string            // empty means the subject's own
	TimeoutScale float64           // 0 means 1
	Harness      string            // how the harness names itself
	Log          func(line string) // progress and notes; never nil
	Talk         func(line string) // what the subject logs; nil if nobody wants to know

	built bool // by an earlier request like this
}

// Subject is a loop that is ready to run cases.
type Subject struct {
	Name    string // as it is written on a command line
	Driver  harness.Driver
	Edition edition.Edition
	// Oracle predicts what a process waits for; nil for a loop in process.
	Oracle harness.Driver
	// Reducer is the subject's user interface reducer; nil if it has none.
	Reducer harness.Reducer
	// Channel is the subject's channel of progress; nil if it has none.
	Channel *Channel

	command []string
	scale   float64
	fresh   func(context.Context) (*Subject, error)
	meant   bool // without being named: a command line need not name it
}

// Fresh is the same subject in a process of its own.
func (s *Subject) Fresh(ctx context.Context) (*Subject, error) { return s.fresh(ctx) }

// Open finds the subject and, if it is a process, starts it. The error of one
// that cannot be started is a [protocol.StartError] or has [exit.Subject].
func Open(ctx context.Context, r Request) (*Subject, error) {
	s, err := open(ctx, r)
	if err != nil {
		return nil, err
	}
	s.scale = r.TimeoutScale
	again := r
	again.built = true
	s.fresh = func(ctx context.Context) (*Subject, error) { return Open(ctx, again) }
	if r.Edition != "" {
		s.Edition, err = ParseEdition(r.Edition)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, r Request) (*Subject, error) {
	kind, version, versioned := strings.Cut(r.Name, "@")
	mutant, isMutant := strings.CutPrefix(r.Name, mutantPrefix)
	own, err := configured(&r)
	if err != nil {
		return nil, err
	}
	switch {
	case own != nil:
		return openConfigured(ctx, r, own)
	case len(r.Command) > 0 && r.Name != "":
		return nil, exit.Usagef("both the subject %q and a command after -- are given: only one can be judged", r.Name)
	case len(r.Command) > 0:
		return openProcess(ctx, r, protocol.Command{Argv: r.Command})
	case r.Name == "":
		s := inProcess("reference", reference.New())
		s.meant = true
		return s, nil
	case r.Name == "reference":
		return inProcess("reference", reference.New()), nil
	case isMutant:
		return openMutant(mutant)
	case published[kind] != nil && versioned && version == "":
		return nil, exit.Usagef("%q names no version: write %s@VERSION, or just %s for the newest", r.Name, kind, kind)
	case published[kind] != nil:
		return openNPM(ctx, r, kind, version)
	}
	return nil, exit.Usagef("unknown subject %q%s; «pi-conform list subjects» names them, and a program stands after --",
		r.Name, pick.DidYouMean(r.Name, append(names(&r), Names()...)))
}

// names are those of the project's subjects.
func names(r *Request) []string {
	if !r.Project {
		return nil
	}
	kinds, _ := Configured() // its fault has been found before
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

const mutantPrefix = "mutant:"

// Names are all names that can be listed: those of the mutants, the reference,
// and the loops that npm has.
func Names() []string {
	names := []string{"reference", "pi", "oh-my-pi"}
	for _, m := range Mutants() {
		names = append(names, mutantPrefix+m.Name)
	}
	return names
}

func openMutant(name string) (*Subject, error) {
	m, err := LookupMutant(name)
	if err != nil {
		return nil, err
	}
	s := inProcess(mutantPrefix+m.Name, m.Driver())
	s.Reducer = m.Reducer
	if m.Edition != "" {
		s.Edition = m.Edition
	}
	return s, nil
}

func inProcess(name string, d harness.Driver) *Subject {
	return &Subject{Name: name, Driver: d, Edition: edition.Default, Reducer: view.Reducer{}}
}

// InProcess gives the reference or a mutant, for what needs no process.
func InProcess(name string) (harness.Driver, error) {
	if mutant, ok := strings.CutPrefix(name, mutantPrefix); ok {
		s, err := openMutant(mutant)
		if err != nil {
			return nil, err
		}
		return s.Driver, nil
	}
	if name == "reference" {
		return reference.New(), nil
	}
	return nil, exit.Usagef("unknown loop %q%s: it has to be reference or mutant:NAME", name, pick.DidYouMean(name, Names()))
}

// openProcess starts a command and learns what it is.
func openProcess(ctx context.Context, r Request, command protocol.Command) (*Subject, error) {
	process := protocol.NewProcess(command, options(r))
	if err := process.Start(ctx); err != nil {
		return nil, err
	}
	s := &Subject{
		Driver: &patient{process, r.Log}, Oracle: reference.New(), Edition: newest(process.Info().Editions), command: r.Command,
	}
	if slices.Contains(process.Info().Capabilities, protocol.CapReducer) {
		reducer, err := process.Reducer(ctx)
		if err != nil {
			return nil, err
		}
		s.Reducer = reducer
	}
	if slices.Contains(process.Info().Capabilities, protocol.CapProgress) {
		s.Channel = newChannel(process)
	}
	return s, nil
}

func options(r Request) protocol.Options {
	o := protocol.Options{Harness: r.Harness, TimeoutScale: r.TimeoutScale, Log: r.Talk}
	for _, e := range edition.Known() {
		o.Editions = append(o.Editions, string(e))
	}
	return o
}

// newest is the newest edition that the subject declares and that is known.
func newest(declared []string) edition.Edition {
	best := edition.Default
	found := false
	for _, name := range declared {
		e, err := edition.Parse(name)
		if err == nil && (!found || e.AtLeast(best)) {
			best, found = e, true
		}
	}
	return best
}

// ParseEdition gives the known edition of that name.
func ParseEdition(name string) (edition.Edition, error) {
	e, err := edition.Parse(name)
	if err == nil {
		return e, nil
	}
	var known []string
	for _, e := range edition.Known() {
		known = append(known, string(e))
	}
	return "", exit.Usagef("--edition: %w%s", err, pick.DidYouMean(name, known))
}

// Close ends the subject.
func (s *Subject) Close() error { return s.Driver.Close() }

// Record runs a scenario on the subject, in the subject's edition.
func (s *Subject) Record(ctx context.Context, sc *harness.Scenario, p harness.Policy) (*harness.Recording, error) {
	if s.Oracle == nil {
		return harness.Run(ctx, s.Driver, sc, p, harness.Limits{})
	}
	return harness.RunPredicted(ctx, s.Driver, s.Oracle, sc, p, harness.Limits{})
}

// Replay is the command that shows a case again on this subject.
func (s *Subject) Replay(token string) string {
	words := []string{"pi-conform", "replay", quote(token)}
	if s.Name != "" && !s.meant {
		words = append(words, quote(s.Name))
	}
	words = append(words, "--edition", string(s.Edition))
	if s.scale != 0 && s.scale != 1 {
		words = append(words, "--timeout-scale", strconv.FormatFloat(s.scale, 'g', -1, 64))
	}
	if len(s.command) > 0 {
		words = append(words, "--")
		for _, word := range s.command {
			words = append(words, quote(word))
		}
	}
	return strings.Join(words, " ")
}

// quote makes one word of a shell of the text.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./-_~", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// isStart reports whether the error says that the subject cannot be started.
func isStart(err error) bool {
	_, ok := errors.AsType[*protocol.StartError](err)
	return ok
}
