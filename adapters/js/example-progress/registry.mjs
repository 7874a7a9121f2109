import { AsyncLocalStorage } from "node:async_hooks";
import { Bridge } from "./bridge.mjs";

const MOST = 64 * 1024; // characters of a view as JSON

// The executions whose observers are being told, as seen from inside of one.
const inside = new AsyncLocalStorage();

/** Owns the executions of tools, and tells observers how far they have come. */
export class Registry {
	#executions = new Set();
	#observers = new Set();
	#resultObservers = new Set();
	#storedObservers = new Set();
	#tokens = 0;

	constructor({ store, log }, plant) {
		this.write = store;
		this.log = log;
		this.plant = plant;
	}

	parseView(json) {
		const { title, content, ...others } = json;
		const [foreign] = Object.keys(others);
		if (foreign && this.plant !== "lenient") throw new TypeError(`a view has no ${foreign}`);
		return { ...(title !== undefined && { title }), ...(content && { content: structuredClone(content) }) };
	}

	prepare(call) {
		const x = new Execution(this, call, ++this.#tokens);
		this.#executions.add(x);
		return x;
	}

	observe(observer, agent) {
		return added(this.#observers, { observer, agent });
	}

	observeResults(observer) {
		return added(this.#resultObservers, observer);
	}

	observeStored(observer) {
		return added(this.#storedObservers, observer);
	}

	/** Ends what an agent has still running, inner executions first. */
	async settle(agent, why) {
		const left = [...this.#executions].filter((x) => x.identity.agent === agent).reverse();
		for (const x of left) await x.finalize({ text: why, isError: true });
	}

	bridge(send) {
		return new Bridge(this, send, this.plant);
	}

	watching(agent) {
		return [...this.#observers].filter((o) => o.agent === undefined || o.agent === agent || this.plant === "gossip");
	}

	store(entry) {
		this.write(entry);
		for (const observer of this.#storedObservers) observer(entry);
	}

	over(x, outcome) {
		this.#executions.delete(x);
		for (const observer of this.#resultObservers) this.guard(() => observer(x.identity, outcome));
	}

	/** Runs what is not ours; whatever goes wrong in it is logged. */
	guard(f) {
		try {
			return f();
		} catch (error) {
			this.log(error);
		}
	}
}

function added(set, item) {
	set.add(item);
	return () => set.delete(item);
}

class Execution {
	#registry;
	#call;
	#stage = "prepared"; // announced, running, closed
	#rounds = new Set();

	constructor(registry, call, token) {
		this.#registry = registry;
		this.#call = call;
		this.identity = { agent: call.agent, call: call.call, token, parent: call.parent?.identity.token };
	}

	get #shown() {
		return this.identity.agent !== undefined && this.identity.parent === undefined;
	}

	announce() {
		this.#stage = "announced";
		const { agent, call, tool, args, card } = this.#call;
		if (this.#shown) this.#registry.store({ kind: "tool/call", agent, call, tool, args, card });
	}

	dispatch() {
		if (this.#stage === "prepared") this.announce();
		this.#stage = "running";
	}

	async reportProgress(view) {
		const { plant } = this.#registry;
		if (this.#stage === "closed" && plant !== "late") return false;
		if (["prepared", "announced"].includes(this.#stage) && plant !== "eager") throw new Error("the call is not stored yet");
		if (JSON.stringify(view).length > MOST) {
			if (plant === "touchy") this.#stage = "closed";
			throw new RangeError("the view is too large");
		}
		if (inside.getStore()?.has(this)) throw new Error("an observer reports on what it is told of");
		const round = inside.run(new Set([...(inside.getStore() ?? []), this]), () => this.#tell(plant === "shared" ? view : structuredClone(view)));
		this.#rounds.add(round);
		await round;
		this.#rounds.delete(round);
		return true;
	}

	async #tell(view) {
		const { plant, log } = this.#registry;
		const watching = this.#registry.watching(this.identity.agent);
		if (plant === "chatty" && this.#shown) this.#registry.store({ kind: "tool/progress", agent: this.identity.agent, call: this.identity.call });
		for (const { observer } of plant === "twice" ? [...watching, ...watching] : watching) {
			try {
				await observer({ ...this.identity, view: plant === "shared" ? view : structuredClone(view) });
			} catch (error) {
				log(error);
				if (plant === "fragile") return;
			}
		}
	}

	async finalize(outcome, hook = (o) => o) {
		if (this.#stage === "closed") return outcome;
		this.#stage = "closed";
		if (this.#registry.plant !== "impatient") await Promise.all(this.#rounds);
		const final = this.#registry.guard(() => hook(outcome)) ?? outcome;
		this.#registry.over(this, final);
		const { agent, call } = this.identity;
		if (this.#shown) this.#registry.store({ kind: "tool/result", agent, call, ...final });
		return final;
	}
}
