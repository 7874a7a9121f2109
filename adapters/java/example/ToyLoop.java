import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * A small agent loop: ask the model, run the tools that it calls, feed the results back, and
 * tell listeners what happens. It is here to be judged before your own loop is; once that is
 * joined in Adapter.java, delete it. Its threads are the adapter's tasks, so it needs no locks.
 */
final class ToyLoop {
    // PI_CONFORM_PLANT=late-update makes the loop pass on progress updates of a tool that has
    // returned already, so that you see what a finding looks like.
    private static final boolean LATE_UPDATES = "late-update".equals(System.getenv("PI_CONFORM_PLANT"));

    interface Execute {
        Map<String, Object> execute(Map<String, Object> call, BooleanSupplier signal, Consumer<Object> onUpdate) throws Exception;
    }

    interface Hook {
        Map<String, Object> ask(Call call, BooleanSupplier signal) throws Exception;
    }

    interface Model {
        PiConformAdapter.ModelStream stream(List<Map<String, Object>> messages, BooleanSupplier signal) throws Exception;
    }

    interface OnPoll {
        void polled(boolean steering, List<Map<String, Object>> drained);
    }

    record Tool(String name, Map<String, Object> parameters, boolean sequential, Execute execute) {}

    /** What a loop is made of and calls out to. Hooks may be null. */
    record Options(
            PiConformAdapter.Tasks tasks, String modelId, List<Tool> tools, List<Map<String, Object>> messages, boolean sequential,
            boolean allSteering, boolean allFollowUps, Model model, Hook beforeToolCall, Hook afterToolCall, OnPoll onPoll) {}

    final Queue steering;
    final Queue followUps;
    private final Options options;
    private final Set<PiConformAdapter.Listener> listeners = new LinkedHashSet<>();
    private Run active;
    private List<Map<String, Object>> messages;
    private List<String> pendingToolCalls = List.of();
    private String streamingRole;
    private String errorMessage;

    ToyLoop(Options options) {
        this.options = options;
        this.messages = new ArrayList<>(options.messages);
        this.steering = new Queue(options.allSteering);
        this.followUps = new Queue(options.allFollowUps);
    }

    void prompt(List<Map<String, Object>> prompts) throws Exception {
        refuseIfBusy();
        run(prompts, false);
    }

    /** Goes on from the transcript as it is, or from what is queued. */
    void continueRun() throws Exception {
        refuseIfBusy();
        if (messages.isEmpty()) {
            throw new IllegalStateException("there is nothing to continue from");
        }
        if (!"assistant".equals(messages.get(messages.size() - 1).get("role"))) {
            run(List.of(), false);
            return;
        }
        List<Map<String, Object>> queued = steering.drain();
        boolean steered = !queued.isEmpty();
        if (!steered) {
            queued = followUps.drain();
        }
        if (queued.isEmpty()) {
            throw new IllegalStateException("the last message is the assistant's, and nothing is queued");
        }
        run(queued, steered);
    }

    void abort() {
        if (active != null) {
            active.aborted = true;
        }
    }

    void reset() {
        refuseIfBusy();
        messages = new ArrayList<>();
        errorMessage = null;
        clearQueues();
    }

    void clearQueues() {
        steering.waiting.clear();
        followUps.waiting.clear();
    }

    void waitForIdle() throws Exception {
        if (active != null) {
            options.tasks.await(active.ended);
        }
    }

    boolean isRunning() {
        return active != null;
    }

    PiConformAdapter.State state() {
        return new PiConformAdapter.State(pendingToolCalls, messages, streamingRole, errorMessage);
    }

    Runnable subscribe(PiConformAdapter.Listener listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }

    private void refuseIfBusy() {
        if (active != null) {
            throw new IllegalStateException("a run is active");
        }
    }

    private void run(List<Map<String, Object>> prompts, boolean steered) throws Exception {
        Run run = new Run(prompts, steered);
        active = run;
        errorMessage = null;
        try {
            try {
                run.main();
            } catch (Exception error) {
                run.fail(error);
            }
        } finally {
            active = null;
            pendingToolCalls = List.of();
            streamingRole = null;
            run.ended.complete(null);
        }
    }

    /** What an event does to the state; it comes before any listener is told. */
    private void reduce(Map<String, Object> event) {
        Map<String, Object> message = PiConformAdapter.map(event, "message");
        switch ((String) event.get("type")) {
            case "message_start", "message_update" -> streamingRole = (String) message.get("role");
            case "message_end" -> {
                streamingRole = null;
                messages.add(message);
            }
            case "tool_execution_start" -> {
                pendingToolCalls = new ArrayList<>(pendingToolCalls);
                pendingToolCalls.add((String) event.get("toolCallId"));
            }
            case "tool_execution_end" ->
                pendingToolCalls = pendingToolCalls.stream().filter(id -> !id.equals(event.get("toolCallId"))).toList();
            case "turn_end" -> errorMessage = message.get("errorMessage") == null ? errorMessage : (String) message.get("errorMessage");
            default -> {}
        }
    }

    /** One run, from agent_start to agent_end. */
    private final class Run {
        private final CompletableFuture<Void> ended = new CompletableFuture<>();
        private final List<Map<String, Object>> prompts;
        private final boolean steered; // the prompts come from the steering queue
        private final List<Map<String, Object>> context; // what the next request is made of
        private final List<Map<String, Object>> added; // what agent_end tells
        private boolean aborted;
        private boolean over;

        Run(List<Map<String, Object>> prompts, boolean steered) {
            this.prompts = prompts;
            this.steered = steered;
            context = new ArrayList<>(messages);
            context.addAll(prompts);
            added = new ArrayList<>(prompts);
        }

        private boolean isAborted() {
            return aborted;
        }

        void main() throws Exception {
            emit("agent_start");
            emit("turn_start");
            for (Map<String, Object> message : prompts) {
                emitMessage(message);
            }
            turns();
            emit("agent_end", "messages", added);
            over = true;
        }

        /** Ends a run that broke with a message that says why. */
        void fail(Exception error) throws Exception {
            Map<String, Object> cost = PiConformAdapter.object("input", 0, "output", 0, "cacheRead", 0, "cacheWrite", 0, "total", 0);
            Map<String, Object> usage = PiConformAdapter.object("input", 0, "output", 0, "cacheRead", 0, "cacheWrite", 0, "totalTokens", 0, "cost", cost);
            Map<String, Object> message = PiConformAdapter.object(
                    "role", "assistant", "content", List.of(text("")), "api", "scripted", "provider", "scripted", "model", options.modelId,
                    "usage", usage, "stopReason", aborted ? "aborted" : "error", "errorMessage", error.getMessage(), "timestamp", now());
            emitMessage(message);
            emit("turn_end", "message", message, "toolResults", List.of());
            emit("agent_end", "messages", List.of(message));
            over = true;
        }

        private void turns() throws Exception {
            List<Map<String, Object>> queued = steered ? List.of() : poll(true);
            for (boolean first = true; ; first = false) {
                if (!first) {
                    emit("turn_start");
                }
                for (Map<String, Object> message : queued) {
                    emitMessage(message);
                    add(message);
                }
                Map<String, Object> message = request();
                add(message);
                List<Call> answered = failed(message) ? List.of() : batch(message);
                List<Map<String, Object>> results = answered.stream().map(call -> call.message).toList();
                results.forEach(this::add);
                emit("turn_end", "message", message, "toolResults", results);
                if (failed(message)) {
                    return;
                }
                queued = poll(true);
                boolean terminate = !"length".equals(message.get("stopReason")) && answered.stream().allMatch(call -> PiConformAdapter.isTrue(call.result, "terminate"));
                if (!answered.isEmpty() && !terminate || !queued.isEmpty()) {
                    continue;
                }
                queued = poll(false);
                if (queued.isEmpty()) {
                    return;
                }
            }
        }

        /** Passes the model's stream on. The next event is read when everybody has dealt with the last. */
        private Map<String, Object> request() throws Exception {
            Set<String> known = Set.of("user", "assistant", "toolResult");
            List<Map<String, Object>> request = context.stream().filter(message -> known.contains(message.get("role"))).toList();
            PiConformAdapter.ModelStream stream = options.model.stream(request, this::isAborted);
            boolean begun = false;
            for (Map<String, Object> event = stream.next(); event != null; event = stream.next()) {
                String type = (String) event.get("type");
                if (type.equals("done") || type.equals("error")) {
                    break;
                }
                if (type.equals("start")) {
                    begun = true;
                    emit("message_start", "message", event.get("partial"));
                } else if (begun && type.matches("(text|thinking|toolcall)_(start|delta|end)")) {
                    emit("message_update", "message", event.get("partial"), "assistantMessageEvent", event);
                }
            }
            Map<String, Object> message = stream.result();
            if (!begun) {
                emit("message_start", "message", message);
            }
            emit("message_end", "message", message);
            return message;
        }

        /** Answers the calls of a message; gives those that were begun. */
        private List<Call> batch(Map<String, Object> message) throws Exception {
            List<Call> calls = PiConformAdapter.toolCalls(message).stream().map(block -> new Call(this, message, block)).toList();
            if ("length".equals(message.get("stopReason"))) {
                return cutOff(calls);
            }
            boolean sequential = options.sequential || calls.stream().anyMatch(call -> call.tool != null && call.tool.sequential);
            return sequential ? oneByOne(calls) : together(calls);
        }

        /** Arguments that were cut off may still parse, so none of these calls can be trusted. */
        private List<Call> cutOff(List<Call> calls) throws Exception {
            for (Call call : calls) {
                call.emitStart();
                call.fail(call.block.get("name") + " was not executed: the answer was cut off, so issue the call again");
                call.emitEnd();
                call.emitResult();
            }
            return calls;
        }

        private List<Call> oneByOne(List<Call> calls) throws Exception {
            List<Call> begun = new ArrayList<>();
            for (Call call : calls) {
                begun.add(call);
                call.emitStart();
                call.prepare();
                if (call.result == null) {
                    call.execute();
                }
                call.emitEnd();
                call.emitResult();
                if (aborted) {
                    break;
                }
            }
            return begun;
        }

        /** Prepares in order, executes together, gives results in order. */
        private List<Call> together(List<Call> calls) throws Exception {
            List<Call> begun = new ArrayList<>();
            for (Call call : calls) {
                begun.add(call);
                call.emitStart();
                call.prepare();
                if (call.result != null) {
                    call.emitEnd();
                }
                if (aborted) {
                    break;
                }
            }
            List<CompletableFuture<Void>> executions = new ArrayList<>();
            for (Call call : begun) {
                if (call.result == null) {
                    executions.add(options.tasks.spawn(call::executeAndEnd));
                }
            }
            awaitAll(executions);
            for (Call call : begun) {
                call.emitResult();
            }
            return begun;
        }

        private void emit(String type, Object... members) throws Exception {
            if (over) {
                return;
            }
            Map<String, Object> event = PiConformAdapter.object("type", type);
            event.putAll(PiConformAdapter.object(members));
            reduce(event);
            Set<PiConformAdapter.Listener> told = new LinkedHashSet<>();
            for (PiConformAdapter.Listener next = next(told); next != null; next = next(told)) {
                told.add(next);
                next.hear(event, this::isAborted);
            }
        }

        /** Listeners may come and go during a delivery. */
        private PiConformAdapter.Listener next(Set<PiConformAdapter.Listener> told) {
            return listeners.stream().filter(listener -> !told.contains(listener)).findFirst().orElse(null);
        }

        private void emitMessage(Map<String, Object> message) throws Exception {
            emit("message_start", "message", message);
            emit("message_end", "message", message);
        }

        private void add(Map<String, Object> message) {
            context.add(message);
            added.add(message);
        }

        private List<Map<String, Object>> poll(boolean steering) {
            List<Map<String, Object>> drained = (steering ? ToyLoop.this.steering : followUps).drain();
            options.onPoll.polled(steering, drained);
            return drained;
        }
    }

    /** One tool call, from its start to its result message. */
    final class Call {
        final Map<String, Object> assistant;
        final Map<String, Object> block;
        final Object args;
        Map<String, Object> result;
        boolean isError;
        private final Run run;
        private final Tool tool;
        private Map<String, Object> message;
        private final List<CompletableFuture<Void>> updates = new ArrayList<>();
        private boolean accepting = true;

        private Call(Run run, Map<String, Object> assistant, Map<String, Object> block) {
            this.run = run;
            this.assistant = assistant;
            this.block = block;
            this.args = block.get("arguments");
            this.tool = options.tools.stream().filter(one -> one.name.equals(block.get("name"))).findFirst().orElse(null);
        }

        List<Map<String, Object>> context() {
            return run.context;
        }

        /** Whatever goes wrong here is the call's result, and it is not executed. */
        private void prepare() {
            String fault = tool == null ? "there is no tool " + block.get("name") : invalid(tool.parameters, PiConformAdapter.asMap(args));
            if (fault != null) {
                fail(fault);
                return;
            }
            try {
                Map<String, Object> answer = ask(options.beforeToolCall);
                if (run.aborted) {
                    fail("the call was aborted");
                } else if (PiConformAdapter.isTrue(answer, "block")) {
                    String reason = (String) answer.getOrDefault("reason", "");
                    fail(reason.isEmpty() ? "the call was blocked" : reason);
                    result.putAll(PiConformAdapter.object("terminate", PiConformAdapter.isTrue(answer, "terminate") ? true : null));
                }
            } catch (Exception error) {
                fail(error.getMessage());
            }
        }

        private void execute() throws Exception {
            try {
                settle(tool.execute.execute(block, run::isAborted, this::update), false);
            } catch (Exception error) {
                fail(error.getMessage());
            }
            accepting = LATE_UPDATES;
            options.tasks.letOthersGoFirst(); // a tool that did not wait must not keep the others from beginning
            awaitAll(updates);
            try {
                change(ask(options.afterToolCall));
            } catch (Exception error) {
                fail(error.getMessage());
            }
        }

        private Void executeAndEnd() throws Exception {
            execute();
            emitEnd();
            return null;
        }

        private Map<String, Object> ask(Hook hook) throws Exception {
            return hook == null ? Map.of() : hook.ask(this, run::isAborted);
        }

        /** A tool may keep this function: what it says after it has returned is dropped. */
        private void update(Object partial) {
            if (accepting) {
                updates.add(options.tasks.spawn(() -> {
                    run.emit("tool_execution_update", "toolCallId", block.get("id"), "toolName", block.get("name"), "args", args, "partialResult", partial);
                    return null;
                }));
            }
        }

        private void settle(Map<String, Object> result, boolean isError) {
            this.result = result;
            this.isError = isError;
        }

        private void fail(String reason) {
            settle(PiConformAdapter.object("content", List.of(text(reason)), "details", PiConformAdapter.object()), true);
        }

        /** Each member replaces the whole of what there was. */
        private void change(Map<String, Object> answer) {
            Map<String, Object> changed = new LinkedHashMap<>(result);
            for (String name : List.of("content", "details", "usage", "terminate")) {
                changed.putAll(PiConformAdapter.object(name, answer.get(name)));
            }
            settle(changed, answer.get("isError") == null ? isError : PiConformAdapter.isTrue(answer, "isError"));
        }

        private void emitStart() throws Exception {
            run.emit("tool_execution_start", "toolCallId", block.get("id"), "toolName", block.get("name"), "args", args);
        }

        private void emitEnd() throws Exception {
            run.emit("tool_execution_end", "toolCallId", block.get("id"), "toolName", block.get("name"), "result", result, "isError", isError);
        }

        private void emitResult() throws Exception {
            message = PiConformAdapter.object(
                    "role", "toolResult", "toolCallId", block.get("id"), "toolName", block.get("name"),
                    "content", result.getOrDefault("content", List.of()), "details", result.get("details"), "usage", result.get("usage"),
                    "isError", isError, "timestamp", now());
            run.emitMessage(message);
        }
    }

    /** Messages for later. */
    static final class Queue {
        private final boolean all;
        private final List<Map<String, Object>> waiting = new ArrayList<>();

        private Queue(boolean all) {
            this.all = all;
        }

        void put(Map<String, Object> message) {
            waiting.add(message);
        }

        private List<Map<String, Object>> drain() {
            List<Map<String, Object>> first = waiting.subList(0, all ? waiting.size() : Math.min(1, waiting.size()));
            List<Map<String, Object>> drained = List.copyOf(first);
            first.clear();
            return drained;
        }
    }

    /** Waits for all, also if one fails, and then fails with the first. */
    private void awaitAll(List<CompletableFuture<Void>> tasks) throws Exception {
        Exception first = null;
        for (CompletableFuture<Void> task : List.copyOf(tasks)) {
            try {
                options.tasks.await(task);
            } catch (Exception error) {
                first = first == null ? error : first;
            }
        }
        if (first != null) {
            throw first;
        }
    }

    private static boolean failed(Map<String, Object> message) {
        return "error".equals(message.get("stopReason")) || "aborted".equals(message.get("stopReason"));
    }

    static Map<String, Object> text(String text) {
        return PiConformAdapter.object("type", "text", "text", text);
    }

    static long now() {
        return System.currentTimeMillis();
    }

    private static final Map<String, Class<?>> TYPES =
            Map.of("number", Number.class, "string", String.class, "boolean", Boolean.class, "object", Map.class, "array", List.class);

    /** What is wrong with arguments, or null: as much of JSON Schema as a toy needs. */
    private static String invalid(Map<String, Object> schema, Map<String, Object> args) {
        if (schema == null) {
            return null;
        }
        for (Object name : PiConformAdapter.list(schema.get("required"))) {
            if (!args.containsKey(name)) {
                return "the argument " + name + " is missing";
            }
        }
        Map<String, Object> properties = schema.get("properties") == null ? Map.of() : PiConformAdapter.map(schema, "properties");
        for (String name : properties.keySet()) {
            Object type = PiConformAdapter.map(properties, name).get("type");
            if (args.containsKey(name) && type != null && !TYPES.get(type).isInstance(args.get(name))) {
                return "the argument " + name + " has to be a " + type;
            }
        }
        return null;
    }
}
