import { writeSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { Closed, ProtocolError } from "./errors.mjs";
import { Lines } from "./lines.mjs";
import { ProgressSession } from "./progress.mjs";
import { Surroundings } from "./surroundings.mjs";

const PROTOCOL = 1;
const FLUSH_AT = 64 * 1024; // characters
const FLUSH_AFTER = 100; // milliseconds
const END = Symbol("the end of input");
const LATER = Symbol("the reply comes later");

/**
 * Speaks the protocol for one adapter. It takes one message after the other and
 * none while a barrier is under way, so that the harness may write ahead.
 */
export class Server {
	#adapter;
	#write;
	#arrived = []; // messages that have come and are not taken yet …
	#next = []; // … and those that came before them, the next one last
	#settling; // the barrier that is under way
	#sessions = new Map();
	#current; // session of the message before
	#onRest;
	#onBye;

	/** onRest is called when another case has its turn, or everything that has come is done, onBye when nothing more will come. */
	constructor(adapter, write, { onRest = () => {}, onBye = () => {} } = {}) {
		this.#adapter = adapter;
		this.#write = write;
		this.#onRest = onRest;
		this.#onBye = onBye;
	}

	/** Whether there is something to do that has come already, so that nobody waits for what is written meanwhile. */
	get ahead() {
		return this.#settling !== undefined || this.#next.length > 0 || this.#arrived.length > 0;
	}

	/** Takes a message, or the ProtocolError that it is. */
	receive(message) {
		this.#arrived.push(message);
		if (message.type === "sync" && !this.#adapter.busy) setImmediate(this.#turn);
		this.#pump();
	}

	/** Says goodbye once what was received has been done: nothing more comes. */
	end() {
		this.receive(END);
	}

	/** Reports something that belongs to no callback; it goes to the session that was opened last. */
	log(text) {
		[...this.#sessions.values()].at(-1)?.log?.(text);
	}

	#pump() {
		while (!this.#settling && this.ahead) this.#take(this.#shift());
		if (!this.ahead) this.#onRest();
	}

	// The shift of an array that is long, because the harness wrote far ahead, would copy it.
	#shift() {
		if (this.#next.length === 0) [this.#next, this.#arrived] = [this.#arrived.reverse(), []];
		return this.#next.pop();
	}

	#take(message) {
		if (message === END) return this.#onBye();
		if (message.session !== this.#current) this.#onRest(); // should this case be the end, the one before is not to blame
		this.#current = message.session;
		try {
			const reply = this.#handle(message);
			if (reply !== LATER) this.#write({ type: "ok", re: message.id, ...reply });
		} catch (error) {
			const code = error instanceof ProtocolError ? error.code : "failed";
			this.#write({ type: "error", re: message.id, code, message: error.message, stack: error.stack });
		}
		if (message.type === "bye") this.#onBye();
	}

	#handle(message) {
		if (message instanceof ProtocolError) throw message;
		if (!Object.hasOwn(this.#handlers, message.type)) throw new ProtocolError("unsupported", `unknown type ${JSON.stringify(message.type)}`);
		return this.#handlers[message.type](message);
	}

	#handlers = {
		hello: (m) => this.#hello(m),
		open: (m) => this.#open(m),
		user: (m) => this.#session(m).user(m.name, m.kind, m.answer ?? undefined),
		answer: (m) => this.#session(m).answer(m.call, m.answer ?? {}),
		sync: (m) => this.#sync(m),
		reduce: (m) => this.#reduce(m),
		progress: (m) => this.#progress(m),
		close: (m) => this.#close(m),
		bye: () => undefined,
	};

	#hello({ protocol, editions: offered = [], nonce }) {
		if (!protocol?.includes(PROTOCOL)) throw new ProtocolError("version", `this adapter speaks protocol ${PROTOCOL} only`);
		const { subject, capabilities, editions, barrier = "quiescent" } = this.#adapter;
		const own = typeof editions === "function" ? editions(offered) : editions;
		return { type: "helloOk", protocol: PROTOCOL, nonce, subject, editions: own, barrier, capabilities };
	}

	#open(message) {
		const { capabilities } = this.#adapter;
		if (this.#sessions.has(message.session)) throw new ProtocolError("session", `session ${message.session} is open already`);
		const missing = needs(message).find((capability) => !capabilities.includes(capability));
		if (missing) throw new ProtocolError("unsupported", `the subject has not declared ${missing}`);
		const surroundings = new Surroundings(message, this.#write, { keeps: capabilities.includes("retained") });
		surroundings.attach(this.#adapter.open(surroundings));
		this.#sessions.set(message.session, surroundings);
	}

	#session({ session }) {
		const surroundings = this.#sessions.get(session);
		if (!surroundings) throw new ProtocolError("session", `session ${session} is not open`);
		return surroundings;
	}

	// A callback of setImmediate is preceded by every microtask, whatever they start.
	// Those of all barriers that have come are asked for when they come, as one turn
	// of the event loop then has them all; but a loop that asks for turns of its own
	// is given as many as it needs for each.
	#sync(message) {
		this.#session(message);
		this.#settling = message;
		if (this.#adapter.busy) setImmediate(this.#turn);
		return LATER;
	}

	#turn = () => {
		const message = this.#settling;
		if (!message) return; // of a barrier that was refused
		if (this.#adapter.busy?.()) return setImmediate(this.#turn);
		this.#settling = undefined;
		this.#write({ type: "synced", re: message.id, ...this.#session(message).status() });
		this.#pump();
	};

	// One application of the reducer. The harness cannot see what becomes of the
	// view and the event here, so it is told if they were changed.
	#reduce({ view, event }) {
		const { reducer } = this.#adapter;
		if (!reducer) throw new ProtocolError("unsupported", "the subject has no reducer");
		const given = view ?? reducer.start();
		const [viewBefore, eventBefore] = structuredClone([given, event]);
		const next = reducer.reduce(given, event);
		if (typeof next?.then === "function") throw new ProtocolError("failed", "the reducer gives a promise: it has to be synchronous");
		return {
			type: "reduced",
			view: next,
			...(!isDeepStrictEqual(given, viewBefore) && { before: given }),
			...(!isDeepStrictEqual(event, eventBefore) && { eventAfter: event }),
		};
	}

	// A channel of progress is a session too: it is answered, comes to rest and is
	// closed as a loop's.
	#progress({ session, act }) {
		const { progress } = this.#adapter;
		if (!progress) throw new ProtocolError("unsupported", "the subject has no channel of progress");
		if (act?.do !== "open") return this.#session({ session }).act(act);
		if (this.#sessions.has(session)) throw new ProtocolError("session", `session ${session} is open already`);
		this.#sessions.set(session, new ProgressSession(session, progress, this.#write));
	}

	#close(message) {
		this.#session(message).close();
		this.#sessions.delete(message.session);
	}
}

// The capabilities without which a session would be another one than was asked for.
function needs({ form, config = {} }) {
	const hooks = Object.keys(config.hooks ?? {});
	if (config.tools?.some((tool) => tool.prepareArguments)) hooks.push("prepareArguments");
	return [`forms:${form}`, ...hooks.map((hook) => `hooks:${hook}`)];
}

/**
 * Runs an adapter on standard input and output until `bye` or the end of input.
 * Whatever else writes to standard output is sent to standard error.
 */
export function serve(adapter, { input = process.stdin } = {}) {
	const output = takeStdout(() => server.ahead);
	const onBye = () => {
		output.flush();
		process.exit(0);
	};
	const server = new Server(adapter, output.write, { onRest: output.flush, onBye });
	const lines = new Lines();
	// Some loops reject in the background by contract, such as when a listener
	// throws at a progress update. It is no reason to die.
	process.on("unhandledRejection", (error) => {
		if (!(error instanceof Closed)) server.log(`unhandled rejection: ${error?.message ?? error}`);
	});
	input.on("data", (chunk) => {
		for (const message of lines.push(chunk)) server.receive(message);
	});
	input.on("end", () => server.end());
}

// Lines are gathered and written together: when another case has its turn or all
// that has come is done, as a harness that wrote ahead reads everything in the end;
// or when the event loop turns, if nothing is under way. Only much text or a long
// time is not held back: lines are the signs of life.
function takeStdout(ahead) {
	const writeAll = writerTo(process.stdout);
	let text = "";
	let scheduled = false;
	let flushed = 0; // when
	const flush = () => {
		const gathered = text;
		text = "";
		if (gathered !== "") writeAll(gathered);
		flushed = performance.now();
	};
	const later = () => {
		scheduled = false;
		if (!ahead()) flush();
	};
	process.on("exit", flush);
	const write = (message) => {
		text += `${lineOf(message)}\n`;
		const long = message.type === "synced" && performance.now() - flushed > FLUSH_AFTER;
		if (text.length > FLUSH_AT || long) return flush();
		if (scheduled || ahead()) return;
		scheduled = true;
		setImmediate(later);
	};
	return { write, flush };
}

// What writes the protocol to standard output, past its stream: that costs more than
// a case of the loop. Whatever else is written to the stream goes to standard error.
function writerTo(stdout) {
	stdout.write = process.stderr.write.bind(process.stderr);
	stdout.on("error", () => process.exit(1));
	stdout._handle?.setBlocking?.(true);
	const scratch = Buffer.allocUnsafeSlow(4 * FLUSH_AT);
	return (text) => {
		const fits = 3 * text.length <= scratch.length; // a character takes so many bytes at most
		const bytes = fits ? scratch.subarray(0, scratch.write(text)) : Buffer.from(text);
		for (let done = 0; done < bytes.length; ) done += writeSome(stdout.fd ?? 1, bytes, done);
	};
}

const asleep = new Int32Array(new SharedArrayBuffer(4));

// How many of the bytes from there on were written. A pipe that does not block may
// be full.
function writeSome(fd, bytes, from) {
	try {
		return writeSync(fd, bytes, from);
	} catch (error) {
		if (error.code !== "EAGAIN") process.exit(1);
		Atomics.wait(asleep, 0, 0, 1);
		return 0;
	}
}

// The reply that comes most often is put together.
function lineOf(message) {
	const { type, re } = message;
	if (type === "ok" && Number.isInteger(re) && Object.keys(message).length === 2) return `{"type":"ok","re":${re}}`;
	return JSON.stringify(message);
}
