package loop

import "github.com/pi-conform/pi-conform/harness/trace"

// updates are the progress updates of one execution. The tool only posts them;
// whether one is accepted is decided in loop code, where the gate is closed as
// soon as execute's answer is taken up. So an update is late exactly if it comes
// after that (UPD-2, edge 9), and no lock is needed.
type updates struct {
	call   *call
	closed bool
	tasks  []Task  // deliveries that have begun
	room   [2]Task // for tasks
	broken error   // a listener's, on one of the updates

	// What only defects ask for.
	first   *trace.Result // the first update
	telling int           // deliveries that are not over
}

// report is the tool's onUpdate; it may be called from anywhere, at any time.
func (u *updates) report(partial *trace.Result) {
	u.call.run.rt.Post(func() { u.accept(partial) })
}

// accept makes every update in time a task of its own: while a listener is busy
// with one, the next may already come (edge 13).
func (u *updates) accept(partial *trace.Result) {
	if !u.shut() && !u.held(partial) {
		u.deliver(partial)
	}
}

// shut: the gate is closed.
func (u *updates) shut() bool { return u.closed && !u.open() || u.lost() }

func (u *updates) deliver(partial *trace.Result) {
	task := u.call.run.rt.Go(func() {
		u.telling++
		if err := u.call.emitUpdate(partial); err != nil {
			u.fail(err)
		}
		u.telling--
	})
	if u.tasks == nil {
		u.tasks = u.room[:0]
	}
	u.tasks = append(u.tasks, task)
}

// fail remembers what a listener did wrong. If the call already waits for its
// updates, the run ends here and now (edge 14).
func (u *updates) fail(err error) {
	if u.broken == nil {
		u.broken = err
	}
	if u.closed || u.call.run.has(UpdateErrorBreaksRun) {
		u.call.run.breakDown(err)
	}
}

// finish closes the gate and waits until every accepted update has been
// delivered to every listener, so that none of them comes after the end (UPD-3).
func (u *updates) finish(thrown error) error {
	u.closed = !u.call.run.has(LateUpdateAccepted) && !(thrown != nil && u.call.run.has(GateOpenAfterThrow))
	u.flush()
	u.call.lost = u.tired()
	if u.hasty() {
		return nil
	}
	return u.join()
}

// join waits until the deliveries that have begun are over.
func (u *updates) join() error {
	for _, task := range u.tasks {
		if u.broken != nil {
			break
		}
		Await(u.call.run.rt, task.Join)
	}
	return u.broken
}
