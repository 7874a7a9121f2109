package lean

import "sync"

// Lock is a mutex that does nothing once it has been told that one goroutine does
// everything. The zero Lock is a mutex.
type Lock struct {
	alone bool
	mu    sync.Mutex
}

// Alone says that from now on one goroutine does everything. It must not be held.
func (l *Lock) Alone() { l.alone = true }

// Lock waits until nobody else holds it.
func (l *Lock) Lock() {
	if !l.alone {
		l.mu.Lock()
	}
}

// Unlock lets it go.
func (l *Lock) Unlock() {
	if !l.alone {
		l.mu.Unlock()
	}
}
