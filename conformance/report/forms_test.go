package report_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/joshdk/go-junit"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// mixed is a report with a case of every status, and texts that a subject might
// print to do harm.
func mixed() *report.Report {
	r := &report.Report{
		Schema: report.Schema, Tool: "pi-conform test", Edition: "0.84.3", Cases: 7, Schedules: 9,
		Subject: report.Subject{Name: "loop", Version: "1.0"},
		Rules: []report.Rule{
			{ID: "UPD-2", Level: conformance.Must, Status: conformance.StatusFail, Exercised: 4, Schedules: 4, Findings: 2},
			{ID: "UPD-4", Level: conformance.Must, Status: conformance.StatusFail, Exercised: 4, Schedules: 4, Findings: 1},
			{ID: "QUE-6r", Level: conformance.Robust, Status: conformance.StatusFail, Exercised: 1, Schedules: 1, Findings: 1},
		},
		Results: []report.Result{
			{Case: "upd/late"},
			{Case: "upd/known"},
			{Case: "upd/fine"},
			{Case: "abort/robust"},
			{Case: "abort/died"},
			{Case: "abort/hung"},
			{Case: "lonely"},
			{Case: "abort/unsteady"},
			{Case: "upd/lacking", Status: report.StatusNotApplicable, Message: "the subject does not declare forms:loop"},
			{Case: "upd/later", Status: report.StatusNotRun, Message: "the run ended before its turn came"},
		},
		Findings: []report.Finding{
			finding("UPD-4", "upd/late", conformance.Must), finding("UPD-2", "upd/late", conformance.Must),
			finding("QUE-6r", "abort/robust", conformance.Robust),
		},
		Unclear: []report.Unclear{
			{Case: "abort/hung", Outcome: trace.OutcomeHung, Message: "no sign of life"},
			{Case: "abort/died", Outcome: trace.OutcomeCrashed, Message: "exit status 7\x1b[31m\x00\xff]]>"},
			{Case: "abort/unsteady", Outcome: report.Unsteady, Message: "two traces"},
		},
	}
	known := finding("UPD-2", "upd/known", conformance.Must)
	known.Expected = "mended in the next release"
	r.Findings = append(r.Findings, known)
	r.Settle()
	return r
}

const harm = "\x1b]0;x\x07<b>&\"\x00\ufffe::error::x\n::add-mask::y %0A | `x` [a](b)"

func finding(rule, name string, level conformance.Level) report.Finding {
	return report.Finding{Rule: rule, Case: name, Level: level, Message: "late " + harm, Count: 1, Replay: "pi-conform replay " + name}
}

func text(write func(w *bytes.Buffer) error) string {
	GinkgoHelper()
	var b bytes.Buffer
	Expect(write(&b)).To(Succeed())
	return b.String()
}

var _ = Describe("JUnit", func() {
	xmlText := func() string {
		return text(func(w *bytes.Buffer) error { return report.WriteJUnit(w, mixed()) })
	}

	It("has every case once, by a name of its own, with one verdict", func() {
		var doc struct {
			Tests  int `xml:"tests,attr"`
			Suites []struct {
				Tests    int        `xml:"tests,attr"`
				Failures int        `xml:"failures,attr"`
				Errors   int        `xml:"errors,attr"`
				Skipped  int        `xml:"skipped,attr"`
				Nested   []struct{} `xml:"testsuite"`
				Cases    []struct {
					Class   string     `xml:"classname,attr"`
					Name    string     `xml:"name,attr"`
					Failure []struct{} `xml:"failure"`
					Error   []struct{} `xml:"error"`
					Skipped []struct{} `xml:"skipped"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		Expect(xml.Unmarshal([]byte(xmlText()), &doc)).To(Succeed())
		seen := map[string]bool{}
		for _, suite := range doc.Suites {
			Expect(suite.Nested).To(BeEmpty())
			Expect(suite.Cases).To(HaveLen(suite.Tests))
			failures, faults, skipped := 0, 0, 0
			for _, c := range suite.Cases {
				Expect(c.Name).NotTo(BeEmpty())
				Expect(seen).NotTo(HaveKey(c.Class + " " + c.Name))
				seen[c.Class+" "+c.Name] = true
				Expect(len(c.Failure)+len(c.Error)+len(c.Skipped)).To(BeNumerically("<=", 1), c.Name)
				failures, faults, skipped = failures+len(c.Failure), faults+len(c.Error), skipped+len(c.Skipped)
			}
			Expect([]int{suite.Failures, suite.Errors, suite.Skipped}).To(Equal([]int{failures, faults, skipped}))
		}
		Expect(seen).To(HaveLen(10))
		Expect(doc.Tests).To(Equal(10))
	})

	It("is read by an independent parser", func() {
		suites, err := junit.Ingest([]byte(xmlText()))
		Expect(err).NotTo(HaveOccurred())
		status := map[string]junit.Status{}
		tests := map[string]junit.Test{}
		for _, suite := range suites {
			for _, test := range suite.Tests {
				status[test.Name], tests[test.Name] = test.Status, test
			}
		}
		Expect(status).To(Equal(map[string]junit.Status{
			"upd/late": junit.StatusFailed, "upd/known": junit.StatusSkipped, "upd/fine": junit.StatusPassed, "abort/robust": junit.StatusPassed,
			"abort/died": junit.StatusError, "abort/hung": junit.StatusError, "abort/unsteady": junit.StatusError, "lonely": junit.StatusPassed,
			"upd/lacking": junit.StatusSkipped, "upd/later": junit.StatusSkipped,
		}))
		Expect(tests["upd/late"].Error.Error()).To(And(ContainSubstring("UPD-2"), ContainSubstring("UPD-4"), ContainSubstring("pi-conform replay upd/late")))
		Expect(tests["upd/known"].Message).To(ContainSubstring("mended in the next release"))
		Expect(tests["upd/lacking"].Message).To(ContainSubstring("forms:loop"))
	})

	It("has no control characters", func() {
		for _, r := range xmlText() {
			Expect(r == '\n' || !unicode.IsControl(r)).To(BeTrue(), "%q", r)
		}
		Expect(xmlText()).To(ContainSubstring(`\x1b`), "they are shown, not dropped")
	})
})

var _ = Describe("Markdown", func() {
	It("shows what the subject printed as text", func() {
		md := text(func(w *bytes.Buffer) error { return report.WriteMarkdown(w, mixed()) })
		Expect(md).To(And(ContainSubstring("**UPD-2**"), ContainSubstring("Broken MUST rules")))
		for _, markup := range []string{"<b>", "[a]", "`x`", "\x1b"} {
			Expect(md).NotTo(ContainSubstring(markup))
		}
	})
})

var _ = Describe("GitHub", func() {
	It("gets at most ten annotations, each on a line of its own", func() {
		r := mixed()
		for i := range 30 {
			r.Findings = append(r.Findings, finding(fmt.Sprintf("RUN-%d", i), "upd/late", conformance.Must))
		}
		lines := strings.Split(strings.TrimSpace(text(func(w *bytes.Buffer) error { return report.WriteAnnotations(w, r) })), "\n")
		Expect(lines).To(HaveLen(10))
		Expect(lines[9]).To(And(HavePrefix("::notice"), ContainSubstring("more in the summary")))
		for _, line := range lines {
			Expect(line).To(MatchRegexp(`^::(error|warning|notice) title=`))
		}
	})

	It("gets a summary that is not too long", func() {
		r := mixed()
		for i := range 9000 {
			r.Findings = append(r.Findings, finding(fmt.Sprintf("RUN-%d", i), strings.Repeat("x", 200), conformance.Must))
		}
		summary := text(func(w *bytes.Buffer) error { return report.WriteStepSummary(w, r) })
		Expect(len(summary)).To(BeNumerically("<", 1<<20))
		Expect(summary).To(ContainSubstring("too long for this page"))
	})

	It("gets outputs of one line each", func() {
		Expect(text(func(w *bytes.Buffer) error { return report.WriteOutputs(w, mixed()) })).To(ContainSubstring("must-broken=2\n"))
	})
})

var _ = Describe("the badge", func() {
	DescribeTable("shows how things stand", func(change func(*report.Report), message, color string) {
		r := &report.Report{Edition: "0.84.3", Rules: []report.Rule{{ID: "UPD-2", Level: conformance.Must, Status: conformance.StatusPass, Exercised: 1}}}
		change(r)
		Expect(report.BadgeOf(r)).To(And(HaveField("Message", message), HaveField("Color", color)))
	},
		Entry("conforms", func(*report.Report) {}, "conforms · 1 rules", "brightgreen"),
		Entry("broken", func(r *report.Report) { r.Findings = []report.Finding{finding("UPD-2", "a", conformance.Must)} }, "1 MUST broken", "red"),
		Entry("partial, though something is broken", func(r *report.Report) {
			r.Partial = true
			r.Findings = []report.Finding{finding("UPD-2", "a", conformance.Must)}
		}, "partial", "lightgrey"),
		Entry("one shard", func(r *report.Report) { r.Shard = &report.Shard{Index: 1, Count: 2} }, "partial", "lightgrey"),
		Entry("nothing exercised", func(r *report.Report) { r.Rules[0].Exercised = 0 }, "nothing measured", "lightgrey"),
	)
})

var _ = Describe("events", func() {
	It("are a line each", func() {
		out := text(func(w *bytes.Buffer) error {
			e := report.NewEvents(w)
			e.Start("pi-conform", 1)
			e.Case(1, report.Result{Case: "a", Status: report.StatusFailed}, []report.Finding{finding("UPD-2", "a", conformance.Must)})
			return e.End(mixed(), 1)
		})
		var types []string
		for line := range strings.Lines(out) {
			var e struct {
				Type string `json:"type"`
			}
			Expect(json.Unmarshal([]byte(line), &e)).To(Succeed())
			types = append(types, e.Type)
		}
		Expect(types).To(Equal([]string{"start", "finding", "case", "end"}))
	})
})
