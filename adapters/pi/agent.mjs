import { callbacks, scriptedModel } from "./callbacks.mjs";
import { pollOf } from "./release.mjs";

/** The loop as an agent, with state, queues and listeners. */
export class AgentForm {
	#agent;
	#polling = true;

	constructor({ module, ...release }, surroundings) {
		const { config } = surroundings;
		const { streamFn, tools, hooks } = callbacks(release, surroundings);
		const { prepareNextTurn, ...others } = hooks;
		this.#agent = new module.Agent({
			initialState: {
				systemPrompt: config.systemPrompt ?? "",
				model: scriptedModel(config.model),
				thinkingLevel: config.thinkingLevel || "off",
				tools,
				messages: config.messages,
			},
			streamFn,
			...others,
			...(prepareNextTurn && { prepareNextTurnWithContext: prepareNextTurn }),
			toolExecution: config.toolExecution || "parallel",
			steeringMode: config.steeringMode || "one-at-a-time",
			followUpMode: config.followUpMode || "one-at-a-time",
		});
		this.#watch("steering", "getSteeringMessages", surroundings);
		this.#watch("followUp", "getFollowUpMessages", surroundings);
	}

	prompt(input, images) {
		return this.#agent.prompt(input, images);
	}

	// What continue itself drains, before it begins a run, is no poll of the loop.
	continue() {
		this.#polling = false;
		try {
			return this.#agent.continue();
		} finally {
			this.#polling = true;
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

	// Before release 0.65 two members had other names.
	state() {
		const { isStreaming, pendingToolCalls, messages, streamingMessage, streamMessage, errorMessage, error } = this.#agent.state;
		return {
			isStreaming,
			pendingToolCalls,
			messages,
			streamingMessage: streamingMessage ?? streamMessage,
			errorMessage: errorMessage ?? error,
		};
	}

	#watch(queue, hook, surroundings) {
		const [object, method] = pollOf(this.#agent, queue) ?? [];
		if (!object) return;
		const drain = object[method].bind(object);
		object[method] = () => (this.#polling ? surroundings.polled(hook, drain()) : drain());
	}
}
