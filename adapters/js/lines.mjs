import { ProtocolError } from "./errors.mjs";

const LF = 10;
const CR = 13;

/** The longest line that is taken, in bytes. */
export const MAX_LINE = 16 * 1024 * 1024;

/** Cuts a byte stream into JSON objects, one a line. */
export class Lines {
	#parts = [];
	#size = 0;
	#number = 0;
	#utf8 = new TextDecoder("utf-8", { fatal: true });

	/** The objects, or for a bad line a ProtocolError, that end in the chunk. */
	push(chunk) {
		const found = [];
		let from = 0;
		if (this.#size === 0 && chunk.length <= MAX_LINE) from = this.#together(chunk, found);
		for (let end = chunk.indexOf(LF, from); end >= 0; end = chunk.indexOf(LF, from)) {
			this.#keep(chunk.subarray(from, end));
			found.push(this.#line());
			from = end + 1;
		}
		this.#keep(chunk.subarray(from));
		return found;
	}

	// Good lines are decoded together, which is faster, and the number of bytes is
	// given that they take. If one is bad, each has to be looked at alone: 0.
	#together(chunk, found) {
		const end = chunk.lastIndexOf(LF);
		if (end < 0) return 0;
		try {
			const objects = this.#utf8.decode(chunk.subarray(0, end)).split("\n").map((line) => JSON.parse(line));
			if (!objects.every(isObject)) return 0;
			found.push(...objects);
			this.#number += objects.length;
			return end + 1;
		} catch {
			return 0;
		}
	}

	// A line that is too long is counted and not kept.
	#keep(part) {
		this.#size += part.length;
		if (this.#size > MAX_LINE) this.#parts = [];
		else this.#parts.push(part);
	}

	#line() {
		const tooLong = this.#size > MAX_LINE;
		let bytes = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
		this.#parts = [];
		this.#size = 0;
		this.#number++;
		if (tooLong) return this.#bad("the line is longer than 16 MiB");
		if (bytes.at(-1) === CR) bytes = bytes.subarray(0, -1);
		try {
			const value = JSON.parse(this.#utf8.decode(bytes));
			if (isObject(value)) return value;
			return this.#bad("the line is no JSON object");
		} catch (error) {
			return this.#bad(error.message);
		}
	}

	#bad(why) {
		return new ProtocolError("malformed", `line ${this.#number}: ${why}`);
	}
}

function isObject(value) {
	return value !== null && typeof value === "object" && !Array.isArray(value);
}
