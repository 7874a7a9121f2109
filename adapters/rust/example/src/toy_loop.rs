//! A small agent loop: ask the model, run the tools that it calls, feed the results
//! back, and tell listeners what happens. It is here to be judged before your own loop
//! is; once that is joined in main.rs, delete it. For messages, events and signals it
//! takes the adapter's types.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::pi_conform_adapter::{Json, Later, Listener, ModelStream, Promise, Signal, Tasks, Thrown};
use crate::pi_conform_adapter::{let_others_go_first, object, tool_calls};

/// PI_CONFORM_PLANT=late-update makes the loop pass on progress updates of a tool that
/// has returned already, so that you see what a finding looks like.
fn late_updates() -> bool {
    std::env::var("PI_CONFORM_PLANT").is_ok_and(|bug| bug == "late-update")
}

pub type Execute = Rc<dyn Fn(Json, Signal, Rc<dyn Fn(Json)>) -> Later<Result<Json, Thrown>>>; // call, signal, on_update
pub type Hook = Rc<dyn Fn(Rc<Call>, Signal) -> Later<Result<Json, Thrown>>>;
pub type Stream = Rc<dyn Fn(Vec<Json>, Signal) -> Later<Result<ModelStream, Thrown>>>;

pub struct Tool {
    pub name: String,
    pub parameters: Json,
    pub sequential: bool,
    pub execute: Execute,
}

/// What an agent calls out to. Hooks that are not there are none.
pub struct Options {
    pub tasks: Rc<Tasks>,
    pub model: String,
    pub tools: Vec<Rc<Tool>>,
    pub messages: Vec<Json>,
    pub sequential: bool,
    pub all_steering: bool, // at a time, not one
    pub all_follow_ups: bool,
    pub stream: Stream,
    pub before_tool_call: Option<Hook>,
    pub after_tool_call: Option<Hook>,
    pub on_poll: Box<dyn Fn(&str, &[Json])>,
}

/// Keeps the transcript, the queues and the listeners, and has at most one run at a time.
pub struct Agent {
    options: Options,
    pub steering: Queue,
    pub follow_ups: Queue,
    pub messages: RefCell<Vec<Json>>,
    pub pending_tool_calls: RefCell<Vec<String>>,
    pub streaming_role: RefCell<Option<String>>,
    pub error_message: RefCell<Option<String>>,
    listeners: RefCell<Vec<(usize, Listener)>>, // with a number that rises
    subscriptions: Cell<usize>,
    active: RefCell<Option<Rc<Run>>>,
}

impl Agent {
    pub fn new(options: Options) -> Rc<Agent> {
        Rc::new(Agent {
            steering: Queue::new(options.all_steering),
            follow_ups: Queue::new(options.all_follow_ups),
            messages: RefCell::new(options.messages.clone()),
            pending_tool_calls: RefCell::default(),
            streaming_role: RefCell::default(),
            error_message: RefCell::default(),
            listeners: RefCell::default(),
            subscriptions: Cell::default(),
            active: RefCell::default(),
            options,
        })
    }

    pub async fn prompt(self: Rc<Self>, messages: Vec<Json>) -> Result<(), Thrown> {
        self.refuse_if_busy()?;
        self.run(messages, false).await
    }

    /// Goes on from the transcript as it is, or from what is queued.
    pub async fn continue_run(self: Rc<Self>) -> Result<(), Thrown> {
        self.refuse_if_busy()?;
        let last = self.messages.borrow().last().map(|message| message.get("role").text() == "assistant");
        match last {
            None => return Err("there is nothing to continue from".into()),
            Some(false) => return self.run(Vec::new(), false).await,
            Some(true) => {}
        }
        let steering = self.steering.drain();
        if !steering.is_empty() {
            return self.run(steering, true).await;
        }
        let follow_ups = self.follow_ups.drain();
        if follow_ups.is_empty() {
            return Err("the last message is the assistant's, and nothing is queued".into());
        }
        self.run(follow_ups, false).await
    }

    pub fn abort(&self) {
        if let Some(run) = &*self.active.borrow() {
            run.aborted.set(true);
        }
    }

    pub fn reset(&self) -> Result<(), Thrown> {
        self.refuse_if_busy()?;
        self.messages.take();
        self.error_message.take();
        self.clear_queues();
        Ok(())
    }

    pub fn clear_queues(&self) {
        self.steering.waiting.take();
        self.follow_ups.waiting.take();
    }

    pub async fn wait_for_idle(self: Rc<Self>) {
        let ended = self.active.borrow().as_ref().map(|run| run.ended.clone());
        if let Some(ended) = ended {
            ended.await;
        }
    }

    pub fn is_running(&self) -> bool {
        self.active.borrow().is_some()
    }

    /// Adds a listener, unless it is there already, and gives its number.
    pub fn subscribe(&self, listener: Listener) -> usize {
        let mut listeners = self.listeners.borrow_mut();
        if let Some((number, _)) = listeners.iter().find(|(_, have)| Rc::ptr_eq(have, &listener)) {
            return *number;
        }
        let number = self.subscriptions.get() + 1;
        self.subscriptions.set(number);
        listeners.push((number, listener));
        number
    }

    pub fn unsubscribe(&self, number: usize) {
        self.listeners.borrow_mut().retain(|(have, _)| *have != number);
    }

    fn refuse_if_busy(&self) -> Result<(), Thrown> {
        if self.is_running() { Err("a run is active".into()) } else { Ok(()) }
    }

    async fn run(self: Rc<Self>, prompts: Vec<Json>, steered: bool) -> Result<(), Thrown> {
        let run = Run::new(self.clone(), prompts, steered);
        *self.active.borrow_mut() = Some(run.clone());
        self.error_message.take();
        let result = match run.main().await {
            Ok(()) => Ok(()),
            Err(error) => run.fail(error).await,
        };
        self.active.take();
        self.pending_tool_calls.take();
        self.streaming_role.take();
        run.ended.settle(());
        result
    }

    /// What an event does to the state; it comes before any listener is told.
    fn reduce(&self, event: &Json) {
        let message = event.get("message");
        let id = event.get("toolCallId").text();
        match event.get("type").text() {
            "message_start" | "message_update" => *self.streaming_role.borrow_mut() = Some(message.get("role").text().into()),
            "message_end" => {
                self.streaming_role.take();
                self.messages.borrow_mut().push(message.clone());
            }
            "tool_execution_start" => self.pending_tool_calls.borrow_mut().push(id.into()),
            "tool_execution_end" => self.pending_tool_calls.borrow_mut().retain(|have| have != id),
            "turn_end" if !message.get("errorMessage").text().is_empty() => {
                *self.error_message.borrow_mut() = Some(message.get("errorMessage").text().into());
            }
            _ => {}
        }
    }

    /// The first listener with a higher number: so those that come during a delivery are
    /// reached by it, and those that go are not.
    fn listener_after(&self, number: usize) -> Option<(usize, Listener)> {
        self.listeners.borrow().iter().find(|(have, _)| *have > number).cloned()
    }
}

/// One run, from agent_start to agent_end.
pub struct Run {
    agent: Rc<Agent>,
    prompts: Vec<Json>,
    steered: bool, // the prompts come from the steering queue
    aborted: Rc<Cell<bool>>,
    signal: Signal,
    ended: Promise<()>,
    over: Cell<bool>,
    context: RefCell<Vec<Json>>, // what the next request is made of
    added: RefCell<Vec<Json>>,   // what agent_end tells
}

impl Run {
    fn new(agent: Rc<Agent>, prompts: Vec<Json>, steered: bool) -> Rc<Run> {
        let context = [agent.messages.borrow().clone(), prompts.clone()].concat();
        let aborted = Rc::new(Cell::new(false));
        let signal = aborted.clone();
        Rc::new(Run {
            agent,
            added: RefCell::new(prompts.clone()),
            prompts,
            steered,
            aborted,
            signal: Signal::new(move || signal.get()),
            ended: Promise::default(),
            over: Cell::new(false),
            context: RefCell::new(context),
        })
    }

    async fn main(self: &Rc<Self>) -> Result<(), Thrown> {
        self.emit(event("agent_start", [])).await?;
        self.emit(event("turn_start", [])).await?;
        for message in &self.prompts {
            self.emit_message(message).await?;
        }
        self.turns().await?;
        let added = self.added.borrow().clone();
        self.emit(event("agent_end", [("messages", added.into())])).await?;
        self.over.set(true);
        Ok(())
    }

    /// Ends a run that broke with a message that says why.
    async fn fail(&self, error: Thrown) -> Result<(), Thrown> {
        let none = |names: &[&str]| names.iter().map(|name| (name.to_string(), 0usize.into())).collect();
        let cost = Json::Object(none(&["input", "output", "cacheRead", "cacheWrite", "total"]));
        let usage = Json::Object(none(&["input", "output", "cacheRead", "cacheWrite", "totalTokens"])).with("cost", cost);
        let message = object([
            ("role", "assistant".into()),
            ("content", vec![text("")].into()),
            ("api", "scripted".into()),
            ("provider", "scripted".into()),
            ("model", self.agent.options.model.clone().into()),
            ("usage", usage),
            ("stopReason", if self.aborted.get() { "aborted" } else { "error" }.into()),
            ("errorMessage", error.into()),
            ("timestamp", now()),
        ]);
        self.emit_message(&message).await?;
        self.emit(event("turn_end", [("message", message.clone()), ("toolResults", Json::List(vec![]))])).await?;
        self.emit(event("agent_end", [("messages", vec![message].into())])).await?;
        self.over.set(true);
        Ok(())
    }

    async fn turns(self: &Rc<Self>) -> Result<(), Thrown> {
        let mut queued = if self.steered { vec![] } else { self.poll("steering") };
        let mut first = true;
        loop {
            if !std::mem::take(&mut first) {
                self.emit(event("turn_start", [])).await?;
            }
            for message in queued {
                self.emit_message(&message).await?;
                self.add(&[message]);
            }
            let (message, results, unanswered) = self.turn().await?;
            self.emit(event("turn_end", [("message", message.clone()), ("toolResults", results.into())])).await?;
            if failed(&message) {
                return Ok(());
            }
            queued = self.poll("steering");
            if unanswered || !queued.is_empty() {
                continue;
            }
            queued = self.poll("followUp");
            if queued.is_empty() {
                return Ok(());
            }
        }
    }

    /// One answer of the model, and what its tool calls come to.
    async fn turn(self: &Rc<Self>) -> Result<(Json, Vec<Json>, bool), Thrown> {
        let message = self.request().await?;
        self.add(std::slice::from_ref(&message));
        let calls: Vec<Rc<Call>> = tool_calls(&message).map(|block| Call::new(self, &message, block)).collect();
        if calls.is_empty() || failed(&message) {
            return Ok((message, vec![], false));
        }
        let answered = self.batch(&message, calls).await?;
        let results: Vec<Json> = answered.iter().map(|call| call.message.borrow().clone()).collect();
        self.add(&results);
        let cut_off = message.get("stopReason").text() == "length";
        let terminate = answered.iter().all(|call| call.result.borrow().get("terminate").is_true());
        Ok((message, results, cut_off || !terminate))
    }

    /// Passes the model's stream on. The next event is read when everybody has dealt with the last.
    async fn request(&self) -> Result<Json, Thrown> {
        let known = |message: &&Json| matches!(message.get("role").text(), "user" | "assistant" | "toolResult");
        let messages = self.context.borrow().iter().filter(known).cloned().collect();
        let stream = (self.agent.options.stream)(messages, self.signal.clone()).await?;
        let mut begun = false;
        while let Some(ev) = stream.next().await? {
            let kind = ev.get("type").text();
            let partial = ev.get("partial").clone();
            match kind {
                "done" | "error" => break,
                "start" => {
                    begun = true;
                    self.emit(event("message_start", [("message", partial)])).await?;
                }
                _ if begun && matches!(kind.split('_').next(), Some("text" | "thinking" | "toolcall")) => {
                    self.emit(event("message_update", [("message", partial), ("assistantMessageEvent", ev)])).await?;
                }
                _ => {}
            }
        }
        let message = stream.result()?;
        if !begun {
            self.emit(event("message_start", [("message", message.clone())])).await?;
        }
        self.emit(event("message_end", [("message", message.clone())])).await?;
        Ok(message)
    }

    /// Answers calls; gives those that were begun.
    async fn batch(&self, message: &Json, calls: Vec<Rc<Call>>) -> Result<Vec<Rc<Call>>, Thrown> {
        if message.get("stopReason").text() == "length" {
            return self.cut_off(calls).await;
        }
        let sequential = calls.iter().any(|call| call.tool.as_ref().is_some_and(|tool| tool.sequential));
        if sequential || self.agent.options.sequential { self.one_by_one(calls).await } else { self.together(calls).await }
    }

    /// Arguments that were cut off may still parse, so none of these calls can be trusted.
    async fn cut_off(&self, calls: Vec<Rc<Call>>) -> Result<Vec<Rc<Call>>, Thrown> {
        for call in &calls {
            call.emit_start().await?;
            let name = call.block.get("name").text();
            call.fail(&format!("{name} was not executed: the answer was cut off, so issue the call again"));
            call.emit_end().await?;
            call.emit_result().await?;
        }
        Ok(calls)
    }

    async fn one_by_one(&self, calls: Vec<Rc<Call>>) -> Result<Vec<Rc<Call>>, Thrown> {
        let mut begun = Vec::new();
        for call in calls {
            begun.push(call.clone());
            call.emit_start().await?;
            call.prepare().await;
            if !call.done.get() {
                call.execute().await?;
            }
            call.emit_end().await?;
            call.emit_result().await?;
            if self.aborted.get() {
                break;
            }
        }
        Ok(begun)
    }

    /// Prepares in order, executes together, gives results in order.
    async fn together(&self, calls: Vec<Rc<Call>>) -> Result<Vec<Rc<Call>>, Thrown> {
        let mut begun = Vec::new();
        for call in calls {
            begun.push(call.clone());
            call.emit_start().await?;
            call.prepare().await;
            if call.done.get() {
                call.emit_end().await?;
            }
            if self.aborted.get() {
                break;
            }
        }
        let prepared = begun.iter().filter(|call| !call.done.get());
        let tasks = prepared.map(|call| self.agent.options.tasks.spawn(call.clone().execute_and_end())).collect();
        all(tasks).await?;
        for call in &begun {
            call.emit_result().await?;
        }
        Ok(begun)
    }

    async fn emit(&self, event: Json) -> Result<(), Thrown> {
        if self.over.get() {
            return Ok(());
        }
        self.agent.reduce(&event);
        let event = Rc::new(event);
        let mut next = self.agent.listener_after(0);
        while let Some((number, listener)) = next {
            listener(event.clone(), Some(self.signal.clone())).await?;
            next = self.agent.listener_after(number);
        }
        Ok(())
    }

    async fn emit_message(&self, message: &Json) -> Result<(), Thrown> {
        self.emit(event("message_start", [("message", message.clone())])).await?;
        self.emit(event("message_end", [("message", message.clone())])).await
    }

    fn add(&self, messages: &[Json]) {
        self.context.borrow_mut().extend_from_slice(messages);
        self.added.borrow_mut().extend_from_slice(messages);
    }

    fn poll(&self, name: &str) -> Vec<Json> {
        let drained = if name == "steering" { self.agent.steering.drain() } else { self.agent.follow_ups.drain() };
        (self.agent.options.on_poll)(name, &drained);
        drained
    }
}

/// One tool call, from its start to its result message.
pub struct Call {
    run: Rc<Run>,
    pub assistant: Json,
    pub block: Json,
    tool: Option<Rc<Tool>>,
    done: Cell<bool>, // there is a result
    pub result: RefCell<Json>,
    pub is_error: Cell<bool>,
    message: RefCell<Json>,
    updates: RefCell<Vec<Promise<Result<(), Thrown>>>>,
    accepting: Cell<bool>,
}

impl Call {
    fn new(run: &Rc<Run>, assistant: &Json, block: &Json) -> Rc<Call> {
        let tool = run.agent.options.tools.iter().find(|tool| tool.name == block.get("name").text()).cloned();
        Rc::new(Call {
            run: run.clone(),
            assistant: assistant.clone(),
            block: block.clone(),
            tool,
            done: Cell::new(false),
            result: RefCell::new(Json::Null),
            is_error: Cell::new(false),
            message: RefCell::new(Json::Null),
            updates: RefCell::default(),
            accepting: Cell::new(true),
        })
    }

    pub fn context(&self) -> Vec<Json> {
        self.run.context.borrow().clone()
    }

    /// Whatever goes wrong here is the call's result, and it is not executed.
    async fn prepare(self: &Rc<Self>) {
        let Some(tool) = &self.tool else {
            return self.fail(&format!("there is no tool {}", self.block.get("name").text()));
        };
        if let Some(fault) = invalid(&tool.parameters, self.block.get("arguments")) {
            return self.fail(&fault);
        }
        let answer = self.ask(&self.run.agent.options.before_tool_call).await;
        match answer {
            Err(error) => self.fail(&error),
            Ok(_) if self.run.aborted.get() => self.fail("the call was aborted"),
            Ok(answer) if answer.get("block").is_true() => {
                self.fail(Some(answer.get("reason").text()).filter(|reason| !reason.is_empty()).unwrap_or("the call was blocked"));
                if answer.get("terminate").is_true() {
                    self.change("terminate", true.into());
                }
            }
            Ok(_) => {}
        }
    }

    async fn execute(self: &Rc<Self>) -> Result<(), Thrown> {
        let Some(tool) = &self.tool else { return Ok(()) };
        let call = self.clone();
        let on_update = Rc::new(move |partial| call.update(partial));
        match (tool.execute)(self.block.clone(), self.run.signal.clone(), on_update).await {
            Ok(result) => self.settle(result, false),
            Err(error) => self.fail(&error),
        }
        self.accepting.set(late_updates());
        let_others_go_first().await; // a tool that did not wait must not keep the others from beginning
        all(self.updates.take()).await?;
        match self.ask(&self.run.agent.options.after_tool_call).await {
            Err(error) => self.fail(&error),
            Ok(answer) => self.change_all(&answer),
        }
        Ok(())
    }

    async fn execute_and_end(self: Rc<Self>) -> Result<(), Thrown> {
        self.execute().await?;
        self.emit_end().await
    }

    async fn ask(self: &Rc<Self>, hook: &Option<Hook>) -> Result<Json, Thrown> {
        match hook {
            Some(hook) => hook(self.clone(), self.run.signal.clone()).await,
            None => Ok(Json::Null),
        }
    }

    /// A tool may keep this function: what it says after it has returned is dropped.
    fn update(self: &Rc<Self>, partial: Json) {
        if self.accepting.get() {
            let event = self.event("tool_execution_update", [("args", self.block.get("arguments").clone()), ("partialResult", partial)]);
            let run = self.run.clone();
            let delivery = self.run.agent.options.tasks.spawn(async move { run.emit(event).await });
            self.updates.borrow_mut().push(delivery);
        }
    }

    fn settle(&self, result: Json, is_error: bool) {
        *self.result.borrow_mut() = result;
        self.is_error.set(is_error);
        self.done.set(true);
    }

    fn fail(&self, reason: &str) {
        self.settle(object([("content", vec![text(reason)].into()), ("details", object([]))]), true);
    }

    /// Each member replaces the whole of what there was.
    fn change_all(&self, answer: &Json) {
        for name in ["content", "details", "usage", "terminate"] {
            if let Some(value) = answer.get(name).present() {
                self.change(name, value.clone());
            }
        }
        if let Json::Bool(is_error) = answer.get("isError") {
            self.is_error.set(*is_error);
        }
    }

    fn change(&self, name: &str, value: Json) {
        let result = self.result.take();
        *self.result.borrow_mut() = result.with(name, value);
    }

    async fn emit_start(&self) -> Result<(), Thrown> {
        self.run.emit(self.event("tool_execution_start", [("args", self.block.get("arguments").clone()), ("partialResult", Json::Null)])).await
    }

    async fn emit_end(&self) -> Result<(), Thrown> {
        let result = self.result.borrow().clone();
        self.run.emit(self.event("tool_execution_end", [("result", result), ("isError", self.is_error.get().into())])).await
    }

    async fn emit_result(&self) -> Result<(), Thrown> {
        let result = self.result.borrow().clone();
        let message = object([
            ("role", "toolResult".into()),
            ("toolCallId", self.block.get("id").clone()),
            ("toolName", self.block.get("name").clone()),
            ("content", result.get("content").present().cloned().unwrap_or(Json::List(vec![]))),
            ("details", result.get("details").clone()),
            ("usage", result.get("usage").clone()),
            ("isError", self.is_error.get().into()),
            ("timestamp", now()),
        ]);
        *self.message.borrow_mut() = message.clone();
        self.run.emit_message(&message).await
    }

    fn event(&self, kind: &str, members: [(&str, Json); 2]) -> Json {
        let [first, second] = members;
        event(kind, [("toolCallId", self.block.get("id").clone()), ("toolName", self.block.get("name").clone()), first, second])
    }
}

/// Messages for later.
pub struct Queue {
    all: bool,
    waiting: RefCell<Vec<Json>>,
}

impl Queue {
    fn new(all: bool) -> Queue {
        Queue { all, waiting: RefCell::default() }
    }

    pub fn put(&self, message: Json) {
        self.waiting.borrow_mut().push(message);
    }

    fn drain(&self) -> Vec<Json> {
        let mut waiting = self.waiting.borrow_mut();
        let n = if self.all { waiting.len() } else { waiting.len().min(1) };
        waiting.drain(..n).collect()
    }
}

/// Waits for all, also if one fails, and then fails with the first.
async fn all(tasks: Vec<Promise<Result<(), Thrown>>>) -> Result<(), Thrown> {
    let mut result = Ok(());
    for task in tasks {
        result = result.and(task.await);
    }
    result
}

fn event<const N: usize>(kind: &str, members: [(&str, Json); N]) -> Json {
    let Json::Object(rest) = object(members) else { return Json::Null };
    let mut all = vec![("type".to_string(), kind.into())];
    all.extend(rest);
    Json::Object(all)
}

fn failed(message: &Json) -> bool {
    matches!(message.get("stopReason").text(), "error" | "aborted")
}

pub fn text(text: &str) -> Json {
    object([("type", "text".into()), ("text", text.into())])
}

pub fn now() -> Json {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Json::Number(since.as_millis().to_string())
}

/// What is wrong with arguments: as much of JSON Schema as a toy needs.
fn invalid(schema: &Json, args: &Json) -> Option<String> {
    let missing = schema.get("required").list().iter().find(|name| !args.has(name.text()));
    if let Some(name) = missing {
        return Some(format!("the argument {} is missing", name.text()));
    }
    for (name, member) in schema.get("properties").members() {
        let wanted = member.get("type").text();
        let fits = match args.get(name) {
            Json::Null => !args.has(name) || wanted == "null",
            Json::Bool(_) => wanted == "boolean",
            Json::Number(_) => wanted == "number",
            Json::Text(_) => wanted == "string",
            Json::List(_) => wanted == "array",
            Json::Object(_) => wanted == "object",
        };
        if !fits && !wanted.is_empty() {
            return Some(format!("the argument {name} has to be a {wanted}"));
        }
    }
    None
}
