//! Joins an agent loop to pi-conform. «pi-conform run» starts this program and speaks
//! with it on standard input and output; pi_conform_adapter.rs does the talking.

mod pi_conform_adapter;
// YOUR LOOP: a crate that Cargo.toml names, in the place of this module.
mod toy_loop;

use std::rc::Rc;

use pi_conform_adapter::{About, Agent, Json, Later, Listener, Prompt, State, Surroundings, Thrown, object, tag, tags};
use toy_loop::{Call, Hook, Options, Tool};

fn main() {
    // YOUR LOOP: what it is, which edition of the contract it follows, and what it can do.
    // What is not declared is not judged. docs/PROTOCOL.md of pi-conform lists the capabilities.
    let about = About {
        name: "toy-loop",
        version: "0.1.0",
        editions: &["0.84.3"],
        capabilities: &["state", "polls", "reads", "listeners", "signals", "forms:agent", "hooks:beforeToolCall", "hooks:afterToolCall"],
    };
    pi_conform_adapter::serve(about, |surroundings| Rc::new(Joined(open(surroundings))));
}

/// Makes a loop whose model, tools and hooks are those of the surroundings.
fn open(surroundings: Rc<Surroundings>) -> Rc<toy_loop::Agent> {
    let s = surroundings.clone();
    let config = &s.config;
    let polled = surroundings.clone();
    // YOUR LOOP: make it here, and translate what it calls things.
    toy_loop::Agent::new(Options {
        tasks: surroundings.tasks.clone(),
        model: config.get("model").text().into(),
        tools: config.get("tools").list().iter().map(|tool| tool_of(&surroundings, tool)).collect(),
        messages: config.get("messages").list().to_vec(),
        sequential: config.get("toolExecution").text() == "sequential",
        all_steering: config.get("steeringMode").text() == "all",
        all_follow_ups: config.get("followUpMode").text() == "all",
        on_poll: Box::new(move |queue, drained| {
            polled.polled(if queue == "steering" { "getSteeringMessages" } else { "getFollowUpMessages" }, drained);
        }),
        // A hook that the case does not have must be absent, not one that does nothing.
        before_tool_call: surroundings.has_hook("beforeToolCall").then(|| hook_of(&surroundings, "beforeToolCall")),
        after_tool_call: surroundings.has_hook("afterToolCall").then(|| hook_of(&surroundings, "afterToolCall")),
        stream: Rc::new(move |messages, signal| {
            let surroundings = surroundings.clone();
            Box::pin(async move {
                let config = &surroundings.config;
                let level = config.get("thinkingLevel").present().filter(|level| level.text() != "off").cloned();
                let names: Vec<Json> = config.get("tools").list().iter().map(|tool| tool.get("name").clone()).collect();
                let payload = object([
                    ("model", config.get("model").clone()),
                    ("level", level.into()),
                    ("systemPrompt", config.get("systemPrompt").clone()),
                    ("tools", names.into()),
                    ("messages", tags(&messages)),
                    ("signal", true.into()),
                ]);
                surroundings.model(payload, Some(signal)).await
            })
        }),
    })
}

fn tool_of(surroundings: &Rc<Surroundings>, tool: &Json) -> Rc<Tool> {
    let surroundings = surroundings.clone();
    Rc::new(Tool {
        name: tool.get("name").text().into(),
        parameters: tool.get("parameters").clone(),
        sequential: tool.get("executionMode").text() == "sequential",
        execute: Rc::new(move |call, signal, on_update| {
            let surroundings = surroundings.clone();
            Box::pin(async move {
                let payload = object([
                    ("toolCallId", call.get("id").clone()),
                    ("toolName", call.get("name").clone()),
                    ("args", call.get("arguments").clone()),
                    ("signal", true.into()),
                ]);
                surroundings.execute(payload, Some(signal), on_update).await
            })
        }),
    })
}

fn hook_of(surroundings: &Rc<Surroundings>, hook: &'static str) -> Hook {
    let surroundings = surroundings.clone();
    Rc::new(move |call, signal| {
        let surroundings = surroundings.clone();
        Box::pin(async move {
            let payload = payload_of(&call, hook == "afterToolCall");
            surroundings.hook(hook, Some(call.block.get("id").text()), payload, Some(signal)).await
        })
    })
}

/// What a hook that belongs to a tool call was given.
fn payload_of(call: &Call, after: bool) -> Json {
    object([
        ("toolCallId", call.block.get("id").clone()),
        ("toolName", call.block.get("name").clone()),
        ("rawArgs", call.block.get("arguments").clone()),
        ("args", call.block.get("arguments").clone()),
        ("assistant", tag(&call.assistant).into()),
        ("context", tags(&call.context())),
        ("signal", true.into()),
        ("result", after.then(|| call.result.borrow().clone()).into()),
        ("isError", after.then(|| call.is_error.get()).into()),
    ])
}

/// YOUR LOOP: what its user does, in your loop's words.
struct Joined(Rc<toy_loop::Agent>);

impl Agent for Joined {
    fn prompt(&self, prompt: Prompt) -> Later<Result<(), Thrown>> {
        let messages = match prompt {
            Prompt::Messages(messages) => messages,
            Prompt::Text(text, images) => {
                let content = [vec![toy_loop::text(&text)], images].concat();
                vec![object([("role", "user".into()), ("content", content.into()), ("timestamp", toy_loop::now())])]
            }
        };
        Box::pin(self.0.clone().prompt(messages))
    }

    fn continue_run(&self) -> Later<Result<(), Thrown>> {
        Box::pin(self.0.clone().continue_run())
    }

    fn wait_for_idle(&self) -> Later<()> {
        Box::pin(self.0.clone().wait_for_idle())
    }

    fn reset(&self) -> Result<(), Thrown> {
        self.0.reset()
    }

    fn steer(&self, message: Json) {
        self.0.steering.put(message);
    }

    fn follow_up(&self, message: Json) {
        self.0.follow_ups.put(message);
    }

    fn abort(&self) {
        self.0.abort();
    }

    fn clear_queue(&self) {
        self.0.clear_queues();
    }

    fn subscribe(&self, listener: Listener) -> Box<dyn Fn()> {
        let number = self.0.subscribe(listener);
        let agent = self.0.clone();
        Box::new(move || agent.unsubscribe(number))
    }

    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    fn state(&self) -> Option<State> {
        let messages = self.0.messages.borrow();
        Some(State {
            pending_tool_calls: self.0.pending_tool_calls.borrow().clone(),
            messages: messages.len(),
            last: messages.last().map(tag),
            streaming_role: self.0.streaming_role.borrow().clone(),
            error_message: self.0.error_message.borrow().clone(),
        })
    }
}
