//! Joins an agent loop written in Rust to pi-conform. It needs the standard library
//! and nothing besides. An adapter program is
//!
//! ```ignore
//! fn main() {
//!     pi_conform_adapter::serve(about(), |surroundings| Rc::new(MyAgent::new(surroundings)));
//! }
//! ```
//!
//! The parts, in the order of this file: `Json`; `Tasks`, a small executor on one
//! thread; `Agent`, what your loop has to offer; `Surroundings`, what your loop meets
//! in one session (model, tools, hooks, listeners, user); `ModelStream`, what it reads
//! of one request; and the server, which speaks the protocol.
//!
//! The loop's futures run on `Tasks`, and only within a barrier, which is reached when
//! no task is ready. So a loop must not wait for threads, timers or input of its own;
//! what it only awaits may come from any crate (channels and locks for async code do,
//! timers do not). Standard output is for the protocol alone: print with `eprintln!`.

#![allow(dead_code)] // a loop need not use all of it

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::future::Future;
use std::io::{BufRead, Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

const MAX_LINE: usize = 16 * 1024 * 1024; // bytes

// ---- JSON ----

/// A JSON value. Numbers are kept as they are written, members in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    #[default]
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// An object of these members; those that are null are left out.
pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    let present = members.into_iter().filter(|(_, value)| !value.is_null());
    Json::Object(present.map(|(name, value)| (name.to_string(), value)).collect())
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<usize> for Json {
    fn from(number: usize) -> Json {
        Json::Number(number.to_string())
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

impl Json {
    /// The member of that name, or null.
    pub fn get(&self, name: &str) -> &Json {
        static NULL: Json = Json::Null;
        self.members().iter().find(|(have, _)| have == name).map_or(&NULL, |(_, value)| value)
    }

    pub fn has(&self, name: &str) -> bool {
        self.members().iter().any(|(have, _)| have == name)
    }

    /// The text, or an empty one if it is none.
    pub fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            _ => "",
        }
    }

    /// The items, or none if it is no list.
    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }

    pub fn members(&self) -> &[(String, Json)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }

    pub fn is_true(&self) -> bool {
        *self == Json::Bool(true)
    }

    pub fn index(&self) -> Option<usize> {
        match self {
            Json::Number(number) => number.parse().ok(),
            _ => None,
        }
    }

    /// The value itself, or nothing if it is null.
    pub fn present(&self) -> Option<&Json> {
        (!self.is_null()).then_some(self)
    }

    /// The object with a member set.
    pub fn with(mut self, name: &str, value: Json) -> Json {
        if let Json::Object(members) = &mut self {
            members.retain(|(have, _)| have != name);
            members.push((name.to_string(), value));
        }
        self
    }

    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { rest: text };
        let value = reader.value(0)?;
        reader.space();
        if reader.rest.is_empty() { Ok(value) } else { Err("there is more after the value".into()) }
    }

    fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) => out.push_str(number),
            Json::Text(text) => write_text(text, out),
            Json::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, token: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(format!("{token} is missing before {:.20?}", self.rest)) }
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > 200 {
            return Err("the value nests too deep".into());
        }
        self.space();
        match self.rest.chars().next() {
            Some('{') => self.object(depth),
            Some('[') => self.list(depth),
            Some('"') => Ok(Json::Text(self.string()?)),
            Some('t') => self.expect("true").map(|()| Json::Bool(true)),
            Some('f') => self.expect("false").map(|()| Json::Bool(false)),
            Some('n') => self.expect("null").map(|()| Json::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.take("}") {
            if !members.is_empty() {
                self.expect(",")?;
                self.space();
            }
            let name = self.string()?;
            self.expect(":")?;
            members.push((name, self.value(depth + 1)?));
        }
        Ok(Json::Object(members))
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.take("]") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.value(depth + 1)?);
        }
        Ok(Json::List(items))
    }

    fn number(&mut self) -> Result<Json, String> {
        let end = self.rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        number.parse::<f64>().map_err(|_| format!("there is no value in {:.20?}", self.rest))?;
        self.rest = rest;
        Ok(Json::Number(number.to_string()))
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect("\"")?;
        let mut text = String::new();
        loop {
            let end = self.rest.find(['"', '\\']).ok_or("a text does not end")?;
            text.push_str(&self.rest[..end]);
            let quoted = self.rest[end..].starts_with('"');
            self.rest = &self.rest[end + 1..];
            if quoted {
                return Ok(text);
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let c = self.rest.chars().next().ok_or("a text does not end")?;
        self.rest = &self.rest[c.len_utf8()..];
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => self.code_point()?,
            c => c,
        })
    }

    /// A code point, of two escapes if need be; half of a pair becomes U+FFFD.
    fn code_point(&mut self) -> Result<char, String> {
        let high = self.hex()?;
        if !(0xD800..0xDC00).contains(&high) || !self.rest.starts_with("\\u") {
            return Ok(char::from_u32(high).unwrap_or('\u{FFFD}'));
        }
        self.rest = &self.rest[2..];
        let low = self.hex()?;
        Ok(char::from_u32(0x10000 + ((high - 0xD800) << 10) + low.wrapping_sub(0xDC00)).unwrap_or('\u{FFFD}'))
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.rest.get(..4).ok_or("an escape is cut off")?;
        let code = u32::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
        self.rest = &self.rest[4..];
        Ok(code)
    }
}

// ---- messages ----

/// A short description of a message that is the same in every language.
pub fn tag(message: &Json) -> String {
    let role = message.get("role").text();
    let details = match role {
        "assistant" => {
            let ids: Vec<&str> = tool_calls(message).map(|call| call.get("id").text()).collect();
            format!(" {} [{}]", message.get("stopReason").text(), ids.join(" "))
        }
        "toolResult" => {
            let error = if message.get("isError").is_true() { " error" } else { "" };
            format!(" {}{error}", message.get("toolCallId").text())
        }
        _ => String::new(),
    };
    format!("{role}{details}: {}", plain_text(message.get("content")))
}

pub fn tags(messages: &[Json]) -> Json {
    messages.iter().map(tag).collect::<Vec<_>>().into()
}

/// The tool call blocks of a message, in source order.
pub fn tool_calls(message: &Json) -> impl Iterator<Item = &Json> {
    message.get("content").list().iter().filter(|block| block.get("type").text() == "toolCall")
}

fn plain_text(content: &Json) -> String {
    if let Json::Text(text) = content {
        return text.clone();
    }
    let texts = content.list().iter().filter(|block| block.get("type").text() == "text");
    texts.map(|block| block.get("text").text()).collect::<Vec<_>>().join("\n")
}

// ---- tasks ----

/// A future that owns all that it needs.
pub type Later<T> = Pin<Box<dyn Future<Output = T>>>;

/// What a callback that throws gives: the error's message.
pub type Thrown = String;

/// An executor on one thread. It runs when it is told to, until no task is ready.
#[derive(Default)]
pub struct Tasks {
    futures: RefCell<HashMap<usize, Later<()>>>,
    last: Cell<usize>,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

struct WakeTask {
    id: usize,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().push_back(self.id);
    }
}

impl Tasks {
    /// Begins a task; what is returned waits for its end.
    pub fn spawn<T: Clone + 'static>(&self, future: impl Future<Output = T> + 'static) -> Promise<T> {
        let promise = Promise::default();
        let end = promise.clone();
        let id = self.last.get() + 1;
        self.last.set(id);
        self.futures.borrow_mut().insert(id, Box::pin(async move { end.settle(future.await) }));
        self.ready.lock().unwrap().push_back(id);
        promise
    }

    /// The barrier: runs tasks until none is ready.
    pub fn run(&self) {
        while let Some(id) = self.next() {
            let Some(mut future) = self.futures.borrow_mut().remove(&id) else { continue };
            let waker = Waker::from(Arc::new(WakeTask { id, ready: self.ready.clone() }));
            if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.futures.borrow_mut().insert(id, future);
            }
        }
    }

    fn next(&self) -> Option<usize> {
        self.ready.lock().unwrap().pop_front()
    }
}

/// A value that comes later, for any number of those who wait for it.
pub struct Promise<T>(Rc<RefCell<(Option<T>, Vec<Waker>)>>);

impl<T> Default for Promise<T> {
    fn default() -> Self {
        Promise(Rc::new(RefCell::new((None, Vec::new()))))
    }
}

impl<T> Clone for Promise<T> {
    fn clone(&self) -> Self {
        Promise(self.0.clone())
    }
}

impl<T> Promise<T> {
    /// Gives the value; only the first counts.
    pub fn settle(&self, value: T) {
        let mut state = self.0.borrow_mut();
        state.0.get_or_insert(value);
        state.1.drain(..).for_each(Waker::wake);
    }
}

impl<T: Clone> Future for Promise<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.borrow_mut();
        match &state.0 {
            Some(value) => Poll::Ready(value.clone()),
            None => {
                state.1.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Lets every task that is ready go on first.
pub async fn let_others_go_first() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

// ---- what your loop has to offer ----

/// What tells your loop's callbacks of an abort.
#[derive(Clone)]
pub struct Signal(Rc<dyn Fn() -> bool>);

impl Signal {
    /// A signal that asks this whenever it is asked.
    pub fn new(fired: impl Fn() -> bool + 'static) -> Signal {
        Signal(Rc::new(fired))
    }

    pub fn fired(&self) -> bool {
        (self.0)()
    }
}

/// An event as the loop made it. The same event is the same `Rc` for every listener.
pub type Event = Rc<Json>;

pub type Listener = Rc<dyn Fn(Event, Option<Signal>) -> Later<Result<(), Thrown>>>;

/// What a user says.
pub enum Prompt {
    Messages(Vec<Json>),
    Text(String, Vec<Json>), // with images
}

/// The loop of one session as its user sees it.
pub trait Agent {
    /// Settles with the run, or with an error at once if it is refused.
    fn prompt(&self, prompt: Prompt) -> Later<Result<(), Thrown>>;
    fn continue_run(&self) -> Later<Result<(), Thrown>>;
    fn wait_for_idle(&self) -> Later<()>;
    fn reset(&self) -> Result<(), Thrown>;
    fn steer(&self, message: Json);
    fn follow_up(&self, message: Json);
    fn abort(&self);
    fn clear_queue(&self);
    /// Adds a listener after the others and gives what takes it away again.
    fn subscribe(&self, listener: Listener) -> Box<dyn Fn()>;
    fn is_running(&self) -> bool;
    /// The agent's state; none if it has none.
    fn state(&self) -> Option<State>;
}

/// The agent's own state.
pub struct State {
    pub pending_tool_calls: Vec<String>,
    pub messages: usize,      // length of the transcript
    pub last: Option<String>, // tag of its last message
    pub streaming_role: Option<String>,
    pub error_message: Option<String>,
}

// ---- what the loop meets ----

/// What a loop reads of one model request: events, and the message that they come to.
pub struct ModelStream {
    surroundings: Rc<Surroundings>,
    name: String,
    reads: Cell<usize>,
    answers: Rc<RefCell<Answers>>,
}

#[derive(Default)]
struct Answers {
    events: VecDeque<Json>,
    last: Option<Json>, // the answer that ended the stream
    more: Promise<()>,
}

impl Answers {
    /// Adds an answer of the script or the harness; true if it was the last.
    fn give(&mut self, answer: &Json) -> bool {
        let event = answer.get("event");
        if !event.is_null() {
            self.events.push_back(event.clone());
        }
        if event.is_null() || matches!(event.get("type").text(), "done" | "error") {
            self.last = Some(answer.clone());
        }
        std::mem::take(&mut self.more).settle(());
        self.last.is_some()
    }
}

impl ModelStream {
    /// The next event, or none at the end.
    pub async fn next(&self) -> Result<Option<Json>, Thrown> {
        let n = self.reads.replace(self.reads.get() + 1);
        self.surroundings.out("read", [("name", self.name.as_str().into()), ("n", n.into())]);
        loop {
            let more = {
                let mut answers = self.answers.borrow_mut();
                if let Some(event) = answers.events.pop_front() {
                    return Ok(Some(event));
                }
                match &answers.last {
                    Some(last) => return or_thrown(last).map(|_| None),
                    None => answers.more.clone(),
                }
            };
            more.await;
        }
    }

    /// The message that the stream came to.
    pub fn result(&self) -> Result<Json, Thrown> {
        let answers = self.answers.borrow();
        let last = answers.last.as_ref().ok_or("the stream has no result yet")?;
        or_thrown(last)?;
        final_message(last).cloned().ok_or_else(|| "the stream has no result".to_string())
    }
}

fn final_message(answer: &Json) -> Option<&Json> {
    let event = answer.get("event");
    answer.get("final").present().or(event.get("message").present()).or(event.get("error").present())
}

/// A callback that waits for its answer.
struct Pending {
    name: String,
    signal: Option<Signal>,
    told: bool, // of the signal
    answer: Promise<Json>,
    stream: Option<Rc<RefCell<Answers>>>,
}

/// What a loop is surrounded by in one session: it makes the names of callbacks,
/// answers at once what the script does not gate, holds back what it does, and
/// reports everything.
pub struct Surroundings {
    pub session: String,
    pub form: String,
    pub edition: String,
    pub config: Json,
    pub tasks: Rc<Tasks>,
    script: Json,
    output: Rc<RefCell<String>>,
    agent: RefCell<Option<Rc<dyn Agent>>>,
    turn: Cell<usize>,                                        // script turns used
    counts: RefCell<HashMap<String, usize>>,                  // by name without its number
    pending: RefCell<Vec<Pending>>,                           // in the order in which they began
    updates: RefCell<HashMap<String, Rc<dyn Fn(Json)>>>,      // on_update of every execution
    listeners: RefCell<HashMap<usize, Listener>>,             // by number
    unsubscribes: RefCell<HashMap<usize, Box<dyn Fn()>>>,     // by number
    events: RefCell<Vec<Event>>,                              // so far, by number
    calls: RefCell<Vec<Json>>, // tool call blocks of the latest assistant message, not yet prepared
    closed: Cell<bool>,
}

impl Surroundings {
    // -- for the loop --

    /// Whether the case has that hook; one that it has not must be absent from the loop.
    pub fn has_hook(&self, name: &str) -> bool {
        self.config.get("hooks").has(name)
    }

    /// A request to the model.
    pub async fn model(self: &Rc<Self>, payload: Json, signal: Option<Signal>) -> Result<ModelStream, Thrown> {
        let name = self.numbered("model");
        let answers = Rc::new(RefCell::new(Answers::default()));
        let stream = ModelStream { surroundings: self.clone(), name: name.clone(), reads: Cell::new(0), answers: answers.clone() };
        let turn = if fired(&signal) { None } else { Some(self.next_turn()) };
        let Some(turn) = turn.filter(|turn| !turn.get("gate").is_true()) else {
            let first = self.begin(&name, payload, signal, Json::Null, Some(answers))?.await;
            return or_thrown(&first).map(|_| stream);
        };
        let steps = turn.get("steps").list();
        self.answered(&name, payload, &signal, together(steps));
        if let [only] = steps {
            or_thrown(only)?;
        }
        steps.iter().for_each(|step| _ = self.give(&answers, step));
        Ok(stream)
    }

    /// One execution of a tool; the payload has at least toolCallId and toolName.
    pub async fn execute(&self, payload: Json, signal: Option<Signal>, on_update: Rc<dyn Fn(Json)>) -> Result<Json, Thrown> {
        let id = payload.get("toolCallId").text().to_string();
        let name = self.unique(&format!("tool/{id}"));
        let script = self.script.get("tools").get(&name["tool/".len()..]).present().cloned().unwrap_or_else(|| plain_return(&id));
        self.updates.borrow_mut().insert(name.clone(), on_update.clone());
        let updates = script.get("sync").list();
        if !script.get("gate").is_true() {
            self.answered(&name, payload, &signal, script.clone());
            updates.iter().for_each(|update| on_update(update.clone()));
            return or_thrown(&script).map(|answer| answer.get("result").clone());
        }
        let made = if updates.is_empty() { Json::Null } else { object([("sync", script.get("sync").clone())]) };
        let waiting = self.begin(&name, payload, signal, made, None)?;
        updates.iter().for_each(|update| on_update(update.clone()));
        let answer = waiting.await;
        or_thrown(&answer).map(|answer| answer.get("result").clone())
    }

    /// A call of a hook; gives its answer, {} for nothing. Key is the tool call id of a
    /// hook that belongs to a call, and none for the others, which are numbered.
    pub async fn hook(&self, hook: &str, key: Option<&str>, payload: Json, signal: Option<Signal>) -> Result<Json, Thrown> {
        let name = self.hook_name(hook, key);
        let gated = self.script.get("hooks").get(hook).get("gate").is_true() || self.config.get("hooks").get(hook).text() == "gate";
        if !gated {
            return self.hook_now(hook, &name, payload, &signal);
        }
        let answer = self.begin(&name, payload, signal, Json::Null, None)?.await;
        or_thrown(&answer).map(|answer| answer.get("hook").present().cloned().unwrap_or_else(|| object([])))
    }

    /// What a tool's prepareArguments returns. Without an id, the call is the first of that tool with these arguments.
    pub fn prepare_arguments(&self, tool_name: &str, raw_args: &Json, tool_call_id: Option<&str>) -> Result<Json, Thrown> {
        let id = tool_call_id.map_or_else(|| self.call_of(tool_name, raw_args), str::to_string);
        let payload = object([("toolCallId", id.as_str().into()), ("toolName", tool_name.into()), ("rawArgs", raw_args.clone())]);
        let name = self.hook_name("prepareArguments", Some(&id));
        let answer = self.hook_now("prepareArguments", &name, payload, &None)?;
        Ok(answer.get("args").present().unwrap_or(raw_args).clone())
    }

    /// Reports a poll of a queue; hook is getSteeringMessages or getFollowUpMessages.
    pub fn polled(&self, hook: &str, drained: &[Json]) {
        let answer = object([("messages", drained.to_vec().into())]);
        let name = self.numbered(&format!("hook/{hook}"));
        self.out("call", [("name", name.into()), ("payload", object([])), ("auto", true.into()), ("answer", answer)]);
    }

    pub fn log(&self, text: &str) {
        self.out("log", [("text", text.into())]);
    }

    // -- for the server --

    fn new(message: &Json, tasks: Rc<Tasks>, output: Rc<RefCell<String>>) -> Rc<Self> {
        let text = |name: &str| message.get(name).text().to_string();
        Rc::new(Surroundings {
            session: text("session"),
            form: text("form"),
            edition: text("edition"),
            config: message.get("config").clone(),
            script: message.get("script").clone(),
            tasks,
            output,
            agent: RefCell::default(),
            turn: Cell::default(),
            counts: RefCell::default(),
            pending: RefCell::default(),
            updates: RefCell::default(),
            listeners: RefCell::default(),
            unsubscribes: RefCell::default(),
            events: RefCell::default(),
            calls: RefCell::default(),
            closed: Cell::default(),
        })
    }

    /// Joins the loop, and registers the listener that records and those that are not late.
    fn attach(self: &Rc<Self>, agent: Rc<dyn Agent>) -> Result<(), Fault> {
        *self.agent.borrow_mut() = Some(agent.clone());
        let recorder = self.clone();
        let _stays = agent.subscribe(Rc::new(move |event, _| {
            recorder.record(event);
            Box::pin(std::future::ready(Ok(())))
        }));
        for (i, listener) in self.config.get("listeners").list().iter().enumerate() {
            if !listener.get("late").is_true() {
                self.subscribe(i)?;
            }
        }
        Ok(())
    }

    fn agent(&self) -> Rc<dyn Agent> {
        self.agent.borrow().clone().expect("a loop has been attached")
    }

    /// Answers a callback that waits, or makes a progress update of a tool, which may be a late one.
    fn answer(&self, name: &str, answer: &Json) -> Result<(), Fault> {
        if let Some(partial) = answer.get("partial").present() {
            let on_update = self.updates.borrow().get(name).cloned();
            on_update.ok_or_else(|| Fault::new("call", format!("no tool {name} was executed")))?(partial.clone());
            return Ok(());
        }
        let mut pending = self.pending.borrow_mut();
        let at = pending.iter().position(|call| call.name == name);
        let at = at.ok_or_else(|| Fault::new("call", format!("no callback {name} waits")))?;
        pending[at].answer.settle(answer.clone());
        let stream = pending[at].stream.clone();
        if stream.is_none_or(|stream| self.give(&stream, answer)) {
            pending.remove(at);
        }
        Ok(())
    }

    fn user(self: &Rc<Self>, name: &str, kind: &str, answer: &Json) -> Result<(), Fault> {
        let agent = self.agent();
        let listener = || answer.get("listener").index().ok_or_else(|| Fault::new("malformed", "there is no listener".into()));
        let images = answer.get("images").list().to_vec();
        match kind {
            "prompt" if answer.get("messages").is_null() => self.run(name, agent.prompt(Prompt::Text(answer.get("text").text().into(), images))),
            "prompt" => self.run(name, agent.prompt(Prompt::Messages(answer.get("messages").list().to_vec()))),
            "continue" => self.run(name, agent.continue_run()),
            "waitForIdle" => self.follow(name, async move { Ok(agent.wait_for_idle().await) }, || "error"),
            "reset" => self.settled(name, agent.reset(), || "refused"),
            "steer" => answer.get("messages").list().iter().for_each(|message| agent.steer(message.clone())),
            "followUp" => answer.get("messages").list().iter().for_each(|message| agent.follow_up(message.clone())),
            "abort" => agent.abort(),
            "clearQueue" => agent.clear_queue(),
            "subscribe" => self.subscribe(listener()?)?,
            "unsubscribe" => {
                if let Some(unsubscribe) = self.unsubscribes.borrow().get(&listener()?) {
                    unsubscribe();
                }
            }
            _ => return Err(Fault::new("unsupported", format!("unknown user action {kind}"))),
        }
        Ok(())
    }

    /// What a barrier says of the session.
    fn status(&self) -> [(&'static str, Json); 3] {
        for call in self.pending.borrow_mut().iter_mut().filter(|call| !call.told && fired(&call.signal)) {
            call.told = true;
            self.out("cancelled", [("name", call.name.as_str().into())]);
        }
        let waiting: Vec<Json> = self.pending.borrow().iter().map(|call| call.name.as_str().into()).collect();
        [("idle", (!self.agent().is_running()).into()), ("waitingOn", waiting.into()), ("events", self.events.borrow().len().into())]
    }

    /// Gives up: nothing is reported any more, and whatever waits, now or later, gets an error.
    fn close(&self) {
        self.closed.set(true);
        for call in self.pending.take() {
            let answer = object([("throw", OVER.into())]);
            call.answer.settle(answer.clone());
            if let Some(stream) = call.stream {
                stream.borrow_mut().give(&answer);
            }
        }
    }

    // -- events --

    fn record(&self, event: Event) {
        if self.closed.get() {
            return;
        }
        let agent = self.agent();
        let n = self.events.borrow().len();
        let state = agent.state().map(|state| state_of(&state, agent.is_running()));
        self.events.borrow_mut().push(event.clone());
        self.out("event", [("n", n.into()), ("event", (*event).clone()), ("state", state.into())]);
    }

    fn subscribe(self: &Rc<Self>, i: usize) -> Result<(), Fault> {
        if i >= self.config.get("listeners").list().len() {
            return Err(Fault::new("malformed", format!("there is no listener {i}")));
        }
        let surroundings = self.clone();
        let make = || -> Listener {
            Rc::new(move |event, signal| {
                let surroundings = surroundings.clone();
                Box::pin(async move { surroundings.deliver(i, event, signal).await })
            })
        };
        let listener = self.listeners.borrow_mut().entry(i).or_insert_with(make).clone();
        let unsubscribe = self.agent().subscribe(listener);
        self.unsubscribes.borrow_mut().insert(i, unsubscribe);
        Ok(())
    }

    async fn deliver(&self, i: usize, event: Event, signal: Option<Signal>) -> Result<(), Thrown> {
        let kind = event.get("type").text();
        let about = about(&event);
        let name = self.numbered(&format!("listener/{i}/{about}"));
        let number = self.events.borrow().iter().rposition(|have| Rc::ptr_eq(have, &event));
        let payload = object([("event", number.into()), ("signal", signal.is_some().into())]);
        let matches = |pattern: &str| pattern == "*" || pattern == kind || pattern == about;
        let listener = &self.config.get("listeners").list()[i];
        if listener.get("gate").list().iter().any(|pattern| matches(pattern.text())) {
            let answer = self.begin(&name, payload, signal, Json::Null, None)?.await;
            return or_thrown(&answer).map(|_| ());
        }
        let thrown = listener.get("throw").members().iter().find(|(pattern, _)| matches(pattern));
        let answer = object([("throw", thrown.map(|(_, message)| message.clone()).into())]);
        self.answered(&name, payload, &signal, answer.clone());
        or_thrown(&answer).map(|_| ())
    }

    // -- the user's futures --

    fn run(self: &Rc<Self>, name: &str, run: Later<Result<(), Thrown>>) {
        let (busy, before) = (self.agent().is_running(), self.events.borrow().len());
        let surroundings = self.clone();
        self.follow(name, run, move || {
            let begun = !busy && surroundings.events.borrow().len() > before;
            if begun { "error" } else { "refused" }
        });
    }

    fn follow(self: &Rc<Self>, name: &str, run: impl Future<Output = Result<(), Thrown>> + 'static, failed: impl FnOnce() -> &'static str + 'static) {
        let (surroundings, name) = (self.clone(), name.to_string());
        self.tasks.spawn(async move { surroundings.settled(&name, run.await, failed) });
    }

    fn settled(&self, name: &str, result: Result<(), Thrown>, failed: impl FnOnce() -> &'static str) {
        let outcome = if result.is_ok() { "ok" } else { failed() };
        self.out("settled", [("name", name.into()), ("outcome", outcome.into()), ("message", result.err().into())]);
    }

    // -- calls --

    /// Reports a callback and gives what waits for its answer.
    fn begin(&self, name: &str, payload: Json, signal: Option<Signal>, answer: Json, stream: Option<Rc<RefCell<Answers>>>) -> Result<Promise<Json>, Thrown> {
        if self.closed.get() {
            return Err(OVER.into());
        }
        self.call(name, payload, &signal, Json::Null, answer);
        let promise = Promise::default();
        let told = fired(&signal);
        self.pending.borrow_mut().push(Pending { name: name.into(), signal, told, answer: promise.clone(), stream });
        Ok(promise)
    }

    fn give(&self, stream: &RefCell<Answers>, answer: &Json) -> bool {
        let last = stream.borrow_mut().give(answer);
        if let (true, Some(message)) = (last, final_message(answer)) {
            *self.calls.borrow_mut() = tool_calls(message).cloned().collect();
        }
        last
    }

    fn hook_now(&self, hook: &str, name: &str, payload: Json, signal: &Option<Signal>) -> Result<Json, Thrown> {
        let script = self.script.get("hooks").get(hook);
        let key = &name[format!("hook/{hook}/").len()..];
        let entry = script.get("answers").get(key).present().unwrap_or(script.get("else"));
        let value = entry.get("value").present().cloned().unwrap_or_else(|| object([]));
        let answer = match entry.get("throw").present() {
            Some(message) => object([("throw", message.clone()), ("abort", entry.get("abort").clone())]),
            None => object([("hook", value.clone()), ("abort", entry.get("abort").clone())]),
        };
        self.answered(name, payload, signal, answer.clone());
        or_thrown(&answer).map(|_| value)
    }

    fn answered(&self, name: &str, payload: Json, signal: &Option<Signal>, answer: Json) {
        let abort = answer.get("abort").is_true();
        self.call(name, payload, signal, true.into(), answer);
        if abort {
            self.agent().abort();
        }
    }

    fn call(&self, name: &str, payload: Json, signal: &Option<Signal>, auto: Json, answer: Json) {
        let aborted = fired(signal).then_some(true);
        self.out("call", [("name", name.into()), ("payload", payload), ("auto", auto), ("answer", answer), ("aborted", aborted.into())]);
    }

    fn next_turn(&self) -> Json {
        let n = self.turn.replace(self.turn.get() + 1);
        self.script.get("model").list().get(n).unwrap_or(self.script.get("modelElse")).clone()
    }

    fn call_of(&self, tool_name: &str, raw_args: &Json) -> String {
        let mut calls = self.calls.borrow_mut();
        let of_tool = |call: &&Json| call.get("name").text() == tool_name;
        let found = calls.iter().filter(of_tool).find(|call| call.get("arguments") == raw_args).or(calls.iter().find(of_tool)).cloned();
        let Some(found) = found else { return tool_name.to_string() };
        calls.retain(|call| call.get("id") != found.get("id"));
        found.get("id").text().to_string()
    }

    // -- names --

    fn hook_name(&self, hook: &str, key: Option<&str>) -> String {
        match key {
            Some(key) => self.unique(&format!("hook/{hook}/{key}")),
            None => self.numbered(&format!("hook/{hook}")),
        }
    }

    fn count(&self, name: &str) -> usize {
        let mut counts = self.counts.borrow_mut();
        let n = counts.entry(name.to_string()).or_default();
        *n += 1;
        *n - 1
    }

    fn numbered(&self, name: &str) -> String {
        format!("{name}/{}", self.count(name))
    }

    fn unique(&self, name: &str) -> String {
        match self.count(name) {
            0 => name.to_string(),
            n => format!("{name}~{n}"),
        }
    }

    fn out<const N: usize>(&self, kind: &str, members: [(&str, Json); N]) {
        if self.closed.get() {
            return;
        }
        let Json::Object(rest) = object(members) else { return };
        let mut all = vec![("type".to_string(), kind.into()), ("session".to_string(), self.session.as_str().into())];
        all.extend(rest);
        write_line(&self.output, &Json::Object(all));
    }
}

const OVER: &str = "the case is over";

fn fired(signal: &Option<Signal>) -> bool {
    signal.as_ref().is_some_and(Signal::fired)
}

fn or_thrown(answer: &Json) -> Result<&Json, Thrown> {
    match answer.get("throw").present() {
        Some(message) => Err(message.text().to_string()),
        None => Ok(answer),
    }
}

fn plain_return(id: &str) -> Json {
    let block = object([("type", "text".into()), ("text", format!("r{id}").into())]);
    object([("result", object([("content", vec![block].into())]))])
}

/// The steps of an automatic stream as one answer.
fn together(steps: &[Json]) -> Json {
    let events: Vec<Json> = steps.iter().filter_map(|step| step.get("event").present()).cloned().collect();
    let member = |name: &str| steps.iter().rev().find_map(|step| step.get(name).present()).cloned().unwrap_or(Json::Null);
    let events = if events.is_empty() { Json::Null } else { events.into() };
    object([("events", events), ("final", member("final")), ("ends", member("ends")), ("throw", member("throw"))])
}

fn about(event: &Json) -> String {
    let kind = event.get("type").text();
    let role = if kind.starts_with("message_") { event.get("message").get("role").text() } else { "" };
    let about = event.get("toolCallId").present().map_or(role, Json::text);
    if about.is_empty() { kind.to_string() } else { format!("{kind}/{about}") }
}

fn state_of(state: &State, running: bool) -> Json {
    object([
        ("isStreaming", running.into()),
        ("pendingToolCalls", state.pending_tool_calls.clone().into()),
        ("messages", state.messages.into()),
        ("last", state.last.clone().into()),
        ("streaming", state.streaming_role.clone().into()),
        ("errorMessage", state.error_message.clone().into()),
    ])
}

// ---- the protocol ----

/// What the subject says of itself.
pub struct About {
    pub name: &'static str,
    pub version: &'static str,
    pub editions: &'static [&'static str],
    pub capabilities: &'static [&'static str],
}

/// What the harness is answered with an error of this code.
struct Fault {
    code: &'static str,
    message: String,
}

impl Fault {
    fn new(code: &'static str, message: String) -> Fault {
        Fault { code, message }
    }
}

struct Server<F> {
    about: About,
    open: F,
    tasks: Rc<Tasks>,
    output: Rc<RefCell<String>>,
    sessions: HashMap<String, Rc<Surroundings>>,
    session: String, // of the message before
    over: bool,
}

/// Runs an adapter on standard input and output until bye or the end of input.
pub fn serve(about: About, open: impl Fn(Rc<Surroundings>) -> Rc<dyn Agent>) {
    let mut server = Server { about, open, tasks: Rc::default(), output: Rc::default(), sessions: HashMap::new(), session: String::new(), over: false };
    let mut input = std::io::BufReader::with_capacity(1 << 16, std::io::stdin());
    while !server.over {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            break;
        }
        server.take(&line);
        if !input.buffer().contains(&b'\n') {
            server.flush();
        }
    }
    server.flush();
}

fn write_line(output: &RefCell<String>, message: &Json) {
    let mut output = output.borrow_mut();
    message.write(&mut output);
    output.push('\n');
}

impl<F: Fn(Rc<Surroundings>) -> Rc<dyn Agent>> Server<F> {
    fn take(&mut self, line: &[u8]) {
        let parsed = std::str::from_utf8(line).map_err(|error| error.to_string()).and_then(Json::parse);
        let message = parsed.as_ref().cloned().unwrap_or(Json::Null);
        if message.get("session").text() != self.session {
            self.flush(); // should this case be the end, the one before is not to blame
            self.session = message.get("session").text().into();
        }
        let reply = match parsed {
            Ok(Json::Object(_)) => self.handle(&message),
            Ok(_) => Err(Fault::new("malformed", "the line is no JSON object".into())),
            Err(error) => Err(Fault::new("malformed", error)),
        };
        let reply = reply.unwrap_or_else(|fault| {
            object([("type", "error".into()), ("code", fault.code.into()), ("message", fault.message.into())])
        });
        let id = message.get("id").clone();
        write_line(&self.output, &if id.is_null() { reply } else { reply.with("re", id) });
    }

    fn handle(&mut self, message: &Json) -> Result<Json, Fault> {
        let ok = object([("type", "ok".into())]);
        match message.get("type").text() {
            "hello" => return self.hello(message),
            "open" => return self.open(message).map(|()| ok),
            "bye" => {
                self.over = true;
                return Ok(ok);
            }
            "user" | "answer" | "sync" | "close" => {}
            other => return Err(Fault::new("unsupported", format!("unknown type {other:?}"))),
        }
        let name = message.get("session").text();
        let session = self.sessions.get(name).cloned().ok_or_else(|| Fault::new("session", format!("session {name:?} is not open")))?;
        match message.get("type").text() {
            "user" => session.user(message.get("name").text(), message.get("kind").text(), message.get("answer"))?,
            "answer" => session.answer(message.get("call").text(), message.get("answer"))?,
            "close" => {
                session.close();
                self.tasks.run();
                self.sessions.remove(name);
                session.agent.take(); // which holds the session in turn
            }
            _ => {
                self.tasks.run();
                let [idle, waiting_on, events] = session.status();
                return Ok(object([("type", "synced".into()), idle, waiting_on, events]));
            }
        }
        Ok(ok)
    }

    fn hello(&self, message: &Json) -> Result<Json, Fault> {
        if !message.get("protocol").list().contains(&1usize.into()) {
            return Err(Fault::new("version", "this adapter speaks protocol 1 only".into()));
        }
        let subject = object([("name", self.about.name.into()), ("version", self.about.version.into()), ("language", "rust".into())]);
        Ok(object([
            ("type", "helloOk".into()),
            ("protocol", 1usize.into()),
            ("nonce", message.get("nonce").clone()),
            ("subject", subject),
            ("editions", self.about.editions.to_vec().into()),
            ("barrier", "quiescent".into()),
            ("capabilities", self.about.capabilities.to_vec().into()),
        ]))
    }

    fn open(&mut self, message: &Json) -> Result<(), Fault> {
        let name = message.get("session").text();
        if self.sessions.contains_key(name) {
            return Err(Fault::new("session", format!("session {name} is open already")));
        }
        if let Some(missing) = needs(message).into_iter().find(|need| !self.about.capabilities.contains(&need.as_str())) {
            return Err(Fault::new("unsupported", format!("the subject has not declared {missing}")));
        }
        let surroundings = Surroundings::new(message, self.tasks.clone(), self.output.clone());
        surroundings.attach((self.open)(surroundings.clone()))?;
        self.sessions.insert(name.to_string(), surroundings);
        Ok(())
    }

    fn flush(&self) {
        let mut stdout = std::io::stdout().lock();
        let text = self.output.take();
        if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            std::process::exit(1); // nobody listens any more
        }
    }
}

/// The capabilities without which a session would be another one than was asked for.
fn needs(message: &Json) -> Vec<String> {
    let config = message.get("config");
    let mut needs = vec![format!("forms:{}", message.get("form").text())];
    needs.extend(config.get("hooks").members().iter().map(|(hook, _)| format!("hooks:{hook}")));
    if config.get("tools").list().iter().any(|tool| tool.get("prepareArguments").is_true()) {
        needs.push("hooks:prepareArguments".into());
    }
    needs
}
