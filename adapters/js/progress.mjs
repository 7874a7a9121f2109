import { ProtocolError } from "./errors.mjs";

/**
 * A channel of progress in one session: does what the harness says to a registry,
 * and tells what is seen. The observers, the hook and the observers of results are
 * made here.
 */
export class ProgressSession {
	events = 0;
	#registry;
	#bridge;
	#tell;
	#executions = new Map(); // by the harness's number
	#byToken = new Map();
	#reports = new Map(); // by number
	#crossed = new Set(); // tokens whose boundary was told
	#waiting = new Map(); // observers that wait, by name
	#kept = [];
	#stored = [];
	#replaying = false;
	#closed = false;

	constructor(session, make, write) {
		this.#tell = (entry) => this.#closed || write({ type: "progress", session, entry });
		this.#registry = make({ store: (entry) => this.#store(entry), log: (error) => this.#tell({ kind: "logged", error: text(error) }) });
		this.#registry.observeResults?.((identity) => this.#result(identity));
	}

	act(act) {
		if (!Object.hasOwn(this.#acts, act?.do)) throw new ProtocolError("unsupported", `a channel of progress cannot ${JSON.stringify(act?.do)}`);
		this.#acts[act.do](act);
	}

	answer(name) {
		if (!this.#waiting.has(name)) throw new ProtocolError("call", `no observer ${name} waits`);
		const go = this.#waiting.get(name);
		this.#waiting.delete(name);
		go();
	}

	status() {
		return { idle: this.#waiting.size === 0, waitingOn: [...this.#waiting.keys()], events: 0 };
	}

	close() {
		this.#closed = true;
		for (const go of this.#waiting.values()) go();
		this.#bridge?.dispose();
	}

	#acts = {
		observe: (a) => this.#registry.observe((seen) => this.#observed(a, seen), a.agent),
		parse: ({ view }) => this.#tell({ kind: "parsed", value: view, error: attempt(() => this.#registry.parseView(view)).error }),
		prepare: (a) => this.#prepare(a),
		announce: (a) => this.#execution(a).own.announce(),
		dispatch: (a) => this.#execution(a).own.dispatch(),
		report: (a) => this.#report(this.#execution(a), a.report),
		finalize: (a) => this.#finalize(this.#execution(a), a),
		settle: ({ agent, text }) => this.#registry.settle(agent, text),
		openSession: ({ session, agent, every }) => {
			this.#bridge ??= this.#registry.bridge((line) => this.#tell({ kind: "wire", value: line, replay: this.#replaying }), every);
			this.#bridge.open(session, agent);
		},
		closeSession: ({ session }) => this.#bridge.close(session),
		replay: ({ session, agent }) => this.#replay(session, agent),
		dispose: () => this.#bridge.dispose(),
		look: () => this.#kept.forEach(({ observer, report, view }) => this.#tell({ kind: "kept", observer, report, view })),
	};

	#execution({ execution }) {
		const x = this.#executions.get(execution);
		if (!x) throw new ProtocolError("call", `there is no execution ${execution}`);
		return x;
	}

	#store(entry) {
		const { kind, agent, call, isError } = entry;
		this.#stored.push(structuredClone(entry));
		this.#tell({ kind: "durable", stored: kind, agent, call, value: entry, error: isError ? "it failed" : undefined });
	}

	#replay(session, agent) {
		this.#replaying = true;
		this.#bridge.replay(
			session,
			this.#stored.filter((entry) => entry.agent === agent && ["tool/call", "tool/result"].includes(entry.kind)),
		);
		this.#replaying = false;
	}

	#prepare({ execution, agent, call, tool, args, card, parent, hook, result }) {
		const own = this.#registry.prepare({ agent, call, tool, args, card, parent: this.#executions.get(parent)?.own });
		const x = { own, hook, result };
		this.#executions.set(execution, x);
		this.#byToken.set(own.identity.token, x);
		this.#tell({ kind: "prepared", ...identity(own.identity) });
	}

	#observed({ observer, agent: scope, does }, seen) {
		const report = numberIn(seen.view);
		this.#tell({ kind: "observed", ...identity(seen), report, observer, scope, view: seen.view });
		if (does === "keep") this.#kept.push({ observer, report, view: seen.view });
		if (does === "meddle") spoil(seen.view);
		if (does === "report") return this.#echo(this.#byToken.get(seen.token), this.#reports.get(report)?.echo);
		if (does === "wait") return new Promise((resolve) => this.#waiting.set(`observer/${observer}/${report}`, resolve));
		if ((does === "panic" && report % 5 === 0) || (does === "fail" && report % 4 === 0)) {
			this.#tell({ kind: "broke", observer, report });
			throw new Error(does === "panic" ? "a broken panel" : "the disk is full");
		}
	}

	#echo(x, report) {
		if (x && report) return this.#report(x, report);
	}

	// Reports a view, and changes it afterwards, as a caller may.
	#report(x, { number: report, by, view, invalid, echo }) {
		this.#reports.set(report, { echo });
		const own = attempt(() => this.#registry.parseView(view));
		this.#tell({ kind: "report", ...identity(x.own.identity), report, by, invalid, view: own.value ?? view });
		const over = ({ value, error }) => {
			this.#tell({ kind: "returned", ...identity(x.own.identity), report, accepted: value === true, error });
			spoil(own.value);
		};
		return settled(own.error ? own : attempt(() => x.own.reportProgress(own.value)), over);
	}

	// Tells that finalize has begun, if nobody has told it before.
	#boundary({ own }) {
		if (this.#crossed.has(own.identity.token)) return;
		this.#crossed.add(own.identity.token);
		this.#tell({ kind: "boundary", ...identity(own.identity) });
	}

	#finalize(x, { text, isError = false }) {
		const hook = (outcome) => {
			this.#boundary(x);
			if (x.hook) this.#report(x, x.hook);
			return outcome;
		};
		const over = ({ value, error }) => {
			const outcome = value ?? { text: error, isError: true };
			this.#tell({ kind: "outcome", ...identity(x.own.identity), value: outcome.text, error: outcome.isError ? outcome.text : undefined });
		};
		settled(attempt(() => x.own.finalize({ text, isError }, hook)), over);
	}

	#result({ token }) {
		const x = this.#byToken.get(token);
		if (!x) return;
		this.#boundary(x);
		if (x.result) this.#report(x, x.result);
	}
}

const identity = ({ agent, call, token, parent }) => ({ agent, call, token, parent });

const text = (error) => String(error?.message ?? error);

function attempt(f) {
	try {
		return { value: f() };
	} catch (error) {
		return { error: text(error) };
	}
}

// Goes on with what was attempted: at once, or if it is a promise when that settles.
function settled(attempted, over) {
	if (typeof attempted.value?.then !== "function") return over(attempted);
	return attempted.value.then(
		(value) => over({ value }),
		(error) => over({ error: text(error) }),
	);
}

// The number of the report whose view it is; undefined if it says none.
function numberIn(view) {
	const number = /: step (\d+)/.exec(JSON.stringify(view))?.[1];
	return number && Number(number);
}

// Changes the texts that a value leads to.
function spoil(value) {
	if (typeof value !== "object" || value === null) return;
	for (const [key, member] of Object.entries(value)) {
		if (typeof member === "string" && !Object.isFrozen(value)) value[key] = `${member} (changed)`;
		else spoil(member);
	}
}
