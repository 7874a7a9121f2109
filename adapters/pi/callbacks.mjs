import { tag, tags } from "../js/index.mjs";

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

/** The model of that id, as the loop is told of it. */
export function scriptedModel(id) {
	return {
		id,
		name: id,
		api: "scripted",
		provider: "scripted",
		baseUrl: "",
		reasoning: true,
		input: ["text"],
		cost: NO_COST,
		contextWindow: 200_000,
		maxTokens: 8_192,
	};
}

/**
 * What both forms of the loop call: the stream function, the tools, and the
 * hooks that are configured, by the contract's names.
 */
export function callbacks(release, surroundings) {
	const context = contextEdits(release);
	return {
		streamFn: streamFunction(surroundings),
		tools: surroundings.config.tools.map((tool) => toolOf(tool, surroundings)),
		hooks: hooksOf(surroundings, context),
	};
}

function streamFunction(surroundings) {
	return (model, context, options) => {
		const payload = {
			model: model.id,
			level: options?.reasoning,
			key: options?.apiKey,
			systemPrompt: context.systemPrompt ?? systemPromptOf(context.messages),
			tools: (context.tools ?? declaredTools(context.messages)).map((tool) => tool.name),
			messages: tags(context.messages),
			signal: Boolean(options?.signal),
		};
		return surroundings.model(payload, options?.signal);
	};
}

function toolOf({ name, parameters, executionMode, prepareArguments }, surroundings) {
	return {
		name,
		label: name,
		description: name,
		parameters: schemaOf(parameters),
		...(executionMode && { executionMode }),
		...(prepareArguments && { prepareArguments: (args) => surroundings.prepareArguments(name, args) }),
		execute: (toolCallId, args, signal, onUpdate) =>
			surroundings.execute({ toolCallId, toolName: name, args, signal: Boolean(signal) }, signal, onUpdate),
	};
}

const schemas = new Map(); // by their JSON
const MOST_SCHEMAS = 1000;

// In a program a tool has one schema for as long as it lives, and the loop compiles
// a schema that it has not met. So the same schema is the same object in every session.
function schemaOf(parameters = { type: "object", properties: {} }) {
	const text = JSON.stringify(parameters);
	if (!schemas.has(text)) {
		if (schemas.size >= MOST_SCHEMAS) schemas.clear();
		schemas.set(text, parameters);
	}
	return schemas.get(text);
}

function hooksOf(surroundings, { edited, update }) {
	const hook = (name, key, payload, signal, make) => surroundings.hook(name, key, payload, signal, make);
	const all = {
		beforeToolCall: (c, signal) => hook("beforeToolCall", c.toolCall.id, ofCall(c, signal), signal, orNothing),
		afterToolCall: (c, signal) => {
			const payload = { ...ofCall(c, signal), result: c.result, isError: c.isError };
			return hook("afterToolCall", c.toolCall.id, payload, signal, orNothing);
		},
		transformContext: (messages, signal) => {
			const payload = { messages: tags(messages), signal: Boolean(signal) };
			return hook("transformContext", undefined, payload, signal, (answer) => edited(messages, answer));
		},
		convertToLlm: (messages) =>
			hook("convertToLlm", undefined, { messages: tags(messages) }, undefined, ({ without = [] }) =>
				messages.filter((message) => !without.includes(message.role)),
			),
		getApiKey: (provider) => hook("getApiKey", undefined, { provider }, undefined, (answer) => answer.key),
		prepareNextTurn: (turn, signal) =>
			hook("prepareNextTurn", undefined, ofTurn(turn), signal, (answer) => update(turn.context, answer)),
		shouldStopAfterTurn: (turn, signal) =>
			hook("shouldStopAfterTurn", undefined, ofTurn(turn), signal, (answer) => answer.stop === true),
		finishTurn: (turn, signal) => hook("finishTurn", undefined, ofTurn(turn), signal, orNothing),
		prepareRequest: (request, signal) =>
			hook("prepareRequest", undefined, ofRequest(request), signal, (answer) => update(request.context, answer)),
	};
	return Object.fromEntries(Object.entries(all).filter(([name]) => surroundings.hasHook(name)));
}

// The members that these hooks may be answered are named as the loop has them.
function orNothing(answer) {
	return Object.keys(answer).length > 0 ? answer : undefined;
}

function ofCall({ toolCall, args, assistantMessage, context }, signal) {
	return {
		toolCallId: toolCall.id,
		toolName: toolCall.name,
		rawArgs: toolCall.arguments,
		args,
		assistant: tag(assistantMessage),
		context: tags(context.messages),
		signal: Boolean(signal),
	};
}

function ofTurn({ message, toolResults, context }) {
	return {
		assistant: tag(message),
		results: toolResults.map((result) => result.toolCallId),
		context: tags(context.messages),
	};
}

function ofRequest({ context, model, thinkingLevel }) {
	return {
		context: tags(context.messages),
		model: model.id,
		level: thinkingLevel === "off" ? undefined : thinkingLevel,
	};
}

function contextEdits({ keepsSystemMessages }) {
	const withPrompt = keepsSystemMessages ? promptInMessages : promptInContext;
	return { edited, update };

	function edited(messages, { drop = 0, append = [] }) {
		return drop === 0 && append.length === 0 ? messages : [...messages.slice(drop), ...append];
	}

	// What a hook that prepares a request returns: only what the answer changes.
	function update(context, answer) {
		const { drop, append, systemPrompt, model, level, messages } = answer;
		let changed = context;
		if (drop || append?.length > 0) changed = { ...changed, messages: edited(context.messages, answer) };
		if (systemPrompt !== undefined) changed = withPrompt(changed, systemPrompt);
		return orNothing({
			...(changed !== context && { context: changed }),
			...(model !== undefined && { model: scriptedModel(model) }),
			...(level !== undefined && { thinkingLevel: level }),
			...(messages !== undefined && { messages }),
		});
	}
}

function promptInContext(context, systemPrompt) {
	return { ...context, systemPrompt };
}

// The prompt is what all system messages say together: the first says it now,
// the others keep only their tools.
function promptInMessages(context, systemPrompt) {
	const first = context.messages.findIndex((message) => message.role === "system");
	if (first < 0) return { ...context, messages: [systemMessage(systemPrompt), ...context.messages] };
	const messages = context.messages.map((message, i) => {
		if (message.role !== "system") return message;
		return { ...message, content: i === first ? systemPrompt : "" };
	});
	return { ...context, messages };
}

/** A system message that leads a transcript. */
export function systemMessage(systemPrompt) {
	return { role: "system", content: systemPrompt, timestamp: 0 };
}

function systemPromptOf(messages) {
	const texts = systemMessages(messages).map((message) => message.content);
	return texts.filter((text) => typeof text === "string" && text !== "").join("\n\n");
}

function declaredTools(messages) {
	const tools = new Map();
	for (const { toolsRemoved = [], toolsAdded = [] } of systemMessages(messages)) {
		for (const tool of toolsRemoved) tools.delete(tool.name);
		for (const tool of toolsAdded) tools.set(tool.name, tool);
	}
	return [...tools.values()];
}

function systemMessages(messages) {
	return messages.filter((message) => message.role === "system");
}
