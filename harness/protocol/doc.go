// Package protocol is pi-conform/1, the language in which the harness and a
// subject in another process talk: one JSON object a line, the harness writing
// to the subject's standard input and reading its standard output.
//
// [Process] is the harness's side: a [harness.Driver] for a command. [Serve] is
// the other side: it lets any driver of this process be a subject.
//
// # What is checked, and when
//
// Every line from a subject is checked, always, in the order of cost: framing
// and length, JSON syntax, UTF-8 and duplicate keys, the types of all members
// that the harness knows, the type of the message, its required members, and
// then what only the conversation shows: replies in order and to what was
// asked, events numbered without gaps, sessions and callbacks that exist.
// Members that are not known are ignored. All this is one pass of decoding.
//
// The JSON Schemas in the folder schema say the same (as far as a schema can)
// for people and for other languages. Running them over every line as well would cost several
// times what decoding costs, so the harness runs them when a line has been
// found wrong, to name the place in it, and over every line in both directions
// if [Options].Strict is set. A test holds that the two agree.
//
// # Faults
//
// A subject that dies or does not come to rest is a [harness.SubjectError]; one
// that says what the protocol does not allow is a [ProtocolError]; one that
// answers «error» is a [ReplyError]. After the first two the process is ended,
// and the next case starts a new one.
package protocol
