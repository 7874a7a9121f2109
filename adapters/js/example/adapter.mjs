// @ts-check
// Joins an agent loop to pi-conform. «pi-conform run» starts this program and speaks
// with it on standard input and output; the library in pi-conform/ does the talking.

import { serve, tag, tags } from "./pi-conform/index.mjs";
// YOUR LOOP: import it here. A loop in TypeScript is imported as what it is built to,
// or directly (./loop.ts) from Node.js 22.18 on.
import { Agent } from "./loop.mjs";

serve({
	// YOUR LOOP: what it is, which edition of the contract it follows, and what it can do.
	// What is not declared is not judged. docs/PROTOCOL.md of pi-conform lists the capabilities.
	subject: { name: "toy-loop", version: "0.1.0", language: "typescript" },
	editions: ["0.84.3"],
	capabilities: ["state", "polls", "reads", "listeners", "signals", "retained", "forms:agent", "hooks:beforeToolCall", "hooks:afterToolCall"],
	open,
});

/**
 * Makes a loop whose model, tools and hooks are those of the surroundings.
 * @param {import("./pi-conform/index.mjs").Surroundings} surroundings
 */
function open(surroundings) {
	const { config } = surroundings;
	// YOUR LOOP: make it here, and translate what it calls things.
	const agent = new Agent({
		systemPrompt: config.systemPrompt ?? "",
		model: config.model ?? "",
		level: config.thinkingLevel === "off" ? undefined : config.thinkingLevel,
		messages: config.messages,
		toolExecution: config.toolExecution ?? "parallel",
		steeringMode: config.steeringMode ?? "one-at-a-time",
		followUpMode: config.followUpMode ?? "one-at-a-time",
		tools: config.tools.map((tool) => ({
			...tool,
			execute: (id, args, signal, onUpdate) =>
				surroundings.execute({ toolCallId: id, toolName: tool.name, args, signal: Boolean(signal) }, signal, onUpdate),
		})),
		stream: ({ systemPrompt, model, level, tools, messages }, signal) => {
			const names = tools.map((/** @type {any} */ tool) => tool.name);
			return surroundings.model({ systemPrompt, model, level, tools: names, messages: tags(messages), signal: Boolean(signal) }, signal);
		},
		onPoll: (queue, drained) => surroundings.polled(queue === "steering" ? "getSteeringMessages" : "getFollowUpMessages", drained),
		// A hook that the case does not have must be absent, not one that does nothing.
		...(surroundings.hasHook("beforeToolCall") && {
			beforeToolCall: (call, signal) => surroundings.hook("beforeToolCall", call.call.id, ofCall(call, signal), signal, (answer) => answer),
		}),
		...(surroundings.hasHook("afterToolCall") && {
			afterToolCall: (call, signal) => {
				const payload = { ...ofCall(call, signal), result: call.result, isError: call.isError };
				return surroundings.hook("afterToolCall", call.call.id, payload, signal, (answer) => answer);
			},
		}),
	});
	return userOf(agent);
}

/**
 * What a hook that belongs to a tool call was given.
 * @param {any} call @param {AbortSignal} signal
 */
function ofCall({ assistant, call, args, context }, signal) {
	return {
		toolCallId: call.id, toolName: call.name, rawArgs: call.arguments, args,
		assistant: tag(assistant), context: tags(context), signal: Boolean(signal),
	};
}

/**
 * YOUR LOOP: what its user does, in your loop's words.
 * @param {Agent} agent
 * @returns {import("./pi-conform/index.mjs").Loop}
 */
function userOf(agent) {
	return {
		prompt: (input, images) => agent.prompt(input, images),
		continue: () => agent.continue(),
		waitForIdle: () => agent.waitForIdle(),
		reset: () => agent.reset(),
		steer: (message) => agent.steer(message),
		followUp: (message) => agent.followUp(message),
		abort: () => agent.abort(),
		clearQueue: () => agent.clearQueues(),
		subscribe: (listener) => agent.subscribe(listener),
		isRunning: () => agent.state.isStreaming,
		state: () => agent.state,
	};
}
