import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Joins an agent loop written in Java to pi-conform. It needs JDK 17 and nothing besides.
 * An adapter program is
 *
 * <pre>{@code
 * public static void main(String[] args) throws Exception {
 *     PiConformAdapter.serve(about, surroundings -> new MyAgent(surroundings));
 * }
 * }</pre>
 *
 * The parts, in the order of this file: {@link Agent}, what your loop has to offer;
 * {@link Tasks}, on which it runs; {@link Surroundings}, what it meets in one session (model,
 * tools, hooks, listeners, user); {@link ModelStream}, what it reads of one request; the
 * server, which speaks the protocol; and JSON. Messages, events and the like are what JSON
 * makes of them: maps, lists, texts, numbers, booleans and null.
 */
public final class PiConformAdapter {
    private static final int MAX_LINE = 16 * 1024 * 1024; // bytes
    private static final String OVER = "the case is over";

    private PiConformAdapter() {}

    // ---- what your loop has to offer ----

    /** The loop of one session as its user sees it. The first three may wait; each is a task of its own. */
    public interface Agent {
        /** Runs the loop on messages or, if they are null, on text and images. Throws at once if it is refused. */
        void prompt(List<Map<String, Object>> messages, String text, List<Object> images) throws Exception;

        void continueRun() throws Exception;

        void waitForIdle() throws Exception;

        /** Throws if it is refused. */
        void reset();

        void steer(Map<String, Object> message);

        void followUp(Map<String, Object> message);

        void abort();

        void clearQueue();

        /** Adds a listener after the others and gives what takes it away again. */
        Runnable subscribe(Listener listener);

        boolean isRunning();

        /** The agent's state; null if it has none. */
        State state();
    }

    /** Is told of every event, with the run's signal. */
    public interface Listener {
        void hear(Map<String, Object> event, BooleanSupplier signal) throws Exception;
    }

    /** The agent's own state. The role and the error may be null. */
    public record State(Collection<String> pendingToolCalls, List<Map<String, Object>> messages, String streamingRole, String errorMessage) {}

    /** What the subject says of itself. */
    public record About(String name, String version, List<String> editions, List<String> capabilities) {}

    /** An error that the script lets a callback throw. */
    @SuppressWarnings("serial")
    public static final class Thrown extends RuntimeException {
        public Thrown(String message) {
            super(message);
        }
    }

    /** What the harness is answered with an error of this code. */
    @SuppressWarnings("serial")
    private static final class ProtocolError extends RuntimeException {
        final String code;

        ProtocolError(String code, String message) {
            super(message);
            this.code = code;
        }
    }

    // ---- tasks ----

    /**
     * The threads of the loop, of which one goes on at a time, in the order in which they became
     * ready; and only within a barrier, which is reached when none is ready. So a loop needs no
     * locks among its tasks, and must not wait for anything but {@link #await}: not for timers,
     * input, or threads of its own. A loop that asks for an {@link Executor} gets this one.
     */
    public static final class Tasks implements Executor {
        private final ExecutorService threads = Executors.newCachedThreadPool(Tasks::daemon);
        private final Queue<Semaphore> ready = new ArrayDeque<>(); // whose turn is next
        private final Semaphore barrier = new Semaphore(0);
        private final ThreadLocal<Semaphore> turn = new ThreadLocal<>();

        private static Thread daemon(Runnable work) {
            Thread thread = new Thread(work, "task");
            thread.setDaemon(true);
            return thread;
        }

        /** Begins a task; what is returned is done with it. */
        public <T> CompletableFuture<T> spawn(Callable<T> task) {
            CompletableFuture<T> result = new CompletableFuture<>();
            Semaphore mine = new Semaphore(0);
            ready.add(mine);
            threads.execute(() -> {
                turn.set(mine);
                mine.acquireUninterruptibly();
                try {
                    result.complete(task.call());
                } catch (Throwable error) {
                    result.completeExceptionally(error);
                }
                barrier.release();
            });
            return result;
        }

        @Override
        public void execute(Runnable task) {
            spawn(Executors.callable(task));
        }

        /** Waits, in a task, while others go on. */
        public <T> T await(CompletableFuture<T> future) throws Exception {
            if (!future.isDone()) {
                Semaphore mine = turn.get();
                future.whenComplete((value, error) -> ready.add(mine));
                pause(mine);
            }
            try {
                return future.join();
            } catch (CompletionException error) {
                throw error.getCause() instanceof Exception cause ? cause : error;
            }
        }

        /** Lets every task that is ready go on first. */
        public void letOthersGoFirst() {
            Semaphore mine = turn.get();
            ready.add(mine);
            pause(mine);
        }

        private void pause(Semaphore mine) {
            barrier.release();
            mine.acquireUninterruptibly();
        }

        /** The barrier: lets tasks go on until none is ready. */
        void run() {
            for (Semaphore next = ready.poll(); next != null; next = ready.poll()) {
                next.release();
                barrier.acquireUninterruptibly();
            }
        }
    }

    // ---- what the loop meets ----

    /** What a loop reads of one model request: events, and the message that they come to. */
    public static final class ModelStream {
        private final Surroundings surroundings;
        private final String name;
        private final Queue<Map<String, Object>> events = new ArrayDeque<>();
        private Map<String, Object> last; // the answer that ended the stream
        private CompletableFuture<Void> more = new CompletableFuture<>();
        private int reads;

        private ModelStream(Surroundings surroundings, String name) {
            this.surroundings = surroundings;
            this.name = name;
        }

        /** The next event, or null at the end. */
        public Map<String, Object> next() throws Exception {
            surroundings.out("read", "name", name, "n", reads++);
            while (events.isEmpty() && last == null) {
                surroundings.tasks.await(more);
            }
            if (events.isEmpty()) {
                orThrow(last);
            }
            return events.poll();
        }

        /** The message that the stream came to. */
        public Map<String, Object> result() {
            Map<String, Object> message = last == null ? null : finalMessage(orThrow(last));
            if (message == null) {
                throw new Thrown("the stream has no result");
            }
            return message;
        }

        /** Adds an answer of the script or the harness; true if it was the last. */
        private boolean give(Map<String, Object> answer) {
            Map<String, Object> event = map(answer, "event");
            if (event != null) {
                events.add(event);
            }
            if (event == null || List.of("done", "error").contains(text(event, "type"))) {
                last = answer;
            }
            CompletableFuture<Void> waiting = more;
            more = new CompletableFuture<>();
            waiting.complete(null);
            return last != null;
        }
    }

    private static Map<String, Object> finalMessage(Map<String, Object> answer) {
        Map<String, Object> event = Objects.requireNonNullElse(map(answer, "event"), Map.of());
        for (Object message : new Object[] {answer.get("final"), event.get("message"), event.get("error")}) {
            if (message != null) {
                return asMap(message);
            }
        }
        return null;
    }

    private static final class Pending {
        final BooleanSupplier signal;
        final ModelStream stream; // of a model request
        final CompletableFuture<Map<String, Object>> answer = new CompletableFuture<>();
        boolean told; // of the signal

        Pending(BooleanSupplier signal, ModelStream stream) {
            this.signal = signal;
            this.stream = stream;
            this.told = fired(signal);
        }
    }

    private record Kept(int event, Map<String, Object> message, Map<String, Object> before) {}

    /**
     * What a loop is surrounded by in one session: it makes the names of callbacks, answers at
     * once what the script does not gate, holds back what it does, and reports everything.
     *
     * <p>A signal says whether the run was aborted; it is null where the loop passed none.
     */
    public static final class Surroundings {
        public final String session;
        public final String form;
        public final String edition;
        public final Map<String, Object> config;
        public final Tasks tasks;

        private final Map<String, Object> script;
        private final Consumer<Map<String, Object>> emit;
        private final boolean keeps;
        private Agent agent;
        private int turn; // script turns used
        private int events; // so far
        private boolean closed;
        private final Map<String, Integer> counts = new HashMap<>(); // by name without its number
        private final Map<String, Pending> pending = new LinkedHashMap<>(); // in the order in which they began
        private final Map<String, Consumer<Object>> updates = new HashMap<>(); // onUpdate of every execution
        private final Map<Integer, Listener> listeners = new HashMap<>();
        private final Map<Integer, Runnable> unsubscribes = new HashMap<>();
        private final Map<Object, Integer> numbers = new IdentityHashMap<>(); // of events
        private final List<Kept> kept = new ArrayList<>();
        private List<Map<String, Object>> calls = new ArrayList<>(); // of the latest assistant message, not yet prepared

        private Surroundings(Map<String, Object> message, Tasks tasks, Consumer<Map<String, Object>> emit, boolean keeps) {
            this.session = text(message, "session");
            this.form = text(message, "form");
            this.edition = text(message, "edition");
            this.config = Objects.requireNonNullElse(map(message, "config"), Map.of());
            this.script = Objects.requireNonNullElse(map(message, "script"), Map.of());
            this.tasks = tasks;
            this.emit = emit;
            this.keeps = keeps;
        }

        // -- for the loop --

        /** Whether the case has that hook; one that it has not must be absent from the loop. */
        public boolean hasHook(String name) {
            return member(config, "hooks", name) != null;
        }

        /** A request to the model. */
        public ModelStream model(Map<String, Object> payload, BooleanSupplier signal) throws Exception {
            String name = numbered("model");
            ModelStream stream = new ModelStream(this, name);
            Map<String, Object> next = fired(signal) ? Map.of("gate", true) : nextTurn();
            if (isTrue(next, "gate")) {
                orThrow(await(name, payload, new Pending(signal, stream), null));
                return stream;
            }
            List<Map<String, Object>> steps = maps(copy(next.get("steps")));
            answered(name, payload, signal, together(steps));
            if (steps.size() == 1) {
                orThrow(steps.get(0));
            }
            steps.forEach(step -> give(stream, step));
            return stream;
        }

        /** One execution of a tool; the payload has at least toolCallId and toolName. */
        public Map<String, Object> execute(Map<String, Object> payload, BooleanSupplier signal, Consumer<Object> onUpdate) throws Exception {
            String id = text(payload, "toolCallId");
            String name = unique("tool/" + id);
            Map<String, Object> own = asMap(member(script, "tools", name.substring("tool/".length())));
            Map<String, Object> script = own != null ? own : object("result", object("content", List.of(object("type", "text", "text", "r" + id))));
            updates.put(name, onUpdate);
            List<Object> sync = list(copy(script.get("sync")));
            if (!isTrue(script, "gate")) {
                answered(name, payload, signal, script);
                sync.forEach(onUpdate);
                return asMap(copy(orThrow(script).get("result")));
            }
            Pending call = new Pending(signal, null);
            begin(name, payload, call, sync.isEmpty() ? null : object("sync", script.get("sync")));
            sync.forEach(onUpdate);
            return map(orThrow(tasks.await(call.answer)), "result");
        }

        /**
         * A call of a hook; gives its answer, empty for nothing. Key is the tool call id of a hook
         * that belongs to a call, and null for the others, which are numbered.
         */
        public Map<String, Object> hook(String hook, String key, Map<String, Object> payload, BooleanSupplier signal) throws Exception {
            String name = hookName(hook, key);
            boolean gated = Boolean.TRUE.equals(member(script, "hooks", hook, "gate")) || "gate".equals(member(config, "hooks", hook));
            if (!gated) {
                return hookNow(hook, name, payload, signal);
            }
            Map<String, Object> answer = orThrow(await(name, payload, new Pending(signal, null), null));
            return Objects.requireNonNullElse(map(answer, "hook"), Map.of());
        }

        /** What a tool's prepareArguments returns. Without an id, the call is the one whose arguments these are. */
        public Object prepareArguments(String toolName, Object rawArgs, String toolCallId) {
            String id = toolCallId != null ? toolCallId : callOf(toolName, rawArgs);
            Map<String, Object> payload = object("toolCallId", id, "toolName", toolName, "rawArgs", rawArgs);
            Map<String, Object> answer = hookNow("prepareArguments", hookName("prepareArguments", id), payload, null);
            return answer.getOrDefault("args", rawArgs);
        }

        /** Reports a poll of a queue; hook is getSteeringMessages or getFollowUpMessages. */
        public void polled(String hook, List<Map<String, Object>> drained) {
            out("call", "name", numbered("hook/" + hook), "payload", object(), "auto", true, "answer", object("messages", drained));
        }

        public void log(String text) {
            out("log", "text", text);
        }

        // -- for the server --

        /** Joins the loop, and registers the listener that records and those that are not late. */
        private void attach(Agent agent) {
            this.agent = agent;
            agent.subscribe((event, signal) -> record(event));
            List<Map<String, Object>> listeners = maps(config.get("listeners"));
            for (int i = 0; i < listeners.size(); i++) {
                if (!isTrue(listeners.get(i), "late")) {
                    subscribe(i);
                }
            }
        }

        /** Answers a callback that waits, or makes a progress update of a tool, which may be a late one. */
        private void answer(String name, Map<String, Object> answer) {
            if (answer.get("partial") != null) {
                update(name, answer.get("partial"));
                return;
            }
            Pending call = pending.get(name);
            if (call == null) {
                throw new ProtocolError("call", "no callback " + name + " waits");
            }
            if (call.stream == null || give(call.stream, answer)) {
                pending.remove(name);
            }
            call.answer.complete(answer);
        }

        private void user(String name, String kind, Map<String, Object> answer) {
            List<Map<String, Object>> messages = answer.get("messages") == null ? null : maps(answer.get("messages"));
            switch (kind) {
                case "prompt" -> run(name, () -> agent.prompt(messages, Objects.requireNonNullElse(text(answer, "text"), ""), list(answer.get("images"))));
                case "continue" -> run(name, agent::continueRun);
                case "waitForIdle" -> tasks.spawn(() -> follow(name, agent::waitForIdle, () -> "error"));
                case "reset" -> follow(name, agent::reset, () -> "refused");
                case "steer" -> messages.forEach(agent::steer);
                case "followUp" -> messages.forEach(agent::followUp);
                case "abort" -> agent.abort();
                case "clearQueue" -> agent.clearQueue();
                case "subscribe" -> subscribe(((Number) answer.get("listener")).intValue());
                case "unsubscribe" -> unsubscribes.getOrDefault(((Number) answer.get("listener")).intValue(), () -> {}).run();
                default -> throw new ProtocolError("unsupported", "unknown user action " + kind);
            }
        }

        /** What a barrier says of the session. */
        private Map<String, Object> status() {
            pending.forEach((name, call) -> {
                if (!call.told && fired(call.signal)) {
                    call.told = true;
                    out("cancelled", "name", name);
                }
            });
            return object("type", "synced", "idle", !agent.isRunning(), "waitingOn", List.copyOf(pending.keySet()), "events", events);
        }

        /** Gives up: nothing is reported any more, and whatever waits, now or later, gets an error. */
        private void close() {
            closed = true;
            for (Pending call : List.copyOf(pending.values())) {
                call.answer.complete(object("throw", OVER));
                if (call.stream != null) {
                    call.stream.give(object("throw", OVER));
                }
            }
            pending.clear();
        }

        // -- events --

        private void record(Map<String, Object> event) {
            if (closed) {
                return;
            }
            numbers.put(event, events);
            if (keeps && event.get("message") != null) {
                kept.add(new Kept(events, map(event, "message"), new LinkedHashMap<>(map(event, "message"))));
            }
            out("event", "n", events, "event", event, "state", stateOf(agent.state(), agent.isRunning()));
            events++;
        }

        private void subscribe(int i) {
            if (i < 0 || i >= list(config.get("listeners")).size()) {
                throw new ProtocolError("malformed", "there is no listener " + i);
            }
            Listener listener = listeners.computeIfAbsent(i, number -> (event, signal) -> deliver(number, event, signal));
            unsubscribes.put(i, agent.subscribe(listener));
        }

        private void deliver(int i, Map<String, Object> event, BooleanSupplier signal) throws Exception {
            String about = aboutOf(event);
            String name = numbered("listener/" + i + "/" + about);
            Map<String, Object> payload = object("event", numbers.get(event), "signal", signal != null);
            Predicate<Object> matches = pattern -> List.of("*", text(event, "type"), about).contains(pattern);
            Map<String, Object> listener = maps(config.get("listeners")).get(i);
            if (list(listener.get("gate")).stream().anyMatch(matches)) {
                orThrow(await(name, payload, new Pending(signal, null), null));
                return;
            }
            Map<String, Object> throwing = Objects.requireNonNullElse(map(listener, "throw"), Map.of());
            Object message = throwing.entrySet().stream().filter(entry -> matches.test(entry.getKey())).map(Map.Entry::getValue).findFirst().orElse(null);
            Map<String, Object> answer = object("throw", message);
            answered(name, payload, signal, answer);
            orThrow(answer);
        }

        // -- the user's calls that end later --

        private interface Action {
            void act() throws Exception;
        }

        private void run(String name, Action begin) {
            boolean busy = agent.isRunning();
            int before = events;
            tasks.spawn(() -> {
                follow(name, begin, () -> busy || events == before ? "refused" : "error");
                if (!busy) {
                    compareKept();
                }
                return null;
            });
        }

        private Void follow(String name, Action action, Supplier<String> failed) {
            try {
                action.act();
                out("settled", "name", name, "outcome", "ok");
            } catch (Exception error) {
                out("settled", "name", name, "outcome", failed.get(), "message", messageOf(error));
            }
            return null;
        }

        private void compareKept() {
            List<Integer> changed = kept.stream().filter(one -> !one.message.equals(one.before)).map(Kept::event).toList();
            kept.clear();
            if (!changed.isEmpty()) {
                out("retained", "changed", changed);
            }
        }

        // -- calls --

        private Map<String, Object> await(String name, Map<String, Object> payload, Pending call, Map<String, Object> answer) throws Exception {
            begin(name, payload, call, answer);
            return tasks.await(call.answer);
        }

        /** Reports a callback that waits for its answer. */
        private void begin(String name, Map<String, Object> payload, Pending call, Map<String, Object> answer) {
            if (closed) {
                throw new Thrown(OVER);
            }
            call(name, payload, call.signal, null, answer);
            pending.put(name, call);
        }

        private boolean give(ModelStream stream, Map<String, Object> answer) {
            boolean last = stream.give(answer);
            Map<String, Object> message = finalMessage(answer);
            if (last && message != null) {
                calls = new ArrayList<>(toolCalls(message));
            }
            return last;
        }

        private void update(String name, Object partial) {
            if (!updates.containsKey(name)) {
                throw new ProtocolError("call", "no tool " + name + " was executed");
            }
            try {
                updates.get(name).accept(partial);
            } catch (RuntimeException error) { // a tool would not know what to do with it either
                log("onUpdate of " + name + " threw: " + messageOf(error));
            }
        }

        private Map<String, Object> hookNow(String hook, String name, Map<String, Object> payload, BooleanSupplier signal) {
            String key = name.substring(("hook/" + hook + "/").length());
            Object found = member(script, "hooks", hook, "answers", key);
            Object entry = found != null ? found : member(script, "hooks", hook, "else");
            Map<String, Object> scripted = entry == null ? Map.of() : asMap(entry);
            Map<String, Object> value = Objects.requireNonNullElse(map(scripted, "value"), Map.of());
            Object message = scripted.get("throw");
            Map<String, Object> answer = object("throw", message, "hook", message == null ? value : null, "abort", scripted.get("abort"));
            answered(name, payload, signal, answer);
            orThrow(answer);
            return asMap(copy(value));
        }

        private void answered(String name, Map<String, Object> payload, BooleanSupplier signal, Map<String, Object> answer) {
            call(name, payload, signal, true, answer);
            if (isTrue(answer, "abort")) {
                agent.abort();
            }
        }

        private void call(String name, Map<String, Object> payload, BooleanSupplier signal, Boolean auto, Map<String, Object> answer) {
            out("call", "name", name, "payload", payload, "auto", auto, "answer", answer, "aborted", fired(signal) ? true : null);
        }

        private Map<String, Object> nextTurn() {
            List<Object> turns = list(script.get("model"));
            int n = turn++;
            return n < turns.size() ? asMap(turns.get(n)) : map(script, "modelElse");
        }

        private String callOf(String toolName, Object rawArgs) {
            List<Map<String, Object>> ofTool = calls.stream().filter(call -> toolName.equals(call.get("name"))).toList();
            if (ofTool.isEmpty()) {
                return toolName;
            }
            Map<String, Object> found = ofTool.stream().filter(call -> call.get("arguments") == rawArgs).findFirst().orElse(ofTool.get(0));
            calls.removeIf(call -> call == found);
            return text(found, "id");
        }

        // -- names --

        private String hookName(String hook, String key) {
            return key == null ? numbered("hook/" + hook) : unique("hook/" + hook + "/" + key);
        }

        private int count(String name) {
            return counts.merge(name, 1, Integer::sum) - 1;
        }

        private String numbered(String name) {
            return name + "/" + count(name);
        }

        private String unique(String name) {
            int n = count(name);
            return n == 0 ? name : name + "~" + n;
        }

        private void out(String type, Object... members) {
            if (!closed) {
                Map<String, Object> message = object("type", type, "session", session);
                message.putAll(object(members));
                emit.accept(message);
            }
        }
    }

    private static boolean fired(BooleanSupplier signal) {
        return signal != null && signal.getAsBoolean();
    }

    private static Map<String, Object> orThrow(Map<String, Object> answer) {
        if (answer.get("throw") != null) {
            throw new Thrown(text(answer, "throw"));
        }
        return answer;
    }

    private static String messageOf(Throwable error) {
        return Objects.requireNonNullElse(error.getMessage(), error.toString());
    }

    /** The steps of an automatic stream as one answer. */
    private static Map<String, Object> together(List<Map<String, Object>> steps) {
        List<Object> events = steps.stream().map(step -> step.get("event")).filter(Objects::nonNull).toList();
        Map<String, Object> answer = object("events", events.isEmpty() ? null : events);
        for (Map<String, Object> step : steps) {
            answer.putAll(object("final", step.get("final"), "ends", step.get("ends"), "throw", step.get("throw")));
        }
        return answer;
    }

    private static String aboutOf(Map<String, Object> event) {
        String type = text(event, "type");
        Object about = event.get("toolCallId");
        if (about == null && type.startsWith("message_")) {
            about = map(event, "message").get("role");
        }
        return about == null ? type : type + "/" + about;
    }

    private static Map<String, Object> stateOf(State state, boolean running) {
        if (state == null) {
            return null;
        }
        int n = state.messages.size();
        return object(
                "isStreaming", running, "pendingToolCalls", List.copyOf(state.pendingToolCalls), "messages", n,
                "last", n == 0 ? null : tag(state.messages.get(n - 1)), "streaming", state.streamingRole, "errorMessage", state.errorMessage);
    }

    // ---- messages ----

    /** A short description of a message that is the same in every language. */
    public static String tag(Map<String, Object> message) {
        String role = text(message, "role");
        return role + details(role, message) + ": " + plainText(message.get("content"));
    }

    public static List<String> tags(List<Map<String, Object>> messages) {
        return messages.stream().map(PiConformAdapter::tag).toList();
    }

    /** The tool call blocks of a message, in source order. */
    public static List<Map<String, Object>> toolCalls(Map<String, Object> message) {
        return blocks(message.get("content"), "toolCall");
    }

    private static String details(String role, Map<String, Object> message) {
        return switch (role) {
            case "assistant" -> " " + Objects.requireNonNullElse(message.get("stopReason"), "") + " ["
                    + String.join(" ", toolCalls(message).stream().map(call -> text(call, "id")).toList()) + "]";
            case "toolResult" -> " " + message.get("toolCallId") + (isTrue(message, "isError") ? " error" : "");
            default -> "";
        };
    }

    private static String plainText(Object content) {
        if (content instanceof String text) {
            return text;
        }
        return String.join("\n", blocks(content, "text").stream().map(block -> Objects.requireNonNullElse(text(block, "text"), "")).toList());
    }

    private static List<Map<String, Object>> blocks(Object content, String type) {
        return content instanceof List ? maps(content).stream().filter(block -> type.equals(block.get("type"))).toList() : List.of();
    }

    // ---- the protocol ----

    /** Runs an adapter on standard input and output until bye or the end of input. What else is printed goes to standard error. */
    public static void serve(About about, Function<Surroundings, Agent> open) throws IOException {
        System.setOut(System.err);
        Server server = new Server(about, open, new FileOutputStream(FileDescriptor.out));
        Lines lines = new Lines();
        byte[] chunk = new byte[1 << 16];
        while (!server.over) {
            int n = System.in.read(chunk);
            if (n < 0) {
                break;
            }
            lines.add(chunk, n, server::take);
            server.flush();
        }
        Runtime.getRuntime().halt(0); // tasks of sessions that are still open are of no interest
    }

    /** Cuts bytes into lines. */
    private static final class Lines {
        private byte[] line = new byte[1 << 16];
        private int size;

        void add(byte[] chunk, int n, Consumer<ByteBuffer> take) {
            for (int i = 0; i < n; i++) {
                if (chunk[i] == '\n') {
                    take.accept(ByteBuffer.wrap(line, 0, size));
                    size = 0;
                    continue;
                }
                if (size == line.length) {
                    line = Arrays.copyOf(line, 2 * size);
                }
                line[size++] = chunk[i];
            }
        }
    }

    private static final class Server {
        private final About about;
        private final Function<Surroundings, Agent> open;
        private final OutputStream output;
        private final StringBuilder text = new StringBuilder();
        private final Tasks tasks = new Tasks();
        private final Map<String, Surroundings> sessions = new HashMap<>();
        private Object session; // of the message before
        boolean over;

        Server(About about, Function<Surroundings, Agent> open, OutputStream output) {
            this.about = about;
            this.open = open;
            this.output = output;
        }

        void take(ByteBuffer line) {
            Map<String, Object> message = Map.of();
            Map<String, Object> reply;
            try {
                message = parse(line);
                if (!Objects.equals(session, message.get("session"))) {
                    flush(); // should this case be the end, the one before is not to blame
                    session = message.get("session");
                }
                reply = handle(message);
            } catch (RuntimeException error) {
                String code = error instanceof ProtocolError fault ? fault.code : "failed";
                StringWriter stack = new StringWriter();
                error.printStackTrace(new PrintWriter(stack));
                reply = object("type", "error", "code", code, "message", messageOf(error), "stack", stack.toString());
            }
            reply.putAll(object("re", message.get("id")));
            emit(reply);
        }

        private Map<String, Object> handle(Map<String, Object> message) {
            Map<String, Object> ok = object("type", "ok");
            String type = String.valueOf(message.get("type"));
            switch (type) {
                case "hello" -> {
                    return hello(message);
                }
                case "open" -> open(message);
                case "bye" -> over = true;
                case "user" -> session(message).user(text(message, "name"), text(message, "kind"), answer(message));
                case "answer" -> session(message).answer(text(message, "call"), answer(message));
                case "sync" -> {
                    Surroundings session = session(message);
                    tasks.run();
                    return session.status();
                }
                case "close" -> {
                    session(message).close();
                    sessions.remove(text(message, "session"));
                    tasks.run();
                }
                default -> throw new ProtocolError("unsupported", "unknown type " + type);
            }
            return ok;
        }

        private static Map<String, Object> answer(Map<String, Object> message) {
            return Objects.requireNonNullElse(map(message, "answer"), Map.of());
        }

        private Surroundings session(Map<String, Object> message) {
            Surroundings session = sessions.get(text(message, "session"));
            if (session == null) {
                throw new ProtocolError("session", "session " + message.get("session") + " is not open");
            }
            return session;
        }

        private Map<String, Object> hello(Map<String, Object> message) {
            if (!list(message.get("protocol")).contains(1L)) {
                throw new ProtocolError("version", "this adapter speaks protocol 1 only");
            }
            Map<String, Object> subject = object("name", about.name, "version", about.version, "language", "java");
            return object(
                    "type", "helloOk", "protocol", 1, "nonce", message.get("nonce"), "subject", subject, "editions", about.editions,
                    "barrier", "quiescent", "capabilities", about.capabilities);
        }

        private void open(Map<String, Object> message) {
            String name = text(message, "session");
            if (sessions.containsKey(name)) {
                throw new ProtocolError("session", "session " + name + " is open already");
            }
            for (String need : needs(message)) {
                if (!about.capabilities.contains(need)) {
                    throw new ProtocolError("unsupported", "the subject has not declared " + need);
                }
            }
            Surroundings surroundings = new Surroundings(message, tasks, this::emit, about.capabilities.contains("retained"));
            surroundings.attach(open.apply(surroundings));
            sessions.put(name, surroundings);
        }

        private void emit(Map<String, Object> message) {
            write(message, text);
            text.append('\n');
        }

        void flush() {
            try {
                output.write(text.toString().getBytes(StandardCharsets.UTF_8));
                output.flush();
            } catch (IOException error) {
                Runtime.getRuntime().halt(1); // nobody listens any more
            }
            text.setLength(0);
        }
    }

    /** The capabilities without which a session would be another one than was asked for. */
    private static List<String> needs(Map<String, Object> message) {
        Map<String, Object> config = Objects.requireNonNullElse(map(message, "config"), Map.of());
        List<String> needs = new ArrayList<>(List.of("forms:" + message.get("form")));
        Map<String, Object> hooks = Objects.requireNonNullElse(map(config, "hooks"), Map.of());
        hooks.keySet().forEach(hook -> needs.add("hooks:" + hook));
        if (maps(config.get("tools")).stream().anyMatch(tool -> isTrue(tool, "prepareArguments"))) {
            needs.add("hooks:prepareArguments");
        }
        return needs;
    }

    // ---- JSON ----

    /** An object of names and values in turn; values that are null are left out. */
    public static Map<String, Object> object(Object... members) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int i = 0; i < members.length; i += 2) {
            if (members[i + 1] != null) {
                object.put((String) members[i], members[i + 1]);
            }
        }
        return object;
    }

    @SuppressWarnings("unchecked")
    public static Map<String, Object> asMap(Object value) {
        return (Map<String, Object>) value;
    }

    public static Map<String, Object> map(Map<String, Object> object, String name) {
        return asMap(object.get(name));
    }

    public static String text(Map<String, Object> object, String name) {
        return (String) object.get(name);
    }

    public static boolean isTrue(Map<String, Object> object, String name) {
        return Boolean.TRUE.equals(object.get(name));
    }

    /** A list, empty if there is none. */
    @SuppressWarnings("unchecked")
    public static List<Object> list(Object value) {
        return value == null ? List.of() : (List<Object>) value;
    }

    /** A list of objects, empty if there is none. */
    @SuppressWarnings("unchecked")
    public static List<Map<String, Object>> maps(Object value) {
        return value == null ? List.of() : (List<Map<String, Object>>) value;
    }

    /** What stands at the end of a path of names, or null. */
    private static Object member(Map<String, Object> object, String... path) {
        Object value = object;
        for (String name : path) {
            value = value == null ? null : asMap(value).get(name);
        }
        return value;
    }

    /** A copy of its own for whoever gets it: loops change what they are given. */
    private static Object copy(Object value) {
        if (value instanceof Map) {
            Map<String, Object> copied = new LinkedHashMap<>();
            asMap(value).forEach((name, member) -> copied.put(name, copy(member)));
            return copied;
        }
        return value instanceof List ? new ArrayList<>(list(value).stream().map(PiConformAdapter::copy).toList()) : value;
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map) {
            String separator = "{";
            for (Map.Entry<String, Object> member : asMap(value).entrySet()) {
                out.append(separator);
                writeText(member.getKey(), out);
                write(member.getValue(), out.append(':'));
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof List) {
            String separator = "[";
            for (Object item : list(value)) {
                write(item, out.append(separator));
                separator = ",";
            }
            out.append(separator.equals("[") ? "[]" : "]");
        } else if (value instanceof String text) {
            writeText(text, out);
        } else {
            out.append(value); // null, a boolean or a number
        }
    }

    private static void writeText(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private static Map<String, Object> parse(ByteBuffer line) {
        if (line.remaining() > MAX_LINE) {
            throw new ProtocolError("malformed", "the line is longer than 16 MiB");
        }
        try {
            Object value = new Reader(StandardCharsets.UTF_8.newDecoder().decode(line).toString()).document();
            if (value instanceof Map) {
                return asMap(value);
            }
        } catch (CharacterCodingException error) {
            throw new ProtocolError("malformed", "the line is no UTF-8");
        }
        throw new ProtocolError("malformed", "the line is no JSON object");
    }

    private static final class Reader {
        private final String text;
        private int at;

        Reader(String text) {
            this.text = text;
        }

        Object document() {
            Object value = value(0);
            space();
            if (at < text.length()) {
                throw fault("there is more after the value");
            }
            return value;
        }

        private ProtocolError fault(String what) {
            return new ProtocolError("malformed", what + " at offset " + at);
        }

        private void space() {
            while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
        }

        private boolean take(String token) {
            space();
            boolean found = text.startsWith(token, at);
            at += found ? token.length() : 0;
            return found;
        }

        private void expect(String token) {
            if (!take(token)) {
                throw fault(token + " is missing");
            }
        }

        private Object value(int depth) {
            if (depth > 200) {
                throw fault("the value nests too deep");
            }
            if (take("{")) {
                return members(depth);
            }
            if (take("[")) {
                return items(depth);
            }
            if (take("\"")) {
                return string();
            }
            if (take("true")) {
                return true;
            }
            if (take("false")) {
                return false;
            }
            return take("null") ? null : number();
        }

        private Map<String, Object> members(int depth) {
            Map<String, Object> object = new LinkedHashMap<>();
            while (!take("}")) {
                if (!object.isEmpty()) {
                    expect(",");
                }
                expect("\"");
                String name = string();
                expect(":");
                object.put(name, value(depth + 1));
            }
            return object;
        }

        private List<Object> items(int depth) {
            List<Object> items = new ArrayList<>();
            while (!take("]")) {
                if (!items.isEmpty()) {
                    expect(",");
                }
                items.add(value(depth + 1));
            }
            return items;
        }

        private Number number() {
            int from = at;
            while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            String digits = text.substring(from, at);
            try {
                if (digits.matches("-?\\d{1,18}")) {
                    return Long.valueOf(digits);
                }
                return new BigDecimal(digits);
            } catch (NumberFormatException error) {
                throw fault("there is no value");
            }
        }

        private String string() {
            StringBuilder string = new StringBuilder();
            for (; at < text.length(); at++) {
                char c = text.charAt(at);
                if (c == '"') {
                    at++;
                    return string.toString();
                }
                string.append(c == '\\' ? escape() : c);
            }
            throw fault("a text does not end");
        }

        /** The character that an escape stands for; its last character is passed by the caller. */
        private char escape() {
            at++;
            char c = at < text.length() ? text.charAt(at) : '\\';
            int known = "nrtbf".indexOf(c);
            if (known >= 0) {
                return "\n\r\t\b\f".charAt(known);
            }
            if (c != 'u') {
                return c;
            }
            if (at + 4 >= text.length()) {
                throw fault("an escape is cut off");
            }
            at += 4;
            return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
        }
    }
}
