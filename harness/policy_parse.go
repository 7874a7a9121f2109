package harness

import (
	"fmt"
	"strconv"
	"strings"
)

// PolicyKind is a way to choose the order of a case, or to explore many.
type PolicyKind string

// The kinds.
const (
	PolicyAuto       PolicyKind = "auto"       // exhaust what is small, then rising departures, then a mixture
	PolicyFirst      PolicyKind = "first"      // the default order
	PolicyRandom     PolicyKind = "random"     // evenly among what is enabled
	PolicyUniform    PolicyKind = "uniform"    // evenly among the orders
	PolicyPCT        PolicyKind = "pct"        // priorities, for bugs of some depth
	PolicyDelay      PolicyKind = "delay"      // a bounded number of departures from the default order
	PolicyExhaustive PolicyKind = "exhaustive" // all orders
)

// PolicySpec is a policy as a user names it.
type PolicySpec struct {
	Kind  PolicyKind
	Depth int // of pct and delay
}

// PolicyNames are the forms that [ParsePolicy] understands.
func PolicyNames() []string {
	return []string{"auto", "first", "random", "uniform", "pct:D", "delay:D", "exhaustive"}
}

// ParsePolicy reads the name of a policy: auto, first, random, uniform, pct:D,
// delay:D or exhaustive, where D is a number from 1. Without it, pct means pct:3
// and delay means delay:2.
func ParsePolicy(text string) (PolicySpec, error) {
	name, number, numbered := strings.Cut(text, ":")
	spec := PolicySpec{Kind: PolicyKind(name)}
	switch spec.Kind {
	case PolicyPCT:
		spec.Depth = 3
	case PolicyDelay:
		spec.Depth = 2
	case PolicyAuto, PolicyFirst, PolicyRandom, PolicyUniform, PolicyExhaustive:
		if numbered {
			return PolicySpec{}, fmt.Errorf("policy %q: %s takes no number", text, name)
		}
		return spec, nil
	default:
		return PolicySpec{}, fmt.Errorf("unknown policy %q%s", text, didYouMean(name, PolicyNames()))
	}
	if !numbered {
		return spec, nil
	}
	depth, err := strconv.Atoi(number)
	if err != nil || depth < 1 {
		return PolicySpec{}, fmt.Errorf("policy %q: %s:D needs a number from 1", text, name)
	}
	spec.Depth = depth
	return spec, nil
}

// String is the name that [ParsePolicy] reads.
func (s PolicySpec) String() string {
	if s.Depth == 0 {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + strconv.Itoa(s.Depth)
}

// Policy gives a policy of the kind that always makes the same choices for the
// same seed. Auto and exhaustive are ways to explore many orders, so for them it
// is nil.
func (s PolicySpec) Policy(seed uint64) Policy {
	switch s.Kind {
	case PolicyFirst:
		return First{}
	case PolicyRandom:
		return NewRandom(seed)
	case PolicyUniform:
		return NewUniform(seed)
	case PolicyPCT:
		return NewPCT(seed, s.Depth, 0)
	case PolicyDelay:
		return NewDeparting(seed, s.Depth, 0)
	case PolicyAuto, PolicyExhaustive:
	}
	return nil
}
