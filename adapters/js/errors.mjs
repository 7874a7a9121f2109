/** What the adapter answers the harness with an `error` of this code. */
export class ProtocolError extends Error {
	constructor(code, message) {
		super(message);
		this.code = code;
	}
}

/** Thrown by a loop's prompt, continue or reset that was refused: nothing was begun. */
export class Refused extends Error {}

/** What every callback that still waits gets once its session is closed. */
export class Closed extends Error {
	constructor() {
		super("the case is over");
	}
}
