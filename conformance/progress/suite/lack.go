package suite

import (
	"slices"

	rules "github.com/pi-conform/pi-conform/conformance/progress"
	"github.com/pi-conform/pi-conform/loop/progress/workflow"
)

// The reasons for which a rule is not applicable.
const (
	noBridge   = "the subject has no bridge to the Agent Client Protocol"
	noProducer = "the subject has no producer of a workflow's progress"
	noProbe    = "the producer does not count what it holds (ProducerProber)"
)

// Lacks says of each rule that is not applicable why that is so. It makes a
// registry and a producer to look at.
func (s Subject) Lacks() (map[string]string, error) {
	counts := false
	err := InTurn.on(0, func(sc schedule) error {
		if s.Producer == nil {
			return nil
		}
		r, err := s.New(Surroundings{Store: func(Stored) error { return nil }, Log: func(string, error) {}, Await: sc.await, Pause: func() {}})
		if err != nil {
			return err
		}
		p, err := s.Producer(r, workflow.NewScripted(nil, nil))
		_, counts = p.(ProducerProber)
		return closed(r, err)
	})
	return lacks(s.Bridge != nil, s.Producer != nil, counts), err
}

func lacks(bridge, producer, counts bool) map[string]string {
	reasons := map[string]string{}
	for _, r := range rules.Rules() {
		switch {
		case r.Family == rules.FamilyBridge && !bridge:
			reasons[r.ID] = noBridge
		case r.Family == rules.FamilyFlow && !producer:
			reasons[r.ID] = noProducer
		case r.ID == "FLOW-6" && !counts:
			reasons[r.ID] = noProbe
		}
	}
	return reasons
}

// Applicable are the rules for which there is no reason against.
func Applicable(reasons map[string]string) []rules.Rule {
	return slices.DeleteFunc(rules.Rules(), func(r rules.Rule) bool { return reasons[r.ID] != "" })
}
