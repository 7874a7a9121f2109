import { Refused } from "../js/index.mjs";
import { callbacks, scriptedModel, systemMessage } from "./callbacks.mjs";

const FOR_THE_MODEL = ["system", "user", "assistant", "toolResult"];

/**
 * The loop without an agent, in its form with an awaited sink (loop) and in that
 * of a plain event stream (stream). Transcript and queues are kept here.
 */
export class LowLevelForm {
	#api;
	#surroundings;
	#callbacks;
	#messages;
	#listeners = new Set();
	#controller; // of the active run
	#idle = Promise.resolve(); // fulfilled once no run is active
	#queues = { steering: [], followUp: [] };

	constructor({ module, ...release }, surroundings) {
		const { systemPrompt, messages } = surroundings.config;
		const prompted = release.keepsSystemMessages && systemPrompt && messages[0]?.role !== "system";
		this.#surroundings = surroundings;
		this.#api = surroundings.form === "loop" ? awaited(module) : streamed(module);
		this.#callbacks = callbacks(release, surroundings);
		this.#messages = prompted ? [systemMessage(systemPrompt), ...messages] : [...messages];
	}

	prompt(input, images = []) {
		const messages = Array.isArray(input) ? input : [userMessage(input, images)];
		return this.#begin((...rest) => this.#api.prompt(messages, ...rest));
	}

	continue() {
		return this.#begin((...rest) => this.#api.continue(...rest));
	}

	steer(message) {
		this.#queues.steering.push(message);
	}

	followUp(message) {
		this.#queues.followUp.push(message);
	}

	abort() {
		this.#controller?.abort();
	}

	reset() {
		if (this.#controller) throw new Refused("a run is active");
		this.#messages = this.#messages.filter((message) => message.role === "system");
		this.clearQueue();
	}

	clearQueue() {
		this.#queues = { steering: [], followUp: [] };
	}

	waitForIdle() {
		return this.#idle;
	}

	subscribe(listener) {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	isRunning() {
		return this.#controller !== undefined;
	}

	#begin(start) {
		if (this.#controller) throw new Refused("a run is active");
		this.#controller = new AbortController();
		const promise = this.#play(start, this.#controller.signal);
		this.#idle = promise.catch(() => {});
		return promise;
	}

	async #play(start, signal) {
		const before = this.#surroundings.events;
		const sink = (event) => this.#deliver(event, signal);
		try {
			const added = await start(this.#context(), this.#config(), sink, signal, this.#callbacks.streamFn);
			this.#messages.push(...added);
		} catch (error) {
			throw this.#surroundings.events === before ? new Refused(error.message) : error;
		} finally {
			this.#controller = undefined;
		}
	}

	async #deliver(event, signal) {
		for (const listener of this.#listeners) await listener(event, signal);
	}

	#context() {
		const { systemPrompt = "" } = this.#surroundings.config;
		return { systemPrompt, messages: [...this.#messages], tools: this.#callbacks.tools };
	}

	#config() {
		const { model, thinkingLevel, apiKey, toolExecution, steeringMode, followUpMode } = this.#surroundings.config;
		return {
			model: scriptedModel(model),
			reasoning: thinkingLevel && thinkingLevel !== "off" ? thinkingLevel : undefined,
			apiKey,
			toolExecution: toolExecution || "parallel",
			convertToLlm: (messages) => messages.filter((message) => FOR_THE_MODEL.includes(message.role)),
			...this.#callbacks.hooks,
			getSteeringMessages: () => this.#poll("getSteeringMessages", "steering", steeringMode),
			getFollowUpMessages: () => this.#poll("getFollowUpMessages", "followUp", followUpMode),
		};
	}

	#poll(hook, queue, mode) {
		const drained = this.#queues[queue].splice(0, mode === "all" ? Infinity : 1);
		return Promise.resolve(this.#surroundings.polled(hook, drained));
	}
}

function userMessage(text, images) {
	return { role: "user", content: [{ type: "text", text }, ...images], timestamp: Date.now() };
}

function awaited({ runAgentLoop, runAgentLoopContinue }) {
	return { prompt: runAgentLoop, continue: runAgentLoopContinue };
}

// The stream does not wait for whoever reads it: listeners that do cannot hold
// the loop back.
function streamed({ agentLoop, agentLoopContinue }) {
	return {
		prompt: (messages, context, config, sink, signal, streamFn) => readAll(agentLoop(messages, context, config, signal, streamFn), sink),
		continue: (context, config, sink, signal, streamFn) => readAll(agentLoopContinue(context, config, signal, streamFn), sink),
	};
}

async function readAll(stream, sink) {
	for await (const event of stream) await sink(event);
	return stream.result();
}
