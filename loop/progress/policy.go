package progress

import "errors"

// Policy is how the questions are answered that may be answered in more than one
// way. The zero value of each choice is its default.
type Policy struct {
	Nested     Nested
	Boundary   Boundary
	Unobserved Unobserved
	Reentrant  Reentrant
	Title      Title
	EarlyEnd   EarlyEnd
	// MaxViewBytes bounds a view as JSON; 0 means [DefaultMaxViewBytes].
	MaxViewBytes int
	// InvalidFirst lets an invalid view be an error even after the boundary, where
	// otherwise the report is simply not accepted.
	InvalidFirst bool
}

// DefaultMaxViewBytes is how large a view may be: 64 KiB as JSON.
const DefaultMaxViewBytes = 64 << 10

// Nested says what becomes of reports on an execution that has a parent. In no
// case do they reach a client: there is no card for them (PROG-11).
type Nested uint8

// The choices for nested executions.
const (
	NestedObserved Nested = iota // observers see them
	NestedRefused                // the report is an error
)

// Boundary says from when on no report is accepted.
type Boundary uint8

// The choices for the boundary.
const (
	AtFinalize Boundary = iota // when finalize is entered
	AtReturn                   // as soon as the tool's body has returned
)

// Unobserved says whether a report is accepted that no observer has taken.
type Unobserved uint8

// The choices for reports that nobody takes.
const (
	UnobservedAccepted Unobserved = iota
	UnobservedDeclined            // accepted is false if no observer's scope matches
)

// Reentrant says what an observer is told that reports on the execution which it
// is told of. It never waits for itself.
type Reentrant uint8

// The choices for an observer that reports.
const (
	ReentrantError    Reentrant = iota
	ReentrantDeclined           // accepted is false, without an error
)

// Title says on which cards a view's title is shown.
type Title uint8

// The choices for titles.
const (
	TitleOnGeneric Title = iota // on cards that say no more than the tool's name
	TitleNever
)

// EarlyEnd says what becomes of a run that ends before it is known to be ours.
type EarlyEnd uint8

// The choices for an early end.
const (
	EndKept    EarlyEnd = iota // it is reported once, then forgotten
	EndDropped                 // it is forgotten at once
)

var errPolicy = errors.New("a policy's bound of a view cannot be negative")

func (p Policy) check() error {
	if p.MaxViewBytes < 0 {
		return errPolicy
	}
	return nil
}

func (p Policy) most() int {
	if p.MaxViewBytes == 0 {
		return DefaultMaxViewBytes
	}
	return p.MaxViewBytes
}
