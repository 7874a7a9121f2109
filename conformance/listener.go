package conformance

var listenerRules []Rule
