package conformance

var lengthRules []Rule
