// @ts-check
// A small agent loop: ask the model, run the tools that it calls, feed the results
// back, and tell listeners what happens. It is here to be judged before your own
// loop is; once that is joined in adapter.mjs, delete it.

// PI_CONFORM_PLANT=late-update makes the loop pass on progress updates of a tool that
// has returned already, so that you see what a finding looks like.
const LATE_UPDATES = process.env.PI_CONFORM_PLANT === "late-update";

const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };

/**
 * @typedef {{ type: string, [member: string]: any }} Event
 * @typedef {{ role: string, content?: any, [member: string]: any }} Message
 * @typedef {(event: Event, signal: AbortSignal) => void | Promise<void>} Listener
 * @typedef {{ name: string, parameters?: any, executionMode?: string,
 *   execute: (id: string, args: any, signal: AbortSignal, onUpdate: (partial: any) => void) => Promise<any> }} Tool
 * @typedef {{ systemPrompt: string, model: string, level?: string, tools: Tool[], messages: Message[],
 *   toolExecution: string, steeringMode: string, followUpMode: string,
 *   stream: (request: any, signal: AbortSignal) => Promise<any>,
 *   beforeToolCall?: (call: any, signal: AbortSignal) => Promise<any>,
 *   afterToolCall?: (call: any, signal: AbortSignal) => Promise<any>,
 *   onPoll?: (queue: "steering" | "followUp", drained: Message[]) => void }} Options
 */

/** Keeps the transcript, the queues and the listeners, and has at most one run at a time. */
export class Agent {
	/** @param {Options} options */
	constructor(options) {
		this.options = options;
		this.state = idleState([...options.messages]);
		this.steering = new Queue(options.steeringMode);
		this.followUps = new Queue(options.followUpMode);
		/** @type {Set<Listener>} */
		this.listeners = new Set();
		/** @type {Run | undefined} */
		this.active = undefined;
	}

	/** @param {string | Message[]} input @param {any[]} images */
	async prompt(input, images = []) {
		this.#refuseIfBusy();
		const messages = typeof input === "string" ? [userMessage(input, images)] : input;
		return this.#begin(messages, false);
	}

	/** Goes on from the transcript as it is, or from what is queued. */
	async continue() {
		this.#refuseIfBusy();
		const last = this.state.messages.at(-1);
		if (!last) throw new Error("there is nothing to continue from");
		if (last.role !== "assistant") return this.#begin([], false);
		const steering = this.steering.drain();
		if (steering.length > 0) return this.#begin(steering, true);
		const followUps = this.followUps.drain();
		if (followUps.length > 0) return this.#begin(followUps, false);
		throw new Error("the last message is the assistant's, and nothing is queued");
	}

	/** @param {Message} message */
	steer(message) {
		this.steering.put(message);
	}

	/** @param {Message} message */
	followUp(message) {
		this.followUps.put(message);
	}

	clearQueues() {
		this.steering.clear();
		this.followUps.clear();
	}

	abort() {
		this.active?.controller.abort();
	}

	reset() {
		this.#refuseIfBusy();
		this.state = idleState([]);
		this.clearQueues();
	}

	async waitForIdle() {
		await this.active?.ended.catch(() => {});
	}

	/** @param {Listener} listener */
	subscribe(listener) {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	#refuseIfBusy() {
		if (this.active) throw new Error("a run is active");
	}

	/** @param {Message[]} prompts @param {boolean} steered */
	#begin(prompts, steered) {
		const run = new Run(this, prompts, steered);
		this.active = run;
		Object.assign(this.state, { isStreaming: true, streamingMessage: undefined, errorMessage: undefined });
		run.ended = this.#follow(run);
		return run.ended;
	}

	/** @param {Run} run */
	async #follow(run) {
		try {
			await run.main().catch((error) => run.fail(error));
		} finally {
			this.active = undefined;
			this.state = { ...idleState(this.state.messages), errorMessage: this.state.errorMessage };
		}
	}

	/** What an event does to the state; it comes before any listener is told. @param {Event} event */
	reduce(event) {
		const { state } = this;
		switch (event.type) {
			case "message_start":
			case "message_update":
				state.streamingMessage = event.message;
				break;
			case "message_end":
				state.streamingMessage = undefined;
				state.messages.push(event.message);
				break;
			case "tool_execution_start":
				state.pendingToolCalls = new Set([...state.pendingToolCalls, event.toolCallId]);
				break;
			case "tool_execution_end":
				state.pendingToolCalls = new Set([...state.pendingToolCalls].filter((id) => id !== event.toolCallId));
				break;
			case "turn_end":
				if (event.message.errorMessage) state.errorMessage = event.message.errorMessage;
				break;
		}
	}
}

/** One run, from agent_start to agent_end. */
class Run {
	controller = new AbortController();
	signal = this.controller.signal;
	over = false;
	/** @type {Promise<void>} */
	ended = Promise.resolve();

	/** @param {Agent} agent @param {Message[]} prompts @param {boolean} steered */
	constructor(agent, prompts, steered) {
		this.agent = agent;
		this.options = agent.options;
		this.prompts = prompts;
		this.steered = steered;
		this.context = [...agent.state.messages, ...prompts]; // what the next request is made of
		this.added = [...prompts]; // what agent_end tells
	}

	async main() {
		await this.emit({ type: "agent_start" });
		await this.emit({ type: "turn_start" });
		for (const message of this.prompts) await this.emitMessage(message);
		await this.turns();
		await this.emit({ type: "agent_end", messages: this.added });
		this.over = true;
	}

	/** Ends a run that broke with a message that says why. @param {any} error */
	async fail(error) {
		const message = {
			role: "assistant", content: [{ type: "text", text: "" }], api: "scripted", provider: "scripted", model: this.options.model,
			usage: NO_USAGE, stopReason: this.signal.aborted ? "aborted" : "error", errorMessage: error.message, timestamp: Date.now(),
		};
		await this.emitMessage(message);
		await this.emit({ type: "turn_end", message, toolResults: [] });
		await this.emit({ type: "agent_end", messages: [message] });
		this.over = true;
	}

	async turns() {
		let queued = this.steered ? [] : this.poll("steering");
		for (let first = true; ; first = false) {
			if (!first) await this.emit({ type: "turn_start" });
			for (const message of queued) {
				await this.emitMessage(message);
				this.add(message);
			}
			const { message, results, unanswered } = await this.turn();
			await this.emit({ type: "turn_end", message, toolResults: results });
			if (failed(message)) return;
			queued = this.poll("steering");
			if (unanswered || queued.length > 0) continue;
			queued = this.poll("followUp");
			if (queued.length === 0) return;
		}
	}

	/** One answer of the model, and what its tool calls come to. */
	async turn() {
		const message = await this.request();
		this.add(message);
		const blocks = message.content.filter((/** @type {any} */ block) => block.type === "toolCall");
		if (blocks.length === 0 || failed(message)) return { message, results: [], unanswered: false };
		const calls = blocks.map((/** @type {any} */ block) => new Call(this, message, block));
		const answered = await this.batch(message, calls);
		const results = answered.map((call) => call.message);
		this.add(...results);
		const cutOff = message.stopReason === "length";
		return { message, results, unanswered: cutOff || !answered.every((call) => call.result.terminate === true) };
	}

	/** Passes the model's stream on. The next event is read when everybody has dealt with the last. */
	async request() {
		const { systemPrompt, model, level, tools, stream } = this.options;
		const messages = this.context.filter(({ role }) => ["user", "assistant", "toolResult"].includes(role));
		const response = await stream({ systemPrompt, model, level, tools, messages }, this.signal);
		let begun = false;
		for await (const event of response) {
			if (event.type === "done" || event.type === "error") break;
			if (event.type === "start") {
				begun = true;
				await this.emit({ type: "message_start", message: event.partial });
			} else if (begun && /^(text|thinking|toolcall)_(start|delta|end)$/.test(event.type)) {
				await this.emit({ type: "message_update", message: event.partial, assistantMessageEvent: event });
			}
		}
		const message = await response.result();
		if (!begun) await this.emit({ type: "message_start", message });
		await this.emit({ type: "message_end", message });
		return message;
	}

	/** Answers calls; gives those that were begun. @param {Message} message @param {Call[]} calls */
	async batch(message, calls) {
		if (message.stopReason === "length") return this.cutOff(calls);
		const sequential = this.options.toolExecution === "sequential" || calls.some((call) => call.tool?.executionMode === "sequential");
		return sequential ? this.oneByOne(calls) : this.together(calls);
	}

	/** Arguments that were cut off may still parse, so none of these calls can be trusted. @param {Call[]} calls */
	async cutOff(calls) {
		for (const call of calls) {
			await call.emitStart();
			call.fail(`${call.block.name} was not executed: the answer was cut off, so issue the call again`);
			await call.emitEnd();
			await call.emitResult();
		}
		return calls;
	}

	/** @param {Call[]} calls */
	async oneByOne(calls) {
		const begun = [];
		for (const call of calls) {
			begun.push(call);
			await call.emitStart();
			await call.prepare();
			if (!call.done) await call.execute();
			await call.emitEnd();
			await call.emitResult();
			if (this.signal.aborted) break;
		}
		return begun;
	}

	/** Prepares in order, executes together, gives results in order. @param {Call[]} calls */
	async together(calls) {
		const begun = [];
		for (const call of calls) {
			begun.push(call);
			await call.emitStart();
			await call.prepare();
			if (call.done) await call.emitEnd();
			if (this.signal.aborted) break;
		}
		await all(begun.filter((call) => !call.done).map((call) => call.executeAndEnd()));
		for (const call of begun) await call.emitResult();
		return begun;
	}

	/** @param {Event} event */
	async emit(event) {
		if (this.over) return;
		this.agent.reduce(event);
		for (const listener of this.agent.listeners) await listener(event, this.signal);
	}

	/** @param {Message} message */
	async emitMessage(message) {
		await this.emit({ type: "message_start", message });
		await this.emit({ type: "message_end", message });
	}

	/** @param {Message[]} messages */
	add(...messages) {
		this.context.push(...messages);
		this.added.push(...messages);
	}

	/** @param {"steering" | "followUp"} queue */
	poll(queue) {
		const drained = queue === "steering" ? this.agent.steering.drain() : this.agent.followUps.drain();
		this.options.onPoll?.(queue, drained);
		return drained;
	}
}

/** One tool call, from its start to its result message. */
class Call {
	done = false; // there is a result
	/** @type {any} */
	result = undefined;
	isError = false;
	/** @type {any} */
	message = undefined;
	/** @type {Promise<void>[]} */
	updates = [];
	accepting = true;

	/** @param {Run} run @param {Message} assistant @param {any} block */
	constructor(run, assistant, block) {
		this.run = run;
		this.assistant = assistant;
		this.block = block;
		this.tool = run.options.tools.find((tool) => tool.name === block.name);
	}

	/** Whatever goes wrong here is the call's result, and it is not executed. */
	async prepare() {
		const { options, signal } = this.run;
		const fault = this.tool ? invalid(this.tool.parameters, this.block.arguments) : `there is no tool ${this.block.name}`;
		if (fault) return this.fail(fault);
		try {
			const answer = await options.beforeToolCall?.(this.facts(), signal);
			if (signal.aborted) this.fail("the call was aborted");
			else if (answer?.block) this.fail(answer.reason || "the call was blocked", answer.terminate === true);
		} catch (/** @type {any} */ error) {
			this.fail(error.message);
		}
	}

	async execute() {
		const { options, signal } = this.run;
		try {
			this.settle(await this.tool?.execute(this.block.id, this.block.arguments, signal, (partial) => this.update(partial)));
		} catch (/** @type {any} */ error) {
			this.fail(error.message);
		}
		this.accepting = LATE_UPDATES;
		await all(this.updates);
		try {
			const change = await options.afterToolCall?.({ ...this.facts(), result: this.result, isError: this.isError }, signal);
			if (change) this.change(change);
		} catch (/** @type {any} */ error) {
			this.fail(error.message);
		}
	}

	async executeAndEnd() {
		await this.execute();
		await this.emitEnd();
	}

	/** A tool may keep this function: what it says after it has returned is dropped. @param {any} partialResult */
	update(partialResult) {
		if (!this.accepting) return;
		const delivery = this.run.emit({ type: "tool_execution_update", ...this.about(), args: this.block.arguments, partialResult });
		delivery.catch(() => {}); // execute hears of it
		this.updates.push(delivery);
	}

	/** @param {any} result */
	settle(result) {
		Object.assign(this, { done: true, result, isError: false });
	}

	/** @param {string} text */
	fail(text, terminate = false) {
		const result = { content: [{ type: "text", text }], details: {}, ...(terminate && { terminate }) };
		Object.assign(this, { done: true, result, isError: true });
	}

	/** Each member replaces the whole of what there was. @param {any} change */
	change({ content, details, usage, terminate, isError }) {
		const given = Object.entries({ content, details, usage, terminate }).filter(([, value]) => value != null);
		this.result = { ...this.result, ...Object.fromEntries(given) };
		this.isError = isError ?? this.isError;
	}

	async emitStart() {
		await this.run.emit({ type: "tool_execution_start", ...this.about(), args: this.block.arguments });
	}

	async emitEnd() {
		await this.run.emit({ type: "tool_execution_end", ...this.about(), result: this.result, isError: this.isError });
	}

	async emitResult() {
		const { content = [], details, usage } = this.result;
		this.message = { role: "toolResult", ...this.about(), content, details, usage, isError: this.isError, timestamp: Date.now() };
		await this.run.emitMessage(this.message);
	}

	about() {
		return { toolCallId: this.block.id, toolName: this.block.name };
	}

	facts() {
		return { assistant: this.assistant, call: this.block, args: this.block.arguments, context: this.run.context };
	}
}

class Queue {
	/** @type {Message[]} */
	#waiting = [];
	#mode;

	/** @param {string} mode */
	constructor(mode) {
		this.#mode = mode;
	}

	/** @param {Message} message */
	put(message) {
		this.#waiting.push(message);
	}

	drain() {
		return this.#waiting.splice(0, this.#mode === "all" ? this.#waiting.length : 1);
	}

	clear() {
		this.#waiting = [];
	}
}

/** @param {Message[]} messages */
function idleState(messages) {
	return {
		isStreaming: false,
		messages,
		/** @type {Set<string>} */ pendingToolCalls: new Set(),
		/** @type {Message | undefined} */ streamingMessage: undefined,
		/** @type {string | undefined} */ errorMessage: undefined,
	};
}

/** Waits for all, also if one fails, and then fails with the first. @param {Promise<void>[]} promises */
async function all(promises) {
	const settled = await Promise.allSettled(promises);
	for (const one of settled) if (one.status === "rejected") throw one.reason;
}

/** @param {Message} message */
function failed({ stopReason }) {
	return stopReason === "error" || stopReason === "aborted";
}

/** @param {string} text @param {any[]} images */
function userMessage(text, images) {
	return { role: "user", content: [{ type: "text", text }, ...images], timestamp: Date.now() };
}

/** What is wrong with arguments: as much of JSON Schema as a toy needs. @param {any} schema @param {any} args @returns {string | undefined} */
function invalid(schema, args) {
	const missing = schema?.required?.find((/** @type {string} */ name) => !(name in args));
	if (missing) return `the argument ${missing} is missing`;
	const wrong = Object.entries(schema?.properties ?? {}).find(([name, { type }]) => name in args && type && typeof args[name] !== type);
	return wrong && `the argument ${wrong[0]} has to be a ${wrong[1].type}`;
}
