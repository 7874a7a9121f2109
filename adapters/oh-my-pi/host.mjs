/**
 * Makes the process a quiet host for a loop that expects to be the whole program
 * there: its log goes to standard error, a rejection in the background does not end
 * it, and its clock stands still.
 */
export async function host({ root, module }) {
	const { logger } = await import(Bun.resolveSync("@oh-my-pi/pi-utils", root));
	redirectLog(logger);
	process.removeAllListeners("unhandledRejection");
	await stopClock(module);
}

// The log would otherwise be written into the home folder of whoever runs it.
function redirectLog(logger) {
	logger.setTransports({ console: false, file: false });
	logger.registerLogSink(({ level, message, context }) => {
		if (level !== "debug") process.stderr.write(`${level}: ${message} ${JSON.stringify(context ?? {})}\n`);
	});
}

// The loop rests for 20 ms whenever 50 ms have passed since it last did, so that
// where it rests depends on how fast the machine is. With the clock stopped
// right after a rest it never does. Sleeping for no time at all, as it does
// before each request, is a turn of the event loop.
async function stopClock({ yieldIfDue }) {
	await yieldIfDue();
	const now = Date.now();
	Date.now = () => now;
	const { sleep } = Bun;
	Bun.sleep = (time) => (time === 0 ? turn() : sleep(time));
}

let next; // the turn that is waited for

/**
 * One turn of the event loop, the same for all who ask before it comes. The agent is
 * fed by a stream of events and waits for nobody, so its listeners hear of an event
 * only after whatever the loop did right after it. After a turn they have heard of
 * everything.
 */
export function turn() {
	next ??= new Promise(setImmediate).then(() => {
		next = undefined;
	});
	return next;
}

/** Whether anybody waits for a turn of the event loop: a barrier has to outlast that. */
export function busy() {
	return next !== undefined;
}
