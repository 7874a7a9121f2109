package report_test

import (
	"bytes"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/conformance/report"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func shardOf(index, count int, change func(*report.Report)) *report.Report {
	r := mixed()
	r.Plan = report.Plan{ID: "abc", Cases: 10, Schedules: 1}
	r.Shard = &report.Shard{Index: index, Count: count}
	if change != nil {
		change(r)
	}
	return r
}

var _ = Describe("Merge", func() {
	DescribeTable("refuses what does not belong together", func(message string, shards ...*report.Report) {
		_, err := report.Merge(shards)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("nothing", "nothing to merge"),
		Entry("a whole run", "not one of a shard", mixed()),
		Entry("the same shard twice", "shard 1 of 2 is there twice", shardOf(1, 2, nil), shardOf(1, 2, nil)),
		Entry("other plans", "different runs", shardOf(1, 2, nil), shardOf(2, 2, func(r *report.Report) { r.Plan.ID = "def" })),
		Entry("other counts", "different runs", shardOf(1, 2, nil), shardOf(2, 3, nil)),
		Entry("other subjects", "different subjects", shardOf(1, 2, nil), shardOf(2, 2, func(r *report.Report) { r.Subject.Version = "2" })),
		Entry("a shard that cannot be", "no shard 3 of 2", shardOf(3, 2, nil)),
		Entry("other rules", "another one has", shardOf(1, 2, nil), shardOf(2, 2, func(r *report.Report) { r.Rules[0].ID = "RUN-1" })),
	)

	It("is partial where shards are missing, and says which", func() {
		whole, err := report.Merge([]*report.Report{shardOf(3, 4, nil), shardOf(1, 4, nil)})
		Expect(err).NotTo(HaveOccurred())
		Expect(whole.Partial).To(BeTrue())
		Expect(whole.Notes).To(ContainElement("missing of 4 shards: 2, 4"))
	})
})

var _ = Describe("Compare", func() {
	It("tells what fails newly and what passes newly", func() {
		before, after := mixed(), mixed()
		after.Findings = append(after.Findings[:0:0], finding("UPD-2", "upd/fine", conformance.Must))
		after.Rules[1].Status = conformance.StatusPass
		after.Settle()
		d := report.Compare(before, after)
		Expect(d.Failing).To(ConsistOf(HaveField("Case", "upd/fine")))
		Expect(d.Passing).To(ConsistOf(
			And(HaveField("Rule", "UPD-2"), HaveField("Case", "upd/late")), And(HaveField("Rule", "UPD-4"), HaveField("Case", "upd/late")),
			HaveField("Case", "upd/known"), HaveField("Case", "abort/robust")))
		Expect(d.Rules).To(ConsistOf(HaveField("ID", "UPD-4")))
		Expect(d.Worse()).To(BeTrue())
		Expect(report.Compare(after, after).Worse()).To(BeFalse())
	})
})

var _ = Describe("Read", func() {
	DescribeTable("says what is wrong", func(text, message string) {
		_, err := report.Read(strings.NewReader(text))
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("empty", "", "empty"),
		Entry("cut off", `{"schema":"pi-conform/report/1","too`, "cut off"),
		Entry("another version", `{"schema":"pi-conform/report/9"}`, "another version"),
		Entry("another thing", `{"schema":"other/1"}`, `the schema "other/1"`),
		Entry("no schema", `{"a":1}`, "names no schema"),
		Entry("no JSON", `<xml/>`, "not a report"),
	)

	It("gives traces back with the findings", func() {
		var b bytes.Buffer
		r := mixed()
		r.Findings[0].Trace, r.Findings[0].Entries = recordedTrace(), []int{0}
		r.Findings[0].Reference = recordedTrace()
		Expect(report.Write(&b, r)).To(Succeed())
		again, err := report.Read(&b)
		Expect(err).NotTo(HaveOccurred())
		Expect(trace.Hash(again.Findings[0].Trace)).To(Equal(trace.Hash(r.Findings[0].Trace)))
		Expect(again.Findings[0].Reference).NotTo(BeNil())
	})
})

func recordedTrace() *trace.Trace {
	return &trace.Trace{
		Header:  trace.Header{Format: trace.Format, Edition: "0.84.3", Form: trace.FormAgent},
		Entries: []trace.Entry{{Step: 1, Kind: trace.KindAction, Label: "abort", Name: "abort"}, {Step: 1, Kind: trace.KindEnd, Outcome: trace.OutcomeComplete}},
	}
}
