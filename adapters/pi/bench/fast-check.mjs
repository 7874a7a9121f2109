// How fast the usual way is: fast-check's scheduler drives the npm loop in
// process. The scenario is that of the other benchmarks: three tools in parallel,
// two updates each, in any order; then an answer.
//
//	node fast-check.mjs <folder of the npm loop> <folder of fast-check> <runs>
//
// It prints one JSON object: {runs, cpuSeconds}.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const [loopFolder, fastCheckFolder, runs] = process.argv.slice(2);
const { Agent } = await load(loopFolder);
const { default: fc } = await load(fastCheckFolder);

async function load(folder) {
	const require = createRequire(path.join(folder, "package.json"));
	const { main, module, exports } = require("./package.json");
	const entry = exports?.["."]?.import?.default ?? exports?.["."]?.import ?? module ?? main;
	return import(pathToFileURL(path.join(folder, typeof entry === "string" ? entry : main)).href);
}

const MODEL = {
	id: "scripted-1", name: "scripted-1", api: "scripted", provider: "scripted", baseUrl: "", reasoning: true, input: ["text"],
	cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 200_000, maxTokens: 8_192,
};
const IDS = ["c1", "c2", "c3"];

function message(content, stopReason) {
	return { role: "assistant", content, api: "scripted", provider: "scripted", model: "scripted-1", stopReason, timestamp: 0 };
}

function streamOf(final) {
	const events = [
		{ type: "start", partial: message([], "stop") },
		{ type: "done", reason: final.stopReason, message: final },
	];
	return {
		async *[Symbol.asyncIterator]() {
			yield* events;
		},
		result: async () => final,
	};
}

async function once(s) {
	let turn = 0;
	const log = [];
	const tool = {
		name: "a", label: "a", description: "a", parameters: { type: "object", properties: {} },
		execute: async (id, _args, _signal, onUpdate) => {
			for (let n = 0; n < 2; n++) {
				await s.schedule(Promise.resolve(), `${id} update ${n}`);
				onUpdate({ content: [{ type: "text", text: `u${id}` }] });
			}
			await s.schedule(Promise.resolve(), `${id} return`);
			return { content: [{ type: "text", text: `r${id}` }] };
		},
	};
	const agent = new Agent({
		initialState: { systemPrompt: "", model: MODEL, thinkingLevel: "off", tools: [tool], messages: [] },
		streamFn: () => {
			if (turn++ > 0) return streamOf(message([{ type: "text", text: "done" }], "stop"));
			return streamOf(message(IDS.map((id) => ({ type: "toolCall", id, name: "a", arguments: {} })), "toolUse"));
		},
	});
	agent.subscribe((event) => {
		log.push({ event, pending: [...agent.state.pendingToolCalls], streaming: agent.state.isStreaming });
	});
	const run = agent.prompt("go");
	await s.waitFor(run);
	check(log, agent);
}

// What the rules check that this scenario exercises most.
function check(log, agent) {
	const types = log.map(({ event }) => event.type);
	expect(types[0] === "agent_start" && types[1] === "turn_start", "the run begins");
	expect(types.at(-1) === "agent_end" && types.filter((type) => type === "agent_end").length === 1, "the run ends");
	const open = new Set();
	const ended = new Set();
	const results = [];
	let updates = 0;
	for (const { event, pending } of log) {
		switch (event.type) {
			case "tool_execution_start":
				open.add(event.toolCallId);
				expect(pending.includes(event.toolCallId), "pending has it");
				break;
			case "tool_execution_update":
				expect(open.has(event.toolCallId) && !ended.has(event.toolCallId), "an update lies within its call");
				updates++;
				break;
			case "tool_execution_end":
				expect(open.has(event.toolCallId) && !event.isError, "it was started");
				expect(!pending.includes(event.toolCallId), "pending no longer has it");
				ended.add(event.toolCallId);
				break;
			case "message_end":
				if (event.message.role !== "toolResult") break;
				expect(ended.size === IDS.length, "no result before the last end");
				results.push(event.message.toolCallId);
				break;
			case "turn_end":
				if (event.toolResults.length > 0) expect(String(event.toolResults.map((r) => r.toolCallId)) === String(IDS), "the turn's results");
		}
	}
	expect(updates === 6, "every update");
	expect(String(results) === String(IDS), "results in source order");
	expect(!agent.state.isStreaming && agent.state.pendingToolCalls.size === 0, "idle");
}

function expect(ok, what) {
	if (!ok) throw new Error(what);
}

const property = fc.asyncProperty(fc.scheduler(), once);
await fc.assert(property, { numRuns: Math.min(200, Number(runs)), seed: 1 }); // warm
const before = process.cpuUsage();
await fc.assert(property, { numRuns: Number(runs), seed: 2 });
const used = process.cpuUsage(before);
console.log(JSON.stringify({ runs: Number(runs), cpuSeconds: (used.user + used.system) / 1e6 }));
