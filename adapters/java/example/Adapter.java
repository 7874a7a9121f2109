import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/**
 * Joins an agent loop to pi-conform. «pi-conform run» starts this program and speaks with it on
 * standard input and output; PiConformAdapter.java does the talking.
 */
public final class Adapter {
    public static void main(String[] args) throws Exception {
        // YOUR LOOP: what it is, which edition of the contract it follows, and what it can do.
        // What is not declared is not judged. docs/PROTOCOL.md of pi-conform lists the capabilities.
        List<String> capabilities = List.of(
                "state", "polls", "reads", "listeners", "signals", "retained", "forms:agent", "hooks:beforeToolCall", "hooks:afterToolCall");
        PiConformAdapter.About about = new PiConformAdapter.About("toy-loop", "0.1.0", List.of("0.84.3"), capabilities);
        PiConformAdapter.serve(about, surroundings -> new Joined(open(surroundings)));
    }

    /** Makes a loop whose model, tools and hooks are those of the surroundings. */
    private static ToyLoop open(PiConformAdapter.Surroundings surroundings) {
        Map<String, Object> config = surroundings.config;
        // YOUR LOOP: make it here, and translate what it calls things.
        return new ToyLoop(new ToyLoop.Options(
                surroundings.tasks,
                (String) config.get("model"),
                PiConformAdapter.maps(config.get("tools")).stream().map(tool -> toolOf(surroundings, tool)).toList(),
                PiConformAdapter.maps(config.get("messages")),
                "sequential".equals(config.get("toolExecution")),
                "all".equals(config.get("steeringMode")),
                "all".equals(config.get("followUpMode")),
                (messages, signal) -> surroundings.model(requestOf(config, messages, signal), signal),
                // A hook that the case does not have must be absent, not one that does nothing.
                surroundings.hasHook("beforeToolCall") ? hookOf(surroundings, "beforeToolCall") : null,
                surroundings.hasHook("afterToolCall") ? hookOf(surroundings, "afterToolCall") : null,
                (steering, drained) -> surroundings.polled(steering ? "getSteeringMessages" : "getFollowUpMessages", drained)));
    }

    private static Map<String, Object> requestOf(Map<String, Object> config, List<Map<String, Object>> messages, BooleanSupplier signal) {
        Object level = config.get("thinkingLevel");
        return PiConformAdapter.object(
                "model", config.get("model"), "level", "off".equals(level) ? null : level, "systemPrompt", config.get("systemPrompt"),
                "tools", PiConformAdapter.maps(config.get("tools")).stream().map(tool -> tool.get("name")).toList(),
                "messages", PiConformAdapter.tags(messages), "signal", signal != null);
    }

    private static ToyLoop.Tool toolOf(PiConformAdapter.Surroundings surroundings, Map<String, Object> tool) {
        String name = (String) tool.get("name");
        ToyLoop.Execute execute = (call, signal, onUpdate) -> {
            Map<String, Object> payload = PiConformAdapter.object(
                    "toolCallId", call.get("id"), "toolName", name, "args", call.get("arguments"), "signal", signal != null);
            return surroundings.execute(payload, signal, onUpdate);
        };
        return new ToyLoop.Tool(name, PiConformAdapter.map(tool, "parameters"), "sequential".equals(tool.get("executionMode")), execute);
    }

    private static ToyLoop.Hook hookOf(PiConformAdapter.Surroundings surroundings, String hook) {
        boolean after = hook.equals("afterToolCall");
        return (call, signal) -> {
            Map<String, Object> payload = PiConformAdapter.object(
                    "toolCallId", call.block.get("id"), "toolName", call.block.get("name"), "rawArgs", call.block.get("arguments"),
                    "args", call.args, "assistant", PiConformAdapter.tag(call.assistant), "context", PiConformAdapter.tags(call.context()),
                    "signal", signal != null, "result", after ? call.result : null, "isError", after ? call.isError : null);
            return surroundings.hook(hook, (String) call.block.get("id"), payload, signal);
        };
    }

    /** YOUR LOOP: what its user does, in your loop's words. */
    private record Joined(ToyLoop loop) implements PiConformAdapter.Agent {
        @Override
        public void prompt(List<Map<String, Object>> messages, String text, List<Object> images) throws Exception {
            loop.prompt(messages != null ? messages : List.of(userMessage(text, images)));
        }

        private static Map<String, Object> userMessage(String text, List<Object> images) {
            List<Object> content = new ArrayList<>(List.of(ToyLoop.text(text)));
            content.addAll(images);
            return PiConformAdapter.object("role", "user", "content", content, "timestamp", ToyLoop.now());
        }

        @Override
        public void continueRun() throws Exception {
            loop.continueRun();
        }

        @Override
        public void waitForIdle() throws Exception {
            loop.waitForIdle();
        }

        @Override
        public void reset() {
            loop.reset();
        }

        @Override
        public void steer(Map<String, Object> message) {
            loop.steering.put(message);
        }

        @Override
        public void followUp(Map<String, Object> message) {
            loop.followUps.put(message);
        }

        @Override
        public void abort() {
            loop.abort();
        }

        @Override
        public void clearQueue() {
            loop.clearQueues();
        }

        @Override
        public Runnable subscribe(PiConformAdapter.Listener listener) {
            return loop.subscribe(listener);
        }

        @Override
        public boolean isRunning() {
            return loop.isRunning();
        }

        @Override
        public PiConformAdapter.State state() {
            return loop.state();
        }
    }
}
