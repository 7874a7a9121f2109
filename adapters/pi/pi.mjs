#!/usr/bin/env node
// Joins the npm loop, @earendil-works/pi-agent-core or @mariozechner/pi-agent-core,
// to pi-conform. The package is the one in the directory PI_CONFORM_PACKAGE, or
// else the one that is installed where the program was started.

import { editionFor, serve } from "../js/index.mjs";
import { AgentForm } from "./agent.mjs";
import { LowLevelForm } from "./lowlevel.mjs";
import { loadPackage } from "./package.mjs";
import { releaseOf } from "./release.mjs";

const NAMES = ["@earendil-works/pi-agent-core", "@mariozechner/pi-agent-core"];

const found = await loadPackage(process.env.PI_CONFORM_PACKAGE, process.cwd(), NAMES).catch((error) => {
	process.stderr.write(`pi-conform: ${error.message}\n`);
	process.exit(2);
});
const release = releaseOf(found);

serve({
	subject: { name: found.name, version: found.version, language: "javascript" },
	editions: (offered) => [editionFor(found.version, offered)],
	capabilities: release.capabilities,
	open: (surroundings) =>
		surroundings.form === "agent" ? new AgentForm(release, surroundings) : new LowLevelForm(release, surroundings),
});
