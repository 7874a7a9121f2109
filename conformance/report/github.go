package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/pi-conform/pi-conform/conformance"
)

// What GitHub takes of one step.
const (
	mostAnnotations = 10
	mostSummary     = 1 << 20 // bytes
)

// WriteStepSummary writes the Markdown summary, cut so that GitHub takes it.
func WriteStepSummary(w io.Writer, r *Report) error {
	const note = "\n\n… the summary is too long for this page; the other reports have all of it.\n"
	var b bytes.Buffer
	if err := WriteMarkdown(&b, r); err != nil {
		return err
	}
	if b.Len() >= mostSummary {
		text := b.Bytes()[:mostSummary-len(note)-1]
		text = text[:bytes.LastIndexByte(text, '\n')+1]
		b = *bytes.NewBuffer(append(text, note...))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteAnnotations writes workflow commands that make GitHub show what is wrong:
// one for each broken rule, as far as GitHub takes them.
func WriteAnnotations(w io.Writer, r *Report) error {
	for _, line := range r.annotations() {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) annotations() []string {
	var lines []string
	for _, level := range levels {
		for _, group := range byRule(r.Broken(level)) {
			lines = append(lines, annotationOf(group))
		}
	}
	for _, u := range r.Unexpected() {
		lines = append(lines, annotation("error", string(u.Outcome)+" in "+u.Case, u.Message))
	}
	for _, s := range r.Stale {
		lines = append(lines, annotation("warning", fmt.Sprintf("%s line %d", s.File, s.Line), s.Match+" "+s.Rule+" is expected to fail, and did not"))
	}
	if len(lines) > mostAnnotations {
		rest := len(lines) - mostAnnotations + 1
		lines = append(lines[:mostAnnotations-1], annotation("notice", "pi-conform", fmt.Sprintf("%d more in the summary", rest)))
	}
	return lines
}

func annotationOf(group []Finding) string {
	f := &group[0]
	kind := "warning"
	if f.Level == conformance.Must {
		kind = "error"
	}
	text := fmt.Sprintf("%s\n%s: %s\n%s", sentence(f.Rule), f.Case, f.Message, f.Replay)
	if len(group) > 1 {
		text += fmt.Sprintf("\nand in %s", counted(len(group)-1, "more case"))
	}
	return annotation(kind, f.Rule, text)
}

// annotation is one workflow command. Whatever could end it early, or begin
// another one, is escaped.
func annotation(kind, title, text string) string {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	return fmt.Sprintf("::%s title=%s::%s", kind, property.Replace(printable(title)), data.Replace(printable(cut(text, 4<<10))))
}

// WriteOutputs writes the outputs of a step, a line each.
func WriteOutputs(w io.Writer, r *Report) error {
	counts := r.Counts()
	_, err := fmt.Fprintf(w, "conclusion=%s\nmust-broken=%d\npassed=%d\nnot-exercised=%d\ninconclusive=%d\nstale=%d\npartial=%t\n",
		r.Conclusion(), brokenRules(r.Broken(conformance.Must)), counts[conformance.StatusPass],
		counts[conformance.StatusNotExercised], len(r.Unexpected()), len(r.Stale), r.Partial)
	return err
}
