package conformance

var abortRules []Rule
