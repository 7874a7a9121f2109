// Package docs writes documents from the values that they are about.
package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/exit"
	"github.com/pi-conform/pi-conform/cmd/pi-conform/internal/subjects"
	"github.com/pi-conform/pi-conform/conformance"
)

const generated = "<!-- Written by «make docs» from the code: do not edit. -->\n\n"

// CommandLine is the manual of the command line.
func CommandLine(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\n" + generated)
	b.WriteString(root.Long + "\n\n")
	fmt.Fprintf(&b, "```\n%s\n```\n\n", root.Example)
	b.WriteString("A SUBJECT is one of\n\n")
	for _, k := range subjects.Kinds() {
		fmt.Fprintf(&b, "- `%s`: %s\n", k.Name, k.About)
	}
	b.WriteString("\nPatterns of cases have `/` between their parts: `*` stands for anything within a part, `**` for any number of parts,\nand a pattern that matches the first parts of a name matches everything below them.\n\n")
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion" {
			command(&b, cmd)
		}
	}
	exitCodes(&b)
	return b.String()
}

func command(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "## %s\n\n%s.\n\n", cmd.Name(), upper(cmd.Short))
	fmt.Fprintf(b, "```\n%s\n```\n\n", cmd.UseLine())
	if cmd.Long != "" {
		b.WriteString(cmd.Long + "\n\n")
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "```\n%s\n```\n\n", cmd.Example)
	}
	flags(b, cmd)
	for _, verb := range cmd.Commands() {
		subcommand(b, verb)
	}
}

// subcommand is one of the verbs of a command, such as «report merge».
func subcommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "### %s %s\n\n%s.\n\n```\n%s\n```\n\n", cmd.Parent().Name(), cmd.Name(), upper(cmd.Short), cmd.UseLine())
	if cmd.Long != "" {
		b.WriteString(cmd.Long + "\n\n")
	}
	flags(b, cmd)
}

func flags(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableLocalFlags() {
		return
	}
	b.WriteString("| flag | |\n|---|---|\n")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + value)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, "| `%s` | %s%s |\n", name, cell(usage), initial(f))
	})
	b.WriteString("\n")
}

// initial is the default of a flag, where there is one to speak of.
func initial(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "false", "[]":
		return ""
	}
	return " (default " + f.DefValue + ")"
}

func exitCodes(b *strings.Builder) {
	b.WriteString("## Exit codes\n\n| code | |\n|---|---|\n")
	for _, m := range exit.Meanings() {
		fmt.Fprintf(b, "| %d | %s |\n", m.Code, m.Text)
	}
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// cell is a text that can stand in a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// Rules is the catalogue of the rules. Editions says in which ones a rule holds.
func Rules(editions func(*conformance.Rule) string) string {
	var b strings.Builder
	b.WriteString("# The rules\n\n" + generated)
	b.WriteString("«pi-conform explain RULE» says more about each: the cases that exercise it, and a trace that breaks it.\n\n")
	b.WriteString("Evidence: E events · S state · L calls of every listener · C callbacks and their answers · R model requests · " +
		"A actions from outside · K kept references · V views · T a twin run · polls of the queues · reads of the model stream.\n")
	family := conformance.Family("")
	for _, r := range conformance.Catalogue() {
		if r.Family != family {
			family = r.Family
			fmt.Fprintf(&b, "\n## %s\n", family)
		}
		rule(&b, &r, editions(&r))
	}
	progressRules(&b)
	sources(&b)
	return b.String()
}

// Statements are the numbered statements of the source document U. Each has to
// be the source of a rule.
const Statements = 14

// sources is the way back: from what the sources say to the rules that hold it.
func sources(b *strings.Builder) {
	b.WriteString("\n## Where the rules come from\n\n" +
		"K is the walk through the agent kernel, U the chapter on showing tool execution (U1 to U14 are its statements), " +
		"P the note on streaming workflow progress, R what the releases were seen to do.\n\n| source | rules |\n|---|---|\n")
	by := BySource()
	for _, source := range slices.SortedFunc(maps.Keys(by), inOrder) {
		fmt.Fprintf(b, "| %s | %s |\n", source, strings.Join(by[source], " "))
	}
}

// BySource are the ids of the rules by each source that they name.
func BySource() map[string][]string {
	by := map[string][]string{}
	for _, r := range conformance.Catalogue() {
		for source := range strings.SplitSeq(r.Source, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(source), " ")
			by[name] = append(by[name], r.ID)
		}
	}
	return by
}

// inOrder puts U2 before U10.
func inOrder(a, b string) int {
	if len(a) != len(b) && a[0] == b[0] {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func rule(b *strings.Builder, r *conformance.Rule, editions string) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n", r.ID, sentence(r.Sentence))
	facts := []string{"level: " + string(r.Level), "editions: " + editions, "evidence: " + evidence(r), "source: " + r.Source}
	if len(r.Edges) > 0 {
		facts = append(facts, "edges: "+edges(r.Edges))
	}
	if names := mutants(r.ID); names != "" {
		facts = append(facts, "mutants: "+names)
	}
	fmt.Fprintf(b, "Why: %s\n\n%s\n", sentence(r.Why), strings.Join(facts, " · "))
}

func sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, ")") {
		return text
	}
	return text + "."
}

func evidence(r *conformance.Rule) string {
	var names []string
	for _, need := range r.Needs {
		names = append(names, string(need))
	}
	if r.NeedsTwin() {
		names = append(names, "T")
	}
	return strings.Join(names, " ")
}

func edges(numbers []int) string {
	var names []string
	for _, n := range numbers {
		names = append(names, fmt.Sprintf("e%d", n))
	}
	return strings.Join(names, " ")
}

func mutants(rule string) string {
	var names []string
	for _, m := range subjects.MutantsOf(rule) {
		names = append(names, "`"+m.Name+"`")
	}
	return strings.Join(names, " ")
}
