// A client made with the public library: it opens a session, prompts, cancels and
// loads, and prints what it has seen as one line of JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const { methods } = acp;

let seen = [];
let cancelOn = null;
const take = () => { const all = seen; seen = []; return all; };

const result = await acp.client({ name: "client" })
  .onNotification(methods.client.session.update, ({ params }) => {
    seen.push(params.update);
    if (cancelOn && params.update.status === "in_progress") { cancelOn(); cancelOn = null; }
  })
  .connectWith(stream, async (ctx) => {
    const initialized = await ctx.request(methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    const { sessionId } = await ctx.request(methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
    const prompt = { sessionId, prompt: [{ type: "text", text: "go" }] };
    const first = await ctx.request(methods.agent.session.prompt, prompt);
    const live = take();
    cancelOn = () => ctx.notify(methods.agent.session.cancel, { sessionId });
    const second = await ctx.request(methods.agent.session.prompt, prompt);
    const cancelled = take();
    await ctx.request(methods.agent.session.load, { sessionId, cwd: process.cwd(), mcpServers: [] });
    return { version: initialized.protocolVersion, first: first.stopReason, second: second.stopReason, live, cancelled, replay: take() };
  });
console.log(JSON.stringify(result));
agent.stdin.end();
