import assert from "node:assert/strict";
import { test } from "node:test";
import { Server } from "../index.mjs";

// Sends one message to an adapter that is a reducer alone, and gives its reply.
function ask(reducer, message) {
	const replies = [];
	new Server({ capabilities: ["reducer"], reducer }, (reply) => replies.push(reply)).receive({ id: 1, ...message });
	return replies[0];
}

const event = { type: "turn_start" };
const start = () => ({ turn: 0 });

test("a reducer gives the next view, and begins where there is none", () => {
	const reduce = (view) => ({ turn: view.turn + 1 });
	assert.deepEqual(ask({ start, reduce }, { type: "reduce", event }), { type: "reduced", re: 1, view: { turn: 1 } });
	assert.deepEqual(ask({ start, reduce }, { type: "reduce", view: { turn: 4 }, event }).view, { turn: 5 });
});

test("what a reducer changes in place is told", () => {
	const reduce = (view, event) => {
		event.seen = true;
		view.turn++;
		return view;
	};
	const reply = ask({ start, reduce }, { type: "reduce", view: { turn: 1 }, event: { ...event } });
	assert.deepEqual(reply.before, { turn: 2 });
	assert.deepEqual(reply.eventAfter, { type: "turn_start", seen: true });
});

test("a reducer that is not synchronous is an error, and so is none", () => {
	assert.match(ask({ start, reduce: async (view) => view }, { type: "reduce", event }).message, /synchronous/);
	assert.equal(ask(undefined, { type: "reduce", event }).code, "unsupported");
	assert.equal(ask({ start }, { type: "open", session: "s1", form: "agent" }).code, "unsupported");
});
