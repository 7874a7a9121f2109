import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { editionFor, Lines, ProtocolError, tag } from "../index.mjs";
import { Client, prompt, text, turn } from "./client.mjs";

const toy = fileURLToPath(new URL("toy.mjs", import.meta.url));
const client = new Client(toy);
after(() => client.end());

test("tags are those of the trace format", () => {
	const calls = [{ type: "text", text: "let me" }, { type: "toolCall", id: "c1" }, { type: "text", text: "look" }, { type: "toolCall", id: "c2" }];
	assert.equal(tag({ role: "user", content: "go" }), "user: go");
	assert.equal(tag({ role: "assistant", stopReason: "toolUse", content: calls }), "assistant toolUse [c1 c2]: let me\nlook");
	assert.equal(tag({ role: "assistant", content: [] }), "assistant  []: ");
	assert.equal(tag({ role: "toolResult", toolCallId: "c2", isError: true, content: [{ type: "text", text: "no" }] }), "toolResult c2 error: no");
	assert.equal(tag({ role: "note" }), "note: ");
});

test("lines are cut at LF, a CR before it goes, and what is no object is an error", () => {
	const lines = new Lines();
	assert.deepEqual(lines.push(Buffer.from('{"a":1}\r\n{"b"')), [{ a: 1 }]);
	assert.deepEqual(lines.push(Buffer.from(":2}\n")), [{ b: 2 }]);
	for (const bad of [Buffer.from("hello\n"), Buffer.from("[1]\n"), Buffer.from([0x22, 0xff, 0x22, 0x0a])]) {
		const [error] = lines.push(bad);
		assert.ok(error instanceof ProtocolError);
		assert.equal(error.code, "malformed");
	}
	assert.deepEqual(lines.push(Buffer.from("{}\n")), [{}]);
});

test("a bad line among good ones costs no other, and is told by its number", () => {
	const lines = new Lines();
	const [first, error, last] = lines.push(Buffer.from('{"a":1}\nhello\n{"b":2}\n{"c"'));
	assert.deepEqual([first, last], [{ a: 1 }, { b: 2 }]);
	assert.match(error.message, /^line 2: /);
	assert.deepEqual(lines.push(Buffer.from(':"ü"}\n{}\n')), [{ c: "ü" }, {}]);
	assert.match(lines.push(Buffer.from("[]\n"))[0].message, /^line 6: /);
});

test("a line that is too long is refused and not kept", () => {
	const lines = new Lines();
	const chunk = Buffer.alloc(1024 * 1024, "x");
	for (let i = 0; i < 20; i++) assert.deepEqual(lines.push(chunk), []);
	assert.match(lines.push(Buffer.from("\n"))[0].message, /16 MiB/);
	assert.deepEqual(lines.push(Buffer.from("{}\n")), [{}]);
});

test("the edition is the newest that is not newer than the release", () => {
	assert.equal(editionFor("1.6.0", ["0.84.3", "1.6"]), "1.6");
	assert.equal(editionFor("1.5.9", ["1.6", "0.84.3"]), "0.84.3");
	assert.equal(editionFor("0.73.1", ["0.84.3", "1.6"]), "0.84.3");
});

test("the handshake names subject, editions, barrier and capabilities", async () => {
	const reply = await client.hello();
	assert.equal(reply.type, "helloOk");
	assert.equal(reply.nonce, "n1");
	assert.equal(reply.protocol, 1);
	assert.equal(reply.barrier, "quiescent");
	assert.deepEqual(reply.subject, { name: "toy", version: "1.0.0", language: "javascript" });
	assert.equal((await client.send({ type: "hello", protocol: [7] })).code, "version");
});

test("what is not known is answered with an error, and nothing breaks", async () => {
	assert.equal((await client.send({ type: "x_random" })).code, "unsupported");
	assert.equal((await client.send({ type: "constructor" })).code, "unsupported");
	assert.equal((await client.send({ type: "sync", session: "none" })).code, "session");
	assert.equal((await client.send({ type: "open", session: "x", form: "loop" })).code, "unsupported");
	const hooked = { type: "open", session: "x", form: "agent", config: { hooks: { finishTurn: "auto" } } };
	assert.match((await client.send(hooked)).message, /hooks:finishTurn/);
	const session = await client.open();
	await session.user("sing/0");
	assert.equal(session.reply.code, "unsupported");
	await session.answer("tool/c1", { result: text("?") });
	assert.equal(session.reply.code, "call");
	assert.equal((await session.close()).type, "ok");
});

test("nothing waits that is not gated", async () => {
	const session = await client.open({ script: { model: [{ steps: turn("", "c1:a") }] } });
	assert.deepEqual(await session.user("prompt/0", prompt("go")), [
		"agent_start",
		"auto model/0",
		"read model/0 0",
		"message_start assistant",
		"read model/0 1",
		"read model/0 2",
		"message_end assistant",
		"auto hook/prepareArguments/c1",
		"auto tool/c1",
		"tool_execution_end c1",
		"agent_end",
		"settled prompt/0 ok",
		"retained [2]",
	]);
	assert.deepEqual(session.synced.waitingOn, []);
	assert.equal(session.synced.idle, true);
	assert.equal(session.synced.events, 5);
	const end = session.outputs.find((output) => output.event?.type === "tool_execution_end");
	assert.deepEqual(end.event.result, text("rc1"));
});

test("a gated model, tool and listener each wait for their answers", async () => {
	const config = { listeners: [{ gate: ["tool_execution_end/c1"], throw: { agent_end: "no" } }] };
	const script = { model: [{ gate: true }], tools: { c1: { gate: true, sync: [text("at once")] } } };
	const session = await client.open({ config, script });
	const [start, done] = turn("", "c1:a");
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(session.synced.waitingOn, ["model/0"]);
	assert.deepEqual(await session.answer("model/0", start), ["read model/0 0", "message_start assistant", "auto listener/0/message_start/assistant/0", "read model/0 1"]);
	await session.answer("model/0", done);
	assert.deepEqual(session.synced.waitingOn, ["tool/c1"]);
	const call = session.outputs.find((output) => output.name === "tool/c1");
	assert.deepEqual(call.answer, { sync: [text("at once")] });
	assert.deepEqual(await session.answer("tool/c1", { partial: text("half") }), ["tool_execution_update c1", "auto listener/0/tool_execution_update/c1/1"]);
	assert.deepEqual(await session.answer("tool/c1", { result: text("whole") }), ["tool_execution_end c1", "call listener/0/tool_execution_end/c1/0"]);
	assert.deepEqual(await session.answer("tool/c1", { partial: text("late") }), ["tool_execution_update c1", "auto listener/0/tool_execution_update/c1/2"]);
	const end = await session.answer("listener/0/tool_execution_end/c1/0", {});
	assert.deepEqual(end, ["agent_end", "auto listener/0/agent_end/0", "settled prompt/0 error: no"]);
	const delivery = session.outputs.find((output) => output.name === "listener/0/tool_execution_end/c1/0");
	assert.deepEqual(delivery.payload, { event: 5, signal: true });
});

test("a throw before the first event fails the stream function itself", async () => {
	const session = await client.open({ script: { model: [{ gate: true }] } });
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(await session.answer("model/0", { throw: "net down" }), ["settled prompt/0 error: net down"]);
	const auto = await client.open({ script: { model: [{ steps: [{ throw: "net down" }] }] } });
	assert.deepEqual((await auto.user("prompt/0", prompt("go"))).slice(1), ["auto model/0", "settled prompt/0 error: net down"]);
});

test("a stream that ends without done has its result, and one can throw half-way", async () => {
	const [start, done] = turn("hi");
	const silent = await client.open({ script: { model: [{ steps: [start, { ends: true, final: done.event.message }] }] } });
	assert.equal((await silent.user("prompt/0", prompt("go"))).at(-2), "settled prompt/0 ok");
	const broken = await client.open({ script: { model: [{ steps: [start, { throw: "cut off" }] }] } });
	assert.equal((await broken.user("prompt/0", prompt("go"))).at(-1), "settled prompt/0 error: cut off");
});

test("refused is told from failed", async () => {
	const session = await client.open({ script: { model: [{ gate: true }] } });
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(await session.user("prompt/1", prompt("again")), ["settled prompt/1 refused: busy"]);
	assert.deepEqual(await session.user("continue/0"), ["settled continue/0 refused: nothing to continue"]);
	assert.deepEqual(await session.user("reset/0"), ["settled reset/0 refused: busy"]);
	assert.deepEqual(await session.user("waitForIdle/0"), ["settled waitForIdle/0 ok"]);
	assert.equal((await session.close()).type, "ok");
});

test("an abort is seen at each callback that waits, once, and aborts the requests that follow", async () => {
	const session = await client.open({ script: { model: [{ steps: turn("", "c1:a") }], tools: { c1: { gate: true } } } });
	await session.user("prompt/0", prompt("go"));
	assert.deepEqual(await session.user("abort"), ["cancelled tool/c1"]);
	assert.deepEqual(await session.user("abort/1"), []);
	await session.answer("tool/c1", { throw: "stopped" });
	assert.equal(session.story().at(-1), "settled prompt/0 error: stopped");
});

test("an automatic tool can abort, make updates and throw, in that order", async () => {
	const config = { listeners: [{ gate: [] }] };
	const script = { model: [{ steps: turn("", "c1:a") }], tools: { c1: { sync: [text("1")], throw: "no", abort: true } } };
	const session = await client.open({ config, script });
	await session.user("prompt/0", prompt("go"));
	const call = session.outputs.find((output) => output.name === "tool/c1");
	assert.deepEqual(call.answer, { sync: [text("1")], throw: "no", abort: true });
	assert.ok(session.story().includes("tool_execution_update c1"));
	assert.equal(session.story().at(-1), "settled prompt/0 error: no");
});

test("a rejection in the background is logged, and the adapter lives on", async () => {
	const session = await client.open({ script: { model: [{ steps: turn("", "c1:a") }], tools: { c1: { gate: true } } } });
	await session.user("prompt/0", prompt("go"));
	const out = await session.answer("tool/c1", { partial: { ...text("x"), details: "reject" } });
	assert.deepEqual(out, ["tool_execution_update c1", "log unhandled rejection: in the background"]);
	await session.close();
});

test("listeners come and go, and the same one counts once", async () => {
	const session = await client.open({ config: { listeners: [{ late: true }] }, script: {} });
	await session.user("prompt/0", prompt("go"));
	assert.ok(!session.story().some((line) => line.includes("listener/0")));
	await session.user("subscribe/0", { listener: 0 });
	await session.user("subscribe/1", { listener: 0 });
	const story = await session.user("prompt/1", prompt("again"));
	assert.equal(story.filter((line) => line === "auto listener/0/agent_start/0").length, 1);
	await session.user("unsubscribe/0", { listener: 0 });
	assert.ok(!(await session.user("prompt/2", prompt("again"))).some((line) => line.includes("listener/0")));
	await session.user("subscribe/2", { listener: 3 });
	assert.equal(session.reply.code, "malformed");
});

test("a schedule may be written ahead", async () => {
	const script = { model: [{ gate: true }], tools: { c1: { gate: true } } };
	const session = await client.open({ script });
	const [start, done] = turn("", "c1:a");
	const messages = [
		{ type: "user", name: "prompt/0", kind: "prompt", answer: prompt("go") },
		{ type: "answer", call: "model/0", answer: start },
		{ type: "answer", call: "model/0", answer: done },
		{ type: "answer", call: "tool/c1", answer: { result: text("x") } },
	];
	const replies = messages.flatMap((message) => [client.send({ ...message, session: session.id }), session.sync()]);
	const synced = (await Promise.all(replies)).filter((reply) => reply.type === "synced");
	assert.deepEqual(synced.map((reply) => reply.waitingOn), [["model/0"], ["model/0"], ["tool/c1"], []]);
	assert.deepEqual(synced.map((reply) => reply.idle), [false, false, false, true]);
});

test("close answers what waits with an error, and is silent", async () => {
	const session = await client.open({ script: { model: [{ gate: true }] } });
	await session.user("prompt/0", prompt("go"));
	const before = session.outputs.length;
	assert.equal((await session.close()).type, "ok");
	assert.equal((await client.send({ type: "sync", session: session.id })).code, "session");
	assert.equal(session.outputs.length, before);
});

test("what the loop prints goes to standard error, and bye ends the process", async () => {
	assert.match(client.stderr, /not a protocol line/);
	client.raw("not json\n");
	assert.equal((await client.send({ type: "bye" })).type, "ok");
	assert.equal(await client.exited, 0);
});

test("a reader that is slow loses nothing", async () => {
	const slow = new Client(toy);
	await slow.hello();
	const session = await slow.open({});
	slow.pause(200); // the pipe fills up long before
	await session.user("prompt/0", prompt("ü".repeat(1 << 20)));
	const [start] = session.outputs.filter((output) => output.event?.type === "agent_start");
	assert.ok(start);
	assert.ok(slow.stdout.length > 1 << 20);
	slow.end();
	assert.equal(await slow.exited, 0);
});

test("a message without an id is answered with JSON all the same", async () => {
	const other = new Client(toy);
	other.raw('{"type":"bye"}\n');
	assert.equal(await other.exited, 0);
	assert.equal(other.stdout, '{"type":"ok"}\n');
});

test("the end of input ends the process", async () => {
	const other = new Client(toy);
	await other.hello();
	const before = other.stdout;
	other.end();
	assert.equal(await other.exited, 0);
	assert.equal(other.stdout, before);
});
