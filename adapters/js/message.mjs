/**
 * A short description of a message that is the same in every language:
 *
 *	user: go
 *	assistant toolUse [c1 c2]: let me look
 *	toolResult c2 error: no such file
 */
export function tag(message) {
	return `${message.role}${details(message)}: ${plainText(message.content)}`;
}

/** The tags of all messages, in order. */
export function tags(messages) {
	return (messages ?? []).map(tag);
}

function details(message) {
	switch (message.role) {
		case "assistant":
			return ` ${message.stopReason ?? ""} [${callIds(message)}]`;
		case "toolResult":
			return ` ${message.toolCallId ?? ""}${message.isError ? " error" : ""}`;
		default:
			return "";
	}
}

/** The tool call blocks of a message, in source order. */
export function toolCalls(message) {
	return blocks(message.content).filter((block) => block.type === "toolCall");
}

// Tags are made for every event: so without lists in between.

function callIds(message) {
	let ids = "";
	for (const block of blocks(message.content)) {
		if (block.type === "toolCall") ids += ids === "" ? block.id : ` ${block.id}`;
	}
	return ids;
}

function plainText(content) {
	if (typeof content === "string") return content;
	let text;
	for (const block of blocks(content)) {
		if (block.type === "text") text = text === undefined ? (block.text ?? "") : `${text}\n${block.text ?? ""}`;
	}
	return text ?? "";
}

const NO_BLOCKS = [];

function blocks(content) {
	return Array.isArray(content) ? content : NO_BLOCKS;
}
