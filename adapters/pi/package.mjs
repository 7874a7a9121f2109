import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * The package in that directory, or else the first of those names that a program
 * in cwd would get: its name, version, root directory and module.
 */
export async function loadPackage(directory, cwd, names) {
	const root = directory ? resolve(cwd, directory) : installedFrom(cwd, names);
	if (!root) throw new Error(`none of ${names.join(", ")} is installed for ${cwd}; set PI_CONFORM_PACKAGE to the directory of one`);
	const manifest = await readManifest(root);
	const module = await import(pathToFileURL(join(root, entry(manifest))).href);
	return { name: manifest.name, version: manifest.version, root, module };
}

function installedFrom(directory, names) {
	const here = names.map((name) => join(directory, "node_modules", name)).find((path) => existsSync(path));
	const parent = dirname(directory);
	return here ?? (parent === directory ? undefined : installedFrom(parent, names));
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
