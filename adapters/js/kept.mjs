/**
 * What a listener kept of the events of a run: the top level of each event's
 * message, and the set of pending tool calls that was handed out. What lies
 * deeper in a message may be shared with others and is not compared.
 */
export class Kept {
	#events = [];

	keep(n, event, state) {
		const { message } = event;
		if (message) this.#events.push({ n, message, copy: { ...message } });
		else if (state?.pendingToolCalls instanceof Set && event.toolCallId !== undefined) {
			this.#events.push({ n, set: state.pendingToolCalls, members: [...state.pendingToolCalls] });
		}
	}

	/** The numbers of the events whose kept part has changed since; then begins anew. */
	compare() {
		const changed = this.#events.filter((kept) => (kept.set ? setChanged(kept) : messageChanged(kept)));
		this.#events = [];
		return changed.map((kept) => kept.n);
	}
}

function setChanged({ set, members }) {
	return set.size !== members.length || !members.every((member) => set.has(member));
}

function messageChanged({ message, copy }) {
	const changed = (key) => message[key] !== copy[key] && JSON.stringify(message[key]) !== JSON.stringify(copy[key]);
	return Object.keys(copy).some(changed) || Object.keys(message).some(changed);
}
