import { Closed, ProtocolError, Refused } from "./errors.mjs";
import { tag, toolCalls } from "./message.mjs";
import { copyOf } from "./copy.mjs";
import { Kept } from "./kept.mjs";
import { ModelStream } from "./stream.mjs";

/**
 * What a loop is surrounded by in one session: its model, tools, hooks, listeners
 * and user. It makes the names of callbacks, answers at once what the script does
 * not gate, holds back what it does, and reports everything.
 *
 * Nothing here makes a loop wait that the script does not gate: an automatic
 * answer is returned as it is or as a promise that is already settled, and a
 * gated one as the promise that the answer itself settles.
 */
export class Surroundings {
	#emit;
	#loop;
	#script;
	#turn = 0; // script turns used
	#counts = new Map(); // by name without its number
	#pending = new Map(); // callbacks that wait, by name, in the order in which they began
	#updates = new Map(); // onUpdate of every execution, by name
	#listeners = []; // functions, by number
	#unsubscribes = new Map(); // by number
	#numbers = new WeakMap(); // of events
	#byAbout = new Map(); // numbers of events so far, by what they are about
	#missed = []; // by listener: how many of them there were when it was subscribed
	#kept;
	#calls = []; // tool call blocks of the latest assistant message, not yet prepared
	#closed = false;

	constructor({ session, form, edition, config, script }, emit, { keeps = false } = {}) {
		this.session = session;
		this.form = form;
		this.edition = edition;
		this.config = { tools: [], hooks: {}, listeners: [], messages: [], ...config };
		this.events = 0; // so far
		this.#script = { model: [], modelElse: { steps: [] }, tools: {}, hooks: {}, ...script };
		this.#emit = emit;
		this.#kept = keeps ? new Kept() : undefined;
	}

	/** Joins the loop, and registers the listener that records and those that are not late. */
	attach(loop) {
		this.#loop = loop;
		loop.subscribe((event) => this.#record(event));
		this.config.listeners.forEach((listener, i) => {
			if (!listener.late) this.#subscribe(i);
		});
	}

	// ---- what the loop calls ----

	/** Whether the scenario has that hook; one that it has not must not be given to the loop. */
	hasHook(name) {
		return this.config.hooks?.[name] !== undefined;
	}

	/**
	 * A request to the model: a promise of its stream. A gated one is fulfilled
	 * with the first answer, so that the stream function itself can fail.
	 */
	model(payload, signal) {
		const name = this.#numbered("model");
		if (this.#closed) return Promise.reject(new Closed());
		const stream = new ModelStream((n) => this.#out({ type: "read", session: this.session, name, n }));
		const turn = signal?.aborted ? { gate: true } : this.#nextTurn();
		if (turn.gate) return this.#wait(name, payload, signal, { stream });
		const { steps } = turn;
		this.#answered(name, payload, signal, together(steps));
		if (steps.length === 1 && steps[0].throw != null) return Promise.reject(new Error(steps[0].throw));
		for (const step of steps) this.#give(stream, step);
		stream.finish();
		return Promise.resolve(stream);
	}

	/** One execution of a tool: a promise of its result. */
	execute(payload, signal, onUpdate) {
		const name = this.#unique(`tool/${payload.toolCallId}`);
		const script = this.#script.tools[name.slice("tool/".length)] ?? plainReturn(payload.toolCallId);
		this.#updates.set(name, onUpdate);
		const updates = script.sync ?? [];
		if (!script.gate) return this.#executeNow(name, script, updates, payload, signal, onUpdate);
		const answer = updates.length > 0 ? { sync: script.sync } : undefined;
		const result = this.#wait(name, payload, signal, { make: (given) => given.result }, answer);
		for (const update of updates) onUpdate?.(update);
		return result;
	}

	async #executeNow(name, { gate, ...answer }, updates, payload, signal, onUpdate) {
		this.#answered(name, payload, signal, answer);
		for (const update of updates) onUpdate?.(update);
		if (answer.throw != null) throw new Error(answer.throw);
		return answer.result;
	}

	/**
	 * A call of a hook: a promise of what it returns. Key is the tool call id of a
	 * hook that belongs to a call, and undefined for the others, which are
	 * numbered. What the hook is answered ({} for nothing) is turned by make into
	 * what the loop expects.
	 */
	hook(hook, key, payload, signal, make) {
		const name = this.#hookName(hook, key);
		const gated = this.#script.hooks[hook]?.gate || this.config.hooks?.[hook] === "gate";
		if (gated) return this.#wait(name, payload, signal, { make: (given) => make(given.hook ?? {}) });
		try {
			return Promise.resolve(this.#hookNow(hook, name, payload, signal, make));
		} catch (error) {
			return Promise.reject(error);
		}
	}

	/** What a tool's prepareArguments returns. The call is the one whose arguments these are. */
	prepareArguments(toolName, rawArgs) {
		const toolCallId = this.#callOf(toolName, rawArgs);
		const name = this.#hookName("prepareArguments", toolCallId);
		const payload = { toolCallId, toolName, rawArgs };
		return this.#hookNow("prepareArguments", name, payload, undefined, (given) => ("args" in given ? given.args : rawArgs));
	}

	/** Reports that a queue was polled (hook is getSteeringMessages or getFollowUpMessages), and gives back what it gave. */
	polled(hook, drained) {
		const name = this.#numbered(`hook/${hook}`);
		this.#out({ type: "call", session: this.session, name, payload: {}, auto: true, answer: { messages: drained } });
		return drained;
	}

	/** Scenario listener number i, always the same function. */
	listener(i) {
		this.#listeners[i] ??= (event, signal) => this.#deliver(i, event, signal);
		return this.#listeners[i];
	}

	// ---- what the harness says ----

	/** Answers a callback that waits, or makes a progress update of a tool, which may be a late one. */
	answer(name, answer) {
		if (answer.abort) this.#loop.abort();
		if (answer.partial != null) return this.#update(name, answer.partial);
		const call = this.#pending.get(name);
		if (!call) throw new ProtocolError("call", `no callback ${name} waits`);
		if (call.stream) return this.#stream(call, answer);
		this.#done(call);
		if (answer.throw != null) call.reject(new Error(answer.throw));
		else call.resolve(call.make(answer));
	}

	/** Does what the user does. */
	user(name, kind, answer = {}) {
		const act = this.#actions[kind];
		if (!act) throw new ProtocolError("unsupported", `unknown user action ${kind}`);
		act(name, answer);
	}

	#actions = {
		prompt: (name, a) => this.#run(name, () => this.#loop.prompt(a.messages ?? a.text ?? "", a.images ?? undefined)),
		continue: (name) => this.#run(name, () => this.#loop.continue()),
		waitForIdle: (name) => this.#follow(name, attempt(() => this.#loop.waitForIdle()), () => "error"),
		reset: (name) => this.#reset(name),
		steer: (_, a) => a.messages.forEach((message) => this.#loop.steer(message)),
		followUp: (_, a) => a.messages.forEach((message) => this.#loop.followUp(message)),
		abort: () => this.#loop.abort(),
		clearQueue: () => this.#loop.clearQueue(),
		subscribe: (_, a) => this.#subscribe(a.listener),
		unsubscribe: (_, a) => this.#unsubscribes.get(a.listener)?.(),
	};

	/** What a barrier says of the session. */
	status() {
		return { idle: !this.#loop.isRunning(), waitingOn: [...this.#pending.keys()], events: this.events };
	}

	/** Gives up: nothing is reported any more, and whatever waits, now or later, gets an error. */
	close() {
		this.#closed = true;
		for (const call of this.#pending.values()) {
			call.reject(new Closed());
			call.stream?.close();
		}
		this.#pending.clear();
	}

	log(text) {
		this.#out({ type: "log", session: this.session, text });
	}

	// ---- events ----

	#record(event) {
		if (this.#closed) return;
		const n = this.events++;
		const state = this.#loop.state?.();
		if (this.config.listeners.length > 0) this.#number(event, n);
		this.#kept?.keep(n, event, state);
		this.#emit({ type: "event", session: this.session, n, event, state: state && stateOf(state) });
	}

	// Deliveries to the scenario's listeners name the event by its number.
	#number(event, n) {
		this.#numbers.set(event, n);
		const about = aboutOf(event);
		if (!this.#byAbout.has(about)) this.#byAbout.set(about, []);
		this.#byAbout.get(about).push(n);
	}

	#subscribe(i) {
		if (!this.config.listeners[i]) throw new ProtocolError("malformed", `there is no listener ${i}`);
		this.#missed[i] ??= new Map([...this.#byAbout].map(([about, numbers]) => [about, numbers.length]));
		this.#unsubscribes.set(i, this.#loop.subscribe(this.listener(i)));
	}

	#deliver(i, event, signal) {
		const about = aboutOf(event);
		const name = this.#numbered(`listener/${i}/${about}`);
		const payload = { event: this.#numbers.get(event) ?? this.#numberOf(i, about, name), signal: Boolean(signal) };
		const matches = (pattern) => pattern === "*" || pattern === event.type || pattern === about;
		const { gate = [], throw: throws = {} } = this.config.listeners[i];
		if (gate.some(matches)) return this.#wait(name, payload, signal, { make: () => undefined });
		const thrown = Object.keys(throws).find(matches);
		this.#answered(name, payload, signal, thrown === undefined ? {} : { throw: throws[thrown] });
		if (thrown !== undefined) throw new Error(throws[thrown]);
	}

	// A loop may make an object of its own for each listener: then the k-th delivery
	// of a kind is of the k-th event of that kind since the listener came.
	#numberOf(i, about, name) {
		const k = Number(name.slice(name.lastIndexOf("/") + 1)) + (this.#missed[i]?.get(about) ?? 0);
		return this.#byAbout.get(about)?.[k] ?? this.events - 1;
	}

	// ---- the user's promises ----

	// A run that is refused does not turn the loop from idle to running.
	#run(name, begin) {
		const idle = !this.#loop.isRunning();
		const promise = attempt(begin);
		const started = idle && this.#loop.isRunning();
		const outcomeOf = (error) => (started && !(error instanceof Refused) ? "error" : "refused");
		this.#follow(name, promise, outcomeOf).then(() => started && this.#compareKept());
	}

	#follow(name, promise, outcomeOf) {
		return promise.then(
			() => this.#settled(name, "ok"),
			(error) => this.#settled(name, outcomeOf(error), error),
		);
	}

	#reset(name) {
		try {
			this.#loop.reset();
			this.#settled(name, "ok");
		} catch (error) {
			this.#settled(name, "refused", error);
		}
	}

	#settled(name, outcome, error) {
		this.#out({ type: "settled", session: this.session, name, outcome, message: error && messageOf(error) });
	}

	#compareKept() {
		const changed = this.#kept?.compare() ?? [];
		if (changed.length > 0) this.#out({ type: "retained", session: this.session, changed });
	}

	// ---- calls ----

	// A callback that waits: a promise of what make turns its answer into, or of
	// its stream.
	#wait(name, payload, signal, call, answer) {
		if (this.#closed) return Promise.reject(new Closed());
		this.#call(name, payload, signal, undefined, answer);
		return new Promise((resolve, reject) => {
			const pending = { name, ...call, resolve, reject };
			const cancelled = () => this.#out({ type: "cancelled", session: this.session, name });
			this.#pending.set(name, pending);
			signal?.addEventListener("abort", cancelled, { once: true });
			pending.unwatch = () => signal?.removeEventListener("abort", cancelled);
		});
	}

	#done(call) {
		call.unwatch();
		this.#pending.delete(call.name);
	}

	#stream(call, answer) {
		if (this.#give(call.stream, answer)) this.#done(call);
		if (answer.throw != null) call.reject(new Error(answer.throw)); // heard only if it is the first answer
		else call.resolve(call.stream);
	}

	// The message that a stream comes to holds the very objects that the loop works
	// with, whenever its events are seen.
	#give(stream, answer) {
		const last = stream.give(answer);
		const message = answer.final ?? answer.event?.message ?? answer.event?.error;
		if (last && message) this.#calls = toolCalls(message);
		return last;
	}

	#update(name, partial) {
		if (!this.#updates.has(name)) throw new ProtocolError("call", `no tool ${name} was executed`);
		try {
			this.#updates.get(name)?.(partial);
		} catch (error) {
			this.log(`onUpdate of ${name} threw: ${messageOf(error)}`);
		}
	}

	#hookNow(hook, name, payload, signal, make) {
		const script = this.#script.hooks[hook] ?? {};
		const key = name.slice(`hook/${hook}/`.length);
		const { value, throw: message, abort } = script.answers?.[key] ?? copyOf(script.else) ?? {};
		const answer = message != null ? { throw: message, abort } : { hook: value ?? {}, abort };
		this.#answered(name, payload, signal, answer);
		if (message != null) throw new Error(message);
		return make(answer.hook);
	}

	#answered(name, payload, signal, answer) {
		this.#call(name, payload, signal, true, answer);
		if (answer.abort) this.#loop.abort();
	}

	#call(name, payload, signal, auto, answer) {
		const aborted = signal?.aborted || undefined;
		this.#out({ type: "call", session: this.session, name, payload, aborted, auto, answer });
	}

	// Loops change what they are given. What the script says once is given once; what
	// it says for many is copied for each.
	#nextTurn() {
		return this.#script.model[this.#turn++] ?? copyOf(this.#script.modelElse);
	}

	// The call is found by the identity of its arguments; a loop that hands over a
	// copy of them is trusted to prepare calls of one tool in source order.
	#callOf(toolName, rawArgs) {
		const ofTool = this.#calls.filter((call) => call.name === toolName);
		const call = ofTool.find((c) => c.arguments === rawArgs) ?? ofTool[0];
		this.#calls = this.#calls.filter((c) => c !== call);
		return call?.id ?? toolName;
	}

	// ---- names ----

	#hookName(hook, key) {
		return key === undefined ? this.#numbered(`hook/${hook}`) : this.#unique(`hook/${hook}/${key}`);
	}

	#count(name) {
		const n = this.#counts.get(name) ?? 0;
		this.#counts.set(name, n + 1);
		return n;
	}

	#numbered(name) {
		return `${name}/${this.#count(name)}`;
	}

	#unique(name) {
		const n = this.#count(name);
		return n === 0 ? name : `${name}~${n}`;
	}

	#out(message) {
		if (!this.#closed) this.#emit(message);
	}
}

function attempt(begin) {
	try {
		return Promise.resolve(begin());
	} catch (error) {
		return Promise.reject(error);
	}
}

function plainReturn(toolCallId) {
	return { result: { content: [{ type: "text", text: `r${toolCallId}` }] } };
}

// The steps of an automatic stream as one answer.
function together(steps) {
	const answer = {};
	const events = steps.filter((step) => step.event).map((step) => step.event);
	if (events.length > 0) answer.events = events;
	for (const { final, ends, throw: message } of steps) {
		if (final) answer.final = final;
		if (ends) answer.ends = true;
		if (message != null) answer.throw = message;
	}
	return answer;
}

function aboutOf(event) {
	const subject = event.toolCallId ?? (event.type.startsWith("message_") ? event.message?.role : undefined);
	return subject ? `${event.type}/${subject}` : event.type;
}

function stateOf({ isStreaming, pendingToolCalls, messages, streamingMessage, errorMessage }) {
	return {
		isStreaming,
		pendingToolCalls: [...(pendingToolCalls ?? [])],
		messages: messages.length,
		last: messages.length > 0 ? tag(messages.at(-1)) : undefined,
		streaming: streamingMessage?.role,
		errorMessage: errorMessage || undefined,
	};
}

function messageOf(error) {
	return error instanceof Error ? error.message : String(error);
}
