import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const NAMES = ["@earendil-works/pi-agent-core", "@mariozechner/pi-agent-core"];

/**
 * The package in that directory, or else the one that a program in cwd would
 * get: its name, version and module.
 */
export async function loadPackage(directory, cwd) {
	const root = directory ? resolve(cwd, directory) : installedFrom(cwd);
	if (!root) throw new Error(`none of ${NAMES.join(", ")} is installed for ${cwd}; set PI_CONFORM_PACKAGE to the directory of one`);
	const manifest = await readManifest(root);
	const module = await import(pathToFileURL(join(root, entry(manifest))).href);
	return { name: manifest.name, version: manifest.version, module };
}

function installedFrom(directory) {
	const here = NAMES.map((name) => join(directory, "node_modules", name)).find((path) => existsSync(path));
	const parent = dirname(directory);
	return here ?? (parent === directory ? undefined : installedFrom(parent));
}

async function readManifest(root) {
	try {
		return JSON.parse(await readFile(join(root, "package.json"), "utf8"));
	} catch (error) {
		throw new Error(`no package in ${root}: ${error.message}`);
	}
}

function entry({ exports, main }) {
	const root = exports?.["."] ?? exports;
	return root?.import ?? root?.default ?? (typeof root === "string" ? root : main) ?? "dist/index.js";
}
