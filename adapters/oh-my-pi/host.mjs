/**
 * Makes the process a quiet host for a loop that expects to be a whole program
 * there, and gives a function that says whether the loop still waits for a turn
 * of the event loop that it asked for.
 */
export async function host({ root, module }) {
	const { logger } = await import(Bun.resolveSync("@oh-my-pi/pi-utils", root));
	redirectLog(logger);
	// The package ends the process for a rejection that nobody handles.
	process.removeAllListeners("unhandledRejection");
	await stopClock(module);
	return countSleeps();
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
// right after a rest it never does.
async function stopClock({ yieldIfDue }) {
	await yieldIfDue();
	const now = Date.now();
	Date.now = () => now;
}

// Before each request the loop sleeps for no time at all, so that its listeners
// can catch up. A barrier has to outlast that.
function countSleeps() {
	const { sleep } = Bun;
	let sleeping = 0;
	Bun.sleep = async (time) => {
		sleeping++;
		await sleep(time);
		sleeping--;
	};
	return () => sleeping > 0;
}
