import { Refused } from "../js/index.mjs";
import { callbacks, scriptedModel } from "../pi/callbacks.mjs";
import { turn } from "./host.mjs";
import { CountedStream } from "./stream.mjs";

/** The loop as an agent, with state, queues and listeners. */
export class AgentForm {
	#agent;
	#surroundings;

	constructor({ Agent }, surroundings) {
		const { config } = surroundings;
		this.#surroundings = surroundings;
		this.#agent = new Agent({
			initialState: {
				systemPrompt: config.systemPrompt ? [config.systemPrompt] : [],
				model: scriptedModel(config.model),
				thinkingLevel: config.thinkingLevel && config.thinkingLevel !== "off" ? config.thinkingLevel : undefined,
				messages: config.messages,
				tools: toolsOf(surroundings),
			},
			...hooksOf(surroundings),
			steeringMode: config.steeringMode || "one-at-a-time",
			followUpMode: config.followUpMode || "one-at-a-time",
		});
	}

	prompt(input, images) {
		return Array.isArray(input) ? this.#agent.prompt(input) : this.#agent.prompt(input, images ?? []);
	}

	// The agent counts as running while it looks whether there is anything to
	// continue: it was refused if nothing came of it.
	async continue() {
		const before = this.#surroundings.events;
		try {
			await this.#agent.continue();
		} catch (error) {
			throw this.#surroundings.events === before ? new Refused(error.message) : error;
		}
	}

	steer(message) {
		this.#agent.steer(message);
	}

	followUp(message) {
		this.#agent.followUp(message);
	}

	abort() {
		this.#agent.abort();
	}

	reset() {
		this.#agent.reset();
	}

	clearQueue() {
		this.#agent.clearAllQueues();
	}

	waitForIdle() {
		return this.#agent.waitForIdle();
	}

	subscribe(listener) {
		return this.#agent.subscribe(listener);
	}

	isRunning() {
		return this.#agent.state.isStreaming;
	}

	state() {
		const { isStreaming, pendingToolCalls, messages, streamMessage, error } = this.#agent.state;
		return { isStreaming, pendingToolCalls, messages, streamingMessage: streamMessage, errorMessage: error };
	}
}

// The agent has no mode for all tools: each has one of its own.
function toolsOf(surroundings) {
	const { config } = surroundings;
	const { tools } = callbacks({}, surroundings);
	return tools.map((tool) => {
		const alone = (tool.executionMode ?? config.toolExecution) === "sequential";
		return { ...tool, execute: afterATurn(detailed(tool.execute)), concurrency: alone ? "exclusive" : "shared" };
	});
}

// The loop makes up details for a result that does not mention any.
function detailed(execute) {
	const mention = (result) => result && { details: undefined, ...result };
	return async (id, args, signal, onUpdate) => mention(await execute(id, args, signal, (partial) => onUpdate(mention(partial))));
}

function hooksOf(surroundings) {
	const { streamFn, hooks } = callbacks({}, surroundings);
	const { getApiKey, ...others } = hooks;
	const all = {
		...others,
		...(getApiKey && { getApiKey: (model) => getApiKey(model.provider) }),
		streamFn: async (model, context, options) => {
			const stream = await streamFn(model, { ...context, systemPrompt: context.systemPrompt?.join("\n\n") }, options);
			return new CountedStream(stream);
		},
	};
	return Object.fromEntries(Object.entries(all).map(([name, callback]) => [name, afterATurn(callback)]));
}

// What stands before a callback in the trace is then what the loop did before it,
// and not what its listeners happened to have heard of.
function afterATurn(callback) {
	return async (...args) => {
		await turn();
		return callback(...args);
	};
}
