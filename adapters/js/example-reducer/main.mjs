// Lets the harness judge the reducer of a user interface:
//
//	node main.mjs
//
// The reducer is TypeScript, which Node runs as it is from 22.18 on.
import { serve } from "../index.mjs";
import { reduce, start } from "./reducer.mts";

serve({
	subject: { name: "example-reducer", version: "1.0.0", language: "typescript" },
	editions: ["0.84.3", "1.6"],
	capabilities: ["reducer"],
	reducer: { start, reduce },
});
