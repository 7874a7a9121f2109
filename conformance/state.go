package conformance

var stateRules []Rule
