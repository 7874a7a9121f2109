// The adapter library for JavaScript and TypeScript. An adapter program is
//
//	import { serve } from "./index.mjs";
//	serve({ subject, editions, capabilities, open(surroundings) { … return loop } });
//
// Read serve.mjs for what is said on standard input and output, and
// surroundings.mjs for what the loop's callbacks meet.

export { ProtocolError, Refused } from "./errors.mjs";
export { Lines } from "./lines.mjs";
export { tag, tags } from "./message.mjs";
export { compareReleases, editionFor } from "./release.mjs";
export { Server, serve } from "./serve.mjs";
export { Surroundings } from "./surroundings.mjs";
