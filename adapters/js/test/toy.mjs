// An adapter around a toy loop, as short as one can be: it asks the model once,
// runs the tools that it asks for one after the other, and ends.

import { serve, tags } from "../index.mjs";

class Toy {
	listeners = new Set();
	messages;
	controller;

	constructor(surroundings) {
		this.surroundings = surroundings;
		this.messages = [...surroundings.config.messages];
	}

	async prompt(input) {
		if (this.controller) throw new Error("busy");
		this.controller = new AbortController();
		try {
			await this.emit({ type: "agent_start" });
			this.messages.push(...input);
			const { signal } = this.controller;
			const payload = { model: "toy", messages: tags(this.messages), signal: true };
			const stream = await this.surroundings.model(payload, signal);
			for await (const event of stream) if (event.type === "start") await this.emit({ type: "message_start", message: event.partial });
			const message = await stream.result();
			await this.emit({ type: "message_end", message });
			for (const call of message.content.filter((block) => block.type === "toolCall")) await this.runTool(call, signal);
			await this.emit({ type: "agent_end", messages: [message] });
			message.content = "changed later";
		} finally {
			this.controller = undefined;
		}
	}

	async runTool(call, signal) {
		const args = this.surroundings.prepareArguments(call.name, call.arguments);
		const onUpdate = (partialResult) => {
			if (partialResult.details === "reject") void Promise.reject(new Error("in the background"));
			void this.emit({ type: "tool_execution_update", toolCallId: call.id, partialResult });
		};
		const result = await this.surroundings.execute({ toolCallId: call.id, toolName: call.name, args, signal: true }, signal, onUpdate);
		console.log("not a protocol line");
		await this.emit({ type: "tool_execution_end", toolCallId: call.id, result });
	}

	async emit(event) {
		for (const listener of this.listeners) await listener(event, this.controller?.signal);
	}

	continue() {
		throw new Error("nothing to continue");
	}

	waitForIdle() {
		return Promise.resolve();
	}

	reset() {
		if (this.controller) throw new Error("busy");
		this.messages = [];
	}

	steer() {}

	followUp() {}

	abort() {
		this.controller?.abort();
	}

	clearQueue() {}

	subscribe(listener) {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	isRunning() {
		return this.controller !== undefined;
	}
}

serve({
	subject: { name: "toy", version: "1.0.0", language: "javascript" },
	editions: ["0.84.3"],
	capabilities: ["reads", "listeners", "retained", "forms:agent"],
	open: (surroundings) => new Toy(surroundings),
});
