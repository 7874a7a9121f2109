package conformancetest

import (
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2" // by name, as it has a Skip too
	. "github.com/onsi/gomega"

	"github.com/pi-conform/pi-conform/conformance"
	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

func TestPackage(t *testing.T) {
	RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "conformancetest")
}

var _ = ginkgo.Describe("options", func() {
	ginkgo.DescribeTable("a pattern means a case", func(pattern, name string, want bool) {
		Expect(matches([]string{pattern}, name)).To(Equal(want))
	},
		ginkgo.Entry("by its name", "par/reverse-order", "par/reverse-order", true),
		ginkgo.Entry("by its folder", "par", "par/reverse-order", true),
		ginkgo.Entry("by its folder with a slash", "par/", "par/reverse-order", true),
		ginkgo.Entry("with wildcards", "*/reverse-*", "par/reverse-order", true),
		ginkgo.Entry("not by a part of its name", "par/reverse", "par/reverse-order", false),
		ginkgo.Entry("not by a part of its folder", "pa", "par/reverse-order", false),
	)

	ginkgo.It("level says which rules fail the test", func() {
		c := &config{level: conformance.Should}
		Expect(c.fails(conformance.Must)).To(BeTrue())
		Expect(c.fails(conformance.Should)).To(BeTrue())
		Expect(c.fails(conformance.Robust)).To(BeFalse())
	})
})

var _ = ginkgo.Describe("a subject", func() {
	ginkgo.It("declares what it has", func() {
		s := Subject{Name: "mine", Hooks: []string{"beforeToolCall"}, Lacks: []string{"polls"}}
		info := s.info()
		Expect(info.Capabilities).To(ContainElements("state", "forms:agent", "hooks:beforeToolCall"))
		Expect(info.Capabilities).NotTo(ContainElement("polls"))
		Expect(info.Evidence).To(ContainElement(trace.EvidenceState))
		Expect(info.Evidence).NotTo(ContainElement(trace.EvidencePolls))
		Expect(info.Editions).To(Equal([]string{"0.84.3"}))
	})
})

var _ = ginkgo.Describe("the last words of a process", func() {
	ginkgo.It("begin with the panic and hold nothing that varies", func() {
		words := lastWords(strings.Split(`a log line
panic: it broke

goroutine 26 [running, synctest bubble 1]:
example.com/loop.(*call).work(0xc000123456, {0x1, 0x2})
	/src/loop.go:12 +0x1b
created by example.com/loop.run in goroutine 7`, "\n"))
		Expect(words).To(Equal([]string{
			"panic: it broke", " [running]:", "example.com/loop.(*call).work", "\t/src/loop.go:12", "created by example.com/loop.run",
		}))
	})
})

var _ = ginkgo.Describe("Once", func() {
	ginkgo.It("converts each event once", func() {
		type event struct{ name string }
		once := Once(func(e *event) *trace.Event { return &trace.Event{Type: e.name} })
		a, b := &event{"turn_start"}, &event{"turn_start"}
		Expect(once(a)).To(BeIdenticalTo(once(a)))
		Expect(once(a)).NotTo(BeIdenticalTo(once(b)))
	})
})

var _ = ginkgo.Describe("the surroundings as functions", func() {
	ginkgo.It("have only the hooks of the case", func() {
		sc := &harness.Scenario{Hooks: map[string]harness.HookScript{"beforeToolCall": {}}}
		sc.Complete()
		w := With(harness.NewSurroundings(sc, nil))
		Expect(w.BeforeToolCall).NotTo(BeNil())
		Expect(w.AfterToolCall).To(BeNil())
	})
})
