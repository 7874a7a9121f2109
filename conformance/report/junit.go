package report

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds on what one case may say in JUnit: readers keep messages in tables and
// cut long texts off.
const (
	mostMessage = 300      // characters
	mostText    = 32 << 10 // bytes
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// junitCase has at most one of Failure, Error and Skipped: some readers count a
// case once for each.
type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
	Skipped *junitSkipped `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// WriteJUnit writes the report as JUnit XML: a suite for each family of cases,
// none inside another, and every case in one of them.
func WriteJUnit(w io.Writer, r *Report) error {
	out := bufio.NewWriter(w)
	out.WriteString(xml.Header)
	enc := xml.NewEncoder(out)
	enc.Indent("", "  ")
	if err := enc.Encode(r.junit()); err != nil {
		return err
	}
	out.WriteString("\n")
	return out.Flush()
}

func (r *Report) junit() *junitSuites {
	all := &junitSuites{Name: printable("pi-conform " + r.Subject.String())}
	for i := range r.Results {
		result := &r.Results[i]
		name := printable("pi-conform." + Family(result.Case))
		n := slices.IndexFunc(all.Suites, func(s junitSuite) bool { return s.Name == name })
		if n < 0 {
			n = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: name, Properties: r.properties()})
		}
		all.Suites[n].add(r.junitCase(result, name))
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	return all
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func (r *Report) properties() []junitProperty {
	return []junitProperty{
		{"subject", printable(r.Subject.String())},
		{"edition", r.Edition},
		{"seed", fmt.Sprint(r.Seed)},
		{"partial", fmt.Sprint(r.Partial)},
	}
}

func (r *Report) junitCase(result *Result, class string) junitCase {
	c := junitCase{Class: class, Name: printable(result.Case)}
	text := printable(cut(r.caseText(result), mostText))
	message := printable(short(r.caseMessage(result)))
	switch result.Status {
	case StatusFailed:
		c.Failure = &junitProblem{Message: message, Type: strings.Join(result.Rules, " "), Text: text}
	case StatusCrashed, StatusTimeout, StatusFlaky, StatusInconclusive:
		c.Error = &junitProblem{Message: message, Type: string(result.Status), Text: text}
	case StatusExpected, StatusNotRun, StatusNotApplicable:
		c.Skipped = &junitSkipped{Message: message}
	case StatusPassed: // what is not a MUST is told without failing anything
		c.Out = text
	}
	return c
}

// caseMessage is one line about a case that did not pass.
func (r *Report) caseMessage(result *Result) string {
	if result.Status == StatusExpected {
		return "expected: " + r.expectation(result.Case)
	}
	if result.Status != StatusFailed {
		return result.Message
	}
	var parts []string
	for _, f := range r.Findings {
		if f.Case == result.Case && f.status() == StatusFailed {
			parts = append(parts, f.Rule+": "+f.Message)
		}
	}
	return strings.Join(parts, "; ")
}

func (r *Report) expectation(name string) string {
	for _, f := range r.Findings {
		if f.Case == name && f.Expected != "" {
			return f.Rule + ": " + f.Expected
		}
	}
	for _, u := range r.Unclear {
		if u.Case == name && u.Expected != "" {
			return u.Expected
		}
	}
	return ""
}

// caseText is everything that there is to say about a case, for people.
func (r *Report) caseText(result *Result) string {
	var b strings.Builder
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Case == result.Case {
			f.text(&b)
		}
	}
	for _, u := range r.Unclear {
		if u.Case == result.Case {
			fmt.Fprintf(&b, "%s: %s\n", u.Outcome, u.Message)
		}
	}
	return b.String()
}

func (f *Finding) text(b *strings.Builder) {
	fmt.Fprintf(b, "%s (%s): %s\n", f.Rule, f.Level, f.Message)
	if f.Expected != "" {
		fmt.Fprintf(b, "  expected: %s\n", f.Expected)
	}
	if said := sentence(f.Rule); said != "" {
		fmt.Fprintf(b, "  %s\n", said)
	}
	for _, line := range f.ClashLines() {
		fmt.Fprintf(b, "  > %s\n", line)
	}
	fmt.Fprintf(b, "  replay: %s\n\n", f.Replay)
}

// Family is the first part of a case's name.
func Family(name string) string {
	before, _, found := strings.Cut(name, "/")
	if !found || before == "" {
		return "cases"
	}
	return before
}

// String names the subject with its version.
func (s *Subject) String() string {
	return strings.TrimSpace(s.Name + " " + s.Version)
}

// printable is a text with everything escaped that XML cannot hold, and what a
// terminal could take for an order: a subject may have printed anything.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ' || r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r == 0xfffe || r == 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// short is the first line of a text, cut where it gets too long for a table.
func short(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if utf8.RuneCountInString(line) <= mostMessage {
		return line
	}
	return string([]rune(line)[:mostMessage]) + "…"
}

// cut bounds a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("\n… %d bytes more\n", len(text)-most)
}
