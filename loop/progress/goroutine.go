package progress

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine is the number of the calling goroutine. The language has no way to
// ask whether an observer reports from inside the round that it is told of; the
// head of a stack trace has, in a form that has not changed since it exists.
func goroutine() uint64 {
	var head [48]byte
	text := bytes.TrimPrefix(head[:runtime.Stack(head[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(text, []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return id
}
