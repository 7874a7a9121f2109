/**
 * A copy of a value that came as JSON. Loops change what they are given, so every
 * use of a scripted value gets one; structuredClone would cost ten times as much.
 */
export function copyOf(value) {
	if (typeof value !== "object" || value === null) return value;
	if (Array.isArray(value)) return value.map(copyOf);
	const copy = { ...value };
	for (const key of Object.keys(copy)) {
		const member = copy[key];
		if (typeof member === "object") copy[key] = copyOf(member);
	}
	return copy;
}
