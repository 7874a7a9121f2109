package conformance

var queueRules []Rule
