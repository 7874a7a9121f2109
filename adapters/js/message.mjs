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
			return ` ${message.stopReason ?? ""} [${toolCalls(message).map((call) => call.id).join(" ")}]`;
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

function plainText(content) {
	if (typeof content === "string") return content;
	return blocks(content)
		.filter((block) => block.type === "text")
		.map((block) => block.text ?? "")
		.join("\n");
}

function blocks(content) {
	return Array.isArray(content) ? content : [];
}
