// Package conformancetest tests an agent loop written in Go, within an ordinary go
// test: under every case of the standard suite, under orders that were drawn for it,
// and under scenarios that nobody wrote.
//
//	func TestConformance(t *testing.T) {
//		conformancetest.Run(t, conformancetest.Subject{
//			Name:  "myloop",
//			Hooks: []string{"beforeToolCall"},
//			Join: func(s *harness.Surroundings) (harness.Loop, error) {
//				with := conformancetest.With(s)
//				l := myloop.New(with.Model, with.Tools, with.BeforeToolCall)
//				return with.Join(agent{l}), nil
//			},
//		})
//	}
//
// The loop runs with its own goroutines, channels, timers and contexts, in a bubble
// of [testing/synctest] (see package bubble), also with the race detector. Each rule
// of the contract is a subtest. What exploration finds is made as small as possible
// and saved in testdata/pi-conform/found; saved cases are run first from then on.
//
// By default that happens in a second process of the same test binary, so that a
// loop that panics, races or hangs is a verdict, with the schedule that led there,
// and not the end of the test. [InProcess] runs it in the process of the test; then
// what is running is noted in a file before it is run.
//
// [RunProgress] tests a registry that tells observers of the progress of tools.
package conformancetest
