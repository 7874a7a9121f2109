package conformance

var contextRules []Rule
