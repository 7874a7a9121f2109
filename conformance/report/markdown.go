package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

// mostInMarkdown bounds how many cases of one rule a summary names.
const mostInMarkdown = 5

// Conclusion is the report in a few words.
func (r *Report) Conclusion() string {
	broken := brokenRules(r.Broken(conformance.Must))
	switch {
	case broken == 1:
		return "does not conform: 1 MUST rule broken"
	case broken > 1:
		return fmt.Sprintf("does not conform: %d MUST rules broken", broken)
	case !r.Exercised():
		return "nothing measured: no rule was exercised"
	case len(r.Unexpected()) > 0:
		return fmt.Sprintf("no verdict: %s", counted(len(r.Unexpected()), "schedule")+" inconclusive")
	case r.Partial:
		return "no verdict: the run was partial"
	case r.Shard != nil:
		return fmt.Sprintf("no MUST rule was broken in shard %d of %d", r.Shard.Index, r.Shard.Count)
	case len(r.Stale) > 0:
		return fmt.Sprintf("conforms, but %s did not happen", counted(len(r.Stale), "expected failure"))
	case r.ExpectedFailures() > 0:
		return fmt.Sprintf("as expected: no MUST rule was broken but for %s", counted(r.ExpectedFailures(), "known failure"))
	}
	return "conforms: no MUST rule was broken"
}

// WriteMarkdown writes a summary for a pull request.
func WriteMarkdown(w io.Writer, r *Report) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "## pi-conform: %s\n\n", markdown(r.Conclusion()))
	if r.Partial {
		b.WriteString("**Partial:** the run was interrupted or cut short.\n\n")
	}
	counts, must := r.Counts(), brokenRules(r.Broken(conformance.Must))
	b.WriteString("| subject | edition | cases | schedules | rules passed | MUST broken | others broken | not exercised | not applicable |\n")
	b.WriteString("|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
	fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %d | %d |\n\n", markdown(r.Subject.String()), markdown(r.Edition), r.Cases, r.Schedules,
		counts[conformance.StatusPass], must, counts[conformance.StatusFail]-must,
		counts[conformance.StatusNotExercised], counts[conformance.StatusNotApplicable])
	for _, level := range levels {
		r.markdownRules(&b, level)
	}
	r.markdownRest(&b)
	_, err := w.Write(b.Bytes())
	return err
}

var levels = [...]conformance.Level{conformance.Must, conformance.Should, conformance.Robust}

// markdownRules lists the broken rules of a level, each with its first cases.
func (r *Report) markdownRules(b *bytes.Buffer, level conformance.Level) {
	groups := byRule(r.Broken(level))
	if len(groups) == 0 {
		return
	}
	fmt.Fprintf(b, "### Broken %s rules\n\n", strings.ToUpper(string(level)))
	for _, group := range groups {
		fmt.Fprintf(b, "- **%s** %s\n", group[0].Rule, markdown(sentence(group[0].Rule)))
		for _, f := range group[:min(mostInMarkdown, len(group))] {
			fmt.Fprintf(b, "  - %s: %s\n    <br>%s\n", code(f.Case), markdown(short(f.Message)), code(f.Replay))
		}
		if rest := len(group) - mostInMarkdown; rest > 0 {
			fmt.Fprintf(b, "  - and in %s\n", counted(rest, "more case"))
		}
	}
	b.WriteString("\n")
}

func (r *Report) markdownRest(b *bytes.Buffer) {
	if unclear := r.Unexpected(); len(unclear) > 0 {
		b.WriteString("### Inconclusive\n\n")
		for _, u := range unclear[:min(mostInMarkdown, len(unclear))] {
			fmt.Fprintf(b, "- %s: %s\n", code(u.Case), markdown(short(string(u.Outcome)+": "+u.Message)))
		}
		if rest := len(unclear) - mostInMarkdown; rest > 0 {
			fmt.Fprintf(b, "- and %s\n", counted(rest, "more schedule"))
		}
		b.WriteString("\n")
	}
	for _, s := range r.Stale {
		fmt.Fprintf(b, "- %s line %d: %s %s is expected to fail, and did not\n", code(s.File), s.Line, code(s.Match), s.Rule)
	}
	if n := r.ExpectedFailures(); n > 0 {
		fmt.Fprintf(b, "%s as the baseline says.\n", counted(n, "failure"))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "\n%s\n", markdown(note))
	}
}

// byRule are the findings of each rule, in the order in which the rules come.
func byRule(findings []Finding) [][]Finding {
	var groups [][]Finding
	place := map[string]int{}
	for _, f := range findings {
		i, known := place[f.Rule]
		if !known {
			i = len(groups)
			place[f.Rule] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// markdown is a text that means nothing to Markdown or HTML, on one line.
func markdown(text string) string {
	var b strings.Builder
	for _, r := range printable(text) {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case strings.ContainsRune("\\`*_{}[]<>()#|~@&!", r):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code is a text as Markdown shows it in a line of code. Its backticks and the
// bars that would end a cell are entities, so it is HTML.
func code(text string) string { return "<code>" + markdown(text) + "</code>" }
