import { spawn } from "node:child_process";

/** The harness's side of the protocol, for tests: one adapter process. */
export class Client {
	#process;
	#id = 0;
	#replies = new Map();
	#text = "";
	outputs = [];
	stdout = "";
	stderr = "";

	constructor(program, { env = {}, cwd } = {}) {
		this.#process = spawn(process.execPath, [program], { cwd, env: { ...process.env, ...env } });
		this.#process.stdout.setEncoding("utf8").on("data", (text) => this.#read(text));
		this.#process.stderr.setEncoding("utf8").on("data", (text) => (this.stderr += text));
		this.exited = new Promise((resolve) => this.#process.on("exit", (code, signal) => resolve(code ?? signal)));
		this.exited.then((code) => this.#replies.forEach(({ reject }) => reject(new Error(`exit ${code}: ${this.stderr}`))));
	}

	/** Reads nothing for so many milliseconds. */
	pause(ms) {
		this.#process.stdout.pause();
		setTimeout(() => this.#process.stdout.resume(), ms);
	}

	/** Sends a message and waits for its reply. */
	send(message) {
		const id = ++this.#id;
		this.raw(`${JSON.stringify({ ...message, id })}\n`);
		return new Promise((resolve, reject) => this.#replies.set(id, { resolve, reject }));
	}

	raw(text) {
		this.#process.stdin.write(text);
	}

	end() {
		this.#process.stdin.end();
	}

	hello(editions = ["0.84.3", "1.6"]) {
		return this.send({ type: "hello", protocol: [1], harness: "test", editions, nonce: "n1" });
	}

	/** Opens a session. What is not said is automatic and plain. */
	async open({ form = "agent", config = {}, script = {} } = {}) {
		const session = new Session(this, `s${this.#id}`);
		const reply = await this.send({
			type: "open",
			session: session.id,
			form,
			edition: "0.84.3",
			config: { model: "scripted-1", tools: [{ name: "a" }, { name: "b" }], ...config },
			script: { modelElse: { steps: turn("done") }, ...script },
		});
		if (reply.type !== "ok") throw new Error(reply.message);
		return session;
	}

	#read(text) {
		this.stdout += text;
		const lines = (this.#text + text).split("\n");
		this.#text = lines.pop();
		for (const line of lines) this.#take(JSON.parse(line));
	}

	#take(message) {
		if (!("re" in message)) return this.outputs.push(message);
		const waiting = this.#replies.get(message.re);
		this.#replies.delete(message.re);
		waiting?.resolve(message);
	}
}

class Session {
	constructor(client, id) {
		this.client = client;
		this.id = id;
		this.seen = 0;
	}

	get outputs() {
		return this.client.outputs.filter((output) => output.session === this.id);
	}

	/** A user action and its barrier: what came of them, in short. */
	async user(name, answer) {
		const kind = name.split("/")[0];
		return this.#step({ type: "user", name, kind, answer });
	}

	/** An answer and its barrier: what came of them, in short. */
	async answer(call, answer) {
		return this.#step({ type: "answer", call, answer });
	}

	async sync() {
		return this.client.send({ type: "sync", session: this.id });
	}

	async close() {
		return this.client.send({ type: "close", session: this.id });
	}

	/** All that has happened so far, in short. */
	story() {
		return this.outputs.map(short);
	}

	async #step(message) {
		const replied = this.client.send({ ...message, session: this.id });
		this.synced = await this.sync();
		this.reply = await replied;
		const fresh = this.outputs.slice(this.seen);
		this.seen += fresh.length;
		return fresh.map(short);
	}
}

/** An output in one line. */
export function short(output) {
	switch (output.type) {
		case "event":
			return shortEvent(output.event);
		case "call":
			return `${output.auto ? "auto" : "call"} ${output.name}${output.aborted ? " (aborted)" : ""}`;
		case "read":
			return `read ${output.name} ${output.n}`;
		case "settled":
			return `settled ${output.name} ${output.outcome}${output.message ? `: ${output.message}` : ""}`;
		default:
			return `${output.type} ${output.name ?? output.text ?? JSON.stringify(output.changed)}`;
	}
}

function shortEvent(event) {
	const about = event.toolCallId ?? (event.type.startsWith("message_") ? event.message.role : "");
	const sign = event.isError || event.message?.isError ? "!" : "";
	return `${event.type} ${about}${sign}`.trim();
}

/** Steps of a model turn: a text, or calls as «id:tool». */
export function turn(text, ...calls) {
	const content = text ? [{ type: "text", text }] : [];
	for (const call of calls) {
		const [id, name] = call.split(":");
		content.push({ type: "toolCall", id, name, arguments: {} });
	}
	const stopReason = calls.length > 0 ? "toolUse" : "stop";
	const message = { role: "assistant", content, api: "scripted", provider: "scripted", model: "scripted-1", stopReason };
	return [
		{ event: { type: "start", partial: { ...message, content: [], stopReason: "stop" } } },
		{ event: { type: "done", reason: stopReason, message } },
	];
}

export const text = (value) => ({ content: [{ type: "text", text: value }] });
export const user = (value) => ({ role: "user", content: [{ type: "text", text: value }], timestamp: 1 });
export const prompt = (value) => ({ messages: [user(value)] });
