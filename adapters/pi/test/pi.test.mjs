// Runs the adapter on the package in PI_CONFORM_PACKAGE. What is expected here is
// what every release since 0.68.1 does, unless a line says from when on.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { compareReleases } from "../../js/index.mjs";
import { Client, prompt, text, turn, user } from "../../js/test/client.mjs";

const directory = process.env.PI_CONFORM_PACKAGE;
const skip = directory ? false : "PI_CONFORM_PACKAGE does not name the directory of an installed loop: NOTHING OF THE ADAPTER IS TESTED";
if (skip) console.error(skip);

const version = directory ? JSON.parse(readFileSync(`${directory}/package.json`, "utf8")).version : "0";
const since = (release) => compareReleases(version, release) >= 0;
const older = (release) => skip || (since(release) ? false : `${version} is older than ${release}`);

let client;
before(() => {
	if (directory) client = new Client(fileURLToPath(new URL("../pi.mjs", import.meta.url)));
});
after(() => client?.end());

// Releases since 0.86 declare the tools by a system message, which is left out
// of the stories here, as are the polls, reads and requests where they do not matter.
const loud = (lines) => lines.filter((line) => !/ system$|^read |getSteering|getFollowUp/.test(line));
const at = (session, name) => session.outputs.find((output) => output.name === name);
const BATCH = turn("", "c1:a", "c2:b");

test("handshake", { skip }, async () => {
	const hello = await client.hello();
	assert.equal(hello.subject.version, version);
	assert.match(hello.subject.name, /pi-agent-core$/);
	assert.deepEqual(hello.editions, [since("1.6.0") ? "1.6" : "0.84.3"]);
	for (const form of ["agent", "loop", "stream"]) assert.ok(hello.capabilities.includes(`forms:${form}`));
	for (const all of ["state", "polls", "reads", "listeners", "signals", "retained", "hooks:beforeToolCall"]) {
		assert.ok(hello.capabilities.includes(all), all);
	}
	assert.equal(hello.capabilities.includes("hooks:finishTurn"), since("0.87.0"));
	assert.equal(hello.capabilities.includes("hooks:prepareArguments"), since("0.64.0"));
	if (since("0.87.0")) assert.ok(!hello.capabilities.includes("hooks:shouldStopAfterTurn"));
});

test("two parallel calls end in the order of their answers, their results keep the source order", { skip: older("0.68.1") }, async () => {
	const script = { model: [{ steps: BATCH }], tools: { c1: { gate: true }, c2: { gate: true } } };
	const session = await client.open({ script });
	const began = await session.user("prompt/0", prompt("go"));
	assert.deepEqual(loud(began), [
		"agent_start",
		"turn_start",
		"message_start user",
		"message_end user",
		"auto model/0",
		"message_start assistant",
		"message_end assistant",
		"tool_execution_start c1",
		"tool_execution_start c2",
		"call tool/c1",
		"call tool/c2",
	]);
	assert.deepEqual(session.synced.waitingOn, ["tool/c1", "tool/c2"]);
	assert.equal(session.synced.idle, false);
	assert.deepEqual(await session.answer("tool/c1", { partial: text("half") }), ["tool_execution_update c1"]);
	assert.deepEqual(await session.answer("tool/c2", { result: text("B") }), ["tool_execution_end c2"]);
	assert.deepEqual(loud(await session.answer("tool/c1", { result: text("A") })), [
		"tool_execution_end c1",
		"message_start toolResult",
		"message_end toolResult",
		"message_start toolResult",
		"message_end toolResult",
		"turn_end",
		"turn_start",
		"auto model/1",
		"message_start assistant",
		"message_end assistant",
		"turn_end",
		"agent_end",
		"settled prompt/0 ok",
	]);
	assert.equal(session.synced.idle, true);
	const { payload } = at(session, "model/1");
	const seen = payload.messages.filter((tag) => !tag.startsWith("system"));
	assert.deepEqual(seen, ["user: go", "assistant toolUse [c1 c2]: ", "toolResult c1: A", "toolResult c2: B"]);
	assert.deepEqual(payload.tools, ["a", "b"]);
	assert.equal(payload.signal, true);
	const late = await session.answer("tool/c1", { partial: text("late") });
	assert.deepEqual(late.filter((line) => line !== "log unhandled rejection: Agent listener invoked outside active run"), []);
});

test("a late update during the next turn", { skip: older("0.79.2") }, async () => {
	const script = { model: [{ steps: turn("", "c1:a") }, { gate: true }], tools: { c1: { gate: true } } };
	const session = await client.open({ script });
	await session.user("prompt/0", prompt("go"));
	await session.answer("tool/c1", { result: text("A") });
	assert.deepEqual(session.synced.waitingOn, ["model/1"]);
	assert.deepEqual(await session.answer("tool/c1", { partial: text("late") }), []);
	await session.close();
});

test("state, requests and configuration are reported", { skip }, async () => {
	const config = { systemPrompt: "be brief", thinkingLevel: "low", hooks: { getApiKey: "auto" }, messages: [user("before")] };
	const script = { hooks: { getApiKey: { else: { value: { key: "k1" } } } } };
	const session = await client.open({ config, script });
	await session.user("prompt/0", { text: "look", images: [{ type: "image", data: "AAAA", mimeType: "image/png" }] });
	const { payload } = at(session, "model/0");
	assert.equal(payload.level, "low");
	assert.equal(payload.key, "k1");
	assert.equal(payload.model, "scripted-1");
	assert.equal(payload.systemPrompt, "be brief");
	assert.deepEqual(payload.messages.filter((tag) => !tag.startsWith("system")), ["user: before", "user: look"]);
	assert.deepEqual(at(session, "hook/getApiKey/0").payload, { provider: "scripted" });
	const end = session.outputs.find((o) => o.event?.type === "message_end" && o.event.message.role === "assistant");
	assert.equal(end.state.isStreaming, true);
	assert.equal(end.state.last, "assistant stop []: done");
	assert.deepEqual(end.state.pendingToolCalls, []);
	assert.equal(session.outputs.filter((o) => o.event).every((o, i) => o.n === i), true);
});

test("abort while the model streams", { skip }, async () => {
	const session = await client.open({ script: { model: [{ gate: true }] } });
	await session.user("prompt/0", prompt("go"));
	const [start] = turn("hi");
	await session.answer("model/0", start);
	assert.deepEqual(await session.user("abort"), ["cancelled model/0"]);
	const error = { ...start.event.partial, stopReason: "aborted", errorMessage: "aborted" };
	const out = await session.answer("model/0", { event: { type: "error", reason: "aborted", error } });
	assert.deepEqual(loud(out), ["message_end assistant", "turn_end", "agent_end", "settled prompt/0 ok"]);
});

test("abort while tools run; the request that follows waits and uses no script turn", { skip: older("0.68.1") }, async () => {
	const script = { model: [{ steps: BATCH }], tools: { c1: { gate: true }, c2: { gate: true } } };
	const session = await client.open({ script });
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(await session.user("abort"), ["cancelled tool/c1", "cancelled tool/c2"]);
	await session.answer("tool/c1", { result: text("A") });
	const out = await session.answer("tool/c2", { result: text("B") });
	assert.equal(loud(out).at(-1), "call model/1 (aborted)");
	const error = { role: "assistant", content: [], api: "scripted", provider: "scripted", model: "scripted-1", stopReason: "aborted" };
	const ended = await session.answer("model/1", { event: { type: "error", reason: "aborted", error } });
	assert.equal(ended.at(-1), "settled prompt/0 ok");
});

test("abort while beforeToolCall and transformContext wait, and from inside a hook", { skip: older("0.75.4") }, async () => {
	const config = { hooks: { beforeToolCall: "gate", transformContext: "gate" } };
	const script = { model: [{ steps: BATCH }], hooks: { beforeToolCall: { gate: true }, transformContext: { gate: true } } };
	const session = await client.open({ config, script });
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(session.synced.waitingOn, ["hook/transformContext/0"]);
	await session.answer("hook/transformContext/0", { hook: { append: [user("extra")] } });
	assert.deepEqual(session.synced.waitingOn, ["hook/beforeToolCall/c1"]);
	assert.equal(at(session, "model/0").payload.messages.at(-1), "user: extra");
	assert.deepEqual(at(session, "hook/beforeToolCall/c1").payload.rawArgs, {});
	assert.deepEqual(await session.user("abort"), ["cancelled hook/beforeToolCall/c1"]);
	const out = await session.answer("hook/beforeToolCall/c1", { hook: {} });
	assert.ok(out.includes("tool_execution_end c1!"));
	assert.ok(!out.includes("auto tool/c1"));
	await session.close();

	const inside = { hooks: { beforeToolCall: { answers: { c2: { value: {}, abort: true } } } }, model: [{ steps: BATCH }] };
	const second = await client.open({ config: { hooks: { beforeToolCall: "auto" } }, script: inside });
	const story = await second.user("prompt/0", prompt("go"));
	assert.deepEqual(at(second, "hook/beforeToolCall/c2").answer, { hook: {}, abort: true });
	assert.ok(story.includes("tool_execution_end c2!"));
	assert.deepEqual(second.synced.waitingOn, ["model/1"]);
	await second.close();
});

test("a gated listener holds the loop back", { skip: older("0.65.0") }, async () => {
	const config = { listeners: [{ gate: ["message_end/assistant", "agent_end"] }, {}] };
	const session = await client.open({ config, script: { model: [{ steps: turn("", "c1:a") }] } });
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(session.synced.waitingOn, ["listener/0/message_end/assistant/0"]);
	assert.ok(!session.story().includes("tool_execution_start c1"));
	const gated = at(session, "listener/0/message_end/assistant/0");
	assert.equal(session.outputs.find((o) => o.n === gated.payload.event && o.event).event.type, "message_end");
	assert.equal(gated.payload.signal, true);
	assert.deepEqual(await session.user("abort"), ["cancelled listener/0/message_end/assistant/0"]);
	const out = await session.answer("listener/0/message_end/assistant/0", {});
	assert.equal(out[0], "auto listener/1/message_end/assistant/0 (aborted)");
	await session.close();
});

test("gated listeners of agent_end come before the prompt settles", { skip: older("0.65.0") }, async () => {
	const session = await client.open({ config: { listeners: [{ gate: ["agent_end"] }] } });
	await session.user("prompt/0", prompt("go"));
	await session.user("waitForIdle/0");
	assert.deepEqual(session.synced, { ...session.synced, idle: false, waitingOn: ["listener/0/agent_end/0"] });
	const out = await session.answer("listener/0/agent_end/0", {});
	assert.deepEqual(out.sort(), ["settled prompt/0 ok", "settled waitForIdle/0 ok"]);
});

test("prompt, continue and reset during a run are refused", { skip: older("0.84.1") }, async () => {
	const session = await client.open({ script: { model: [{ gate: true }] } });
	await session.user("prompt/0", prompt("go"));
	for (const name of ["prompt/1", "continue/0", "reset/0"]) {
		const [line, ...rest] = await session.user(name, prompt("again"));
		assert.match(line, new RegExp(`^settled ${name} refused: .`));
		assert.deepEqual(rest, []);
	}
	await session.close();
	const empty = await client.open();
	assert.match((await empty.user("continue/0"))[0], /^settled continue\/0 refused: /);
	assert.deepEqual(await empty.user("reset/1"), ["settled reset/1 ok"]);
});

test("a failing listener makes the run fail, not be refused", { skip: older("0.74.1") }, async () => {
	const session = await client.open({ config: { listeners: [{ throw: { turn_start: "no", agent_end: "never" } }] } });
	const out = await session.user("prompt/0", prompt("go"));
	assert.equal(out.at(-1), "settled prompt/0 error: never");
});

test("queues are drained at the polls", { skip }, async () => {
	const script = { model: [{ steps: turn("", "c1:a") }], tools: { c1: { gate: true } } };
	const session = await client.open({ script });
	await session.user("prompt/0", prompt("go"));
	await session.user("steer/0", { messages: [user("left"), user("right")] });
	await session.user("followUp/0", { messages: [user("more")] });
	await session.answer("tool/c1", { result: text("A") });
	const drained = session.outputs.filter((o) => o.type === "call" && o.answer?.messages?.length > 0);
	assert.deepEqual(
		drained.map((o) => [o.name.split("/")[1], ...o.answer.messages.map((m) => m.content[0].text)]),
		[["getSteeringMessages", "left"], ["getSteeringMessages", "right"], ["getFollowUpMessages", "more"]],
	);
	assert.deepEqual(drained[0].payload, {});
	await session.user("steer/1", { messages: [user("kept")] });
	const polls = () => session.story().filter((line) => line.includes("getSteering")).length;
	const before = polls();
	const out = await session.user("continue/0");
	assert.ok(out.includes("message_end user") && out.includes("settled continue/0 ok"));
	assert.equal(polls() - before, 1); // at the end of its one turn: what continue drains is no poll
	await session.user("steer/2", { messages: [user("dropped")] });
	await session.user("clearQueue/0");
	assert.match((await session.user("continue/1"))[0], /^settled continue\/1 refused/);
});

test("arguments are prepared for the call that they belong to", { skip: older("0.64.0") }, async () => {
	const done = turn("", "c1:a", "c2:a", "c1:a");
	done[1].event.message.content.forEach((block, i) => (block.arguments = { i }));
	const config = { tools: [{ name: "a", prepareArguments: true, parameters: { type: "object", properties: { i: { type: "number" } } } }] };
	const script = { model: [{ steps: done }], hooks: { prepareArguments: { answers: { c2: { value: { args: { i: 20 } } } } } } };
	const session = await client.open({ config, script });
	await session.user("prompt/0", prompt("go"));
	const args = (name) => at(session, name).payload.args ?? at(session, name).payload.rawArgs;
	assert.deepEqual(args("hook/prepareArguments/c1"), { i: 0 });
	assert.deepEqual(args("hook/prepareArguments/c1~1"), { i: 2 });
	assert.deepEqual(args("tool/c1"), { i: 0 });
	assert.deepEqual(args("tool/c2"), { i: 20 });
	assert.deepEqual(args("tool/c1~1"), { i: 2 });
});

test("what hooks answer reaches the loop", { skip: older("0.67.68") }, async () => {
	const config = { hooks: { beforeToolCall: "auto", afterToolCall: "auto", convertToLlm: "auto" } };
	const hooks = {
		beforeToolCall: { answers: { c2: { value: { block: true, reason: "not that" } } } },
		afterToolCall: { answers: { c1: { value: { content: [{ type: "text", text: "changed" }], isError: true } } } },
		convertToLlm: { else: { value: { without: ["user"] } } },
	};
	const session = await client.open({ config, script: { model: [{ steps: BATCH }], hooks } });
	await session.user("prompt/0", prompt("go"));
	const { messages } = at(session, "model/1").payload;
	assert.deepEqual(messages.slice(-2), ["toolResult c1 error: changed", "toolResult c2 error: not that"]);
	assert.ok(!messages.some((tag) => tag.startsWith("user")));
	const after = at(session, "hook/afterToolCall/c1").payload;
	assert.deepEqual([after.isError, after.result, after.signal], [false, text("rc1"), true]);
});

test("the hook that prepares a turn changes context, model, level and prompt", { skip: older("0.84.1") }, async () => {
	const hook = since("0.87.0") ? "prepareRequest" : "prepareNextTurn";
	const value = { drop: 1, append: [user("new")], systemPrompt: "other", model: "scripted-2", level: "high" };
	const key = since("0.87.0") ? "1" : "0";
	const config = { systemPrompt: "first", hooks: { [hook]: "auto" } };
	const session = await client.open({ config, script: { model: [{ steps: turn("", "c1:a") }], hooks: { [hook]: { answers: { [key]: { value } } } } } });
	await session.user("prompt/0", prompt("go"));
	const { payload } = at(session, "model/1");
	assert.equal(payload.model, "scripted-2");
	assert.equal(payload.level, "high");
	assert.equal(payload.systemPrompt, "other");
	assert.equal(payload.messages.at(-1), "user: new");
	const given = at(session, `hook/${hook}/${key}`).payload;
	assert.equal(given.context.at(-1), "toolResult c1: rc1");
});

test("the hooks around the end of a turn", { skip: older("0.87.0") }, async () => {
	const config = { hooks: { finishTurn: "gate", prepareNextTurn: "auto" } };
	const session = await client.open({ config, script: { hooks: { finishTurn: { gate: true } } } });
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(session.synced.waitingOn, ["hook/finishTurn/0"]);
	assert.deepEqual(at(session, "hook/finishTurn/0").payload.results, []);
	const out = await session.answer("hook/finishTurn/0", { hook: { action: "continue" } });
	assert.ok(out.includes("auto hook/prepareNextTurn/0"));
	assert.deepEqual(session.synced.waitingOn, ["hook/finishTurn/1"]);
	assert.equal((await session.answer("hook/finishTurn/1", { hook: {} })).at(-1), "settled prompt/0 ok");
});

test("an update listener that throws is logged and does not end the adapter", { skip: older("0.65.0") }, async () => {
	const config = { listeners: [{ throw: { tool_execution_update: "no" } }] };
	const script = { model: [{ steps: turn("", "c1:a") }], tools: { c1: { gate: true } } };
	const session = await client.open({ config, script });
	await session.user("prompt/0", prompt("go"));
	const out = await session.answer("tool/c1", { partial: text("x") });
	assert.deepEqual(out, ["tool_execution_update c1", "auto listener/0/tool_execution_update/c1/0", "log unhandled rejection: no"]);
	await session.close();
});

for (const form of ["loop", "stream"]) {
	test(`the ${form} form runs, keeps its transcript and drains its queues`, { skip }, async () => {
		const config = { systemPrompt: "be brief", apiKey: "k0", listeners: [{}] };
		const script = { model: [{ steps: turn("", "c1:a") }], tools: { c1: { gate: true } } };
		const session = await client.open({ form, config, script });
		await session.user("prompt/0", prompt("go"));
		assert.deepEqual(session.synced.waitingOn, ["tool/c1"]);
		await session.user("steer/0", { messages: [user("left")] });
		assert.match((await session.user("prompt/1", prompt("no")))[0], /^settled prompt\/1 refused/);
		const out = await session.answer("tool/c1", { result: text("A") });
		assert.equal(out.at(-1), "settled prompt/0 ok");
		const { payload } = at(session, "model/1");
		assert.deepEqual(payload.messages.slice(-2), ["toolResult c1: A", "user: left"]);
		assert.equal(payload.key, "k0");
		assert.equal(payload.systemPrompt, "be brief");
		assert.equal(session.outputs.find((o) => o.event).state, undefined);
		assert.match((await session.user("continue/0"))[0], /^settled continue\/0 refused: Cannot continue/);
		await session.user("prompt/2", prompt("again"));
		assert.deepEqual(at(session, "model/2").payload.messages.slice(-3), ["user: left", "assistant stop []: done", "user: again"]);
	});

	test(`a listener in the ${form} form ${form === "loop" ? "holds the loop back" : "does not"}`, { skip }, async () => {
		const session = await client.open({ form, config: { listeners: [{ gate: ["turn_start"] }] } });
		const story = await session.user("prompt/0", prompt("go"));
		assert.equal(story.includes("auto model/0"), form === "stream");
		assert.ok(!session.story().includes("message_start user"));
		const out = await session.answer("listener/0/turn_start/0", {});
		assert.equal(out.at(-1), "settled prompt/0 ok");
	});
}

test("many sessions at once do not mix", { skip }, async () => {
	const opened = await Promise.all([1, 2, 3].map(() => client.open({ script: { model: [{ gate: true }] } })));
	for (const session of opened) await session.user("prompt/0", prompt("go"));
	for (const session of opened.reverse()) {
		for (const step of turn("done")) await session.answer("model/0", step);
		assert.equal(session.story().at(-1), "settled prompt/0 ok");
	}
	assert.ok(client.outputs.every((output) => output.type !== "retained"));
});
