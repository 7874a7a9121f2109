#!/usr/bin/env bun
// Joins oh-my-pi's loop, @oh-my-pi/pi-agent-core, to pi-conform. The package is the
// one in the directory PI_CONFORM_PACKAGE, or else the one that is installed where
// the program was started. It is published as TypeScript and runs on Bun alone.

import { editionFor, serve } from "../js/index.mjs";
import { loadPackage } from "../pi/package.mjs";
import { AgentForm } from "./agent.mjs";
import { busy, host } from "./host.mjs";

const NAMES = ["@oh-my-pi/pi-agent-core"];

// The loop was forked before the contract had editions, and its own version numbers
// say nothing of them: it is judged by the one that the documents describe.
const FOLLOWS = "0.84.3";

// What the contract asks and the agent does not have is not declared: no hook
// prepares arguments of a tool, the next turn or a request, none stops a run or finishes a
// turn, and nobody outside sees when a queue is polled.
const CAPABILITIES = [
	"state",
	"reads",
	"listeners",
	"signals",
	"retained",
	"hooks:beforeToolCall",
	"hooks:afterToolCall",
	"hooks:transformContext",
	"hooks:convertToLlm",
	"hooks:getApiKey",
	"forms:agent",
];

const found = await loadPackage(process.env.PI_CONFORM_PACKAGE, process.cwd(), NAMES).catch((error) => {
	process.stderr.write(`pi-conform: ${error.message}\n`);
	process.exit(2);
});
await host(found);

serve({
	subject: { name: found.name, version: found.version, language: "typescript" },
	editions: (offered) => [editionFor(FOLLOWS, offered)],
	capabilities: CAPABILITIES,
	busy,
	open: (surroundings) => new AgentForm(found.module, surroundings),
});
