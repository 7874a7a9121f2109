import { Closed } from "./errors.mjs";

/**
 * What a loop reads of one model request: an async iterable of stream events
 * with the `result()` that they come to. It is given answers of the script, or
 * of the harness, each of them
 *
 *	{event, final?}   one event; final is the result if it is not the event's own message
 *	{ends, final}     the end, without done
 *	{throw}           an error while reading
 *
 * It never makes a reader wait for what is already there.
 */
export class ModelStream {
	#ready = [];
	#readers = [];
	#reads = 0;
	#over;
	#onRead;
	#result;
	#settle;

	constructor(onRead) {
		this.#onRead = onRead;
		this.#result = new Promise((resolve, reject) => {
			this.#settle = { resolve, reject };
		});
		this.#result.catch(() => {}); // whether anybody asks for it is the loop's business
	}

	/** Adds an answer and reports whether it was the last. */
	give(answer) {
		const last = isLast(answer);
		if (last) this.#end(answer);
		if (answer.throw == null && !answer.ends) this.#ready.push(answer.event);
		this.#serve();
		return last;
	}

	/** Ends a stream that has been given all there is. */
	finish() {
		if (this.#over) return;
		this.#over = {};
		this.#settle.reject(new Error("the stream has no result"));
	}

	close() {
		this.give({ throw: new Closed().message });
	}

	[Symbol.asyncIterator]() {
		return this;
	}

	next() {
		this.#onRead(this.#reads++);
		return new Promise((resolve, reject) => {
			this.#readers.push({ resolve, reject });
			this.#serve();
		});
	}

	result() {
		return this.#result;
	}

	#end(answer) {
		this.#over = answer;
		if (answer.throw != null) this.#settle.reject(new Error(answer.throw));
		else this.#settle.resolve(answer.final ?? answer.event?.message ?? answer.event?.error);
	}

	#serve() {
		while (this.#readers.length > 0 && (this.#ready.length > 0 || this.#over)) this.#read(this.#readers.shift());
	}

	#read({ resolve, reject }) {
		if (this.#ready.length > 0) resolve({ value: this.#ready.shift(), done: false });
		else if (this.#over.throw != null) reject(new Error(this.#over.throw));
		else resolve({ value: undefined, done: true });
	}
}

function isLast(answer) {
	return answer.throw != null || answer.ends || answer.event.type === "done" || answer.event.type === "error";
}
