"""Joins an agent loop written for asyncio to pi-conform.

An adapter program is

    import pi_conform_adapter as pi_conform

    pi_conform.serve(
        subject={"name": "my-loop", "version": "1.0", "language": "python"},
        editions=["0.84.3"],
        capabilities=["state", "listeners", "forms:agent"],
        open=lambda surroundings: Agent(...),  # see Agent below for what it has to have
    )

The parts, in the order of this file: Agent says what your loop has to offer;
Surroundings is what your loop meets in one session (model, tools, hooks,
listeners, user); ModelStream is what it reads of one request; Server speaks the
protocol; serve() runs it on standard input and output.

It needs Python 3.9 and nothing besides. The loop runs only within a barrier: while
the program waits for the harness, time stands still for it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from typing import Any, Awaitable, Callable, Iterable, Optional, Protocol

PROTOCOL = 1
MAX_LINE = 16 * 1024 * 1024  # bytes


class Agent(Protocol):
    """The loop of one session as its user sees it.

    Any method may be a coroutine function. Messages are what JSON makes of them.
    """

    def prompt(self, messages: "list | str", images: list) -> Awaitable: ...  # done when the run has ended

    def continue_(self) -> Awaitable: ...

    def wait_for_idle(self) -> Awaitable: ...

    def reset(self) -> None: ...  # raises if it is refused

    def steer(self, message: dict) -> None: ...

    def follow_up(self, message: dict) -> None: ...

    def abort(self) -> None: ...

    def clear_queue(self) -> None: ...

    def subscribe(self, listener: Callable[[dict, Any], Awaitable]) -> Callable[[], Any]: ...  # gives what takes it away

    def is_running(self) -> bool: ...

    def state(self) -> Optional[dict]: ...  # isStreaming, pendingToolCalls, messages, streamingMessage, errorMessage; or None


class ProtocolError(Exception):
    """What the harness is answered with an error of this code."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


class Refused(Exception):
    """May be raised by a prompt or continue that was refused: nothing was begun."""


class Closed(Exception):
    """What a callback gets that still waits when its session is closed."""

    def __init__(self) -> None:
        super().__init__("the case is over")


class Thrown(Exception):
    """An error that the script lets a callback raise."""


# ---- messages ----


def tag(message: dict) -> str:
    """A short description of a message that is the same in every language."""
    role = message.get("role", "")
    return f"{role}{_details(role, message)}: {_plain_text(message.get('content'))}"


def tags(messages: Iterable[dict]) -> list:
    return [tag(message) for message in messages]


def _details(role: str, message: dict) -> str:
    if role == "assistant":
        ids = " ".join(call["id"] for call in tool_calls(message))
        return f" {message.get('stopReason', '')} [{ids}]"
    if role == "toolResult":
        return f" {message.get('toolCallId', '')}{' error' if message.get('isError') else ''}"
    return ""


def tool_calls(message: dict) -> list:
    """The tool call blocks of a message, in source order."""
    return [block for block in _blocks(message.get("content")) if block.get("type") == "toolCall"]


def _plain_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in _blocks(content) if block.get("type") == "text")


def _blocks(content: Any) -> list:
    return content if isinstance(content, list) else []


# ---- what the loop meets ----


class ModelStream:
    """What a loop reads of one model request: ``async for event in stream``, then
    ``stream.result()`` for the message that they come to."""

    def __init__(self, on_read: Callable[[int], None]):
        self._on_read = on_read
        self._reads = 0
        self._ready: list = []
        self._last: Optional[dict] = None  # the answer that ended the stream
        self._more: Optional[asyncio.Future] = None  # of a reader that waits

    def give(self, answer: dict) -> bool:
        """Adds an answer of the script or the harness; true if it was the last."""
        event = answer.get("event")
        if event is not None:
            self._ready.append(event)
        if event is None or event["type"] in ("done", "error"):
            self._last = answer
        if self._more and not self._more.done():
            self._more.set_result(None)
        return self._last is not None

    def __aiter__(self) -> "ModelStream":
        return self

    async def __anext__(self) -> dict:
        self._on_read(self._reads)
        self._reads += 1
        while not self._ready and self._last is None:
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        if self._ready:
            return self._ready.pop(0)
        if self._last.get("throw") is not None:
            raise Thrown(self._last["throw"])
        raise StopAsyncIteration

    async def result(self) -> dict:
        last = self._last or {}
        if last.get("throw") is not None:
            raise Thrown(last["throw"])
        event = last.get("event") or {}
        message = last.get("final") or event.get("message") or event.get("error")
        if message is None:
            raise Thrown("the stream has no result")
        return message


class _Pending:
    """A callback that waits for its answer."""

    def __init__(self, name: str, signal: Any, stream: Optional[ModelStream] = None):
        self.name = name
        self.signal = signal
        self.stream = stream
        self.told = _is_set(signal)  # of the signal
        self.answer: asyncio.Future = asyncio.get_running_loop().create_future()

    def settle(self, answer: dict) -> None:
        if not self.answer.done():  # the loop may have given up waiting
            self.answer.set_result(answer)


class Surroundings:
    """What a loop is surrounded by in one session: it makes the names of callbacks,
    answers at once what the script does not gate, holds back what it does, and
    reports everything.

    A signal is whatever tells your loop's callbacks of an abort; it needs a method
    ``is_set()``, as asyncio.Event has. A loop that cancels its tasks instead gives None.
    """

    def __init__(self, message: dict, emit: Callable[[dict], None], keeps: bool = False):
        self.session: str = message["session"]
        self.form: str = message.get("form", "agent")
        self.edition: str = message.get("edition", "")
        self.config: dict = {"tools": [], "hooks": {}, "listeners": [], "messages": [], **_present(message.get("config"))}
        self.events = 0  # so far
        self._script = {"model": [], "modelElse": {"steps": []}, "tools": {}, "hooks": {}, **_present(message.get("script"))}
        self._emit = emit
        self._agent: Any = None
        self._turn = 0  # script turns used
        self._counts: dict = {}  # by name without its number
        self._pending: dict = {}  # callbacks that wait, by name, in the order in which they began
        self._updates: dict = {}  # on_update of every execution, by name
        self._listeners: dict = {}  # functions, by number
        self._unsubscribes: dict = {}  # by number
        self._numbers: dict = {}  # of events, by identity; the events are kept, so that it stays theirs
        self._by_about: dict = {}  # numbers of events so far, by what they are about
        self._missed: dict = {}  # by listener: how many of them there were when it was subscribed
        self._kept: Optional[list] = [] if keeps else None
        self._calls: list = []  # tool call blocks of the latest assistant message, not yet prepared
        self._tasks: set = set()
        self._closed = False

    # -- for the loop --

    def has_hook(self, name: str) -> bool:
        """Whether the case has that hook; one that it has not must be absent from the loop."""
        return name in self.config["hooks"]

    async def model(self, payload: dict, signal: Any = None) -> ModelStream:
        """A request to the model."""
        name = self._numbered("model")
        stream = ModelStream(lambda n: self._out("read", name=name, n=n))
        turn = {"gate": True} if _is_set(signal) else self._next_turn()
        if not turn.get("gate"):
            return self._model_now(name, stream, turn["steps"], payload, signal)
        answer = await self._wait(_Pending(name, signal, stream), payload)
        if answer.get("throw") is not None:
            raise Thrown(answer["throw"])
        return stream

    def _model_now(self, name: str, stream: ModelStream, steps: list, payload: dict, signal: Any) -> ModelStream:
        steps = _copy(steps)
        self._answered(name, payload, signal, _together(steps))
        if len(steps) == 1 and steps[0].get("throw") is not None:
            raise Thrown(steps[0]["throw"])
        for step in steps:
            self._give(stream, step)
        return stream

    async def execute(self, payload: dict, signal: Any = None, on_update: Optional[Callable[[Any], Any]] = None) -> Any:
        """One execution of a tool; payload has at least toolCallId and toolName."""
        name = self._unique("tool/" + payload["toolCallId"])
        script = self._script["tools"].get(name[len("tool/"):]) or _plain_return(payload["toolCallId"])
        self._updates[name] = on_update
        updates = _copy(script.get("sync") or [])
        if not script.get("gate"):
            self._answered(name, payload, signal, {k: v for k, v in script.items() if k != "gate"})
            self._update_all(name, updates)
            if script.get("throw") is not None:
                raise Thrown(script["throw"])
            return _copy(script.get("result"))
        pending = _Pending(name, signal)
        waiting = self._begin(pending, payload, {"sync": script["sync"]} if updates else None)
        self._update_all(name, updates)
        return _or_raise(await waiting).get("result")

    async def hook(self, hook: str, key: Optional[str], payload: dict, signal: Any = None) -> dict:
        """A call of a hook; gives its answer, {} for nothing. Key is the tool call id of a
        hook that belongs to a call, and None for the others, which are numbered."""
        name = self._hook_name(hook, key)
        gated = self._script["hooks"].get(hook, {}).get("gate") or self.config["hooks"].get(hook) == "gate"
        if not gated:
            return self._hook_now(hook, name, payload, signal)
        return _or_raise(await self._wait(_Pending(name, signal), payload)).get("hook") or {}

    def prepare_arguments(self, tool_name: str, raw_args: Any, tool_call_id: Optional[str] = None) -> Any:
        """What a tool's prepareArguments returns. Without an id, the call is the one whose arguments these are."""
        tool_call_id = tool_call_id or self._call_of(tool_name, raw_args)
        payload = {"toolCallId": tool_call_id, "toolName": tool_name, "rawArgs": raw_args}
        answer = self._hook_now("prepareArguments", self._hook_name("prepareArguments", tool_call_id), payload, None)
        return answer.get("args", raw_args)

    def polled(self, hook: str, drained: list) -> list:
        """Reports a poll of a queue (hook is getSteeringMessages or getFollowUpMessages) and gives back what it gave."""
        self._out("call", name=self._numbered("hook/" + hook), payload={}, auto=True, answer={"messages": drained})
        return drained

    def log(self, text: str) -> None:
        self._out("log", text=text)

    # -- for the server --

    def attach(self, agent: Any) -> None:
        """Joins the loop, and registers the listener that records and those that are not late."""
        self._agent = agent
        agent.subscribe(self._record)
        for i, listener in enumerate(self.config["listeners"]):
            if not listener.get("late"):
                self._subscribe(i)

    def answer(self, name: str, answer: dict) -> None:
        """Answers a callback that waits, or makes a progress update of a tool, which may be a late one."""
        if answer.get("partial") is not None:
            return self._update(name, answer["partial"])
        call = self._pending.get(name)
        if call is None:
            raise ProtocolError("call", f"no callback {name} waits")
        if call.stream is None or self._give(call.stream, answer):
            del self._pending[name]
        call.settle(answer)

    def user(self, name: str, kind: str, answer: dict) -> None:
        agent = self._agent
        actions = {
            "prompt": lambda: self._run(name, lambda: agent.prompt(_first(answer, "messages", "text", ""), answer.get("images") or [])),
            "continue": lambda: self._run(name, agent.continue_),
            "waitForIdle": lambda: self._start(self._follow(name, agent.wait_for_idle, lambda _: "error")),
            "reset": lambda: self._start(self._follow(name, agent.reset, lambda _: "refused")),
            "steer": lambda: [self._do(agent.steer(message)) for message in answer["messages"]],
            "followUp": lambda: [self._do(agent.follow_up(message)) for message in answer["messages"]],
            "abort": lambda: self._do(agent.abort()),
            "clearQueue": lambda: self._do(agent.clear_queue()),
            "subscribe": lambda: self._subscribe(answer["listener"]),
            "unsubscribe": lambda: self._unsubscribes.get(answer["listener"], lambda: None)(),
        }
        if kind not in actions:
            raise ProtocolError("unsupported", f"unknown user action {kind}")
        actions[kind]()

    def status(self) -> dict:
        """What a barrier says of the session."""
        for call in self._pending.values():
            self._tell_cancelled(call)
        return {"idle": not self._agent.is_running(), "waitingOn": list(self._pending), "events": self.events}

    def close(self) -> None:
        """Gives up: nothing is reported any more, and whatever waits, now or later, gets an error."""
        self._closed = True
        for call in self._pending.values():
            call.settle({"throw": str(Closed())})
            if call.stream:
                call.stream.give({"throw": str(Closed())})
        self._pending.clear()

    # -- events --

    def _record(self, event: dict, _signal: Any = None) -> "_Done":
        if not self._closed:
            self._numbers[id(event)] = (self.events, event)
            self._by_about.setdefault(_about(event), []).append(self.events)
            state = self._agent.state()
            if self._kept is not None:
                self._keep(event)
            self._out("event", n=self.events, event=event, state=_state_of(state) if state else None)
            self.events += 1
        return DONE

    def _subscribe(self, i: int) -> None:
        if not 0 <= i < len(self.config["listeners"]):
            raise ProtocolError("malformed", f"there is no listener {i}")
        if i not in self._listeners:
            self._listeners[i] = lambda event, signal=None: self._deliver(i, event, signal)
        self._missed.setdefault(i, {about: len(numbers) for about, numbers in self._by_about.items()})
        self._unsubscribes[i] = self._agent.subscribe(self._listeners[i])

    async def _deliver(self, i: int, event: dict, signal: Any) -> None:
        about = _about(event)
        name = self._numbered(f"listener/{i}/{about}")
        number = self._numbers[id(event)][0] if id(event) in self._numbers else self._number_of(i, about, name)
        payload = {"event": number, "signal": signal is not None}
        listener = self.config["listeners"][i]
        matches = lambda pattern: pattern in ("*", event["type"], about)
        if any(map(matches, listener.get("gate") or [])):
            _or_raise(await self._wait(_Pending(name, signal), payload))
            return
        thrown = next((text for pattern, text in (listener.get("throw") or {}).items() if matches(pattern)), None)
        answer = {} if thrown is None else {"throw": thrown}
        self._answered(name, payload, signal, answer)
        _or_raise(answer)

    def _number_of(self, i: int, about: str, name: str) -> int:
        # A loop may make an object of its own for each listener: then the k-th delivery
        # of a kind is of the k-th event of that kind since the listener came.
        k = int(name.rsplit("/", 1)[1]) + self._missed.get(i, {}).get(about, 0)
        numbers = self._by_about.get(about, [])
        return numbers[k] if k < len(numbers) else self.events - 1

    def _keep(self, event: dict) -> None:
        message = event.get("message")
        if message is not None:
            self._kept.append((self.events, message, dict(message)))

    def _compare_kept(self) -> None:
        changed = [n for n, message, before in self._kept or [] if message != before]
        if changed:
            self._out("retained", changed=changed)
        if self._kept:
            self._kept.clear()

    # -- the user's awaitables --

    def _run(self, name: str, begin: Callable[[], Any]) -> None:
        idle, events = not self._agent.is_running(), self.events

        def outcome(error: BaseException) -> str:
            begun = idle and self.events > events and not isinstance(error, Refused)
            return "error" if begun else "refused"

        async def follow() -> None:
            await self._follow(name, begin, outcome)
            if idle:
                self._compare_kept()

        self._start(follow())

    async def _follow(self, name: str, begin: Callable[[], Any], outcome: Callable[[BaseException], str]) -> None:
        try:
            result = begin()
            if inspect.isawaitable(result):
                await result
        except (Exception, asyncio.CancelledError) as error:
            self._out("settled", name=name, outcome=outcome(error), message=str(error))
        else:
            self._out("settled", name=name, outcome="ok")

    def _do(self, result: Any) -> None:
        if inspect.isawaitable(result):
            self._start(result)

    def _start(self, awaitable: Any) -> None:
        task = asyncio.ensure_future(awaitable)
        self._tasks.add(task)  # asyncio itself keeps only weak references
        task.add_done_callback(self._tasks.discard)

    # -- calls --

    async def _wait(self, call: _Pending, payload: dict) -> dict:
        return await self._begin(call, payload)

    def _begin(self, call: _Pending, payload: dict, answer: Optional[dict] = None) -> Awaitable:
        """Reports a callback and gives what waits for its answer."""
        if self._closed:
            raise Closed()
        self._call(call.name, payload, call.signal, answer=answer)
        self._pending[call.name] = call
        call.answer.add_done_callback(lambda future: future.cancelled() and self._tell_cancelled(call))
        return call.answer

    def _tell_cancelled(self, call: _Pending) -> None:
        if not call.told and (call.answer.cancelled() or _is_set(call.signal)):
            call.told = True
            self._out("cancelled", name=call.name)

    def _give(self, stream: ModelStream, answer: dict) -> bool:
        last = stream.give(answer)
        event = answer.get("event") or {}
        message = answer.get("final") or event.get("message") or event.get("error")
        if last and message:
            self._calls = tool_calls(message)
        return last

    def _update(self, name: str, partial: Any) -> None:
        if name not in self._updates:
            raise ProtocolError("call", f"no tool {name} was executed")
        self._update_all(name, [partial])

    def _update_all(self, name: str, partials: list) -> None:
        on_update = self._updates[name]
        for partial in partials if on_update else []:
            try:
                self._do(on_update(partial))
            except Exception as error:  # a tool would not know what to do with it either
                self.log(f"on_update of {name} raised: {error}")

    def _hook_now(self, hook: str, name: str, payload: dict, signal: Any) -> dict:
        script = self._script["hooks"].get(hook) or {}
        key = name[len(f"hook/{hook}/"):]
        entry = (script.get("answers") or {}).get(key) or script.get("else") or {}
        answer = {"throw": entry["throw"]} if entry.get("throw") is not None else {"hook": entry.get("value") or {}}
        if entry.get("abort"):
            answer["abort"] = True
        self._answered(name, payload, signal, answer)
        return _copy(_or_raise(answer)["hook"])

    def _answered(self, name: str, payload: dict, signal: Any, answer: dict) -> None:
        self._call(name, payload, signal, auto=True, answer=answer)
        if answer.get("abort"):
            self._do(self._agent.abort())

    def _call(self, name: str, payload: dict, signal: Any, **rest: Any) -> None:
        self._out("call", name=name, payload=payload, aborted=_is_set(signal) or None, **rest)

    def _next_turn(self) -> dict:
        turns, n = self._script["model"], self._turn
        self._turn += 1
        return turns[n] if n < len(turns) else self._script["modelElse"]

    def _call_of(self, tool_name: str, raw_args: Any) -> str:
        of_tool = [call for call in self._calls if call["name"] == tool_name]
        found = next((call for call in of_tool if call.get("arguments") is raw_args), None) or next(iter(of_tool), None)
        if found is None:
            return tool_name
        self._calls = [call for call in self._calls if call is not found]
        return found["id"]

    # -- names --

    def _hook_name(self, hook: str, key: Optional[str]) -> str:
        return self._numbered(f"hook/{hook}") if key is None else self._unique(f"hook/{hook}/{key}")

    def _count(self, name: str) -> int:
        n = self._counts.get(name, 0)
        self._counts[name] = n + 1
        return n

    def _numbered(self, name: str) -> str:
        return f"{name}/{self._count(name)}"

    def _unique(self, name: str) -> str:
        n = self._count(name)
        return f"{name}~{n}" if n else name

    def _out(self, type: str, **fields: Any) -> None:
        if not self._closed:
            self._emit({"type": type, "session": self.session, **fields})


class _Done:
    """An awaitable that is done: the recorder gives it, so that it has seen the event when it returns."""

    def __await__(self) -> Any:
        return iter(())


DONE = _Done()


def _is_set(signal: Any) -> bool:
    return signal is not None and bool(signal.is_set())


def _or_raise(answer: dict) -> dict:
    if answer.get("throw") is not None:
        raise Thrown(answer["throw"])
    return answer


def _plain_return(tool_call_id: str) -> dict:
    return {"result": {"content": [{"type": "text", "text": "r" + tool_call_id}]}}


def _together(steps: list) -> dict:
    """The steps of an automatic stream as one answer."""
    answer: dict = {}
    events = [step["event"] for step in steps if step.get("event")]
    if events:
        answer["events"] = events
    for step in steps:
        answer.update({k: step[k] for k in ("final", "ends", "throw") if step.get(k) is not None})
    return answer


def _about(event: dict) -> str:
    of_message = event["type"].startswith("message_")
    about = event.get("toolCallId") or (of_message and event.get("message", {}).get("role"))
    return f"{event['type']}/{about}" if about else event["type"]


def _state_of(state: dict) -> dict:
    messages = state.get("messages") or []
    streaming = state.get("streamingMessage")
    return {
        "isStreaming": bool(state.get("isStreaming")),
        "pendingToolCalls": list(state.get("pendingToolCalls") or []),
        "messages": len(messages),
        "last": tag(messages[-1]) if messages else None,
        "streaming": streaming["role"] if streaming else None,
        "errorMessage": state.get("errorMessage") or None,
    }


def _present(members: Optional[dict]) -> dict:
    return {name: value for name, value in (members or {}).items() if value is not None}


def _first(members: dict, *names: str) -> Any:
    """The first member that is there; the last name is what it is otherwise."""
    return next((members[name] for name in names[:-1] if members.get(name) is not None), names[-1])


def _copy(value: Any) -> Any:
    """A copy of its own for whoever gets it: loops change what they are given."""
    if isinstance(value, dict):
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


# ---- the protocol ----


class Server:
    """Speaks the protocol for one adapter, one message after the other."""

    def __init__(self, subject: dict, editions: list, capabilities: list, open: Callable[[Surroundings], Any], output: "_Output"):
        self.subject, self.editions, self.capabilities = subject, editions, capabilities
        self._open_agent = open
        self._emit = output.emit
        self._flush = output.flush
        self._sessions: dict = {}
        self._session = None  # of the message before
        self.over = False

    async def take(self, line: bytes) -> None:
        message: dict = {}
        try:
            message = _parse(line)
            if message.get("session") != self._session:
                self._flush()  # should this case be the end, the one before is not to blame
                self._session = message.get("session")
            reply = await self._handle(message)
        except Exception as error:
            code = error.code if isinstance(error, ProtocolError) else "failed"
            reply = {"type": "error", "code": code, "message": str(error), "stack": traceback.format_exc()}
        self._emit({"type": "ok", "re": message.get("id"), **(reply or {})})

    async def _handle(self, message: dict) -> Optional[dict]:
        kind = message.get("type")
        if kind == "hello":
            return self._hello(message)
        if kind == "open":
            return self._open(message)
        if kind == "bye":
            self.over = True
            return None
        if kind not in ("user", "answer", "sync", "close"):
            raise ProtocolError("unsupported", f"unknown type {kind!r}")
        session = self._sessions.get(message.get("session"))
        if session is None:
            raise ProtocolError("session", f"session {message.get('session')!r} is not open")
        if kind == "user":
            session.user(message["name"], message["kind"], message.get("answer") or {})
        elif kind == "answer":
            session.answer(message["call"], message.get("answer") or {})
        elif kind == "close":
            self._sessions.pop(message["session"]).close()
        elif kind == "sync":
            await _settle()
            return {"type": "synced", **session.status()}
        return None

    def _hello(self, message: dict) -> dict:
        if PROTOCOL not in message.get("protocol", []):
            raise ProtocolError("version", f"this adapter speaks protocol {PROTOCOL} only")
        return {
            "type": "helloOk", "protocol": PROTOCOL, "nonce": message.get("nonce"), "subject": self.subject,
            "editions": self.editions, "barrier": "quiescent", "capabilities": self.capabilities,
        }

    def _open(self, message: dict) -> None:
        name = message["session"]
        if name in self._sessions:
            raise ProtocolError("session", f"session {name} is open already")
        missing = next((need for need in _needs(message) if need not in self.capabilities), None)
        if missing:
            raise ProtocolError("unsupported", f"the subject has not declared {missing}")
        surroundings = Surroundings(message, self._emit, keeps="retained" in self.capabilities)
        surroundings.attach(self._open_agent(surroundings))
        self._sessions[name] = surroundings

    def log(self, text: str) -> None:
        """Reports something that belongs to no callback; it goes to the session that was opened last."""
        for session in list(self._sessions.values())[-1:]:
            session.log(text)


def _parse(line: bytes) -> dict:
    if len(line) > MAX_LINE:
        raise ProtocolError("malformed", "the line is longer than 16 MiB")
    try:
        message = json.loads(line.decode("utf-8"))
    except ValueError as error:
        raise ProtocolError("malformed", str(error))
    if not isinstance(message, dict):
        raise ProtocolError("malformed", "the line is no JSON object")
    return message


def _needs(message: dict) -> list:
    """The capabilities without which a session would be another one than was asked for."""
    config = _present(message.get("config"))
    hooks = list(config.get("hooks", {}))
    if any(tool.get("prepareArguments") for tool in config.get("tools", [])):
        hooks.append("prepareArguments")
    return [f"forms:{message.get('form', 'agent')}"] + [f"hooks:{hook}" for hook in hooks]


async def _settle() -> None:
    """The barrier: gives the loop turns until nothing in it is ready to run. When sleep(0)
    returns, all that was ready before has run, so what is ready now was started by it."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    while loop._ready:  # asyncio has no public name for it
        await asyncio.sleep(0)


class _Output:
    """Gathers lines, and writes them when it is told to."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lines: list = []

    def emit(self, message: dict) -> None:
        self._lines.append(json.dumps({k: v for k, v in message.items() if v is not None}, separators=(",", ":")))

    def flush(self) -> None:
        data = "".join(line + "\n" for line in self._lines).encode()
        self._lines.clear()
        while data:
            data = data[os.write(self._descriptor, data):]


def serve(*, subject: dict, editions: list, capabilities: list, open: Callable[[Surroundings], Any]) -> None:
    """Runs an adapter on standard input and output until bye or the end of input.

    Whatever else is written to standard output goes to standard error.
    """
    output = _Output(os.dup(1))
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server = Server(subject, editions, capabilities, open, output)
    asyncio.run(_read(server, output))


async def _read(server: Server, output: _Output) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, context: server.log(context.get("message", "an error in the background")))
    rest = b""
    while not server.over:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            await server.take(line)
        output.flush()
    os._exit(0)  # tasks of sessions that are still open are of no interest
