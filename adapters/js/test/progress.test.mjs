import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "../example-progress/registry.mjs";
import { Server } from "../index.mjs";

// A channel of progress, and what it tells.
function channel(make = (surroundings) => new Registry(surroundings)) {
	const said = [];
	const server = new Server({ capabilities: ["progress"], progress: make }, (message) => said.push(message));
	let id = 0;
	const rest = async () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
	const ask = async (message) => {
		server.receive({ id: ++id, session: "s1", ...message });
		server.receive({ id: ++id, session: "s1", type: "sync" });
		await rest();
		return said.findLast((reply) => reply.re === id - 1);
	};
	const act = (what, members = {}) => ask({ type: "progress", act: { do: what, ...members } });
	return { act, ask, said, kinds: () => said.filter((m) => m.type === "progress").map((m) => m.entry.kind) };
}

const view = { content: [{ type: "text", text: "a/c1: step 1" }] };
const report = { execution: 1, report: { number: 1, by: "body", view } };

test("a report is told of, and its value changed afterwards", async () => {
	const c = channel();
	await c.act("open");
	await c.act("observe", { observer: "keeper", does: "keep" });
	await c.act("prepare", { execution: 1, agent: "a", call: "c1", tool: "t" });
	await c.act("dispatch", { execution: 1 });
	await c.act("report", report);
	await c.act("finalize", { execution: 1, text: "done" });
	await c.act("look");
	assert.deepEqual(c.kinds(), ["prepared", "durable", "report", "observed", "returned", "boundary", "durable", "outcome", "kept"]);
	assert.equal(c.said.find((m) => m.entry?.kind === "returned").entry.accepted, true);
	assert.deepEqual(c.said.find((m) => m.entry?.kind === "kept").entry.view, view);
});

test("an observer that waits holds the report, and then the end, back", async () => {
	const c = channel();
	await c.act("open");
	await c.act("observe", { observer: "slow", does: "wait" });
	await c.act("prepare", { execution: 1, agent: "a", call: "c1", tool: "t" });
	await c.act("dispatch", { execution: 1 });
	await c.act("report", report);
	assert.deepEqual(c.said.findLast((m) => m.type === "synced").waitingOn, ["observer/slow/1"]);
	await c.act("finalize", { execution: 1, text: "done" });
	assert.ok(!c.kinds().includes("boundary"));
	await c.ask({ type: "answer", call: "observer/slow/1", answer: {} });
	assert.deepEqual(c.kinds().slice(-4), ["returned", "boundary", "durable", "outcome"]);
});

test("what cannot be done is an error", async () => {
	const c = channel();
	await c.act("open");
	assert.equal((await c.act("open")).code, "session");
	assert.equal((await c.act("dance")).code, "unsupported");
	assert.equal((await c.act("dispatch", { execution: 9 })).code, "call");
	assert.equal((await c.ask({ type: "answer", call: "observer/slow/1", answer: {} })).code, "call");
	assert.equal((await channel(null).act("open")).code, "unsupported");
});
