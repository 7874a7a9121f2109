import { turn } from "./host.mjs";

const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };

/** A stream whose messages all say what they cost: the loop takes it for granted. */
export class CountedStream {
	#stream;

	constructor(stream) {
		this.#stream = stream;
	}

	[Symbol.asyncIterator]() {
		return this;
	}

	async next() {
		await turn();
		const read = await this.#stream.next();
		if (!read.done) [read.value.partial, read.value.message, read.value.error].forEach(count);
		return read;
	}

	async result() {
		const message = await this.#stream.result();
		count(message);
		return message;
	}
}

function count(message) {
	if (message && !message.usage) message.usage = { ...NOTHING, cost: { ...NOTHING } };
}
