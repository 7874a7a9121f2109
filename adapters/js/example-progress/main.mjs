// Lets the harness judge a registry of executions that tells of their progress:
//
//	pi-conform run -- node main.mjs
//
// A word after it plants a defect; see registry.mjs and bridge.mjs for what there is.
import { serve } from "../index.mjs";
import { Registry } from "./registry.mjs";

serve({
	subject: { name: "example-progress", version: "1.0.0", language: "javascript" },
	editions: ["0.84.3", "1.6"],
	capabilities: ["progress", "progress:announce", "progress:bridge"],
	progress: (surroundings) => new Registry(surroundings, process.argv[2]),
});
