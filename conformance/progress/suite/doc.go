// Package suite runs the reference of the progress channel, and its mutants,
// under drawn schedules, and records what happens, so that the rules can judge
// it. Tasks take turns, and the seed decides whose turn it is: one seed is one
// run.
package suite
