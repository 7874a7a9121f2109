// A user interface's view of a run, and the reducer that makes it of the loop's
// events. Nothing in here knows of pi-conform: it is what a user interface has.

export type Phase = "running" | "settling" | "idle";
export type Status = "preparing" | "running" | "done" | "error";

export interface Bubble {
	readonly turn: number;
	readonly text: string;
	readonly open: boolean;
}

export interface Tool {
	readonly id: string;
	readonly name: string;
	readonly args: unknown;
	readonly status: Status;
	readonly text: string;
}

export interface View {
	readonly phase: Phase;
	readonly turn: number;
	readonly bubbles: readonly Bubble[];
	readonly tools: readonly Tool[];
}

interface Content {
	readonly type: string;
	readonly text?: string;
}

interface Message {
	readonly role: string;
	readonly content?: string | readonly Content[];
}

/** An event of the loop, or `prompt_returned`: the promise of a run has settled. */
export interface Event {
	readonly type: string;
	readonly message?: Message;
	readonly assistantMessageEvent?: { readonly type: string };
	readonly toolCallId?: string;
	readonly toolName?: string;
	readonly args?: unknown;
	readonly partialResult?: { readonly content?: string | readonly Content[] };
	readonly result?: { readonly content?: string | readonly Content[] };
	readonly isError?: boolean;
}

export function start(): View {
	return { phase: "idle", turn: 0, bubbles: [], tools: [] };
}

export function reduce(view: View, event: Event): View {
	switch (event.type) {
		case "agent_start":
			return { ...view, phase: "running" };
		case "agent_end":
			return { ...view, phase: "settling" };
		case "prompt_returned":
			return { ...view, phase: "idle" };
		case "turn_start":
			return { ...view, turn: view.turn + 1 };
		case "message_start":
		case "message_update":
		case "message_end":
			return event.message?.role === "assistant" ? message(view, event, textOf(event.message.content)) : view;
		case "tool_execution_start":
			return started(view, event);
		case "tool_execution_update":
			return changed(view, event, { status: "running", text: textOf(event.partialResult?.content) });
		case "tool_execution_end":
			return changed(view, event, { status: event.isError ? "error" : "done", text: textOf(event.result?.content) });
		default:
			return view; // what is not known, and turn_end, which says nothing new
	}
}

function message(view: View, event: Event, text: string): View {
	if (event.type === "message_start") return { ...view, bubbles: [...view.bubbles, { turn: view.turn, text, open: true }] };
	if (event.type === "message_update" && event.assistantMessageEvent?.type !== "text_delta") return view;
	const last = view.bubbles.at(-1);
	if (!last) return view;
	const written = { ...last, text, open: event.type === "message_update" };
	return { ...view, bubbles: [...view.bubbles.slice(0, -1), written] };
}

function started(view: View, { toolCallId = "", toolName = "", args }: Event): View {
	const card: Tool = { id: toolCallId, name: toolName, args, status: "preparing", text: "" };
	const known = view.tools.some((tool) => tool.id === toolCallId);
	const tools = known ? view.tools.map((tool) => (tool.id === toolCallId ? card : tool)) : [...view.tools, card];
	return { ...view, tools };
}

// A call that nobody has started is not shown.
function changed(view: View, { toolCallId }: Event, change: Partial<Tool>): View {
	if (!view.tools.some((tool) => tool.id === toolCallId)) return view;
	return { ...view, tools: view.tools.map((tool) => (tool.id === toolCallId ? { ...tool, ...change } : tool)) };
}

function textOf(content: string | readonly Content[] | undefined): string {
	if (content === undefined || typeof content === "string") return content ?? "";
	return content
		.filter((block) => block.type === "text")
		.map((block) => block.text)
		.join("\n");
}
