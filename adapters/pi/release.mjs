import { compareReleases } from "../js/index.mjs";
import { scriptedModel } from "./callbacks.mjs";

// Hooks that every release has had since the batch became parallel.
const ALWAYS = ["beforeToolCall", "afterToolCall", "transformContext", "convertToLlm", "getApiKey"];

// Hooks that came or went, by the option of the agent that gives them in the
// form in which the contract needs them. An older prepareNextTurn is not given
// the turn that it follows.
const BY_OPTION = {
	prepareNextTurn: "prepareNextTurnWithContext",
	shouldStopAfterTurn: "shouldStopAfterTurn",
	finishTurn: "finishTurn",
	prepareRequest: "prepareRequest",
};

// A tool's prepareArguments is seen by no property of an agent.
const PREPARES_ARGUMENTS = "0.64.0";

/** What a release of the loop has, found by looking at an agent of it. */
export function releaseOf({ module, version }) {
	const probe = new module.Agent({
		initialState: { model: scriptedModel("probe"), systemPrompt: "probe", thinkingLevel: "off", tools: [], messages: [] },
		streamFn: () => {},
	});
	const keepsSystemMessages = probe.state.messages[0]?.role === "system";
	const hooks = [...ALWAYS, ...Object.keys(BY_OPTION).filter((hook) => BY_OPTION[hook] in probe)];
	if (compareReleases(version, PREPARES_ARGUMENTS) >= 0) hooks.push("prepareArguments");
	const polls = pollOf(probe, "steering") && pollOf(probe, "followUp");
	return { module, keepsSystemMessages, capabilities: capabilities(module, hooks, polls) };
}

function capabilities(module, hooks, polls) {
	const forms = ["agent"];
	if (module.runAgentLoop && module.runAgentLoopContinue) forms.push("loop");
	if (module.agentLoop && module.agentLoopContinue) forms.push("stream");
	return [
		"state",
		...(polls ? ["polls"] : []),
		"reads",
		"listeners",
		"signals",
		"retained",
		...hooks.map((hook) => `hooks:${hook}`),
		...forms.map((form) => `forms:${form}`),
	];
}

/** Where an agent drains one of its queues: an object and the name of its method, if they are there. */
export function pollOf(agent, queue) {
	if (typeof agent[`${queue}Queue`]?.drain === "function") return [agent[`${queue}Queue`], "drain"];
	const older = queue === "steering" ? "dequeueSteeringMessages" : "dequeueFollowUpMessages";
	return typeof agent[older] === "function" ? [agent, older] : undefined;
}
