package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/console"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/dialect"
	"github.com/pi-conform/pi-conform/conformance/dialect/acp"
	"github.com/pi-conform/pi-conform/harness/edition"
)

type checkFlags struct {
	dialect string
	edition string
	profile string
	rules   []string
	follow  bool
	tee     bool
	json    bool
	verbose bool
}

func (p *program) checkCommand() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check FILE|- [flags]",
		Short: "judge a recorded log",
		Long: `Judges a log that somebody recorded: of the program pi in any of its modes, of the Agent
Client Protocol, or one of our own traces, plain or packed with gzip. A finding names the
lines that clash. What a log does not show makes a rule not applicable.`,
		Example: `  pi-conform check session.jsonl
  pi --mode json "fix it" | pi-conform check - --tee
  pi-conform check agent.log --dialect acp --profile seed`,
		Args: arguments(1, 1, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			setGC(streamGCPercent)
			return p.check(cmd.Context(), f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.dialect, "dialect", "auto", "what the log is: "+strings.Join(dialect.Names(), ", "))
	flags.StringVar(&f.edition, "edition", "", "edition to judge by; any: a finding breaks every edition (default any; for our own traces, the one that they name)")
	flags.StringVar(&f.profile, "profile", "spec", "for acp: spec judges by the protocol, seed also by what the note on progress demands")
	flags.StringArrayVar(&f.rules, "rule", nil, "judge only by the rules that match `PATTERN`, such as UPD or 'UPD-*'")
	flags.BoolVar(&f.follow, "follow", false, "wait for more when the file ends, until interrupted")
	flags.BoolVar(&f.tee, "tee", false, "pass the log through to standard output; the report goes to standard error")
	flags.BoolVar(&f.json, "json", false, "write the report as JSON")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "name every rule")
	return cmd
}

// options finds what is wrong with the flags, and makes of them how to judge.
func (f *checkFlags) options() (dialect.Options, error) {
	o := dialect.Options{Profile: acp.Profile(f.profile)}
	if err := oneOf("dialect", f.dialect, dialect.Names()...); err != nil {
		return o, err
	}
	if err := oneOf("profile", f.profile, string(acp.Spec), string(acp.Seed)); err != nil {
		return o, err
	}
	if f.tee && f.json {
		return o, exit.Usagef("--tee and --json cannot be given together: both write to standard output")
	}
	if f.edition != "" && f.edition != "any" {
		e, err := edition.Parse(f.edition)
		if err != nil {
			return o, exit.With(exit.Usage, err)
		}
		o.Edition = e
	}
	rules, err := conformance.Select(f.rules...)
	o.Rules = rules
	return o, exit.With(exit.Usage, err)
}

func (p *program) check(ctx context.Context, f *checkFlags, name string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	in, err := p.openLog(ctx, f, name)
	if err != nil {
		return err
	}
	defer in.Close()
	out := p.out
	if f.tee {
		out = p.notes
	}
	if f.follow && !f.json {
		o.Found = func(found dialect.Finding) { out.LogFinding(name, &found) }
	}
	log, err := openDialect(in, f)
	if errors.Is(err, dialect.ErrEmpty) {
		p.notes.Printf("pi-conform: %s: %v\n", name, err)
		return exit.Silently(exit.Nothing)
	}
	if err != nil {
		return unreadable(name, err)
	}
	rep, failed := dialect.Judge(log, o)
	if err := p.showLog(out, f, name, rep, o.Found != nil); err != nil {
		return err
	}
	if failed != nil {
		return unreadable(name, failed)
	}
	return exit.Silently(codeOfLog(ctx, rep))
}

func openDialect(in io.Reader, f *checkFlags) (*dialect.Log, error) {
	if f.follow {
		return dialect.Open(in, dialect.Name(f.dialect), dialect.Following())
	}
	return dialect.Open(in, dialect.Name(f.dialect))
}

// unreadable is the error for a log that cannot be read.
func unreadable(name string, err error) error {
	if fault, ok := errors.AsType[*dialect.InputError](err); ok {
		return exit.Usagef("%s: %w", name, fault)
	}
	return err
}

// codeOfLog says how a log that was read to its end ends the program.
func codeOfLog(ctx context.Context, rep *dialect.Report) exit.Code {
	switch {
	case rep.Broken():
		return exit.Broken
	case ctx.Err() != nil:
		return exit.Interrupted
	case !rep.Exercised():
		return exit.Nothing
	}
	return exit.OK
}

// openLog opens the log, so that what is read is passed on or waited for as the
// flags say.
func (p *program) openLog(ctx context.Context, f *checkFlags, name string) (io.ReadCloser, error) {
	in := io.NopCloser(p.in)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err // the code follows from its type
		}
		if info, err := file.Stat(); err == nil && info.IsDir() {
			file.Close()
			return nil, exit.Usagef("%s is a folder", name)
		}
		in = file
	}
	var from io.Reader = in
	if f.follow {
		from = &follower{ctx: ctx, from: from}
	}
	if f.tee {
		from = io.TeeReader(from, p.raw)
	}
	return struct {
		io.Reader
		io.Closer
	}{from, in}, nil
}

// follower reads a file that grows: its end is only where more may come, until
// the context is done.
type follower struct {
	ctx  context.Context
	from io.Reader
}

const followEvery = 100 * time.Millisecond

func (f *follower) Read(p []byte) (int, error) {
	for {
		n, err := f.from.Read(p)
		if n > 0 || err != io.EOF {
			return n, err
		}
		select {
		case <-f.ctx.Done():
			return 0, io.EOF
		case <-time.After(followEvery):
		}
	}
}

// showLog writes the report. Findings that were told already are not told again.
func (p *program) showLog(out *console.Console, f *checkFlags, name string, rep *dialect.Report, told bool) error {
	if f.json {
		return p.writeJSON(logReport(name, rep))
	}
	if !told {
		out.LogFindings(name, rep)
	}
	out.LogSummary(name, rep, f.verbose)
	return nil
}

// ---- the report as JSON ----

type logJSON struct {
	Schema   string        `json:"schema"`
	Tool     string        `json:"tool"`
	File     string        `json:"file"`
	Dialect  string        `json:"dialect"`
	Lines    int           `json:"lines"`
	Runs     int           `json:"runs"`
	Cut      int           `json:"runsWithoutEnd,omitzero"`
	Kept     []string      `json:"editionsKept,omitzero"`
	Notes    []string      `json:"notes,omitzero"`
	Findings []findingJSON `json:"findings"`
	More     int           `json:"furtherFindings,omitzero"`
	Rules    []ruleJSON    `json:"rules"`
}

type findingJSON struct {
	Rule    string `json:"rule"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Lines   []int  `json:"lines"`
	Run     int    `json:"run,omitzero"`
}

type ruleJSON struct {
	ID        string `json:"id"`
	Level     string `json:"level"`
	Status    string `json:"status"`
	Reason    string `json:"reason,omitempty"`
	Exercised int    `json:"exercised"`
}

func logReport(name string, rep *dialect.Report) logJSON {
	all := logJSON{
		Schema: "pi-conform/log-report/1", Tool: tool(), File: name, Dialect: string(rep.Dialect), Lines: rep.Lines, Runs: rep.Runs,
		Cut: rep.Cut, Notes: rep.Notes, Findings: []findingJSON{}, More: rep.More, Rules: []ruleJSON{},
	}
	for _, e := range rep.Kept {
		all.Kept = append(all.Kept, string(e))
	}
	for _, f := range rep.Findings {
		all.Findings = append(all.Findings, findingJSON{Rule: f.Rule, Level: string(f.Level), Message: f.Message, Lines: slices.Clone(f.Lines), Run: f.Run})
	}
	for _, r := range rep.Rules {
		all.Rules = append(all.Rules, ruleJSON{ID: r.Rule, Level: string(r.Level), Status: string(r.Status), Reason: r.Reason, Exercised: r.Exercised})
	}
	return all
}
