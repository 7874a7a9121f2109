/** A message of a transcript, such as `{role: "user", content: "go"}`. Its shape is the loop's own. */
export interface Message {
	role: string;
	content?: unknown;
	[member: string]: unknown;
}

/** A tool result, final or partial. */
export interface Result {
	content?: unknown;
	details?: unknown;
	[member: string]: unknown;
}

/** An event of the loop, as its listeners get it. */
export interface Event {
	type: string;
	[member: string]: unknown;
}

/** What a hook is answered. Every member may be absent; `{}` stands for «nothing». */
export interface HookAnswer {
	block?: boolean; // beforeToolCall
	reason?: string;
	terminate?: boolean; // beforeToolCall, afterToolCall
	content?: unknown; // afterToolCall: each replaces the whole of what the tool gave
	details?: unknown;
	usage?: unknown;
	isError?: boolean;
	args?: unknown; // prepareArguments
	drop?: number; // context edits: messages taken off the front …
	append?: Message[]; // … and then added at the end
	without?: string[]; // convertToLlm: roles left out
	systemPrompt?: string; // prepareNextTurn, prepareRequest
	model?: string;
	level?: string;
	messages?: Message[]; // prepareNextTurn
	stop?: boolean; // shouldStopAfterTurn
	action?: "end" | "continue"; // finishTurn
	key?: string; // getApiKey
	continue?: boolean; // compact
}

/** What a callback was given: see the table of payloads in docs/PROTOCOL.md. */
export type Payload = Record<string, unknown>;

/** What a model request reads from: events, and the message that they come to. */
export interface ModelStream<StreamEvent = any, Final = any> extends AsyncIterable<StreamEvent> {
	result(): Promise<Final>;
}

/** The agent's own state. */
export interface State {
	isStreaming: boolean;
	pendingToolCalls?: Iterable<string>; // a Set is also compared after the run, if `retained` is declared
	messages: readonly Message[];
	streamingMessage?: { role: string } | null;
	errorMessage?: string | null;
}

export type Listener = (event: any, signal?: AbortSignal) => void | Promise<void>;

/** The loop of one session, as the user sees it. */
export interface Loop {
	/** A promise that settles with the run. Throws or rejects if it is refused. */
	prompt(input: any[] | string, images?: any[]): Promise<unknown>;
	continue(): Promise<unknown>;
	waitForIdle(): Promise<unknown>;
	/** Throws if it is refused. */
	reset(): void;
	steer(message: any): void;
	followUp(message: any): void;
	abort(): void;
	clearQueue(): void;
	/** Registers a listener after the others and returns what takes it away again. */
	subscribe(listener: Listener): () => unknown;
	/** Whether a run is active. prompt and continue turn it on before they return. */
	isRunning(): boolean;
	/** The agent's state; a loop without one leaves the method out. */
	state?(): State;
}

/** One tool as the scenario has it. */
export interface ToolConfig {
	name: string;
	parameters?: object; // JSON Schema
	executionMode?: "sequential" | "parallel";
	prepareArguments?: boolean;
}

/** What a session is to be opened with. Absent members have their defaults. */
export interface Config {
	systemPrompt?: string;
	model?: string;
	thinkingLevel?: string; // off if absent
	apiKey?: string;
	toolExecution?: "parallel" | "sequential";
	steeringMode?: "one-at-a-time" | "all";
	followUpMode?: "one-at-a-time" | "all";
	tools: ToolConfig[];
	hooks: Record<string, "gate" | "auto">;
	listeners: { gate?: string[]; throw?: Record<string, string>; late?: boolean }[];
	messages: Message[];
	session?: { maxRetries?: number; baseDelayMs?: number; retryable?: string[]; compact?: string[] }; // form session
}

/** The surroundings of the loop in one session. */
export class Surroundings {
	readonly session: string;
	readonly form: "agent" | "loop" | "stream" | "session";
	readonly edition: string;
	readonly config: Config;
	/** How many events were recorded so far. */
	readonly events: number;
	/** Whether the hook is configured; one that is not must be absent from the loop. */
	hasHook(name: string): boolean;
	/** A request to the model. */
	model(payload: Payload, signal?: AbortSignal): Promise<ModelStream>;
	/** One execution of a tool; the payload has at least toolCallId and toolName. */
	execute(payload: Payload & { toolCallId: string }, signal?: AbortSignal, onUpdate?: (partial: any) => void): Promise<any>;
	/** One call of a hook; `key` is the tool call id of a hook that belongs to a call. */
	hook<T>(name: string, key: string | undefined, payload: Payload, signal: AbortSignal | undefined, make: (answer: HookAnswer) => T): Promise<T>;
	/** What prepareArguments of the tool returns. */
	prepareArguments(toolName: string, rawArgs: unknown): any;
	/** Reports a poll of a queue and returns what it gave. */
	polled<T>(hook: "getSteeringMessages" | "getFollowUpMessages", drained: T): T;
	/** The scenario's listener number i. Loops with `subscribe` do not need it. */
	listener(i: number): Listener;
	log(text: string): void;
}

/** What the user interface shows, so far as the contract says. Other members may be there. */
export interface View {
	phase: "running" | "settling" | "idle";
	turn: number;
	bubbles: { turn: number; text: string; open?: boolean }[];
	tools: { id: string; name: string; args?: unknown; status: "preparing" | "running" | "done" | "error"; text?: string }[];
}

/** A user interface's reducer, which needs no session: declare the capability `reducer`. */
export interface Reducer<V extends View = View> {
	/** The view before anything has happened. */
	start(): V;
	/** The view after an event of the loop, or after `{type: "prompt_returned"}`. Views go to the harness and back as JSON. */
	reduce(view: V, event: any): V;
}

/** Whose execution it is, as the registry says. */
export interface Identity {
	agent?: string;
	call: string;
	token: number; // never given twice
	parent?: number; // token of the execution inside which it runs
}

export interface Outcome {
	text: string;
	isError: boolean;
}

/** One execution of a tool. */
export interface Execution<V = any> {
	readonly identity: Identity;
	/** Stores the call of one that is refused: declare `progress:announce`. */
	announce?(): void;
	/** Stores the call and says that the tool's body is about to be entered. */
	dispatch(): void;
	/** Whether every observer was told. Throws, or rejects, if the view is invalid or comes at a time when it must not. */
	reportProgress(view: V): boolean | Promise<boolean>;
	/** The boundary, then the hook, then the observers of the result, then the stored result. */
	finalize(outcome: Outcome, hook: (outcome: Outcome) => Outcome): Outcome | Promise<Outcome>;
}

/** An entry of the durable log; other members may be there. */
export interface DurableEntry {
	kind: "tool/call" | "tool/result";
	agent?: string;
	call: string;
	isError?: boolean; // of a result
	[member: string]: unknown;
}

/** A registry of executions: declare the capability `progress`. */
export interface ProgressRegistry<V = any> {
	/** Reads the JSON form of a view, and throws if there is something in it that a view cannot say. */
	parseView(json: any): V;
	prepare(call: { agent?: string; call: string; tool: string; args?: any; card?: any; parent?: Execution<V> }): Execution<V>;
	/** Registers an observer of one agent's progress, or of all. It may give a promise, which says when it is done. */
	observe(observer: (seen: Identity & { view: V }) => unknown, agent?: string): () => void;
	observeResults?(observer: (identity: Identity, outcome: Outcome) => unknown): () => void;
	/** Ends what an agent has still running. */
	settle(agent: string, why: string): void;
	/** A bridge to the Agent Client Protocol: declare `progress:bridge`, and `progress:throttle` if it heeds `every`. */
	bridge?(send: (line: object) => void, every?: number): ProgressBridge;
}

export interface ProgressBridge {
	open(session: string, agent: string): void;
	close(session: string): void;
	replay(session: string, log: DurableEntry[]): void;
	dispose(): void;
}

/** An adapter: what the subject is, and how to make a loop in given surroundings. */
export interface Adapter {
	subject: { name: string; version: string; language: string };
	/** The editions of the contract that the subject can be run in; may be chosen among those that the harness offers. */
	editions: string[] | ((offered: string[]) => string[]);
	capabilities: string[];
	barrier?: "quiescent" | "none";
	/** Whether the loop still waits for a turn of the event loop that it asked for: then a barrier gives it another one. */
	busy?: () => boolean;
	/** Makes a loop, without starting anything. Its first listeners are registered by the caller. Absent if there is only a reducer or a channel of progress. */
	open?(surroundings: Surroundings): Loop;
	reducer?: Reducer<any>;
	/** Makes a registry of executions that tells of their progress, with a log to store in. */
	progress?(surroundings: { store(entry: DurableEntry): void; log(error: unknown): void }): ProgressRegistry;
}

/** Runs the adapter on standard input and output. */
export function serve(adapter: Adapter, options?: { input?: { on(event: string, listener: (...given: any[]) => void): unknown } }): void;

/** The same without streams: messages go in by `receive`, out by `write`. */
export class Server {
	constructor(adapter: Adapter, write: (message: any) => void, onBye?: () => void);
	receive(message: object): void;
	end(): void;
	log(text: string): void;
}

/** Cuts a byte stream into messages. */
export class Lines {
	push(chunk: Uint8Array): (object | ProtocolError)[];
}

/** Answered to the harness as `error` of this code. */
export class ProtocolError extends Error {
	constructor(code: string, message: string);
	readonly code: string;
}

/** Says of a prompt or continue that it was refused, where `isRunning` does not. */
export class Refused extends Error {}

/** A short description of a message, the same in every language. */
export function tag(message: Message): string;
export function tags(messages: readonly Message[] | undefined): string[];

/** The newest offered edition that is not newer than the release, or the oldest. */
export function editionFor(release: string, offered: string[]): string;

/** Compares two dotted versions: negative if a is older than b. */
export function compareReleases(a: string, b: string): number;
