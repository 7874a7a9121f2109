/** Compares two dotted versions: negative if a is older than b. */
export function compareReleases(a, b) {
	const [left, right] = [numbers(a), numbers(b)];
	const at = left.findIndex((n, i) => n !== right[i]);
	return at < 0 ? 0 : left[at] - right[at];
}

/**
 * The edition in which a release is to be judged: the newest offered one that is
 * not newer than the release, or the oldest.
 */
export function editionFor(release, offered) {
	const known = [...offered].sort(compareReleases);
	return known.filter((edition) => compareReleases(edition, release) <= 0).at(-1) ?? known[0] ?? release;
}

function numbers(version) {
	const parts = version.split(".").map((part) => Number.parseInt(part, 10) || 0);
	return [0, 1, 2].map((i) => parts[i] ?? 0);
}
