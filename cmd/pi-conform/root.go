package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/pick"
)

// root is the whole command line.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "pi-conform",
		Short: "Does an agent loop keep the contract, under every order of events?",
		Long: `pi-conform runs a pi-style agent loop under controlled interleavings of tools, hooks,
listeners and aborts, and judges what it does by the rules of the contract.`,
		Example: `  pi-conform run                      judge the reference loop
  pi-conform run pi@0.84.3            judge a release of the npm loop
  pi-conform run -- node adapter.mjs  judge a program that speaks the protocol
  pi-conform explain UPD-2            what a rule says, and why`,
		Args:              noSuchCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.AddCommand(
		p.runCommand(), p.fuzzCommand(), p.replayCommand(), p.listCommand(), p.explainCommand(), p.showCommand(),
		p.selftestCommand(), p.matrixCommand(), p.doctorCommand(), p.serveCommand(), p.schemaCommand(), p.versionCommand(), p.initCommand(),
		p.traceCommand(), p.reportCommand(), p.baselineCommand(), p.checkCommand(),
		p.serveModelCommand(), p.serveACPCommand(), p.driveCommand(),
	)
	root.SetIn(p.in)
	root.SetOut(p.raw)
	root.SetErr(io.Discard) // errors are written by program.explain
	root.SetFlagErrorFunc(flagError)
	return root
}

// noSuchCommand is asked about words that no command takes.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return exit.Usagef("unknown command %q%s; «pi-conform --help» lists the commands", args[0], pick.DidYouMean(args[0], known))
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		hint = pick.DidYouMean("--"+unknown.GetSpecifiedName(), known)
	}
	return exit.Usagef("%w%s; «%s --help» lists the flags", err, hint, cmd.CommandPath())
}

// arguments checks the number of arguments before --, and whether there may be
// a command after it.
func arguments(least, most int, command bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		before, after := splitArgs(cmd, args)
		switch {
		case len(after) > 0 && !command, cmd.ArgsLenAtDash() >= 0 && !command:
			return exit.Usagef("%s takes no command after --", cmd.CommandPath())
		case command && cmd.ArgsLenAtDash() >= 0 && len(after) == 0:
			return exit.Usagef("there is no command after --")
		case len(before) < least:
			return exit.Usagef("an argument is missing: %s", cmd.UseLine())
		case len(before) > most:
			return exit.Usagef("unexpected argument %q: %s", before[most], cmd.UseLine())
		}
		return nil
	}
}

// splitArgs are the arguments before and after --.
func splitArgs(cmd *cobra.Command, args []string) (before, after []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}

// oneOf says that a word has to be one of those that are known.
func oneOf(what, word string, known ...string) error {
	if slices.Contains(known, word) {
		return nil
	}
	return exit.Usagef("unknown %s %q%s: it has to be one of %s", what, word, pick.DidYouMean(word, known), strings.Join(known, ", "))
}
