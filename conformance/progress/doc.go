// Package progress judges a channel of progress: the reporter (PROG), the bridge
// to the Agent Client Protocol (BRIDGE) and the producer of a workflow's progress
// (FLOW). What it judges is a [Record]: everything that was seen of one run, in
// order. It never runs anything, prints, or reads the clock.
package progress
