/** Shows the executions of a registry to a client of the Agent Client Protocol. */
export class Bridge {
	#send;
	#plant;
	#stops;
	#sessions = new Map(); // by agent
	#cards = new Map(); // calls that are not over, by agent and id

	constructor(registry, send, plant) {
		this.#send = send;
		this.#plant = plant;
		this.#stops = [registry.observeStored((entry) => this.#stored(entry)), registry.observe((seen) => this.#progress(seen))];
	}

	open(session, agent) {
		this.#sessions.set(agent, session);
	}

	close(session) {
		if (this.#plant === "feeds-closed") return;
		for (const [agent, open] of this.#sessions) if (open === session) this.#sessions.delete(agent);
		for (const [key, card] of this.#cards) if (card.session === session) this.#cards.delete(key);
	}

	replay(session, log) {
		for (const call of log.filter((entry) => entry.kind === "tool/call")) {
			const lost = { text: "The result of the call was lost.", isError: true };
			this.#write(session, announced(call));
			this.#write(session, ended(call, log.find((entry) => entry.kind === "tool/result" && entry.call === call.call) ?? lost));
		}
	}

	dispose() {
		for (const stop of this.#stops) stop();
		this.#sessions.clear();
		this.#cards.clear();
	}

	#key(agent, call) {
		return this.#plant === "by-call-id" ? call : `${agent}/${call}`;
	}

	#write(sessionId, update) {
		this.#send({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } });
	}

	#stored(entry) {
		const session = this.#sessions.get(entry.agent);
		const key = this.#key(entry.agent, entry.call);
		if (entry.kind === "tool/call" && session) {
			this.#cards.set(key, { session, call: entry });
			this.#write(session, announced(entry));
		}
		const card = this.#cards.get(key);
		if (entry.kind !== "tool/result" || !card || (this.#plant === "forgets-failures" && entry.isError)) return;
		this.#cards.delete(key);
		this.#write(card.session, ended(card.call, entry));
	}

	// A nested execution has no card.
	#progress({ agent, call, parent, view }) {
		const card = parent === undefined && this.#cards.get(this.#key(agent, call));
		if (!card) return;
		const { generic, fixed = [] } = card.call.card ?? { generic: true };
		this.#write(card.session, {
			sessionUpdate: "tool_call_update",
			toolCallId: call,
			status: "in_progress",
			...(view.title !== undefined && generic && { title: view.title }),
			...(view.content && { content: shown(this.#plant === "wipes" ? [] : fixed, view.content) }),
		});
	}
}

// Content replaces what was there: so diffs and terminals are sent along.
const shown = (fixed, blocks) => [...fixed, ...blocks.map((content) => ({ type: "content", content }))];

function announced({ call, tool, args, card = { title: tool } }) {
	const { title, kind, locations, fixed } = card;
	return { sessionUpdate: "tool_call", toolCallId: call, title, kind, status: "pending", rawInput: args, locations, ...(fixed && { content: fixed }) };
}

function ended({ call, tool, card = { title: tool } }, { text, isError }) {
	const content = shown(card.fixed ?? [], [{ type: "text", text }]);
	return { sessionUpdate: "tool_call_update", toolCallId: call, title: card.title, status: isError ? "failed" : "completed", content };
}
